//! What can be asked of a session: by a person or a program, by the world, by the host that drives it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arrival::Arrival;
use crate::carry::{AddBudget, Limit, Notes, Usage};
use crate::conditions::Conditions;
use crate::id::{Epoch, GateId, Handle, HostId, RequestId};
use crate::ledger::{AskedCall, CallId};
use crate::session::Outcome;
use crate::transcript::{Content, Digest};

/// Something asked of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Starts a run, or answers what the session waits for.
    Prompt(Prompt),
    /// Pauses the session.
    Suspend(Suspend),
    /// Takes a pending suspend back.
    Withdraw(Withdraw),
    /// Wakes the session, or lifts a hold, or takes back a pending suspend.
    Resume(Resume),
    /// Ends the run.
    Cancel(Cancel),
    /// Ends the session.
    Close(Close),

    /// An event arrived.
    Deliver(Arrival),
    /// A deadline may have passed.
    Expire,
    /// The host or a policy wakes the session.
    Wake(Wake),
    /// A panic is over.
    ReleaseGate(ReleaseGate),

    /// A host takes a session that is ready.
    Claim,
    /// A host takes a session that is ready, and starts its first step.
    Take(Take),
    /// The owner starts a step: a model call is about to begin.
    StartStep(StartStep),
    /// The step goes on, and something of it is to be durable.
    Progress(Progress),
    /// The model answered and asked for calls.
    AskCalls(AskCalls),
    /// The model call was broken off.
    AbortStep(AbortStep),
    /// Calls are about to start.
    Dispatch(Dispatch),
    /// Calls came back.
    ReturnCalls(ReturnCalls),
    /// The step is over: a boundary.
    FinishStep(FinishStep),
    /// The run is over, at a boundary.
    FinishRun(FinishRun),
    /// The agent parks itself until something happens.
    Await(Await),
    /// The agent asks a person.
    Ask(Ask),
    /// The grace is over: calls in flight were killed.
    Abandon(Owned),
    /// The owner stops and gives the session back; what is still in flight was killed.
    Drain(Owned),

    /// The owner is gone.
    Recover(Recover),
}

impl Command {
    /// Returns the conditions of a wait that the command may begin.
    pub const fn conditions(&self) -> Option<&Conditions> {
        match self {
            Self::Suspend(suspend) => suspend.resume_when.as_ref(),
            Self::Await(wait) => wait.conditions.as_ref(),
            _ => None,
        }
    }

    /// Returns the command's name, as it is journaled.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Prompt(_) => "prompt",
            Self::Suspend(_) => "suspend",
            Self::Withdraw(_) => "withdraw",
            Self::Resume(_) => "resume",
            Self::Cancel(_) => "cancel",
            Self::Close(_) => "close",
            Self::Deliver(_) => "deliver",
            Self::Expire => "expire",
            Self::Wake(_) => "wake",
            Self::ReleaseGate(_) => "release_gate",
            Self::Claim => "claim",
            Self::Take(_) => "take",
            Self::StartStep(_) => "start_step",
            Self::Progress(_) => "progress",
            Self::AskCalls(_) => "ask_calls",
            Self::AbortStep(_) => "abort_step",
            Self::Dispatch(_) => "dispatch",
            Self::ReturnCalls(_) => "return_calls",
            Self::FinishStep(_) => "finish_step",
            Self::FinishRun(_) => "finish_run",
            Self::Await(_) => "await",
            Self::Ask(_) => "ask",
            Self::Abandon(_) => "abandon",
            Self::Drain(_) => "drain",
            Self::Recover(_) => "recover",
        }
    }
}

/// A message for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// What is said.
    pub content: Content,
    /// The id its sender gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The question the sender was shown, if the face knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<Handle>,
    /// What a message over this face may wake.
    pub reach: Reach,
}

/// What a message may wake, besides a pause that no client made (`host_interrupted`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Only questions: a pause is left by its own verb (A2A).
    Questions,
    /// Questions and the agent's own waits (CLI).
    Waits,
    /// Questions, the agent's own waits, and pauses made over the same face (ACP).
    OwnFace,
}

/// How soon a suspend takes effect; a stronger mode is greater.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// When the run is over.
    WaitForCompletion,
    /// At the next boundary.
    #[default]
    FinishStep,
    /// Before the next call is dispatched.
    InterruptImmediate,
}

impl Mode {
    /// Returns the word for this mode on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WaitForCompletion => "wait_for_completion",
            Self::FinishStep => "finish_step",
            Self::InterruptImmediate => "interrupt_immediate",
        }
    }
}

/// A request to pause a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Suspend {
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What wakes it, besides an explicit resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_when: Option<Conditions>,
    /// How soon it takes effect.
    pub mode: Mode,
    /// How long calls in flight may go on; without it they may go on for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Who asks, so that they can withdraw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester: Option<Requester>,
    /// The limit that is the cause, for a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// What the caller wants kept and echoed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// Whoever wants a session suspended; it stays so while one of them does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requester {
    /// One call of `suspend`.
    Call(RequestId),
    /// A panic.
    Gate(GateId),
}

/// Takes one caller's pending suspend back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Withdraw {
    /// Whose.
    pub request: RequestId,
}

/// A request to wake a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resume {
    /// The suspension that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<Handle>,
    /// What is fed to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Content>,
    /// Whether the next turn sees the whole transcript, or a digest.
    pub continue_transcript: bool,
    /// Makes a retry harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The id of the message that answers, if it came as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What is added to the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_budget: Option<AddBudget>,
}

impl Default for Resume {
    fn default() -> Self {
        Self {
            handle: None,
            input: None,
            continue_transcript: true,
            idempotency_key: None,
            message_id: None,
            add_budget: None,
        }
    }
}

impl Resume {
    /// Returns the digest of what is asked, by which two uses of one idempotency key are compared.
    pub fn body(&self) -> Digest {
        let body = Self { idempotency_key: None, ..self.clone() };
        // Encoding cannot fail: the type has neither maps nor floats.
        Digest::of(&serde_json::to_vec(&body).unwrap_or_default())
    }
}

/// A request to end the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cancel {
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long calls in flight may go on, if it was configured; else it depends on what drives
    /// the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// A request to end the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Close {
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A wake that the host or a policy decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wake {
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is added to the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_budget: Option<AddBudget>,
}

/// A panic is over.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseGate {
    /// Which.
    pub gate: GateId,
}

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
    /// The calls.
    pub calls: Vec<AskedCall>,
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
    /// What it used.
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
    /// Which; one commit per parallel batch.
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
    /// Which, and how they ended.
    pub calls: Vec<ReturnedCall>,
    /// Their results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Digest>,
}

/// A call that came back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnedCall {
    /// Which.
    pub id: CallId,
    /// How it ended.
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
    /// What it used.
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
    /// What it leaves behind.
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
    /// How.
    pub end: RunEnd,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnd {
    /// The outcome.
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
    /// Why.
    pub reason: String,
    /// What wakes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// What to show meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The call by which the model asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The limit that is the cause: a quota that refills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// What is kept and echoed.
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
    /// What is asked.
    pub question: Question,
    /// The call by which the model asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// What is kept and echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// What is asked.
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
    /// Who owned it.
    pub host: HostId,
    /// The claim that is over.
    pub epoch: Epoch,
    /// How that is known.
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
