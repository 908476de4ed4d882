//! Blocks of content, and the transcript entries that they become.

use adjourn_host::said::Said;
use serde_json::{Map, Value, json};

use crate::rpc::Error;

/// Turns a prompt into a transcript entry.
///
/// # Errors
/// A block is none.
pub fn said(blocks: Vec<Map<String, Value>>) -> Result<Said, Error> {
    if blocks.is_empty() {
        return Err(Error::invalid("prompt", "must not be empty"));
    }
    for (index, block) in blocks.iter().enumerate() {
        let wrong =
            |field: &str| Error::invalid(format!("prompt[{index}].{field}"), "expected a text");
        let kind = block.get("type").and_then(Value::as_str).ok_or_else(|| wrong("type"))?;
        if kind == "text" && !block.get("text").is_some_and(Value::is_string) {
            return Err(wrong("text"));
        }
    }
    Ok(match blocks.as_slice() {
        // Plain words are stored as such, as over every other face.
        [only] if only.len() == 2 => match (only.get("type"), only.get("text")) {
            (Some(kind), Some(Value::String(text))) if kind == "text" => Said::user(text),
            _ => Said::User { content: Value::from(blocks) },
        },
        _ => Said::User { content: Value::from(blocks) },
    })
}

/// Returns what a person said as blocks.
pub fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) if blocks.iter().all(|block| block["type"].is_string()) => {
            blocks.clone()
        }
        Value::String(words) => vec![text(words)],
        other => vec![text(&other.to_string())],
    }
}

/// A block of text.
pub fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

/// Leaves of a server's description what may be stored: names of variables and headers, and never
/// their values, which are secrets more often than not.
pub fn without_secrets(server: Map<String, Value>) -> Value {
    let names = |list: &Value| -> Value {
        let entries = list.as_array().into_iter().flatten();
        entries.filter_map(|entry| entry.get("name")).map(|name| json!({ "name": name })).collect()
    };
    let kept = server.into_iter().map(|(field, value)| match field.as_str() {
        "env" | "headers" => (field, names(&value)),
        _ => (field, value),
    });
    Value::Object(kept.collect())
}
