//! What the host that drives a session commits, and what is committed when it is gone.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::carry::{Limit, Notes, Usage};
use crate::conditions::Conditions;
use crate::id::{Epoch, HostId};
use crate::ledger::{AskedCall, CallId};
use crate::session::Outcome;
use crate::transcript::Digest;

/// A command of the owner that says nothing but who it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owned {
    /// The claim under which it is given.
    pub epoch: Epoch,
}

/// The owner is about to call the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartStep {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// What the model is told first: wake reports, answers to calls that did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Digest>,
}

/// A host takes a session and is about to call the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Take {
    /// What the model is told first, as for [`StartStep`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Digest>,
}

/// Something of a step that is not over is to be durable: words, the agent's own calls, what was
/// used, the driver's place, what calls tell of themselves while they run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// What was said or shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Digest>,
    /// Calls that the agent is about to run by itself, and that a person may have to allow first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedCall>,
    /// Calls of these that the agent starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub started: Vec<CallId>,
    /// Calls of these that came back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<ReturnedCall>,
    /// What was used since the step began or the last such command; the step's end adds the rest.
    pub usage: Usage,
    /// What the agent notes about its progress.
    #[serde(skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
    /// The beginning of what the agent said last, if a message is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    /// Where the driver finds its place again; absent leaves the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_state: Option<String>,
}

/// The model answered and asked for calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskCalls {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// The calls that the model asked for.
    pub calls: Vec<AskedCall>,
    /// Whether one of them parks the session: the command for that follows in the same commit, and
    /// the session does not come to rest in between, whatever pause is pending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parks: bool,
    /// What the model said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Digest>,
    /// What the model call used; the step's end adds what came after.
    #[serde(default)]
    pub usage: Usage,
    /// What the agent notes about its progress.
    #[serde(default, skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
    /// The beginning of what the agent said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    /// Where the driver finds its place again if the step never ends; absent leaves the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_state: Option<String>,
}

/// The model call was broken off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortStep {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// What it had said, marked as aborted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Digest>,
    /// The money, tokens and time that the model call used.
    #[serde(default)]
    pub usage: Usage,
    /// What the agent notes about its progress.
    #[serde(default, skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
    /// The beginning of what the agent said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
}

/// Calls are about to start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dispatch {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// The calls that start; those that run side by side are one commit.
    pub calls: Vec<CallId>,
    /// Tools that a person has allowed for good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<String>,
}

/// Calls came back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnCalls {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// The calls that came back, each with how it ended.
    pub calls: Vec<ReturnedCall>,
    /// The results of the calls, as they were said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Digest>,
    /// The money, tokens and time that calls used since that was last said.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
}

/// A call that came back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnedCall {
    /// The call that came back.
    pub id: CallId,
    /// Whether the call did its work, failed, or was declined.
    pub result: CallResult,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallResult {
    /// It did what it was asked to.
    Done,
    /// It ran and failed.
    Failed,
    /// It was refused before it started: no permission, or no such tool.
    Declined,
}

/// What a step leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepEnd {
    /// What was said, results included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Digest>,
    /// The beginning of what the agent said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    /// The money, tokens and time that the step used since it last said so.
    pub usage: Usage,
    /// What the agent noted about its progress.
    pub notes: Notes,
    /// Where the driver finds its place again; absent leaves the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_state: Option<String>,
}

/// The step is over.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinishStep {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// What the step leaves behind.
    pub step: StepEnd,
    /// How the run ended, if this was its last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<RunEnd>,
    /// Whether the next step starts at once, if nothing keeps it from starting.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub next: bool,
}

/// The run is over, at a boundary.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinishRun {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// How the run ended.
    pub end: RunEnd,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnd {
    /// Whether the run completed, failed, was canceled or was rejected.
    pub outcome: Outcome,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the driver ends the session with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_session: bool,
}

/// The agent parks itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Await {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// What the step that ends with it leaves behind.
    pub step: StepEnd,
    /// What the agent waits for, in its own words.
    pub reason: String,
    /// The conditions that wake the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// A summary that people are shown while the agent waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The call by which the model asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The limit that is the cause: a quota that refills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Metadata of the caller, which is kept with the suspension and echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// The agent asks a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// The claim under which it is given.
    pub epoch: Epoch,
    /// What the step that ends with it leaves behind.
    pub step: StepEnd,
    /// The question, with what a person needs to answer it.
    pub question: Question,
    /// The call by which the model asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Metadata of the caller, which is kept with the suspension and echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The question itself, in words.
    pub question: String,
    /// What one should know to answer it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Answers to choose from; any other answer is as good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The failure that made a recovery ask, if it was not the agent's own wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originating_failure_kind: Option<String>,
}

/// The owner is gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recover {
    /// The host that owned the session.
    pub host: HostId,
    /// The claim that is over.
    pub epoch: Epoch,
    /// The way in which it is known that the owner is gone.
    pub how: Loss,
}

/// How it is known that an owner is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Its lock could be taken: the process is dead.
    Died,
    /// An operator took the session from it: the process may be alive, its commits are refused.
    Takeover,
    /// It stopped, and its drain was over before what was in flight had returned.
    Stopped,
}
