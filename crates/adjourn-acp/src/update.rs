//! `session/update`: the words for what a client sees, in either version.
//!
//! Each function makes one update; in which order they go out is decided in `projection.rs`.

use adjourn::core::Session;
use adjourn::core::event::What;
use adjourn::core::ledger::{CallId, CallState};
use adjourn::core::pause::Initiator;
use adjourn::core::session::{LastRun, Outcome, Phase, Prior, Wait};
use adjourn::driver::content::TOOL_KINDS;
use adjourn::driver::{Block, CallContent, Message, PermissionOption, PermissionRequest};
use serde_json::{Map, Value, json};

use crate::content::text;
use crate::peer::{EXTENSION, Peer, Version};
use crate::request_permission::{ALLOW, ALLOW_ALWAYS, REJECT};
use crate::suspension::Meta;

/// How a tool call stands, in the words of both versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The model asked for it.
    Pending,
    /// It was started.
    InProgress,
    /// It waits to be woken; v1 has no word for it.
    Paused,
    /// It did what it was asked to.
    Completed,
    /// It ran and failed, or it is not known how it ended.
    Failed,
    /// It did not run; v1 says that it failed.
    Cancelled,
}

impl Call {
    /// Returns the word for it.
    pub const fn word(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Pending, _) => "pending",
            (Self::InProgress, _) | (Self::Paused, Version::V1) => "in_progress",
            (Self::Paused, Version::V2) => "paused",
            (Self::Completed, _) => "completed",
            (Self::Failed, _) | (Self::Cancelled, Version::V1) => "failed",
            (Self::Cancelled, Version::V2) => "cancelled",
        }
    }
}

/// What a person said, as updates: v1 has one per block.
pub fn user_message(version: Version, id: &str, blocks: Vec<Value>) -> Vec<Value> {
    match version {
        Version::V1 => blocks
            .into_iter()
            .map(|block| {
                json!({ "sessionUpdate": "user_message_chunk", "messageId": id, "content": block })
            })
            .collect(),
        Version::V2 => {
            vec![json!({ "sessionUpdate": "user_message", "messageId": id, "content": blocks })]
        }
    }
}

/// Returns a block as clients know it: a thought is text that is told as a thought.
pub fn shown(block: &Block) -> Value {
    match block.is_thought() {
        true => with(block.to_value(), "type", "text"),
        false => block.to_value(),
    }
}

/// The model asks for a call.
pub fn call_asked(version: Version, call: &CallContent) -> Value {
    let status = Call::Pending.word(version);
    let kind = kind(version, call.kind.as_deref().unwrap_or("other"));
    let mut update = match version {
        Version::V1 => json!({
            "sessionUpdate": "tool_call", "toolCallId": call.id, "title": call.title(),
            "kind": kind, "status": status,
        }),
        Version::V2 => json!({
            "sessionUpdate": "tool_call_update", "toolCallId": call.id, "name": call.tool,
            "title": call.title(), "kind": kind, "status": status,
        }),
    };
    if !call.arguments.is_null() {
        update = with(update, "rawInput", call.arguments.clone());
    }
    let locations = locations(version, &call.locations);
    if !locations.is_empty() {
        update = with(update, "locations", locations);
    }
    update
}

/// Returns the kind of a tool in the words of a version: the list of v1 is closed.
fn kind(version: Version, kind: &str) -> &str {
    match version {
        Version::V1 if !TOOL_KINDS.contains(&kind) => "other",
        Version::V1 | Version::V2 => kind,
    }
}

/// Returns the places that a client can go to: in v2 they are absolute.
fn locations(version: Version, locations: &[Value]) -> Vec<Value> {
    let named = |location: &&Value| {
        let path = location.get("path").and_then(Value::as_str);
        path.is_some_and(|path| version == Version::V1 || path.starts_with('/'))
    };
    locations.iter().filter(named).cloned().collect()
}

/// Returns what an agent says anew of its call, as far as a version has it. How the call stands is
/// told as the journal has it.
pub fn call_fields(version: Version, update: &Map<String, Value>) -> Map<String, Value> {
    let told = |(name, value): (&String, &Value)| {
        let value = match (name.as_str(), value) {
            ("title" | "rawInput" | "rawOutput" | "content" | "_meta", value) => value.clone(),
            ("name", value) if version == Version::V2 => value.clone(),
            ("kind", Value::String(word)) => kind(version, word).into(),
            ("locations", Value::Array(list)) => locations(version, list).into(),
            _ => return None,
        };
        Some((name.clone(), value))
    };
    update.iter().filter_map(told).collect()
}

