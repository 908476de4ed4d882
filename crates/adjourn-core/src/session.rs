//! The state of a session: a fold of its events, bounded, and readable as LIFECYCLE states it.

mod queries;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::arrival::Arrival;
use crate::carry::{AddBudget, Budget, Counters, Progress, Totals, is_zero};
use crate::command::RunEnd;
use crate::driver::DriverSummary;
use crate::id::{Epoch, HostId, RunId, Seq, SessionId};
use crate::json::beside::{self, beside, required};
use crate::ledger::Ledger;
use crate::limits;
use crate::option::SessionOption;
use crate::time::Timestamp;
use crate::transcript::{Content, Head, ShownAt};

pub use crate::pause::{
    Cause, Fate, Fired, Initiator, Joined, Parked, PastSuspension, Pause, PendingPause, Requesters,
    Resumption, Wait,
};

/// One conversation of an agent with its history, as far as the lifecycle needs it.
///
/// Only [`Session::evolve`] changes it; the fields are public to be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub tenant: String,
    /// What operators find it by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The session on whose behalf it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// What it takes to run it.
    pub driver: DriverSummary,
    /// When it was created.
    pub created_at: Timestamp,
    /// How many events it is the fold of.
    pub revision: u64,
    /// The time of the last event; times never go backwards.
    pub at: Timestamp,
    /// How often it has been claimed.
    pub epoch: Epoch,
    /// The state of the lifecycle that the session is in.
    pub state: State,
    /// Calls without an answer in the transcript.
    #[serde(default, skip_serializing_if = "Ledger::is_empty")]
    pub calls: Ledger,
    /// How far the transcript goes.
    pub transcript: Head,
    /// Where the transcript has what people were last shown of each kind.
    #[serde(default, skip_serializing_if = "ShownAt::is_empty")]
    pub shown_at: ShownAt,
    /// What it has used.
    #[serde(default)]
    pub totals: Totals,
    /// What it may use.
    #[serde(default)]
    pub budget: Budget,
    /// What was added to what it may use, over its life: limits that only its driver knows grow by it.
    #[serde(default, skip_serializing_if = "AddBudget::is_nothing")]
    pub added: AddBudget,
    /// What a digest is made from.
    #[serde(default)]
    pub memory: Memory,
    /// Where the driver finds its place again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_state: Option<String>,
    /// Tools that a person has allowed for good.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allowed: BTreeSet<String>,
    /// What clients can choose of how the agent works, and what is chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<SessionOption>,
    /// How the last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// The last wake, unless a prompt has begun another run since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woke: Option<Resumption>,
    /// What became of the last suspensions.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::past")]
    pub past: Vec<PastSuspension>,
}

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No run; the next prompt starts one.
    Idle,
    /// Work is due, and no host runs it yet.
    Ready(Run),
    /// One host owns it.
    Running(Running),
    /// One host owns it, and brings it to rest.
    Quiescing(Quiescing),
    /// Nothing runs, and the transcript is stable.
    Suspended(Suspended),
    /// Over for good.
    Ended(Ended),
}

/// The work from one prompt until the session is idle again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// When it started.
    pub started_at: Timestamp,
    /// The number of its first entry in the transcript.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub from: u64,
    /// Which turn it is in, from 1.
    pub turn: u64,
    /// What the turn began with.
    pub opening: Opening,
    /// Whether a step has begun since: the model has been told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// An event younger than this cannot be missed by a wait that this turn begins.
    pub window: Seq,
    /// The step under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Whether the last step was broken off while the model spoke.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
    /// What it has used and met.
    #[serde(default)]
    pub progress: Progress,
}

/// What a turn begins with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// A prompt, which is the last message of the transcript.
    Prompt(Content),
    /// A wake; see [`WakeReport`].
    Wake(Box<WakeReport>),
}

/// What woke a session, for the turn that follows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WakeReport {
    /// What was resumed.
    #[serde(flatten)]
    pub resumption: Resumption,
    /// What it had waited for, in the words of the actor who suspended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it had lost its host; see [`Pause::host_interrupted`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_interrupted: bool,
    /// What the agent left behind for this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// How long it was parked.
    pub waited_ms: u64,
    /// The event that woke it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
    /// What was fed by a message or a resume; it is the last message of the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Content>,
    /// What was fed by a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What was added to the budget with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<AddBudget>,
    /// The question that was asked, its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// A wake before this one that no step had begun with yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<Self>>,
}

impl WakeReport {
    /// Returns this wake, and those before it that no step had begun with.
    pub fn newest_first(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |report| report.earlier.as_deref())
    }

    /// Drops the oldest wakes of those that are told together.
    pub(crate) fn bound(&mut self) {
        let mut last = self;
        for _ in 1..limits::UNTOLD_WAKES {
            match &mut last.earlier {
                Some(earlier) => last = earlier,
                None => return,
            }
        }
        last.earlier = None;
    }
}

