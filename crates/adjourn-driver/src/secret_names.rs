//! Names that say that what they name is a secret.

/// What says so anywhere in a name.
const PARTS: &[&str] = &[
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "TOKEN",
    "SECRET",
    "CREDENTIAL",
    "APIKEY",
    "API_KEY",
    "PRIVATE",
];

/// What says so as a word of a name, also in the plural or with a number: inside other words it says
/// nothing, as in `KEYBOARD`.
const WORDS: &[&str] =
    &["KEY", "PWD", "AUTH", "AUTHORIZATION", "PASS", "COOKIE", "SIG", "SIGNATURE"];

/// Returns whether a name says that its value is a secret: of a variable, or of what an address asks
/// for. Its words are set apart by signs, or by their first letters (`accessKey`).
pub fn is_secret_name(name: &str) -> bool {
    let is_secret_word = |word: &str| {
        let word = word.trim_end_matches(|last: char| last.is_ascii_digit());
        let one = word.strip_suffix('S').unwrap_or(word);
        WORDS.contains(&word) || WORDS.contains(&one)
    };
    let mut spaced = String::with_capacity(name.len());
    let mut is_small = false;
    for letter in name.chars() {
        if is_small && letter.is_uppercase() {
            spaced.push('_');
        }
        is_small = letter.is_lowercase();
        spaced.extend(letter.to_uppercase());
    }
    let whole = name.to_uppercase();
    PARTS.iter().any(|part| whole.contains(part))
        || spaced.split(['_', '-', '.']).any(is_secret_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_name_say_that_it_names_a_secret_however_they_are_set_apart() {
        for name in
            ["key", "API_KEY", "api-key", "accessKey", "exaApiKey", "sig", "x.auth", "keys2"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["project", "monkey", "keyboard", "AUTHOR", "designer", "read_only", "K", ""] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
