//! Answers: what was asked for, or why it is refused.

use adjourn::core::json;
use serde_json::Value;

use super::peer::Binding;
use super::request::Ask;
use crate::error;

/// More than an agent may answer.
const MOST: usize = 32 * 1024 * 1024;
/// How much is shown of an answer that is no JSON.
const SHOWN: usize = 200;

/// Why an agent refuses something.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The status of HTTP that it came with.
    pub status: u16,
    /// The code of JSON-RPC, if it has one.
    pub code: Option<i64>,
    /// One word for it: the agent's own, or the one that its code stands for.
    pub reason: String,
    /// What the agent says of it, for people.
    pub message: String,
}

impl Refusal {
    /// Returns whether there is no such task, or none that the caller may know of.
    pub fn is_unknown_task(&self) -> bool {
        self.reason == "TASK_NOT_FOUND"
    }

    /// Returns whether the agent does not have the method at all.
    pub fn is_unknown_method(&self) -> bool {
        self.code == Some(error::METHOD_NOT_FOUND)
            || matches!(self.reason.as_str(), "METHOD_NOT_FOUND" | "UNIMPLEMENTED")
    }

    /// Returns whether the agent wants to know who asks.
    pub const fn is_unauthenticated(&self) -> bool {
        self.status == 401
    }
}

/// An answer that was read whole.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: &'a [u8],
}

impl Reply<'_> {
    /// Reads what was asked for.
    ///
    /// # Errors
    /// It is refused, or the answer is none.
    pub fn read(self, binding: Binding, ask: &Ask<'_>) -> Result<Value, Refusal> {
        let Self { status, body } = self;
        let read = match body {
            [] => Ok(Value::Null),
            body => json::read::<Value>(body, MOST),
        };
        let value = match read {
            Ok(value) => value,
            Err(_) => return Err(unreadable(status, body)),
        };
        let is_success = (200..300).contains(&status);
        match (binding, value) {
            (_, Value::Object(mut fields)) if fields.get("error").is_some_and(Value::is_object) => {
                let error = fields.shift_remove("error").unwrap_or_default();
                Err(refusal(status, &error, ask))
            }
            (Binding::JsonRpc, Value::Object(mut fields)) if is_success => {
                match fields.shift_remove("result") {
                    Some(result) => Ok(result),
                    None => Err(unreadable(status, body)),
                }
            }
            (Binding::HttpJson, value) if is_success => Ok(value),
            // Whoever stands between, or an agent of another kind, may say it in its own shape.
            (_, value) => Err(refusal(status, &value, ask)),
        }
    }

    /// Reads one event of a stream: what it tells, or nothing if it is a frame of the proposal, which
    /// is returned beside it.
    ///
    /// # Errors
    /// It says that the stream has failed.
    pub fn read_event(
        self,
        binding: Binding,
        ask: &Ask<'_>,
    ) -> Result<(Option<Value>, Option<Value>), Refusal> {
        let frame = json::read::<Value>(self.body, MOST).ok().and_then(|event| {
            let params = event.get("params").cloned();
            params.filter(|_| event.get("method").is_some_and(|name| name == "tasks/statusUpdate"))
        });
        match self.read(binding, ask) {
            Ok(_) if frame.is_some() && binding == Binding::HttpJson => Ok((None, frame)),
            Ok(told) => Ok((Some(told), frame)),
            Err(_) if frame.is_some() => Ok((None, frame)),
            Err(refusal) => Err(refusal),
        }
    }
}

/// An answer that is none of A2A.
fn unreadable(status: u16, body: &[u8]) -> Refusal {
    let text = String::from_utf8_lossy(body);
    let text: String = text.trim().chars().take(SHOWN).collect();
    let message = match text.as_str() {
        "" => format!("it answers with the status {status} and nothing else"),
        text => format!("it answers with the status {status}: {text}"),
    };
    let reason = by_status(status).unwrap_or("NOT_A2A").to_owned();
    Refusal { status, code: None, reason, message }
}

/// Reads an error of either binding.
fn refusal(status: u16, error: &Value, ask: &Ask<'_>) -> Refusal {
    let code = error.get("code").and_then(Value::as_i64);
    let lists = [error.get("data"), error.get("details")].into_iter().flatten();
    let infos = lists.flat_map(|data| match data {
        Value::Array(infos) => infos.iter().collect(),
        other => vec![other],
    });
    let info = infos.into_iter().find(|info| info.get("reason").is_some_and(Value::is_string));
    let told = info.and_then(|info| info.get("reason")).and_then(Value::as_str);
    // A code of JSON-RPC says more than a status of HTTP, which is 200 there.
    let known = code.and_then(|code| by_code(code, ask)).or_else(|| by_status(status));
    let reason = told.or(known).unwrap_or("REFUSED").to_owned();
    let words = ["message", "detail", "title"].iter().find_map(|name| error.get(*name)?.as_str());
    let words = match words {
        Some(words) => words.to_owned(),
        None => format!("it answers with the status {status}"),
    };
    // Many say the word in front of the sentence, because clients drop the rest.
    let message = words.strip_prefix(&format!("{reason}: ")).unwrap_or(&words).to_owned();
    let code = code.filter(|code| *code < 0);
    Refusal { status, code, reason, message }
}

