//! Written for the artifacts only: the types of the core, as they are on the wire.

#![expect(missing_docs, reason = "only their shapes are used")]

use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResumeConditions {
    #[ts(optional)]
    pub on_event: Option<String>,
    #[ts(optional, type = "Record<string, unknown>")]
    pub trigger: Option<Map<String, Value>>,
    #[ts(optional)]
    pub timeout: Option<ResumeTimeoutSpec>,
    #[ts(optional, type = "number")]
    pub since: Option<u64>,
}

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResumeTimeoutSpec {
    pub duration_minutes: f64,
    #[ts(optional)]
    pub on_timeout: Option<ResumeTimeoutAction>,
    #[ts(optional, type = "unknown")]
    pub input: Option<Value>,
}

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum ResumeTimeoutAction {
    ResumeWithSummary,
    Fail,
    ResumeWithInput,
}

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum SuspendMode {
    InterruptImmediate,
    FinishStep,
    WaitForCompletion,
}

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum SuspensionInitiator {
    Client,
    Agent,
}

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum ResumeCause {
    ExplicitResume,
    ConditionFired,
    Timeout,
    ExternalEvent,
}

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(tag = "type")]
pub enum ReplayFrom {
    #[serde(rename = "start")]
    Start,
    #[serde(rename = "_adjourn_from")]
    From {
        #[ts(type = "number")]
        seq: u64,
    },
}

/// Where a session stands: `_meta["adjourn/suspend"]` of answers and updates. What does not apply
/// is absent.
#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "camelCase")]
pub struct SuspendStatus {
    pub session_id: String,
    /// The run under way, or the last one.
    #[ts(optional)]
    pub run_id: Option<String>,
    pub state: SuspendState,
    pub phase: SuspendPhase,
    /// How the last run ended, while none is under way.
    #[ts(optional)]
    pub outcome: Option<RunOutcome>,
    /// What went wrong with it.
    #[ts(optional)]
    pub error: Option<String>,
    /// The pause that is pending or in force.
    #[ts(optional)]
    pub handle: Option<String>,
    #[ts(optional)]
    pub initiator: Option<SuspensionInitiator>,
    #[ts(optional)]
    pub wait: Option<SuspendWait>,
    #[ts(optional)]
    pub reason: Option<String>,
    /// RFC 3339; absent while it is pending.
    #[ts(optional)]
    pub suspended_at: Option<String>,
    #[ts(optional)]
    pub resume_when: Option<ResumeConditions>,
    /// When a deadline acts, RFC 3339.
    #[ts(optional)]
    pub due_at: Option<String>,
    /// One sentence to show.
    #[ts(optional)]
    pub summary: Option<String>,
    #[ts(optional)]
    pub question: Option<String>,
    /// What one should know to answer.
    #[ts(optional)]
    pub context: Option<String>,
    #[ts(optional)]
    pub choices: Option<Vec<String>>,
    /// The agent's own suspension, while a client's lies over it.
    #[ts(optional)]
    pub held: Option<String>,
    /// The last wake, unless a prompt has begun another run since.
    #[ts(optional)]
    pub cause: Option<ResumeCause>,
    #[ts(optional)]
    pub had_resume_input: Option<bool>,
    #[ts(optional)]
    pub continue_transcript: Option<bool>,
    /// RFC 3339.
    #[ts(optional)]
    pub resumed_at: Option<String>,
    /// Tools whose calls are in flight.
    #[ts(optional)]
    pub in_flight: Option<Vec<String>>,
    /// Tools whose calls were cut off, so that it is not known what came of them.
    #[ts(optional)]
    pub unknown_calls: Option<Vec<String>>,
    pub totals: SuspendTotals,
    /// The last revision of the journal of which everything has been told.
    #[ts(type = "number")]
    pub seq: u64,
    /// What a resume did, in the answer to it: the fields of `resumed`.
    #[ts(optional, type = "Record<string, unknown>")]
    pub resumed: Option<Map<String, Value>>,
    /// The id of the host that keeps the session's agent warm, in the answer to `session/status`.
    #[ts(optional)]
    pub kept_warm_by: Option<String>,
}

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum SuspendState {
    Idle,
    Ready,
    Running,
    Quiescing,
    Suspended,
    Ended,
}

/// The state, and what it is about: `requested` and `quiescing` on the way to a suspension,
/// `canceling` on the way to the end of the run, `asking` suspended with a question.
#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum SuspendPhase {
    Idle,
    Ready,
    Running,
    Requested,
    Quiescing,
    Canceling,
    Suspended,
    Asking,
    Ended,
}

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    Completed,
    Failed,
    Canceled,
    Rejected,
}

#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum SuspendWait {
    Open,
    Question,
}

/// What a session has used; zero if absent.
#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SuspendTotals {
    /// Millionths of a US dollar.
    #[ts(optional, type = "number")]
    pub cost_micro_usd: Option<u64>,
    #[ts(optional, type = "number")]
    pub prompt_tokens: Option<u64>,
    #[ts(optional, type = "number")]
    pub completion_tokens: Option<u64>,
}

/// `_meta["adjourn/suspend"]` of the session capabilities.
#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
#[serde(rename_all = "camelCase")]
pub struct SuspendExtension {
    pub version: u8,
    pub modes: Vec<SuspendMode>,
    pub resume_causes: Vec<ResumeCause>,
}

/// `_meta.harn.suspend` of answers and updates, for clients that use it. Deprecated.
#[derive(Serialize, schemars::JsonSchema, ts_rs::TS)]
pub struct HarnSuspend {
    pub handle: String,
    pub reason: Option<String>,
    /// Conditions, with snake_case names.
    #[ts(type = "Record<string, unknown> | null")]
    pub resume_when: Option<Map<String, Value>>,
    pub initiator: SuspensionInitiator,
    /// RFC 3339.
    pub suspended_at: String,
}