/// Asks whether a call may start.
pub fn permission(version: Version, asks: &PermissionRequest) -> Value {
    let PermissionRequest { session, call, options } = asks;
    let options = match options.as_slice() {
        [] => json!([
            { "optionId": ALLOW, "name": "Allow", "kind": "allow_once" },
            { "optionId": ALLOW_ALWAYS, "name": "Always allow", "kind": "allow_always" },
            { "optionId": REJECT, "name": "Reject", "kind": "reject_once" },
        ]),
        given => given
            .iter()
            .map(|PermissionOption { id, name, kind }| {
                json!({ "optionId": id, "name": name, "kind": kind })
            })
            .collect(),
    };
    let mut asked = call_asked(version, call);
    // It stands in a request, not in an update.
    if let Some(fields) = asked.as_object_mut() {
        fields.shift_remove("sessionUpdate");
    }
    match version {
        Version::V1 => json!({ "sessionId": session, "toolCall": asked, "options": options }),
        Version::V2 => json!({
            "sessionId": session, "title": format!("Run {}?", call.title()),
            "subject": { "type": "tool_call", "toolCall": asked }, "options": options,
        }),
    }
}

/// A call stands otherwise than before.
pub fn call(version: Version, id: &CallId, status: Call, words: Option<&str>) -> Value {
    let update = json!({
        "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status.word(version),
    });
    match words {
        Some(words) => with(update, "content", json!([content(text(words))])),
        None => update,
    }
}

/// A call has come back, with what came of it.
pub fn call_returned(
    version: Version,
    id: &CallId,
    status: Call,
    result: Option<&Message>,
) -> Value {
    let mut update = call(version, id, status, None);
    if let Some(result) = result {
        let blocks: Value =
            result.said_blocks().iter().map(|block| content(shown(block))).collect();
        update = with(update, "content", blocks);
        if let Some(value) = &result.structured {
            update = with(update, "rawOutput", value.clone());
        }
    }
    update
}

/// A block as a part of what came of a call: what only calls have stands for itself.
fn content(block: Value) -> Value {
    match block.get("type").and_then(Value::as_str) {
        Some("content" | "diff" | "terminal") => block,
        _ => json!({ "type": "content", "content": block }),
    }
}

/// Returns the id of the call that stands for the agent's own wait, if it waits (v2).
pub fn waiting(session: &Session) -> Option<CallId> {
    let pause = &session.suspended()?.park.pause;
    let waits = pause.initiator == Initiator::Agent && pause.wait == Wait::Open;
    waits.then(|| pause.call.clone().unwrap_or_else(|| CallId(pause.handle.to_string())))
}

const UNKNOWN: &str = "its outcome is unknown: it was cut off while it ran";
/// The call may go on: its host is stopped or stuck, and nothing has cut it off.
const UNANSWERED: &str = "its outcome is unknown: the process that runs it does not answer";

