//! What clients send, as far as it is read; everything else in it is left alone.

use std::collections::HashMap;
use std::marker::PhantomData;

use adjourn::core::carry;
use adjourn::core::command::{Mode, Suspend};
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::facts::SpanLinks;
use adjourn::core::limits;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::envelope::Envelope;
use crate::peer::{Dialect, Peer};
use crate::rpc::{Error, Id, Params};
use crate::suspension::{AddBudget, Meta, SessionResumeFields, SessionSuspendRequest};

/// `initialize`, in either version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// The newest version the client knows.
    pub protocol_version: u16,
    /// v1.
    #[serde(default)]
    pub client_capabilities: Value,
    /// v1.
    #[serde(default)]
    pub client_info: Value,
    /// v2.
    #[serde(default)]
    pub capabilities: Value,
    /// v2.
    #[serde(default)]
    pub info: Value,
}

/// `session/new`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct New {
    /// The directory that the session works in.
    pub cwd: String,
    /// Servers that the client offers.
    #[serde(default)]
    pub mcp_servers: Option<Vec<Map<String, Value>>>,
}

/// `session/resume` and `session/load`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attach {
    /// The id of the session.
    pub session_id: String,
    /// The working directory; it must be the session's.
    #[serde(default)]
    pub cwd: Option<String>,
    /// The stored ones hold; values of their variables and headers, which are stored nowhere, are
    /// taken from here.
    #[serde(default)]
    pub mcp_servers: Option<Vec<Map<String, Value>>>,
    /// Accepted and not used.
    #[serde(default, rename = "additionalDirectories")]
    _additional_directories: Option<Vec<String>>,
    #[serde(default)]
    handle: Option<String>,
    #[serde(default)]
    input: Option<Value>,
    #[serde(default)]
    continue_transcript: Option<bool>,
    #[serde(default)]
    replay_from: Option<Value>,
    #[serde(default)]
    idempotency_key: Option<String>,
    #[serde(default, deserialize_with = "object")]
    add_budget: Option<AddBudget>,
    #[serde(rename = "_meta", default)]
    meta: Option<Meta>,
}

/// A request that names a session and nothing else that is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    /// The id of the session.
    pub session_id: String,
}

/// `session/prompt`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The id of the session.
    pub session_id: String,
    /// What is said: blocks of content.
    pub prompt: Vec<Map<String, Value>>,
}

/// `session/list`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct List {
    /// Only sessions in this directory.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Where the last page ended.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// `$/cancel_request`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequest {
    /// The request that is taken back.
    pub request_id: Id,
}

/// From where a conversation is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// Nothing is replayed.
    Nothing,
    /// From a revision of the journal on, that one included.
    From(u64),
}

/// What a resume asks for, wherever it stood in the request.
#[derive(Debug)]
pub struct Wish {
    /// The fields, of whatever form.
    pub fields: SessionResumeFields,
    /// From where to replay.
    pub replay: Replay,
}

impl Wish {
    /// Returns whether it asks for a wake, and not only to see the session.
    ///
    /// A session gets a larger budget only so that it can go on, so that this asks for a wake, too.
    pub const fn wakes(&self) -> bool {
        self.fields.handle.is_some()
            || self.fields.input.is_some()
            || self.fields.continue_transcript.is_some()
            || self.fields.add_budget.is_some()
    }

    /// Returns whether it asks for nothing but a replay.
    pub fn only_replays(&self) -> bool {
        self.replay != Replay::Nothing && !self.wakes() && self.fields.idempotency_key.is_none()
    }

