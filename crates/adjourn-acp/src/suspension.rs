//! The messages of the proposal, field by field.
//!
//! Field names and their order are the proposal's. What it leaves open is decided in `spec/acp.md`.

use adjourn::core::command::Mode;
use adjourn::core::conditions::Conditions;
use adjourn::core::pause::{Cause, Initiator, Parked, Resumption};
use adjourn::core::session::Wait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::envelope::{self, Envelope};
#[cfg(feature = "artifacts")]
use crate::shapes::{ReplayFrom, ResumeCause, ResumeConditions, SuspendMode, SuspensionInitiator};

/// The `_meta` of a message.
pub type Meta = Map<String, Value>;

macro_rules! message {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "artifacts", derive(schemars::JsonSchema, ts_rs::TS))]
        #[serde(rename_all = "camelCase")]
        $(#[$doc])*
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
    };
}

message! {
    /// `session/suspend`: pauses a session; answered when it is paused.
    SessionSuspendRequest {
        /// The id of the session.
        session_id: String,
        /// Why it is to be paused; kept with the suspension.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        reason: Option<String>,
        /// What wakes it besides `session/resume`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", schemars(with = "Option<ResumeConditions>"))]
        #[cfg_attr(feature = "artifacts", ts(optional, as = "Option<ResumeConditions>"))]
        resume_when: Option<Value>,
        /// How soon it takes effect; `finish_step` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", schemars(with = "Option<SuspendMode>"))]
        #[cfg_attr(feature = "artifacts", ts(optional, as = "Option<SuspendMode>"))]
        mode: Option<Mode>,
        /// How long calls in flight may go on, in milliseconds; for ever if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "number"))]
        grace_ms: Option<u64>,
        /// Kept with the suspension and echoed, at most 4 KiB.
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "Record<string, unknown>"))]
        meta: Option<Meta>,
    }
}

message! {
    /// The answer to `session/suspend`: the session is paused.
    SessionSuspendResponse {
        /// The suspension's name, for `session/resume`.
        handle: String,
        /// Why it is paused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        reason: Option<String>,
        /// When it took effect, RFC 3339.
        suspended_at: String,
        /// What wakes it besides `session/resume`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", schemars(with = "Option<ResumeConditions>"))]
        #[cfg_attr(feature = "artifacts", ts(optional, as = "Option<ResumeConditions>"))]
        resume_when: Option<Conditions>,
        /// One sentence to show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        summary: Option<String>,
        /// The `_meta` of the request.
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "Record<string, unknown>"))]
        meta: Option<Meta>,
    }
}

message! {
    /// `session/await_resumption`: the agent has parked itself.
    SessionAwaitResumptionRequest {
        /// The id of the session.
        session_id: String,
        /// Why the agent waits.
        reason: String,
        /// What wakes it besides `session/resume`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", schemars(with = "Option<ResumeConditions>"))]
        #[cfg_attr(feature = "artifacts", ts(optional, as = "Option<ResumeConditions>"))]
        conditions: Option<Value>,
        /// One sentence to show meanwhile.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        summary: Option<String>,
        /// Extensions of the sender.
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "Record<string, unknown>"))]
        meta: Option<Meta>,
    }
}

message! {
    /// The answer to `session/await_resumption`.
    SessionAwaitResumptionResponse {
        /// A name for the suspension, valid on this connection.
        handle: String,
        /// When the other side took note of it, RFC 3339.
        suspended_at: String,
        /// Extensions of the sender.
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "Record<string, unknown>"))]
        meta: Option<Meta>,
    }
}

message! {
    /// What `session/resume` takes besides the protocol's own fields.
    SessionResumeFields {
        /// The suspension that is meant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        handle: Option<String>,
        /// A value for the agent; `null` is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "unknown"))]
        input: Option<Value>,
        /// Whether the turn sees the whole transcript (`true` if absent) or a digest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        continue_transcript: Option<bool>,
        /// From where to replay the conversation; not at all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", schemars(with = "Option<ReplayFrom>"))]
        #[cfg_attr(feature = "artifacts", ts(optional = nullable, as = "Option<ReplayFrom>"))]
        replay_from: Option<Value>,
        /// Makes a retry harmless.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        idempotency_key: Option<String>,
        /// What is added to the budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        add_budget: Option<AddBudget>,
    }
}

message! {
    /// What is added to a session's budget.
    #[serde(deny_unknown_fields)]
    AddBudget {
        /// The US dollars that are added.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        usd: Option<f64>,
        /// The tokens that are added.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "number"))]
        tokens: Option<u64>,
        /// The steps that a run may have more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "number"))]
        steps: Option<u64>,
    }
}

message! {
    /// `session/update` with `sessionUpdate: "suspended"`.
    SuspendedUpdate {
        /// Which update this is.
        session_update: SuspendedTag,
        /// The suspension's name.
        handle: String,
        /// Why it is paused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional))]
        reason: Option<String>,
        /// Whether a client or the agent suspended the session.
        #[cfg_attr(feature = "artifacts", schemars(with = "SuspensionInitiator"))]
        #[cfg_attr(feature = "artifacts", ts(as = "SuspensionInitiator"))]
        initiator: Initiator,
        /// When it took effect, RFC 3339.
        suspended_at: String,
        /// What wakes it besides `session/resume`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", schemars(with = "Option<ResumeConditions>"))]
        #[cfg_attr(feature = "artifacts", ts(optional, as = "Option<ResumeConditions>"))]
        resume_when: Option<Conditions>,
        /// The `_meta` of the request.
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "Record<string, unknown>"))]
        meta: Option<Meta>,
    }
}

