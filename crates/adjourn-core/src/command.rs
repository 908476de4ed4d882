//! What can be asked of a session: by a person or a program, by the world, by the host that drives it.

mod owner;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arrival::Arrival;
use crate::carry::{AddBudget, Limit};
use crate::conditions::Conditions;
use crate::event::SealedRecord;
use crate::id::{GateId, Handle, RequestId};
use crate::transcript::{Content, Digest};

pub use owner::{
    AbortStep, Ask, AskCalls, Await, CallResult, Dispatch, FinishRun, FinishStep, Loss, Owned,
    Progress, Question, Recover, ReturnCalls, ReturnedCall, RunEnd, StartStep, StepEnd, Take,
};

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
    /// Ends the session, which goes on elsewhere with a portable record.
    Export(Export),
    /// Chooses how the agent works.
    SetOption(SetOption),
    /// A worker outside the host parks the session for its agent.
    AwaitResumption(AwaitResumption),

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
            Self::AwaitResumption(wait) => wait.conditions.as_ref(),
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
            Self::Export(_) => "export",
            Self::SetOption(_) => "set_option",
            Self::AwaitResumption(_) => "await_resumption",
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

/// What a message may wake; all but the first also a pause that no client made
/// (`host_interrupted`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Nothing at all: it begins a run, or is refused (A2A, a message that names no task).
    Nothing,
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
    /// The reason for the pause, for people.
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

/// A party that wants a session suspended; the session stays so while one of them does.
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
    /// The call of `suspend` that is taken back.
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
    /// The reason for the end, for people.
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
    /// The reason for the end, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A request to end the session here, because a portable record has been made of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// The record.
    pub record: SealedRecord,
    /// The reason for the move, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A choice of how the agent works.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetOption {
    /// The id of the option.
    pub option: String,
    /// The id of one of its values.
    pub value: String,
}

/// A request of a worker outside the host to park the session for its agent, until something
/// happens.
///
/// Such a worker holds no claim: what is in flight returns first, as for a client's `finish_step`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AwaitResumption {
    /// What the agent waits for, in its own words.
    pub reason: String,
    /// What wakes it, besides an explicit resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// What to show meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What is kept and echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A wake that the host or a policy decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wake {
    /// The reason for the wake, for people.
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
    /// The gate that is released.
    pub gate: GateId,
}
