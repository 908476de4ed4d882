//! The chat completions of `OpenAI`, and of all that speak like it.

use serde_json::{Value, json};

use super::Reply;

/// Returns one event of a stream that is a piece of the answer.
pub fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    event(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_794_787_200,
                   "model": "gpt-5", "choices": [choice] }))
}

/// Returns one event of a stream.
pub fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Returns an answer that says this, and is over.
pub fn says(text: &str) -> Reply {
    Reply::events([
        chunk(&json!({ "role": "assistant", "content": "" }), None),
        chunk(&json!({ "content": text }), None),
        chunk(&json!({}), Some("stop")),
        usage(),
        "data: [DONE]\n\n".to_owned(),
    ])
}

/// Returns an answer that says this, and asks for one call.
pub fn calls(words: &str, id: &str, tool: &str, arguments: &Value) -> Reply {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
    Reply::events([
        chunk(&json!({ "role": "assistant", "content": words }), None),
        chunk(&json!({ "tool_calls": [call] }), None),
        chunk(&json!({}), Some("tool_calls")),
        usage(),
        "data: [DONE]\n\n".to_owned(),
    ])
}

/// Returns the event that says what an answer has used.
fn usage() -> String {
    event(&json!({ "choices": [], "usage": {
        "prompt_tokens": 120, "completion_tokens": 8, "total_tokens": 128,
        "prompt_tokens_details": { "cached_tokens": 64 } } }))
}

/// Returns the answer to a request whose key is not taken; it repeats the key, as some servers do.
pub fn refuses_key(key: &str) -> Reply {
    let (message, code) = (format!("Incorrect API key provided: {key}."), "invalid_api_key");
    let error = json!({ "message": message, "type": "invalid_request_error", "code": code });
    Reply::error(401, &json!({ "error": error }))
}