/// A call that is over without a result, how it stands, and what is to be said of it.
pub type Left = (CallId, Call, Option<&'static str>);

/// Returns the calls that an event ends without a result.
///
/// `before` is the session as the event finds it. No call that a client was shown stays open when
/// its run is over.
pub fn calls_left(before: &Session, what: &What) -> Vec<Left> {
    const NOT_RUN: &str = "not run: it was stopped before it started";
    let mut left = Vec::new();
    let (not_run, unknown): (&[CallId], &[CallId]) = match what {
        What::CallsAbandoned(abandoned) => (&[], &abandoned.calls),
        What::CallsLeft(left) => (&left.not_run, &left.unknown),
        What::Suspended(suspended) => (&suspended.not_run, &suspended.unknown),
        What::Resumed(resumed) => {
            let waited = before.calls.at(CallState::Waiting);
            left.extend(waited.into_iter().map(|id| (id, Call::Completed, None)));
            (&resumed.not_run, &resumed.unknown)
        }
        What::Drained(drained) => (&[], &drained.unknown),
        What::HostLost(lost) => (&[], &lost.unknown),
        What::RunEnded(_) => {
            left = calls_over(before);
            (&[], &[])
        }
        _ => (&[], &[]),
    };
    left.extend(not_run.iter().map(|id| (id.clone(), Call::Cancelled, Some(NOT_RUN))));
    // A call that was known to be lost before is told once.
    let lost =
        |id: &&CallId| before.calls.get(id).is_none_or(|open| open.state != CallState::Unknown);
    let unknown = unknown.iter().filter(lost);
    left.extend(unknown.map(|id| (id.clone(), Call::Failed, Some(UNKNOWN))));
    left
}

/// Returns the calls that are open, as the end of the run leaves them.
pub fn calls_over(session: &Session) -> Vec<Left> {
    const NEVER_RUN: &str = "not run: the run ended before it started";
    let over = session.calls.iter().filter_map(|open| {
        let (status, words) = match open.state {
            // It has been told.
            CallState::NotRun | CallState::Unknown => return None,
            CallState::Dispatched => (Call::Failed, Some(UNKNOWN)),
            _ if open.started => (Call::Failed, Some(UNKNOWN)),
            CallState::Asked | CallState::Deferred => (Call::Cancelled, Some(NEVER_RUN)),
            CallState::Waiting => (Call::Cancelled, None),
        };
        Some((open.call.id.clone(), status, words))
    });
    over.collect()
}

/// Returns the calls that are open, as a host leaves them that does not answer.
pub fn calls_unanswered(session: &Session) -> Vec<Left> {
    let mut left = calls_over(session);
    for (id, _, words) in &mut left {
        let in_flight =
            session.calls.get(id).is_some_and(|open| open.state == CallState::Dispatched);
        if in_flight {
            *words = Some(UNANSWERED);
        }
    }
    left
}

/// News of the session that no standard update has words for: they stand in `_meta`.
///
/// `told` is the last revision of which everything has been told.
pub fn info(session: &Session, peer: &Peer, told: u64) -> Value {
    with(news(), "_meta", meta_up_to(told, session, peer, None))
}

/// An update that says nothing by itself.
pub fn news() -> Value {
    json!({ "sessionUpdate": "session_info_update" })
}

/// Adds a field to an object.
pub fn with(mut object: Value, field: &str, value: impl Into<Value>) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value.into());
    }
    object
}

/// A line for people, where the client shows such.
pub fn notice(title: &str, description: Option<&str>) -> Value {
    let notice = json!({ "sessionUpdate": "notice", "severity": "info", "title": title });
    match description {
        Some(description) => with(notice, "description", description),
        None => notice,
    }
}

/// What the foreground of a session does (v2).
#[derive(Debug, Clone, PartialEq)]
pub enum Foreground {
    /// Something runs, or is about to.
    Running,
    /// Nothing runs; why it stopped, if it just did.
    Idle(Option<Value>),
    /// The session is suspended.
    Suspended,
    /// A person is asked something.
    RequiresAction,
}

impl Foreground {
    /// Returns what the foreground of a session does.
    pub fn of(session: &Session) -> Self {
        match session.phase() {
            Phase::Ready
            | Phase::Running
            | Phase::Requested
            | Phase::Quiescing
            | Phase::Canceling => Self::Running,
            Phase::Suspended => Self::Suspended,
            Phase::Asking => Self::RequiresAction,
            Phase::Idle | Phase::Ended => Self::Idle(session.last_run.as_ref().map(stop_reason)),
        }
    }

    /// Returns what the foreground does after the commit that a resume belongs to.
    ///
    /// `before` is the session as the resume finds it.
    pub fn after(before: &Session, what: &What) -> Option<Self> {
        let What::Resumed(resumed) = what else { return None };
        Some(match resumed.resumption.then {
            Phase::Idle | Phase::Ended => {
                let kept = before.suspended().and_then(|suspended| match &suspended.prior {
                    Prior::Kept(kept) => Some(stop(kept.end.outcome, kept.end.error.as_deref())),
                    Prior::Idle | Prior::Run(_) => None,
                });
                Self::Idle(kept.or_else(|| before.last_run.as_ref().map(stop_reason)))
            }
            _ => Self::Running,
        })
    }

    /// Returns the update that says so; `told` is the last revision of which everything has been
    /// told.
    pub fn update(&self, session: &Session, peer: &Peer, told: u64) -> Value {
        let mut update = Map::new();
        update.insert("sessionUpdate".to_owned(), "state_update".into());
        update.extend(self.state(session, peer));
        if session.suspended().is_some() {
            update.insert("_meta".to_owned(), Value::Object(meta_up_to(told, session, peer, None)));
        }
        Value::Object(update)
    }

