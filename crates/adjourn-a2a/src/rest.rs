//! HTTP+JSON, the other binding of both versions: the same methods, as paths.

use serde_json::{Map, Value, json};

use crate::error::{self, Error};
use crate::method::{Family, Method, Verb};
use crate::version::Version;

/// The step of a path that leads to the receivers of a task.
const PUSH: &str = "pushNotificationConfigs";

/// What an HTTP request is made of, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What is asked for, as HTTP has it.
    pub how: How,
    /// The path behind the agent's URL, without a slash at its beginning.
    pub path: &'a str,
    /// What stands behind the question mark.
    pub query: &'a str,
}

/// The methods of HTTP that there are paths for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
}

impl Request<'_> {
    /// Returns the version whose paths these are: those of 0.3 begin with `v1`.
    pub fn version(self) -> Version {
        match self.path == "v1" || self.path.starts_with("v1/") {
            true => Version::V03Proto,
            false => Version::V10,
        }
    }
}

/// Finds the method that a request asks for, and puts its parameters together: those of the path count
/// before those of the body or the query.
///
/// # Errors
/// There is nothing at that path.
pub fn read(request: Request<'_>, body: Value) -> Result<(Method, Value), Error> {
    let Request { how, path, query } = request;
    let version = request.version();
    let nothing =
        || Error::new(error::METHOD_NOT_FOUND, "METHOD_NOT_FOUND", "there is nothing here");
    let steps = path.trim_end_matches('/').split('/').map(|step| decoded(step, false));
    let mut steps: Vec<_> = steps.skip(usize::from(version == Version::V03Proto)).collect();
    let is_first = |step: &String| {
        matches!(step.as_str(), "tasks" | "message:send" | "message:stream" | "extendedAgentCard")
    };
    // Only 1.0 has tenants.
    let tenant = match steps.first() {
        Some(first) if version == Version::V10 && !is_first(first) => Some(steps.remove(0)),
        _ => None,
    };
    let steps: Vec<_> = steps.iter().map(String::as_str).collect();
    let (verb, id) = match (how, steps.as_slice()) {
        (How::Post, ["message:send"]) => (Verb::Send, None),
        (How::Post, ["message:stream"]) => (Verb::Stream, None),
        (How::Get, ["tasks"]) => (Verb::List, None),
        (_, ["tasks", task]) => {
            let (id, action) = match task.rsplit_once(':') {
                Some((id, action)) => (id, Some(action)),
                None => (*task, None),
            };
            let verb = match (how, action) {
                (How::Get, None) => Verb::Get,
                (How::Post, Some("cancel")) => Verb::Cancel,
                // The text of the specification has one of them, its proto file the other.
                (How::Get | How::Post, Some("subscribe")) => Verb::Subscribe,
                (How::Post, Some("pause")) => Verb::Pause,
                (How::Post, Some("resume")) => Verb::Resume,
                (How::Post, Some("awaitResumption")) => Verb::Await,
                _ => return Err(nothing()),
            };
            (verb, Some(id))
        }
        (How::Post, ["tasks", task, PUSH]) => (Verb::SetPush, Some(*task)),
        (How::Get, ["tasks", task, PUSH]) => (Verb::ListPushes, Some(*task)),
        (How::Get, ["tasks", task, PUSH, _]) => (Verb::GetPush, Some(*task)),
        (How::Delete, ["tasks", task, PUSH, _]) => (Verb::DeletePush, Some(*task)),
        (How::Get, ["extendedAgentCard"]) if version == Version::V10 => (Verb::Card, None),
        (How::Get, ["card"]) if version == Version::V03Proto => (Verb::Card, None),
        _ => return Err(nothing()),
    };
    let mut params = match body {
        Value::Null => Map::new(),
        Value::Object(fields) => fields,
        _ => return Err(Error::invalid("body", "expected an object")),
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    for (name, value) in pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
        params.insert(decoded(name, true), decoded(value, true).into());
    }
    let config = match steps.as_slice() {
        ["tasks", _, PUSH, config] => Some((*config).to_owned()),
        _ => None,
    };
    let is_of_push = matches!(steps.as_slice(), ["tasks", _, PUSH, ..]);
    let named = [
        // The id of a configuration is in the body.
        ("id", id.filter(|_| !is_of_push).map(str::to_owned)),
        ("taskId", id.map(str::to_owned)),
        ("pushNotificationConfigId", config),
        ("tenant", tenant),
    ];
    params.extend(
        named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))),
    );
    let family = match verb {
        Verb::Pause | Verb::Resume | Verb::Await => Family::Alias,
        _ => Family::Standard,
    };
    Ok((Method { verb, version, family }, params.into()))
}

/// Returns the status of an error, and its body.
pub fn failure(error: &Error, version: Version) -> (u16, Value) {
    let (code, status) = match error.code {
        error::TASK_NOT_FOUND => (404, "NOT_FOUND"),
        error::METHOD_NOT_FOUND => (404, "UNIMPLEMENTED"),
        error::INTERNAL_ERROR => (500, "INTERNAL"),
        error::FORBIDDEN => (403, "PERMISSION_DENIED"),
        error::NOT_PAUSABLE => (409, "FAILED_PRECONDITION"),
        error::HANDLE_MISMATCH => (409, "ABORTED"),
        error::PARSE_ERROR
        | error::INVALID_REQUEST
        | error::INVALID_PARAMS
        | error::CONTENT_TYPE_NOT_SUPPORTED => (400, "INVALID_ARGUMENT"),
        _ => (400, "FAILED_PRECONDITION"),
    };
    let body = match version {
        Version::V10 => json!({ "error": {
            "code": code,
            "status": status,
            "message": error.message(),
            "details": [error.info()],
        } }),
        // 0.3 has no other shape for an error than that of JSON-RPC.
        Version::V03 | Version::V03Proto => error.to_rpc(),
    };
    (code, body)
}

