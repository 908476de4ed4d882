//! Signatures: by which calls with the same arguments are known to be the same.

use adjourn_core::limits;
use adjourn_core::transcript::Digest;
use adjourn_driver::CallContent;
use serde_json::{Map, Value};

/// How much of a tool's name is in a signature.
const NAME_BYTES: usize = 64;
/// How many digits of the hash of the arguments are.
const DIGITS: usize = 8;

/// Returns the signature of a call: the tool's name and a hash of its arguments, in which the order
/// of their names does not count.
pub(crate) fn signature(call: &CallContent) -> String {
    // A value always encodes.
    let arguments = serde_json::to_vec(&sorted(&call.arguments())).unwrap_or_default();
    let digest = Digest::of(&arguments).to_string();
    let tool = limits::excerpt(&call.tool, NAME_BYTES);
    format!("{tool}:{}", digest.get(..DIGITS).unwrap_or_default())
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields.into_iter().map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(values) => Value::Array(values.iter().map(sorted).collect()),
        other => other.clone(),
    }
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
