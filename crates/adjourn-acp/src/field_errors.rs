//! What is wrong with a field, in plain words.
//!
//! A deserializer speaks of the types it reads into; a client, and the person who reads what it
//! shows, is told what was expected in the place, and what was found.

/// Says what a deserializer's refusal means.
pub fn problem(refusal: &str) -> String {
    let refusal = refusal.rfind(" at line ").and_then(|end| refusal.get(..end)).unwrap_or(refusal);
    // What was found may be a text with anything in it, so that the end is looked for first.
    let parts = refusal.rsplit_once(", expected ");
    if let Some((found, expected)) = parts {
        if let Some(found) = found.strip_prefix("invalid type: ") {
            return format!("expected {}, found {}", kind(expected), found_kind(found));
        }
        if let Some(found) = found.strip_prefix("invalid value: ") {
            let found = found.split_once('`').map(|(_, literal)| literal.trim_end_matches('`'));
            let found = found.unwrap_or("another value");
            return format!("expected {}, found {found}", kind(expected));
        }
        if let Some(found) = found.strip_prefix("unknown variant `") {
            let expected = expected.replace('`', "");
            return format!("expected {expected}, found {:?}", found.trim_end_matches('`'));
        }
    }
    let field = |start: &str| refusal.strip_prefix(start).map(|rest| rest.trim_end_matches('`'));
    if let Some(field) = field("duplicate field `") {
        return format!("there are two fields {field:?}");
    }
    if let Some(field) = field("unknown field `") {
        let field = field.split('`').next().unwrap_or_default();
        return format!("there is no field {field:?} here");
    }
    // Half of a pair of escapes that stand for one character.
    if ["lone leading surrogate", "unexpected end of hex escape"]
        .iter()
        .any(|words| refusal.starts_with(words))
    {
        return "expected a text, found an escape that stands for no character".to_owned();
    }
    // These are words about the grammar; our own say what they mean.
    let grammar = ["invalid length", "invalid number", "expected ", "number out of range"];
    match grammar.iter().any(|start| refusal.starts_with(start)) {
        true => "another value is expected".to_owned(),
        false => refusal.to_owned(),
    }
}

/// Returns the field that a refusal says is missing.
pub fn missing(refusal: &str) -> Option<&str> {
    let refusal = refusal.rfind(" at line ").and_then(|end| refusal.get(..end)).unwrap_or(refusal);
    refusal.strip_prefix("missing field `")?.strip_suffix('`')
}

/// Returns the name of what a deserializer expects.
fn kind(expected: &str) -> &str {
    match expected {
        "a string" | "a borrowed string" | "string" => "a text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "u8" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "u16" => "a whole number from 0 to 65535",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        _ => "another value",
    }
}

/// Returns the name of what a deserializer found.
fn found_kind(found: &str) -> &str {
    match found.split([' ', '`', '"']).next() {
        Some("integer" | "floating") => "a number",
        Some("string" | "character") => "a text",
        Some("boolean") => "true or false",
        Some("null" | "unit" | "Option") => "nothing",
        Some("sequence") => "a list",
        Some("map") => "an object",
        _ => "another value",
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Pace {
        Slow,
        Fast,
        AtOnce,
    }

    fn refused<'a, T: Deserialize<'a> + std::fmt::Debug>(text: &'a str) -> String {
        let mut reader = serde_json::Deserializer::from_str(text);
        problem(&T::deserialize(&mut reader).unwrap_err().to_string())
    }

    #[test]
    fn what_was_expected_and_what_was_found_are_told_in_plain_words() {
        for (told, words) in [
            (refused::<String>("5"), "expected a text, found a number"),
            (
                refused::<u64>(r#"", expected 5""#),
                "expected a whole number from 0 on, found a text",
            ),
            (refused::<u64>("-1"), "expected a whole number from 0 on, found -1"),
            (refused::<u16>("70000"), "expected a whole number from 0 to 65535, found 70000"),
            (refused::<u64>("1.5"), "expected a whole number from 0 on, found a number"),
            (refused::<f64>("{}"), "expected a number, found an object"),
            (refused::<Vec<u8>>("true"), "expected a list, found true or false"),
            (refused::<bool>("null"), "expected true or false, found nothing"),
            (refused::<serde_json::Map<_, _>>("[]"), "expected an object, found a list"),
            (
                refused::<Pace>(r#""banana""#),
                r#"expected one of slow, fast, at_once, found "banana""#,
            ),
            (refused::<Pace>("5"), "another value is expected"),
            (
                refused::<String>(r#""\ud800""#),
                "expected a text, found an escape that stands for no character",
            ),
            (
                refused::<String>(r#""\ud800 x""#),
                "expected a text, found an escape that stands for no character",
            ),
            (
                refused::<String>(r#""\udc00""#),
                "expected a text, found an escape that stands for no character",
            ),
        ] {
            assert_eq!(told, words);
        }
        let _ = [Pace::Slow, Pace::Fast, Pace::AtOnce];
        assert_eq!(problem("an id is a text"), "an id is a text");
        assert_eq!(missing("missing field `cwd` at line 1 column 2"), Some("cwd"));
    }
}