    /// Returns what is added to the budget.
    ///
    /// # Errors
    /// The amount is no amount.
    pub fn budget(&self) -> Result<Option<carry::AddBudget>, Error> {
        let Some(add) = &self.fields.add_budget else { return Ok(None) };
        if add.usd.is_none() && add.tokens.is_none() && add.steps.is_none() {
            return Err(Error::invalid("addBudget", "expected usd, tokens or steps"));
        }
        for (path, count) in [("addBudget.tokens", add.tokens), ("addBudget.steps", add.steps)] {
            if count == Some(0) {
                return Err(Error::invalid(path, "expected a whole number from 1 on"));
            }
        }
        let micros = add.usd.unwrap_or_default() * 1e6;
        let least = if add.usd.is_some() { 0.5 } else { 0.0 };
        if !(least..=1e15).contains(&micros) {
            return Err(Error::invalid("addBudget.usd", "expected a positive amount"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it was just found to be a positive number of moderate size"
        )]
        let cost_micro_usd = micros.round() as u64;
        Ok(Some(carry::AddBudget {
            cost_micro_usd,
            tokens: add.tokens.unwrap_or_default(),
            iterations: add.steps.unwrap_or_default(),
        }))
    }
}

impl Attach {
    /// Returns what is asked for, and takes note of what the client shows by how it asks.
    ///
    /// # Errors
    /// A field is malformed.
    pub fn wish(self, peer: &Peer) -> Result<Wish, Error> {
        let root = SessionResumeFields {
            handle: self.handle,
            input: self.input,
            continue_transcript: self.continue_transcript,
            replay_from: self.replay_from,
            idempotency_key: self.idempotency_key,
            add_budget: self.add_budget,
        };
        // The cursor is a field of the protocol itself in v2.
        let added = root.handle.is_some()
            || root.input.is_some()
            || root.continue_transcript.is_some()
            || root.idempotency_key.is_some()
            || root.add_budget.is_some();
        if added {
            peer.shows(Dialect::Rfc);
        }
        let meta = self.meta.map(Value::Object);
        peer.notes(meta.as_ref());
        let mut fields = root;
        for envelope in Envelope::all(meta.as_ref())? {
            let given: SessionResumeFields = envelope.read()?;
            fields = SessionResumeFields {
                handle: fields.handle.or(given.handle),
                input: fields.input.or(given.input),
                continue_transcript: fields.continue_transcript.or(given.continue_transcript),
                replay_from: fields.replay_from.or(given.replay_from),
                idempotency_key: fields.idempotency_key.or(given.idempotency_key),
                add_budget: fields.add_budget.or(given.add_budget),
            };
        }
        let replay = cursor(fields.replay_from.as_ref())?;
        Ok(Wish { fields, replay })
    }
}

/// Reads an object, and not a list of its fields; what is wrong in it keeps its place.
fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Object<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a map")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
            T::deserialize(MapAccessDeserializer::new(fields)).map(Some)
        }
    }
    deserializer.deserialize_any(Object(PhantomData))
}

/// Reads a replay cursor; one that is not known is refused, never replaced by another.
fn cursor(value: Option<&Value>) -> Result<Replay, Error> {
    let wrong = |path: &str, problem: &str| Err(Error::invalid(path, problem));
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Replay::Nothing) };
    let Some(cursor) = value.as_object() else {
        return wrong("replayFrom", "expected an object with a type");
    };
    match cursor.get("type").and_then(Value::as_str) {
        Some("start") => Ok(Replay::From(1)),
        Some("_adjourn_from") => match cursor.get("seq").and_then(Value::as_u64) {
            Some(seq) => Ok(Replay::From(seq)),
            None => wrong("replayFrom.seq", "expected a number"),
        },
        Some(_) => wrong("replayFrom.type", "expected start or _adjourn_from"),
        None => wrong("replayFrom.type", "expected a text"),
    }
}

/// The fields of `session/suspend`, where they stand in an envelope.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SuspendFields {
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    resume_when: Option<Value>,
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    grace_ms: Option<u64>,
}

/// The fields of `session/suspend`. One that is not among them was meant to be: a pause without the
/// condition that was to end it would last for ever.
const SUSPEND_FIELDS: [&str; 6] = ["sessionId", "reason", "resumeWhen", "mode", "graceMs", "_meta"];

/// Those that stand in an envelope, too.
const ENVELOPE_FIELDS: [&str; 4] = ["reason", "resumeWhen", "mode", "graceMs"];

