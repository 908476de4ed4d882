//! What is wrong with a text that was to be JSON, in plain words: where it breaks off or goes astray.

use serde_json::error::Category;

/// Says where a text stops being JSON.
///
/// A parser's own words are about its grammar; the author of the text needs the place.
pub fn problem(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Eof => format!("not JSON: it ends too early, in line {line}"),
        // The one thing that a grammar does not say of a number.
        Category::Syntax if error.to_string().starts_with("number out of range") => {
            format!("the number in line {line} that ends in column {column} is too large")
        }
        Category::Syntax | Category::Io => {
            format!("not JSON: it goes astray in line {line}, column {column}")
        }
        // It is JSON; the type that is read says what was expected there.
        Category::Data if line > 0 => {
            format!("another value is expected in line {line}, column {column}")
        }
        Category::Data => "another value is expected".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_where_a_text_goes_astray() {
        for (text, said) in [
            ("{broken", "not JSON: it goes astray in line 1, column 2"),
            ("", "not JSON: it ends too early, in line 1"),
            ("{\n\"a\": ", "not JSON: it ends too early, in line 2"),
            ("[1] 2", "not JSON: it goes astray in line 1, column 5"),
            ("{\"ms\": 1e400}", "the number in line 1 that ends in column 12 is too large"),
        ] {
            let error = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
            assert_eq!(problem(&error), said, "{text}");
        }
        let error = serde_json::from_str::<u8>("\n\"x\"").unwrap_err();
        assert_eq!(problem(&error), "another value is expected in line 2, column 3");
    }
}
