//! Texts that may be too long, or too secret, to be typed: `-` reads them from stdin.

use std::io::Read as _;

use adjourn::core::json::{self, Unreadable};
use serde_json::Value;

use crate::failure::Failure;

/// More than any limit of the lifecycle; what is longer is refused before it fills the memory.
pub const MOST: usize = 16 * 1024 * 1024;

/// Returns a text as it was typed, or all of stdin if that was meant.
pub fn typed(text: String) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text);
    }
    let mut read = String::new();
    let count = std::io::stdin()
        .lock()
        .take(MOST as u64 + 1)
        .read_to_string(&mut read)
        .map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
    if count > MOST {
        return Err(Failure::usage(format!("stdin: longer than {MOST} bytes")));
    }
    // The end of the last line is the terminal's or the editor's, not the text's.
    if let Some(line) = read.strip_suffix('\n') {
        read.truncate(line.strip_suffix('\r').unwrap_or(line).len());
    }
    Ok(read)
}

/// Returns a value for an agent, as it was typed or came on stdin; nothing if it is null.
pub fn input(text: String) -> Result<Option<Value>, Failure> {
    let text = typed(text)?;
    let value = match json::read(text.as_bytes(), MOST) {
        Ok(value) => value,
        // What begins like an object, a list or a quoted text was meant to be one.
        Err(error) if text.trim_start().starts_with(['{', '[', '"']) => {
            let quotes = "a text that begins like this needs quotes of its own: '\"{x}\"'";
            return Err(not_json("--input", quotes, error));
        }
        // A word without quotes is what people type; it is taken as text.
        Err(_) => Value::from(text),
    };
    Ok(Some(value).filter(|value| !value.is_null()))
}

/// Says what is wrong with a text that was to be JSON; `quotes` says how it is typed.
pub fn not_json(flag: &str, quotes: &str, error: Unreadable) -> Failure {
    let failure = Failure::usage(format!("{flag}: {error}"));
    match error {
        Unreadable::Malformed(_) => failure.hint(quotes),
        _ => failure,
    }
}