beside! {
    WakeReportFields {
        "reason" => reason: Option<String>,
        "hostInterrupted" => host_interrupted: bool,
        "summary" => summary: Option<String>,
        "waitedMs" => waited_ms: u64,
        "arrival" => arrival: Option<Arrival>,
        "input" => input: Option<Content>,
        "value" => value: Option<Value>,
        "added" => added: Option<AddBudget>,
        "question" => question: Option<String>,
        "earlier" => earlier: Option<Box<WakeReport>>,
    }
}

impl<'de> Deserialize<'de> for WakeReport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (resumption, fields): (_, WakeReportFields) = beside::read(deserializer)?;
        Ok(Self {
            resumption,
            reason: fields.reason.flatten(),
            host_interrupted: fields.host_interrupted.unwrap_or_default(),
            summary: fields.summary.flatten(),
            waited_ms: required(fields.waited_ms, "waitedMs")?,
            arrival: fields.arrival.flatten(),
            input: fields.input.flatten(),
            value: fields.value.flatten(),
            added: fields.added.flatten(),
            question: fields.question.flatten(),
            earlier: fields.earlier.flatten(),
        })
    }
}

/// One model call and the calls it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its number within the run.
    pub number: u64,
    /// Whether the model is still speaking.
    pub model_in_flight: bool,
    /// Whether it is the first one of its turn: the model is told what the turn begins with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opens: bool,
    /// Whether it goes on with what a step before it was broken off at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}

/// The claim under which a host drives a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The host.
    pub host: HostId,
    /// The claim under which it drives the session.
    pub epoch: Epoch,
}

/// One host owns the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// What it works at.
    pub run: Run,
    /// The claim under which it is driven.
    pub owner: Owner,
}

/// One host owns the session, and brings it to rest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quiescing {
    /// What it worked at.
    pub run: Run,
    /// The claim under which it is driven.
    pub owner: Owner,
    /// What comes when it rests.
    pub stopping: Stopping,
    /// Whether something in flight has returned since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// What comes when a session rests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// The run ends.
    Canceling(Canceling),
    /// It is parked: by a client, by its agent, or by both at once.
    Parking(Parking),
}

/// A run that is being canceled.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Canceling {
    /// The reason for the cancel, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When calls in flight are abandoned.
    pub abandon_at: Timestamp,
}

/// Pauses that are accepted and not yet in force; at least one is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Parking {
    /// A client's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<PendingPause>,
    /// The agent's own; the client's then becomes a hold over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<Pause>>,
    /// Whether a worker outside the host asked for the agent's own: its step goes on to its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_worker: bool,
}

/// Nothing runs, and the transcript is stable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspended {
    /// The suspension.
    pub park: Parked,
    /// A client's hold over the agent's own wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Parked>,
    /// What fired under the hold; it acts when the hold is lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired: Option<Fired>,
    /// Where it goes from here.
    pub prior: Prior,
}

/// Where a suspended session goes from here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prior {
    /// Back to idle.
    Idle,
    /// On with its run.
    Run(Run),
    /// To the end of its run, which came before the suspension did.
    Kept(KeptEnd),
}

/// A run that ended while a suspend was pending.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptEnd {
    /// The run.
    pub run: Run,
    /// How it ended; it takes effect on resume.
    pub end: RunEnd,
}

/// Over for good.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// The time at which it ended.
    pub at: Timestamp,
    /// What ended the session.
    pub how: SessionEnd,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    /// A client or an operator closed it.
    Closed,
    /// Its driver ended it.
    Driver,
    /// It goes on elsewhere, with a portable record.
    Exported,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was asked to.
    Completed,
    /// It did not.
    Failed,
    /// A client or an operator ended it.
    Canceled,
    /// The agent would not do it.
    Rejected,
}

impl Outcome {
    /// Returns the word for this outcome on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
        }
    }
}

/// How the last run ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// The run.
    pub id: RunId,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The time at which it ended.
    pub at: Timestamp,
}

/// What a digest is made from: counters and excerpts, not histories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// The beginning of the first prompt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub first_prompt: String,
    /// The beginning of what the agent said last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_words: String,
    /// How often each tool ran.
    pub ran: Counters,
    /// How often each tool failed.
    pub failed: Counters,
    /// Lessons learned, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
    /// The name that the agent gave the conversation, or else the one it was created with.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
}

/// Where a session stands, in one word for messages and lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// No run.
    Idle,
    /// Work is due.
    Ready,
    /// A host drives it.
    Running,
    /// A pause is accepted; nothing in flight has returned yet.
    Requested,
    /// A pause is accepted; what is in flight returns.
    Quiescing,
    /// A cancel is accepted.
    Canceling,
    /// Parked.
    Suspended,
    /// Parked with a question.
    Asking,
    /// Over.
    Ended,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Requested => "about to stop",
            Self::Quiescing => "quiescing",
            Self::Canceling => "canceling",
            Self::Suspended => "suspended",
            Self::Asking => "waiting for an answer",
            Self::Ended => "ended",
        })
    }
}