    /// Returns the state itself, as `session/status` has it, too.
    pub fn state(&self, session: &Session, peer: &Peer) -> Map<String, Value> {
        let background: Vec<_> = waiting(session)
            .map(|id| json!({ "type": "tool_call", "toolCallId": id }))
            .into_iter()
            .collect();
        let mut fields = Map::new();
        let state = match self {
            Self::Running => "running",
            Self::RequiresAction => "requires_action",
            // Only those who said that they know the state are shown it.
            Self::Suspended if peer.opted_in() => "_suspended",
            Self::Suspended | Self::Idle(_) => "idle",
        };
        fields.insert("state".to_owned(), state.into());
        match self {
            Self::Suspended => {
                fields.insert("stopReason".to_owned(), "_suspended".into());
            }
            Self::Idle(Some(Value::Object(stop))) => fields.extend(stop.clone()),
            Self::Running | Self::RequiresAction | Self::Idle(_) => {}
        }
        fields.insert("background".to_owned(), background.into());
        fields
    }
}

/// Why the last run stopped (v2).
fn stop_reason(last: &LastRun) -> Value {
    stop(last.outcome, last.error.as_deref())
}

fn stop(outcome: Outcome, error: Option<&str>) -> Value {
    match outcome {
        Outcome::Completed => json!({ "stopReason": "end_turn" }),
        Outcome::Canceled => json!({ "stopReason": "cancelled" }),
        Outcome::Rejected => json!({ "stopReason": "refusal" }),
        Outcome::Failed => {
            let error = error.unwrap_or("it did not say why");
            json!({ "stopReason": "error", "error": { "code": -32603, "message": error } })
        }
    }
}

/// The status of a session in `_meta`, beside what the caller wanted echoed.
pub fn meta(session: &Session, peer: &Peer, echoed: Option<Meta>) -> Meta {
    meta_up_to(session.revision, session, peer, echoed)
}

/// The same, where not everything has been told up to where the session stands.
///
/// A client that comes back asks from the revision after `told`, and misses nothing.
pub fn meta_up_to(told: u64, session: &Session, peer: &Peer, echoed: Option<Meta>) -> Meta {
    let mut meta = echoed.unwrap_or_default();
    let status = serde_json::to_value(session.status()).unwrap_or_default();
    let phase = serde_json::to_value(session.phase()).unwrap_or_default();
    let status = with(with(status, "phase", phase), "seq", told);
    meta.insert(EXTENSION.to_owned(), status);
    if peer.harn()
        && let Some(envelope) = envelope(session)
    {
        // Beside whatever else the caller keeps under that name.
        match meta.entry("harn").or_insert_with(|| json!({})) {
            Value::Object(harn) => drop(harn.insert("suspend".to_owned(), envelope)),
            other => *other = json!({ "suspend": envelope }),
        }
    }
    meta
}

/// A suspension as the old tunnel spells it.
fn envelope(session: &Session) -> Option<Value> {
    let parked = session.suspended()?.shown();
    let conditions = parked.pause.conditions.as_ref();
    let conditions = conditions.map(|conditions| {
        serde_json::to_value(conditions.spelled(adjourn::core::conditions::Spelling::Snake))
            .unwrap_or_default()
    });
    Some(json!({
        "handle": parked.pause.handle,
        "reason": parked.pause.reason,
        "resume_when": conditions,
        "initiator": parked.pause.initiator,
        "suspended_at": parked.suspended_at.to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_told_with_all_its_blocks_and_its_value() {
        let look = json!({ "type": "text", "text": "look", "annotations": { "priority": 1.0 } });
        let picture = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        let block = |value: &Value| Block::from_fields(value.as_object().unwrap().clone()).unwrap();
        let blocks = vec![block(&look), block(&picture)];
        let id = CallId("c".to_owned());
        let structured = Some(json!({ "exitCode": 2 }));
        let result = Message { structured, ..Message::result(id.clone(), blocks) };
        let expected = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed",
            "content": [
                { "type": "content", "content": look }, { "type": "content", "content": picture },
            ],
            "rawOutput": { "exitCode": 2 },
        });
        for version in [Version::V1, Version::V2] {
            assert_eq!(call_returned(version, &id, Call::Failed, Some(&result)), expected);
        }
    }
}