/// Reads a request to suspend.
///
/// # Errors
/// A field is malformed, or there is no such field.
pub fn read_suspend(params: Params<'_>) -> Result<SessionSuspendRequest, Error> {
    let fields: HashMap<String, IgnoredAny> = params.read()?;
    match fields.keys().find(|field| !SUSPEND_FIELDS.contains(&field.as_str())) {
        Some(unknown) => Err(Error::no_field(unknown.clone(), &SUSPEND_FIELDS)),
        None => params.read(),
    }
}

/// Turns a request to suspend into a command, and takes note of what the client shows by it.
///
/// # Errors
/// A field is malformed.
pub fn suspend(request: SessionSuspendRequest, peer: &Peer) -> Result<Suspend, Error> {
    let meta = request.meta.map(Value::Object);
    // Before it waits for its turn, so that what waits is small.
    limits::json("_meta", &meta, limits::META_BYTES)?;
    limits::optional("reason", request.reason.as_deref(), limits::REASON_BYTES)?;
    peer.notes(meta.as_ref());
    let conditions = |value: Option<&Value>, spelling, place: &str| {
        let parsed = value.map(|value| Conditions::parse(value, spelling)).transpose();
        parsed.map(Option::flatten).map_err(|invalid| invalid.within(place))
    };
    let mut suspend = Suspend {
        reason: request.reason,
        resume_when: conditions(request.resume_when.as_ref(), Spelling::Camel, "resumeWhen")?,
        grace_ms: request.grace_ms,
        ..Suspend::default()
    };
    let mut mode = request.mode;
    for envelope in Envelope::all(meta.as_ref())? {
        envelope.has_only(&ENVELOPE_FIELDS)?;
        let given: SuspendFields = envelope.read()?;
        let place = envelope.place("resumeWhen");
        let resume_when = conditions(given.resume_when.as_ref(), envelope.spelling, &place)?;
        suspend.reason = suspend.reason.or(given.reason);
        suspend.resume_when = suspend.resume_when.or(resume_when);
        suspend.grace_ms = suspend.grace_ms.or(given.grace_ms);
        mode = mode.or(given.mode);
    }
    Ok(Suspend { mode: mode.unwrap_or_default(), meta, ..suspend })
}

/// Reads the trace that a request belongs to, in W3C trace context terms.
pub fn spans(meta: Option<&Value>) -> SpanLinks {
    let parent = meta.and_then(|meta| meta.get("traceparent")).and_then(Value::as_str);
    SpanLinks::of_traceparent(parent)
}

