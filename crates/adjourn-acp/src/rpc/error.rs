//! Why a request failed, as a JSON-RPC error.

use serde_json::{Value, json};

/// The line is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The line is JSON, and no message.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// A field is missing, malformed or out of range.
pub const INVALID_PARAMS: i64 = -32602;
/// Something went wrong that is not the caller's fault.
pub const INTERNAL_ERROR: i64 = -32603;
/// There is no such session.
pub const NOT_FOUND: i64 = -32002;
/// No version of the protocol at or below the one that was asked for.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// The client took the request back.
pub const CANCELLED: i64 = -32800;

/// Why a request failed, as the caller is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// The kind of failure.
    pub code: i64,
    /// What is wrong, in one sentence for people.
    pub message: String,
    /// What a program can use.
    pub data: Option<Box<Value>>,
}

impl Error {
    /// An error that is a code and a sentence.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Says the same in other words, to clients that show either of the two texts.
    #[must_use]
    pub fn saying(mut self, words: &str) -> Self {
        words.clone_into(&mut self.message);
        if let Some(data) = self.data.as_mut().and_then(|data| data.as_object_mut()) {
            data.insert("details".to_owned(), words.into());
        }
        self
    }

    /// Adds what a program can use.
    #[must_use]
    pub fn with(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// A field is missing, malformed or out of range.
    pub fn invalid(path: impl Into<String>, problem: &str) -> Self {
        let path = path.into();
        let message = match path.as_str() {
            "" => problem.to_owned(),
            path => format!("{path}: {problem}"),
        };
        let data = json!({ "reason": "INVALID", "path": path });
        Self::new(INVALID_PARAMS, message).with(data)
    }

    /// There is no such field.
    pub fn no_field(path: impl Into<String>, known: &[&str]) -> Self {
        let problem = format!("there is no such field; there are {}", known.join(", "));
        Self::invalid(path, &problem)
    }

    /// There is no such session.
    pub fn no_session(id: &str) -> Self {
        let data = json!({ "reason": "TASK_NOT_FOUND", "sessionId": id });
        let message = format!("there is no session {id:?}");
        Self::new(NOT_FOUND, message).with(data)
    }

    /// There is no such method.
    pub fn no_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("there is no method {method:?}"))
    }

    /// Returns whether this is the refusal with that word.
    pub fn is(&self, reason: &str) -> bool {
        self.data.as_ref().is_some_and(|data| data["reason"] == reason)
    }

    /// Returns the error as it stands in a message.
    pub fn to_json(&self) -> Value {
        let mut data = self.data.as_deref().cloned().unwrap_or_else(|| json!({}));
        // Some clients show this and not the message.
        if let Some(data) = data.as_object_mut() {
            data.entry("details").or_insert_with(|| self.message.as_str().into());
        }
        json!({ "code": self.code, "message": self.message, "data": data })
    }
}