/// Returns a text without its escapes; one that is malformed stays as it is. In a query, a plus is a
/// space.
fn decoded(text: &str, is_query: bool) -> String {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' if is_query => decoded.push(b' '),
            b'%' => {
                let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
                let code = digit().zip(digit()).map(|(high, low)| high * 16 + low);
                match code.and_then(|code| u8::try_from(code).ok()) {
                    Some(code) => decoded.push(code),
                    None => return text.to_owned(),
                }
            }
            byte => decoded.push(byte),
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, body: Value) -> Result<(Verb, Value), i64> {
        let (method, path) = line.split_once(' ').unwrap();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let how = match method {
            "GET" => How::Get,
            "POST" => How::Post,
            _ => How::Delete,
        };
        let request = Request { how, path, query };
        read(request, body)
            .map(|(method, params)| (method.verb, params))
            .map_err(|error| error.code)
    }

    #[test]
    fn each_path_is_a_method_with_its_parameters() {
        let id = json!({ "id": "run-1", "taskId": "run-1" });
        for (line, verb, params) in [
            ("POST message:send", Verb::Send, json!({})),
            ("POST message:stream", Verb::Stream, json!({})),
            ("GET tasks/run-1", Verb::Get, id.clone()),
            ("POST tasks/run-1:cancel", Verb::Cancel, id.clone()),
            ("GET tasks/run-1:subscribe", Verb::Subscribe, id.clone()),
            ("POST tasks/run-1:subscribe", Verb::Subscribe, id.clone()),
            ("POST tasks/run-1:pause", Verb::Pause, id.clone()),
            ("POST tasks/run-1:resume/", Verb::Resume, id.clone()),
            ("POST tasks/run-1:awaitResumption", Verb::Await, id),
            (
                "GET tasks?pageSize=2&statusTimestampAfter=2026-11-16T09%3A00%3A00Z",
                Verb::List,
                json!({ "pageSize": "2", "statusTimestampAfter": "2026-11-16T09:00:00Z" }),
            ),
            ("GET team%20a/tasks", Verb::List, json!({ "tenant": "team a" })),
            (
                "GET a+b/tasks?contextId=a+b",
                Verb::List,
                json!({ "tenant": "a+b", "contextId": "a b" }),
            ),
            ("GET extendedAgentCard", Verb::Card, json!({})),
            ("GET acme/extendedAgentCard/", Verb::Card, json!({ "tenant": "acme" })),
            ("GET v1/card", Verb::Card, json!({})),
            ("GET v1/tasks", Verb::List, json!({})),
            (
                "POST tasks/run-1/pushNotificationConfigs",
                Verb::SetPush,
                json!({ "taskId": "run-1" }),
            ),
            (
                "GET v1/tasks/run-1/pushNotificationConfigs",
                Verb::ListPushes,
                json!({ "taskId": "run-1" }),
            ),
            (
                "GET acme/tasks/run-1/pushNotificationConfigs/c%201",
                Verb::GetPush,
                json!({ "taskId": "run-1", "pushNotificationConfigId": "c 1", "tenant": "acme" }),
            ),
            (
                "DELETE v1/tasks/run-1/pushNotificationConfigs/c",
                Verb::DeletePush,
                json!({ "taskId": "run-1", "pushNotificationConfigId": "c" }),
            ),
            ("POST v1/message:send", Verb::Send, json!({})),
            (
                "POST v1/tasks/run-1:cancel",
                Verb::Cancel,
                json!({ "id": "run-1", "taskId": "run-1" }),
            ),
        ] {
            assert_eq!(found(line, Value::Null).unwrap(), (verb, params), "{line}");
        }
        let (_, params) =
            found("POST tasks/a:pause", json!({ "reason": "x", "taskId": "b" })).unwrap();
        assert_eq!(params, json!({ "reason": "x", "taskId": "a", "id": "a" }));
    }

    #[test]
    fn what_is_nowhere_is_told_as_such() {
        for (line, code) in [
            ("GET message:send", -32601),
            ("POST tasks", -32601),
            ("POST tasks/a", -32601),
            ("GET tasks/a:pause", -32601),
            ("GET tasks/a:awaitResumption", -32601),
            ("POST tasks/a:explode", -32601),
            ("GET a/b/c", -32601),
            ("GET ", -32601),
            ("GET v1/extendedAgentCard", -32601),
            ("GET v1", -32601),
            ("GET v1/acme/tasks", -32601),
            ("DELETE tasks/a", -32601),
            ("DELETE tasks/a:cancel", -32601),
            ("DELETE tasks/a/pushNotificationConfigs", -32601),
            ("POST tasks/a/pushNotificationConfigs/c", -32601),
        ] {
            assert_eq!(found(line, Value::Null), Err(code), "{line}");
        }
        assert_eq!(found("POST message:send", json!([])), Err(-32602));
        let refused = Error::no_task("x", Family::Alias);
        let (status, body) = failure(&refused, Version::V10);
        assert_eq!((status, &body["error"]["status"]), (404, &json!("NOT_FOUND")));
        assert_eq!(body["error"]["details"][0]["reason"], "TASK_NOT_FOUND");
        let (status, body) = failure(&refused, Version::V03Proto);
        assert_eq!((status, &body["code"]), (404, &json!(-32001)));
    }
}
