//! Tokens that an agent repeats: what it answers is printed, and the token is not.

use adjourn::core::json;
use serde_json::Value;

use super::connection::MOST;
use crate::failure::Failure;

/// What is printed instead of a token.
const MASK: &str = "…";

/// How often the sign before an escaped letter is repeated at most: each JSON around JSON doubles it.
const MOST_SIGNS: usize = 64;

/// Takes a token out of a text, however it is spelled there: as it is, escaped as in JSON (also as
/// often as in JSON within JSON) or as in a URL, or broken into lines.
pub fn text(text: &str, token: Option<&str>) -> String {
    let Some(token) = token else { return text.to_owned() };
    let (mut masked, mut rest) = (String::new(), text);
    while let Some(letter) = rest.chars().next() {
        if let Some(behind) = behind(rest, token) {
            masked.push_str(MASK);
            rest = behind;
        } else {
            masked.push(letter);
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        }
    }
    masked
}

/// Takes a token out of an answer, which is JSON, or whatever else it is.
pub fn body(body: Vec<u8>, token: Option<&str>) -> Vec<u8> {
    if token.is_none() {
        return body;
    }
    let masked = match json::read(&body, MOST) {
        Ok(mut answer) => {
            value(&mut answer, token);
            answer.to_string()
        }
        // Its beginning is printed as it is, and may hold JSON.
        Err(_) => text(&String::from_utf8_lossy(&body), token),
    };
    masked.into_bytes()
}

/// Takes a token out of what is said of a failure.
pub fn failure(failure: Failure, token: Option<&str>) -> Failure {
    failure.rewritten(|said| text(said, token))
}

fn value(json: &mut Value, token: Option<&str>) {
    match json {
        Value::String(said) => *said = text(said, token),
        Value::Array(items) => items.iter_mut().for_each(|item| value(item, token)),
        Value::Object(fields) => {
            let masked = std::mem::take(fields).into_iter().map(|(name, mut field)| {
                value(&mut field, token);
                (text(&name, token), field)
            });
            *fields = masked.collect();
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Returns what stands behind a token if a text begins with it.
fn behind<'a>(text: &'a str, token: &str) -> Option<&'a str> {
    let mut letters = token.chars();
    let first = letters.next()?;
    letters.try_fold(spelled(text, first)?, |text, letter| {
        spelled(text, letter).or_else(|| spelled(behind_break(text)?, letter))
    })
}

/// Returns what stands behind a letter if a text begins with it, escaped or not.
fn spelled(text: &str, letter: char) -> Option<&str> {
    let escaped = escaped(text);
    let coded = || {
        let (digits, behind) = escaped?.strip_prefix('u')?.split_at_checked(4)?;
        (u32::from_str_radix(digits, 16) == Ok(u32::from(letter))).then_some(behind)
    };
    // A token may have a backslash, which begins its own code.
    let plain = coded().or_else(|| text.strip_prefix(letter));
    plain.or_else(|| escaped?.strip_prefix(letter)).or_else(|| in_a_url(text, letter))
}

/// Returns what stands behind a letter if a text begins with it as a URL spells it.
fn in_a_url(text: &str, letter: char) -> Option<&str> {
    let (digits, behind) = text.strip_prefix('%')?.split_at_checked(2)?;
    (u32::from_str_radix(digits, 16) == Ok(u32::from(letter))).then_some(behind)
}

/// Returns what stands behind the end of a line, and behind what the next one is indented by.
fn behind_break(text: &str) -> Option<&str> {
    let one = |text| {
        let plain = |text: &'_ str| text.strip_prefix(['\r', '\n']).map(str::len);
        let coded = |text| escaped(text)?.strip_prefix(['r', 'n']).map(str::len);
        let left = plain(text).or_else(|| coded(text))?;
        text.get(text.len() - left..)
    };
    let first: &str = one(text)?;
    Some(one(first).unwrap_or(first).trim_start_matches([' ', '\t']))
}

/// Returns what is escaped if a text begins with the sign for that, as often as JSON within JSON
/// repeats it.
fn escaped(text: &str) -> Option<&str> {
    let signs = text.bytes().take(MOST_SIGNS).take_while(|byte| *byte == b'\\').count();
    text.get(signs..).filter(|_| signs > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_out_however_it_is_spelled() {
        const TOKEN: &str = "s3/of\\ann";
        for said in [
            "s3/of\\ann",
            "s3\\/of\\\\ann",
            "\\u0073\\u0033/of\\u005cann",
            "s3\\\\\\/of\\\\\\\\ann",
            "s3/\nof\\\r\nann",
            "s\\n3/of\\\\r\\\\n  ann",
            "\\\\u0073\\\\u0033/of\\\\ann",
            "s3%2Fof%5cann",
        ] {
            let around = text(&format!("ss3, {said}; s3/of"), Some(TOKEN));
            assert_eq!(around, "ss3, …; s3/of", "{said}");
        }
        assert_eq!(text("s3/of\\ann", None), "s3/of\\ann");
        assert_eq!(
            body(br#"{"s3/of\\ann": "\u00"}"#.to_vec(), Some(TOKEN)),
            "{\"…\": \"\\u00\"}".as_bytes()
        );
        let signs = "\\".repeat(1 << 20);
        assert_eq!(text(&signs, Some(TOKEN)), signs, "in no time");
        let within = br#"{"a": ["{\"b\": \"s3\\/of\\\\ann\"}", 1]}"#.to_vec();
        assert_eq!(body(within, Some(TOKEN)), r#"{"a":["{\"b\": \"…\"}",1]}"#.as_bytes());
    }
}
