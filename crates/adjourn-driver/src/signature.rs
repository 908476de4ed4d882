//! Signatures: by which calls with the same arguments are known to be the same.

use adjourn_core::limits;
use adjourn_core::transcript::Digest;
use serde_json::Value;

use crate::content::CallContent;

/// How much of a tool's name is in a signature.
const NAME_BYTES: usize = 64;
/// How long the arguments of most calls are: room for them is made at once.
const ARGUMENTS_BYTES: usize = 512;
/// How many digits of the hash of the arguments are.
const DIGITS: usize = 8;

/// Returns the signature of a call: the tool's name and a hash of its arguments, in which the order
/// of their names does not count.
pub fn signature(call: &CallContent) -> String {
    let mut text = Vec::with_capacity(ARGUMENTS_BYTES);
    match &call.arguments {
        Value::Null => text.extend(b"{}"),
        arguments => write_in_order(arguments, &mut text),
    }
    let digest = Digest::of(&text);
    let mut signature = limits::excerpt(&call.tool, NAME_BYTES);
    signature.push(':');
    // Every suspension writes one for each call: what is not kept is not written.
    let digits = digest.as_bytes().iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let digits = digits.take(DIGITS).filter_map(|digit| char::from_digit(digit.into(), 16));
    signature.extend(digits);
    signature
}

/// Writes a value as JSON, with the names of every object in order: values that are equal are written
/// alike.
pub fn write_in_order(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push(b'{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write_plain(name, text);
                text.push(b':');
                write_in_order(value, text);
            }
            text.push(b'}');
        }
        Value::Array(values) => {
            text.push(b'[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write_in_order(value, text);
            }
            text.push(b']');
        }
        plain => write_plain(plain, text),
    }
}

fn write_plain(value: &impl serde::Serialize, text: &mut Vec<u8>) {
    // A text or a number is always written, and a list of bytes takes it.
    let _ = serde_json::to_writer(text, value);
}

#[cfg(test)]
mod tests {
    use adjourn_core::ledger::CallId;
    use serde_json::json;

    use super::*;

    fn call(tool: &str, arguments: Value) -> String {
        signature(&CallContent { arguments, ..CallContent::new(CallId::from("c"), tool) })
    }

    #[test]
    fn the_order_of_names_does_not_count() {
        let one = call("read", json!({ "a": 1, "b": { "c": 2, "d": [1, 2] } }));
        assert_eq!(one, call("read", json!({ "b": { "d": [1, 2], "c": 2 }, "a": 1 })));
        assert_ne!(one, call("read", json!({ "a": 1, "b": { "c": 2, "d": [2, 1] } })));
        assert_ne!(one, call("write", json!({ "a": 1, "b": { "c": 2, "d": [1, 2] } })));
        assert_eq!(call("x", Value::Null), call("x", json!({})));
    }
}
