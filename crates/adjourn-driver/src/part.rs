//! Parts: what a driver's step consists of, as it comes.

use adjourn_core::carry::{Notes, Usage};
use adjourn_core::command::{CallResult, Question, RunEnd};
use adjourn_core::conditions::Conditions;
use adjourn_core::ledger::CallId;
use adjourn_core::session::Outcome;
use adjourn_core::time::Timestamp;
use serde_json::Value;

use crate::content::{Block, CallContent, Message, Shown};

/// Whether words are said or thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Words {
    /// The agent says the words to the person.
    Said,
    /// The agent thinks the words.
    Thought,
}

/// One part of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Further words of a message. A message is over when the words of another begin, when the
    /// driver gives something complete, or when the step is over.
    Delta {
        /// Which of the step's messages goes on, as the driver numbers them.
        message: u32,
        /// Whether the agent says or thinks these words.
        words: Words,
        /// The words that come behind those of the last such part.
        text: String,
    },
    /// A complete entry of the transcript.
    Message(Message),
    /// Calls that the host is to run when the step's stream has ended; only
    /// [`Part::Finished`] comes behind it.
    Calls(Vec<RequestedCall>),
    /// News of a call that the agent runs by itself.
    Reported(Reported),
    /// What was used since the last such part.
    Spent(Usage),
    /// What the agent notes about its progress.
    Noted(Notes),
    /// Something that people are shown beside words.
    Shown(Shown),
    /// Where the driver finds its place again if the step never ends. It is durable before the
    /// host polls again.
    State(String),
    /// The agent wants to be parked, without a call that asks for it; only [`Part::Finished`]
    /// comes behind it.
    Park(Park),
    /// The step failed, and the driver has no policy of its own: the host is configured what to do
    /// about it.
    Failed(Failure),
    /// The step is over, and the driver says what it leaves behind. A stream that ends without it leaves nothing behind.
    Finished(Finish),
    /// The step was broken off as [`Step::stop`](crate::Step::stop) asked for, and what was being
    /// said is not whole.
    Broken,
}

/// What a step leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finish {
    /// Where the driver finds its place again; nothing leaves the last one.
    pub state: Option<String>,
    /// How the run ended, if this was its last step.
    pub ends: Option<RunEnd>,
    /// Whether no model has spoken: the step is not counted among those of its run.
    pub model_silent: bool,
}

impl Finish {
    /// The run has done what it was asked to.
    pub const fn completed() -> Self {
        Self::run(Outcome::Completed, None)
    }

    /// The run has failed, and why.
    pub const fn failed(why: String) -> Self {
        Self::run(Outcome::Failed, Some(why))
    }

    const fn run(outcome: Outcome, error: Option<String>) -> Self {
        let ends = Some(RunEnd { outcome, error, ends_session: false });
        Self { state: None, ends, model_silent: false }
    }

    /// Adds where the driver finds its place again.
    #[must_use]
    pub fn at(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }
}

/// A call that the host is to run.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedCall {
    /// The call with its arguments, as the transcript keeps it.
    pub content: CallContent,
    /// Whether running it twice does no harm.
    pub idempotent: bool,
    /// Whether a person has to allow it first.
    pub permission: bool,
    /// Whether it waits for the calls before it, and does not run if their outcome is unknown.
    pub in_order: bool,
    /// What the agent waits for, if this is the call by which it parks itself.
    pub parks: Option<Park>,
}

impl RequestedCall {
    /// Makes a call that may run at once.
    pub const fn new(content: CallContent) -> Self {
        Self { content, idempotent: false, permission: false, in_order: false, parks: None }
    }
}

/// What an agent parks itself for.
#[derive(Debug, Clone, PartialEq)]
pub enum Park {
    /// To wait until something happens.
    Await {
        /// What the agent waits for, in its own words.
        reason: String,
        /// The conditions that wake the agent.
        conditions: Option<Conditions>,
        /// A summary that people are shown while the agent waits.
        summary: Option<String>,
    },
    /// To ask a person.
    Ask(Question),
}

/// News of a call that the agent runs by itself.
///
/// Such a call is never deferred, run again or started by the host. If its step is broken off
/// before it has ended, its outcome is unknown; if it had not started, it did not run.
#[derive(Debug, Clone, PartialEq)]
pub enum Reported {
    /// The agent asks whether it may run the call.
    Asked(CallContent),
    /// The agent runs the call, or is about to. A call that was asked for is named by its id; the
    /// host has made this durable before it polls again, so an agent is allowed to run the call
    /// only after this part.
    Started(CallContent),
    /// The agent has news of the call, which people who watch are shown.
    Updated(Shown),
    /// The call has ended, and the host tells clients and the model what came of it.
    Ended {
        /// The id under which the call was reported before.
        id: CallId,
        /// Whether the call did its work, failed, or was declined before it started.
        result: CallResult,
        /// The blocks that show the result.
        content: Vec<Block>,
        /// The result as a value, if the agent has one: ACP's `rawOutput`.
        structured: Option<Value>,
    },
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is, in one word; hosts know `connection`, `overloaded`,
    /// `rate_limit`, `timeout`, `transient_provider` and `unavailable`, which pass, and
    /// `auth_required`, which a person can do something about.
    pub kind: String,
    /// What went wrong, for people.
    pub message: String,
    /// When trying again makes sense, if that is known.
    pub retry_at: Option<Timestamp>,
}
