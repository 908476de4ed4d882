//! Blocks of content, and the transcript entries that they become.

use adjourn_driver::{Block, Message, Role};
use serde_json::{Map, Value, json};

use crate::rpc::Error;

/// Turns a prompt into a transcript entry.
///
/// # Errors
/// A block is none.
pub fn said(blocks: Vec<Map<String, Value>>) -> Result<Message, Error> {
    if blocks.is_empty() {
        return Err(Error::invalid("prompt", "must not be empty"));
    }
    let read = |(index, fields): (usize, Map<String, Value>)| {
        let typed = fields.get("type").is_some_and(Value::is_string);
        Block::from_fields(fields).ok_or_else(|| {
            let field = if typed { "text" } else { "type" };
            Error::invalid(format!("prompt[{index}].{field}"), "expected a text")
        })
    };
    let blocks = blocks.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
    Ok(Message::new(Role::User, blocks))
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