impl From<adjourn::core::conditions::Invalid> for Error {
    fn from(invalid: adjourn::core::conditions::Invalid) -> Self {
        adjourn::core::Rejected::from(invalid).into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::rpc::{INVALID_PARAMS, Incoming};

    /// Any JSON, with the names that requests have more often than others.
    fn json() -> impl Strategy<Value = Value> {
        let name = prop::sample::select(vec![
            "sessionId",
            "cwd",
            "mcpServers",
            "prompt",
            "handle",
            "input",
            "continueTranscript",
            "replayFrom",
            "type",
            "seq",
            "idempotencyKey",
            "addBudget",
            "usd",
            "tokens",
            "_meta",
            "adjourn/suspend",
            "harn",
            "suspend",
            "resumeWhen",
            "timeout",
            "mode",
            "graceMs",
            "x",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name.clone(), inner), 0..6).prop_map(|fields| {
                    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
                }),
            ]
        })
    }

    /// Reads parameters; a refusal is of the right kind and names a place.
    fn reads<T: DeserializeOwned>(params: &Value) -> Option<T> {
        let line =
            serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "x", "params": params });
        let line = line.to_string();
        let Ok(Incoming::Request { params, .. }) = Incoming::read(line.as_bytes()) else {
            return None;
        };
        match params.read() {
            Ok(read) => Some(read),
            Err(error) => {
                assert_eq!(error.code, INVALID_PARAMS);
                assert!(error.data.is_some_and(|data| data.get("path").is_some()));
                None
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_in_plain_words() {
        let wrong = |params: Value| {
            let params = params.to_string();
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#);
            let Ok(Incoming::Request { params, .. }) = Incoming::read(line.as_bytes()) else {
                panic!("{line} is a request");
            };
            match params.read::<Attach>() {
                Ok(_) => read_suspend(params).unwrap_err().message,
                Err(error) => error.message,
            }
        };
        for (field, value, words) in [
            ("cwd", serde_json::json!(5), "cwd: expected a text, found a number"),
            ("addBudget", serde_json::json!([1]), "addBudget: expected an object, found a list"),
            (
                "addBudget",
                serde_json::json!({ "usd": "much" }),
                "addBudget.usd: expected a number, found a text",
            ),
            (
                "graceMs",
                serde_json::json!("long"),
                "graceMs: expected a whole number from 0 on, found a text",
            ),
        ] {
            assert_eq!(wrong(serde_json::json!({ "sessionId": "s", field: value })), words);
        }
        let mode = wrong(serde_json::json!({ "sessionId": "s", "mode": "banana" }));
        assert!(mode.starts_with("mode: expected one of "), "{mode}");
        assert!(mode.ends_with(r#", found "banana""#), "{mode}");
    }

    #[test]
    fn what_is_added_to_a_budget_is_an_amount() {
        let peer = Peer::new(
            crate::peer::Version::V1,
            crate::peer::Profile::Adjourn,
            &Value::Null,
            &Value::Null,
        );
        let added = |budget: Value| {
            let params = serde_json::json!({ "sessionId": "s", "addBudget": budget }).to_string();
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#);
            let Ok(Incoming::Request { params, .. }) = Incoming::read(line.as_bytes()) else {
                panic!("{line} is a request");
            };
            let wish = params.read::<Attach>().and_then(|attach| attach.wish(&peer));
            wish.and_then(|wish| wish.budget()).map_err(|error| error.message)
        };
        for (budget, problem) in [
            (serde_json::json!({}), "addBudget: expected usd, tokens or steps"),
            (serde_json::json!({ "usd": 0 }), "addBudget.usd: expected a positive amount"),
            (serde_json::json!({ "usd": -1, "tokens": 5 }), "addBudget.usd: expected a positive"),
            (serde_json::json!({ "usd": 0.000_000_1 }), "addBudget.usd: expected a positive"),
            (
                serde_json::json!({ "tokens": 0 }),
                "addBudget.tokens: expected a whole number from 1",
            ),
            (
                serde_json::json!({ "usd": 1, "steps": 0 }),
                "addBudget.steps: expected a whole number from 1",
            ),
            (serde_json::json!({ "usd": 1, "eur": 1 }), "there is no field \"eur\" here"),
        ] {
            let refused = added(budget.clone()).unwrap_err();
            assert!(refused.contains(problem), "{budget}: {refused}");
        }
        let five = carry::AddBudget { cost_micro_usd: 5_000_000, tokens: 7, iterations: 0 };
        assert_eq!(added(serde_json::json!({ "usd": 5, "tokens": 7 })), Ok(Some(five)));
        let steps = carry::AddBudget { iterations: 3, ..carry::AddBudget::default() };
        assert_eq!(added(serde_json::json!({ "steps": 3 })), Ok(Some(steps)));
        assert_eq!(added(Value::Null), Ok(None));
    }

    proptest! {
        #[test]
        fn no_parameters_harm(params in json()) {
            let peer = Peer::new(
                crate::peer::Version::V1, crate::peer::Profile::Adjourn, &params, &params,
            );
            if let Some(attach) = reads::<Attach>(&params) {
                let _ = attach.wish(&peer).map(|wish| wish.budget());
            }
            if let Some(request) = reads::<SessionSuspendRequest>(&params) {
                spans(request.meta.clone().map(Value::Object).as_ref());
                let _ = suspend(request, &peer);
            }
            if let Some(prompt) = reads::<Prompt>(&params) {
                let _ = crate::content::said(prompt.prompt);
            }
            reads::<Initialize>(&params);
            reads::<New>(&params);
            reads::<List>(&params);
            reads::<Named>(&params);
            reads::<CancelRequest>(&params);
        }

        #[test]
        fn no_line_harms(line in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Incoming::read(&line);
        }
    }
}