message! {
    /// `session/update` with `sessionUpdate: "resumed"`.
    ResumedUpdate {
        /// Which update this is.
        session_update: ResumedTag,
        /// The suspension that is over.
        handle: String,
        /// Why it woke.
        #[cfg_attr(feature = "artifacts", schemars(with = "ResumeCause"))]
        #[cfg_attr(feature = "artifacts", ts(as = "ResumeCause"))]
        cause: Cause,
        /// Whether a value was fed to the agent.
        had_resume_input: bool,
        /// Whether the turn sees the whole transcript.
        continue_transcript: bool,
        /// When it woke, RFC 3339.
        resumed_at: String,
        /// Extensions of the sender.
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "Record<string, unknown>"))]
        meta: Option<Meta>,
    }
}

message! {
    /// What an agent says at `initialize`, beside the protocol's own capabilities.
    SuspendCapabilities {
        /// It takes `session/suspend`; not if absent.
        #[serde(default)]
        #[cfg_attr(feature = "artifacts", ts(optional, as = "Option<bool>"))]
        supports_suspend: bool,
        /// It sends `session/await_resumption`; not if absent.
        #[serde(default)]
        #[cfg_attr(feature = "artifacts", ts(optional, as = "Option<bool>"))]
        supports_await_resumption: bool,
        /// The causes it can wake for; `["explicit_resume"]` if absent.
        #[serde(default)]
        #[cfg_attr(feature = "artifacts", schemars(with = "Vec<ResumeCause>"))]
        #[cfg_attr(feature = "artifacts", ts(optional, as = "Option<Vec<ResumeCause>>"))]
        resume_causes: Vec<Cause>,
    }
}

message! {
    /// The answer to `session/status`.
    SessionStatusResponse {
        /// Where the session stands.
        status: SessionStatus,
        /// What its foreground does, if it is open (v2); as in `state_update`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "Record<string, unknown>"))]
        state: Option<Meta>,
        /// `adjourn/suspend`: the state, since when and why.
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "artifacts", ts(optional, type = "Record<string, unknown>"))]
        meta: Option<Meta>,
    }
}

/// `suspended`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "artifacts", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SuspendedTag {
    /// The session is suspended.
    Suspended,
}

/// `resumed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "artifacts", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ResumedTag {
    /// The session goes on.
    Resumed,
}

/// Where a session stands: whether the agent has it, and in what form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "artifacts", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// The agent handles it (v1).
    Live,
    /// The agent does not handle it (v1).
    NotFound,
    /// It is in memory somewhere (v2).
    Open,
    /// It is stored (v2).
    Saved,
    /// It is stored, and parked (v2).
    #[serde(rename = "_suspended")]
    Suspended,
}

impl SuspendedUpdate {
    /// The update that tells of a suspension.
    pub fn of(parked: &Parked) -> Self {
        let pause = &parked.pause;
        Self {
            session_update: SuspendedTag::Suspended,
            handle: pause.handle.to_string(),
            reason: pause.reason.clone().or_else(|| match &pause.wait {
                Wait::Question(question) => Some(question.question.clone()),
                Wait::Open => None,
            }),
            initiator: pause.initiator,
            suspended_at: parked.suspended_at.to_string(),
            resume_when: pause.conditions.clone(),
            meta: echoed(parked),
        }
    }
}

impl SessionSuspendResponse {
    /// The answer that a suspension is in force.
    pub fn of(parked: &Parked, summary: Option<String>) -> Self {
        let SuspendedUpdate { handle, reason, suspended_at, resume_when, meta, .. } =
            SuspendedUpdate::of(parked);
        Self { handle, reason, suspended_at, resume_when, summary, meta }
    }
}

impl ResumedUpdate {
    /// The update that tells of a resumption.
    pub fn of(resumption: &Resumption) -> Self {
        Self {
            session_update: ResumedTag::Resumed,
            handle: resumption.handle.to_string(),
            cause: resumption.cause,
            had_resume_input: resumption.had_resume_input,
            continue_transcript: resumption.continue_transcript,
            resumed_at: resumption.resumed_at.to_string(),
            meta: None,
        }
    }
}

impl SuspendCapabilities {
    /// What this agent says.
    pub fn ours() -> Self {
        Self {
            supports_suspend: true,
            supports_await_resumption: true,
            resume_causes: Cause::ALL.to_vec(),
        }
    }
}

/// Returns what the caller wanted echoed.
pub fn echoed(parked: &Parked) -> Option<Meta> {
    parked.pause.meta.as_ref().and_then(Value::as_object).and_then(envelope::remainder)
}

/// Returns whether the caller asked for it inside `_meta`, and so is told there.
pub fn by_envelope(parked: &Parked) -> bool {
    Envelope::all(parked.pause.meta.as_ref()).is_ok_and(|all| !all.is_empty())
}
