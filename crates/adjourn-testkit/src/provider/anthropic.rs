//! The messages of Anthropic.

use serde_json::{Value, json};

use super::Reply;

/// Returns one event of a stream.
///
/// # Panics
/// It has no type.
pub fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

/// Returns how an answer begins.
pub fn begins() -> String {
    let usage = json!({ "input_tokens": 20, "cache_creation_input_tokens": 30,
                        "cache_read_input_tokens": 50, "output_tokens": 1 });
    event(&json!({ "type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "model": "claude-sonnet-4-6", "stop_reason": null, "usage": usage } }))
}

/// Returns the events of one block.
pub fn block_of(index: u32, start: &Value, deltas: &[Value]) -> Vec<String> {
    let start = json!({ "type": "content_block_start", "index": index, "content_block": start });
    let delta = |delta: &Value| {
        event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
    };
    let mut events = vec![event(&start)];
    events.extend(deltas.iter().map(delta));
    events.push(event(&json!({ "type": "content_block_stop", "index": index })));
    events
}

/// Returns the events of a block of text.
pub fn text(index: u32, words: &[&str]) -> Vec<String> {
    let delta = |words: &&str| json!({ "type": "text_delta", "text": words });
    let deltas: Vec<Value> = words.iter().map(delta).collect();
    block_of(index, &json!({ "type": "text", "text": "" }), &deltas)
}

/// Returns how an answer ends, for this reason.
pub fn ends(reason: &str) -> Vec<String> {
    vec![
        event(&json!({ "type": "message_delta", "delta": { "stop_reason": reason },
                       "usage": { "output_tokens": 9 } })),
        event(&json!({ "type": "message_stop" })),
    ]
}

/// Returns an answer that says this, and is over.
pub fn says(words: &[&str]) -> Reply {
    Reply::events([vec![begins()], text(0, words), ends("end_turn")].concat())
}

/// Returns an answer that begins to say this.
pub fn begins_to_say(words: &str) -> Reply {
    let mut events = vec![begins()];
    events.extend(text(0, &[words]).into_iter().take(2));
    Reply::events(events)
}

/// Returns an answer that says this, and asks for one call.
pub fn calls(words: &str, id: &str, tool: &str, arguments: &Value) -> Reply {
    let call = json!({ "type": "tool_use", "id": id, "name": tool, "input": {} });
    let delta = json!({ "type": "input_json_delta", "partial_json": arguments.to_string() });
    let call = block_of(1, &call, &[delta]);
    Reply::events([vec![begins()], text(0, &[words]), call, ends("tool_use")].concat())
}

/// Returns the answer to a request whose key is not taken; it repeats the key, as some servers do.
pub fn refuses_key(key: &str) -> Reply {
    let message = format!("invalid x-api-key {key}");
    let error = json!({ "type": "authentication_error", "message": message });
    Reply::error(401, &json!({ "type": "error", "error": error }))
}