/// Returns the word that a code stands for; in the methods of the proposal, one of A2A's own means
/// something else.
const fn by_code(code: i64, ask: &Ask<'_>) -> Option<&'static str> {
    Some(match code {
        error::PARSE_ERROR => "PARSE_ERROR",
        error::INVALID_REQUEST => "INVALID_REQUEST",
        error::METHOD_NOT_FOUND => "METHOD_NOT_FOUND",
        error::INVALID_PARAMS => "INVALID_PARAMS",
        error::INTERNAL_ERROR => "INTERNAL",
        error::TASK_NOT_FOUND => "TASK_NOT_FOUND",
        error::TASK_NOT_CANCELABLE => "TASK_NOT_CANCELABLE",
        error::UNSUPPORTED_OPERATION if ask.is_about_pauses() => "TASK_NOT_FOUND",
        error::UNSUPPORTED_OPERATION => "UNSUPPORTED_OPERATION",
        error::CONTENT_TYPE_NOT_SUPPORTED => "CONTENT_TYPE_NOT_SUPPORTED",
        error::VERSION_NOT_SUPPORTED => "VERSION_NOT_SUPPORTED",
        error::NOT_PAUSABLE => match ask {
            Ask::Resume { .. } => "TASK_NOT_PAUSED",
            _ => "TASK_NOT_PAUSABLE",
        },
        error::HANDLE_MISMATCH => "SUSPENSION_HANDLE_MISMATCH",
        _ => return None,
    })
}

/// Returns the word that a status stands for.
const fn by_status(status: u16) -> Option<&'static str> {
    Some(match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        501 => "UNIMPLEMENTED",
        500..=599 => "UNAVAILABLE",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    const GET: Ask<'static> = Ask::Get { task: "t" };

    fn read(binding: Binding, ask: &Ask<'_>, status: u16, body: &Value) -> Result<Value, Refusal> {
        Reply { status, body: body.to_string().as_bytes() }.read(binding, ask)
    }

    #[test]
    fn results_are_taken_out_of_what_carries_them() {
        let rpc = json!({ "jsonrpc": "2.0", "id": 1, "result": { "id": "t" } });
        assert_eq!(read(Binding::JsonRpc, &GET, 200, &rpc), Ok(json!({ "id": "t" })));
        assert_eq!(
            read(Binding::HttpJson, &GET, 200, &json!({ "id": "t" })),
            Ok(json!({ "id": "t" }))
        );
    }

    #[test]
    fn a_refusal_has_one_word_whatever_shape_it_comes_in() {
        let fields = Map::new();
        let pause = Ask::Pause { task: "t", fields: &fields };
        let rpc = |code: i64, data: Value| {
            json!({ "jsonrpc": "2.0", "id": 1,
            "error": { "code": code, "message": "HELD: lift the hold", "data": data } })
        };
        let info = json!([{ "@type": "x", "reason": "HELD", "metadata": { "taskId": "t" } }]);
        let refused = read(Binding::JsonRpc, &pause, 200, &rpc(-32011, info)).unwrap_err();
        assert_eq!((refused.reason.as_str(), refused.message.as_str()), ("HELD", "lift the hold"));
        assert_eq!(refused.code, Some(-32011));
        for (ask, code, reason) in [
            (&GET, -32004, "UNSUPPORTED_OPERATION"),
            (&pause, -32004, "TASK_NOT_FOUND"),
            (&GET, -32001, "TASK_NOT_FOUND"),
            (&pause, -32011, "TASK_NOT_PAUSABLE"),
            (&pause, -32601, "METHOD_NOT_FOUND"),
            (&GET, -32099, "REFUSED"),
        ] {
            let refused = read(Binding::JsonRpc, ask, 200, &rpc(code, Value::Null)).unwrap_err();
            assert_eq!(refused.reason, reason, "{code}");
        }
        let rest = json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": "no",
            "details": [{ "reason": "TASK_NOT_FOUND" }] } });
        assert!(read(Binding::HttpJson, &GET, 404, &rest).unwrap_err().is_unknown_task());
        let problem = json!({ "title": "Unauthorized", "detail": "show a token" });
        let refused = read(Binding::JsonRpc, &GET, 401, &problem).unwrap_err();
        assert!(refused.is_unauthenticated());
        assert_eq!(
            (refused.reason.as_str(), refused.message.as_str()),
            ("UNAUTHENTICATED", "show a token")
        );
    }

    #[test]
    fn what_is_not_a2a_is_told_with_its_beginning() {
        let page = Reply { status: 502, body: b"<html>bad gateway</html>" };
        let refused = page.read(Binding::JsonRpc, &GET).unwrap_err();
        assert_eq!(refused.message, "it answers with the status 502: <html>bad gateway</html>");
        let refused = read(Binding::JsonRpc, &GET, 200, &json!({ "hello": 1 })).unwrap_err();
        assert_eq!(refused.reason, "NOT_A2A");
    }

    #[test]
    fn frames_of_the_proposal_are_told_from_events() {
        let event = |value: &Value, binding| {
            Reply { status: 200, body: value.to_string().as_bytes() }.read_event(binding, &GET)
        };
        let frame = json!({ "jsonrpc": "2.0", "method": "tasks/statusUpdate", "params": { "taskId": "t" } });
        for binding in [Binding::JsonRpc, Binding::HttpJson] {
            assert_eq!(event(&frame, binding), Ok((None, Some(json!({ "taskId": "t" })))));
        }
        let both = json!({ "jsonrpc": "2.0", "id": 1, "result": 1, "method": "tasks/statusUpdate", "params": 2 });
        assert_eq!(event(&both, Binding::JsonRpc), Ok((Some(json!(1)), Some(json!(2)))));
        let failed =
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": "x" } });
        assert_eq!(event(&failed, Binding::JsonRpc).unwrap_err().reason, "INTERNAL");
    }
}
