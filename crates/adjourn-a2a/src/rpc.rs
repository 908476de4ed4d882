//! JSON-RPC: requests of both versions on one URL.

use adjourn::store::Store;
use serde_json::{Map, Value, json};

use crate::arrived::{Arrived, Given, Room};
use crate::caller::Caller;
use crate::error::{Error, INVALID_REQUEST};
use crate::face::{Answer, Asked, Face};
use crate::method::Method;
use crate::stopping::Stopping;
use crate::stream::{TaskStream, Told};
use crate::trace;
use crate::version::{Activated, Version};

/// How long a request may be.
pub const BODY_BYTES: usize = 16 * 1024 * 1024;
/// How long the id of a request may be.
const ID_BYTES: usize = 256;

/// What a request says outside of its body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    /// The version, as the header or the query has it.
    pub version: Option<&'a str>,
    /// What is activated.
    pub activated: Activated,
    /// The last event that the peer has seen.
    pub last_event: Option<&'a str>,
    /// The trace that the request belongs to, as `traceparent` has it.
    pub trace: Option<&'a str>,
    /// The URL under which a peer that has shown a token reaches the agent.
    pub url: Option<&'a str>,
    /// Tells that the server stops, so that what waits is answered.
    pub stopping: Option<&'a Stopping>,
}

impl<'a> Headers<'a> {
    /// Returns what is asked for, by whom.
    pub const fn asked(self, caller: &'a Caller, method: Method) -> Asked<'a> {
        let Self { activated, last_event, trace, url, stopping, .. } = self;
        Asked { caller, method, activated, last_event, trace, url, stopping }
    }
}

/// What a request is answered.
pub enum Reply<S: Store> {
    /// One object: a result, or an error.
    Object {
        /// The object, as JSON.
        json: String,
        /// The code of the error, if it is one.
        error: Option<i64>,
    },
    /// Events, each an answer to the request of this id.
    Stream(Value, Box<TaskStream<S>>),
}

impl<S: Store> Reply<S> {
    fn failure(id: &Value, error: &Error) -> Self {
        Self::Object { json: failure(id, error).to_string(), error: Some(error.code) }
    }
}

impl<S: Store> Face<S> {
    /// Answers a request. Its body is not kept while it waits.
    pub async fn rpc(
        &self,
        caller: &Caller,
        headers: Headers<'_>,
        body: impl Into<Arrived>,
    ) -> Reply<S> {
        let (request, room) = match body.into().read() {
            Ok(read) => read,
            Err(error) => {
                trace::refused(&error);
                return Reply::failure(&Value::Null, &error);
            }
        };
        let id = id(&request);
        match self.answer_to(caller, headers, request, room).await {
            Ok(Answer::Result(result)) => {
                Reply::Object { json: success(&id, &result), error: None }
            }
            Ok(Answer::Stream(stream)) => Reply::Stream(id, stream),
            Err(error) => Reply::failure(&id, &error),
        }
    }

    async fn answer_to(
        &self,
        caller: &Caller,
        headers: Headers<'_>,
        mut request: Value,
        room: Room,
    ) -> Result<Answer<S>, Error> {
        let method = asked_for(headers, &request).inspect_err(trace::refused)?;
        let params = request.get_mut("params").map(Value::take).unwrap_or_default();
        drop(request);
        self.ask(&headers.asked(caller, method), Given::new(params, room)).await
    }
}

/// Returns what a request asks for.
fn asked_for(headers: Headers<'_>, request: &Value) -> Result<Method, Error> {
    let name = named(request)?;
    Version::check(headers.version)?;
    Method::named(name).ok_or_else(|| Error::no_method(name))
}

/// Returns the name of the method that a request asks for.
fn named(request: &Value) -> Result<&str, Error> {
    let wrong = |problem: &str| Error::new(INVALID_REQUEST, "INVALID_REQUEST", problem);
    let fields: &Map<_, _> = request.as_object().ok_or_else(|| wrong("expected one request"))?;
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong("jsonrpc: expected 2.0"));
    }
    if !matches!(fields.get("id"), Some(Value::String(_) | Value::Number(_) | Value::Null)) {
        return Err(wrong("id: expected a text or a number"));
    }
    // It is kept as long as the request waits, and stands in every event of a stream.
    if fields.get("id").and_then(Value::as_str).is_some_and(|id| id.len() > ID_BYTES) {
        return Err(wrong("id: expected at most 256 bytes"));
    }
    let method = fields.get("method").and_then(Value::as_str);
    method.ok_or_else(|| wrong("method: expected a text"))
}

/// Returns the id of a request; null if it has none that can be answered to.
fn id(request: &Value) -> Value {
    match request.get("id") {
        Some(Value::String(id)) if id.len() <= ID_BYTES => id.as_str().into(),
        Some(id @ Value::Number(_)) => id.clone(),
        _ => Value::Null,
    }
}

/// An answer with a result, which is JSON already.
fn success(id: &Value, result: &str) -> String {
    // Put together in one piece: a result may be long.
    [r#"{"jsonrpc":"2.0","id":"#, &id.to_string(), r#","result":"#, result, "}"].concat()
}

/// An answer with an error.
pub fn failure(id: &Value, error: &Error) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": error.to_rpc() })
}

/// An event of a stream, as the request of an id is answered with it: as JSON.
pub fn event(id: &Value, told: &Told) -> String {
    match told {
        Told::Update(update) => success(id, update),
        Told::Frame(frame) => frame.to_string(),
    }
}
