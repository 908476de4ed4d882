//! Events: what a run tells its host, as it happens.
//!
//! Each is a JSON object with a `type`. A run that suspends ends with [`UserInputRequested`], one
//! that is cancelled with [`RunCancelled`], one that gives up with [`Handoff`] or
//! [`PartialRunSummary`]; one that has done what it was asked to simply ends.

use adjourn_core::conditions::Conditions;
use adjourn_core::ledger::CallId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cancellation::CancelReason;
use crate::failure::{Failure, FailureKind};
use crate::record::SuspensionRecord;

/// Something that happens in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// Further words of an answer.
    TextDelta(TextDelta),
    /// Further words of what the model thinks.
    ReasoningDelta(ReasoningDelta),
    /// News of a tool call.
    ToolEvent(ToolEvent),
    /// Where the run stands.
    StateSnapshot(StateSnapshot),
    /// Something went wrong.
    #[serde(rename = "error")]
    Error(AgentError),
    /// The run was cancelled. Nothing comes behind it, and there is nothing to resume.
    RunCancelled(RunCancelled),
    /// A model call is over.
    LlmCallCompleted(LlmCallCompleted),
    /// The model is going to see the result of a call.
    ToolResultObserved(ToolResultObserved),
    /// The run is suspended, and goes on with an answer. Nothing comes behind it.
    UserInputRequested(UserInputRequested),
    /// The agent gives the work back. Nothing comes behind it.
    Handoff(Handoff),
    /// The run ends with what it has. Nothing comes behind it.
    PartialRunSummary(PartialRunSummary),
}

impl AgentEvent {
    /// Returns the event's `type`.
    pub const fn tag(&self) -> &'static str {
        match self {
            Self::TextDelta(_) => "text_delta",
            Self::ReasoningDelta(_) => "reasoning_delta",
            Self::ToolEvent(_) => "tool_event",
            Self::StateSnapshot(_) => "state_snapshot",
            Self::Error(_) => "error",
            Self::RunCancelled(_) => "run_cancelled",
            Self::LlmCallCompleted(_) => "llm_call_completed",
            Self::ToolResultObserved(_) => "tool_result_observed",
            Self::UserInputRequested(_) => "user_input_requested",
            Self::Handoff(_) => "handoff",
            Self::PartialRunSummary(_) => "partial_run_summary",
        }
    }
}

/// Further words of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextDelta {
    /// The words.
    pub text: String,
}

/// Further words of what the model thinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasoningDelta {
    /// The words.
    pub text: String,
}

/// News of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolEvent {
    /// The call.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: String,
    /// How the call stands.
    pub status: ToolStatus,
    /// The arguments, when the call starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// What the call tells of itself: the fields of an ACP tool-call update that have changed.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub update: Map<String, Value>,
}

/// How a tool call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It runs from now on, unless a cancel comes before it has begun: then it is told not to run.
    Started,
    /// It runs, and has something to tell.
    Updated,
    /// It did what it was asked to.
    Completed,
    /// It ran and failed.
    Failed,
    /// It did not run.
    NotRun,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateSnapshot {
    /// The session.
    pub session_id: String,
    /// The run.
    pub run_id: String,
    /// How many answers of the model it has had since the last time that limit was reset.
    pub iteration_count: u64,
    /// How many seconds it has worked, counted likewise.
    pub elapsed_seconds: f64,
    /// What the session has cost so far, as far as prices are known.
    pub cumulative_cost_usd: f64,
    /// How many model calls of the session had no known price.
    pub unpriced_calls: u64,
    /// Tokens that models were sent.
    pub cumulative_prompt_tokens: u64,
    /// Tokens that models produced.
    pub cumulative_completion_tokens: u64,
}

/// Something went wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentError {
    /// What went wrong, for people.
    pub message: String,
    /// What the run takes it for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Whether the run goes on.
    #[serde(default)]
    pub recoverable: bool,
    /// What kind of error it is, in one word, where there is no failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
}

/// The run was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCancelled {
    /// What happened, for people.
    pub message: String,
    /// The request's reason.
    pub reason: CancelReason,
}

/// A model call is over. One that failed is told of only if its provider says what it has used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmCallCompleted {
    /// The model's id.
    pub model_id: String,
    /// Tokens that the model was sent; nothing if its provider does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// How many of those the provider had cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_prompt_tokens: Option<u64>,
    /// Tokens that the model produced; nothing if its provider does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// What the call cost; `null` if that is unknown.
    pub cost_usd: Option<f64>,
    /// How many seconds it took.
    pub duration_s: f64,
    /// Why the model stopped; `error` if the call failed.
    pub finish_reason: String,
}

/// The model is going to see the result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResultObserved {
    /// The call.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The words of the result.
    pub content: String,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
}

/// The run is suspended: a person is asked, or the agent waits for something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserInputRequested {
    /// What is asked. For an agent that waits without a question, what it waits for.
    pub question: String,
    /// What one should know to answer it.
    #[serde(default)]
    pub context: Option<String>,
    /// Answers to choose from; any other answer is as good.
    #[serde(default)]
    pub choices: Option<Vec<String>>,
    /// All that is needed to resume the run.
    pub suspension_record: SuspensionRecord,
    /// The failure that made the agent's recovery ask; nothing if the agent wanted to ask.
    #[serde(default)]
    pub originating_failure_kind: Option<FailureKind>,
    /// What the agent waits for, if it asks no question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
}

/// The agent gives the work back to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// The reason.
    pub rationale: String,
    /// What stands in the way.
    pub blockers: Vec<String>,
    /// What the person could do.
    pub suggested_next_steps: Vec<String>,
}

/// The run ends with what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialRunSummary {
    /// What is missing.
    pub missing: Vec<String>,
    /// What the run has found out.
    pub learned_facts: Vec<String>,
    /// How one could go on.
    pub next_step_plan: Vec<String>,
}
