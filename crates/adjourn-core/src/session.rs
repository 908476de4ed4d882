//! The state of a session: a fold of its events, bounded, and readable as LIFECYCLE states it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arrival::Arrival;
use crate::carry::{Budget, Counters, Progress, Totals};
use crate::command::{Mode, Requester, RunEnd};
use crate::conditions::{Conditions, Key};
use crate::driver::DriverSummary;
use crate::event::Resumed;
use crate::id::{Epoch, GateId, HostId, RunId, Seq, SessionId};
use crate::ledger::{CallState, Ledger};
use crate::time::Timestamp;
use crate::transcript::{Content, Head};

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
    /// Where it stands.
    pub state: State,
    /// Calls without an answer in the transcript.
    #[serde(default, skip_serializing_if = "Ledger::is_empty")]
    pub calls: Ledger,
    /// How far the transcript goes.
    pub transcript: Head,
    /// What it has used.
    #[serde(default)]
    pub totals: Totals,
    /// What it may use.
    #[serde(default)]
    pub budget: Budget,
    /// What a digest is made from.
    #[serde(default)]
    pub memory: Memory,
    /// Where the driver finds its place again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_state: Option<String>,
    /// Tools that a person has allowed for good.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allowed: BTreeSet<String>,
    /// How the last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// The last wake, unless a prompt has begun another run since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woke: Option<Resumption>,
    /// What became of the last suspensions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<PastSuspension>,
}

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No run; the next prompt starts one.
    Idle,
    /// Work is due, and nobody runs it yet.
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
    Wake(WakeReport),
}

/// What woke a session, for the turn that follows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WakeReport {
    /// What was resumed.
    #[serde(flatten)]
    pub resumption: Resumption,
    /// What it had waited for, in the words of whoever suspended it.
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
    /// The question that was asked, its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// A wake before this one that no step had begun with yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<Self>>,
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
    /// Who.
    pub host: HostId,
    /// Under which claim.
    pub epoch: Epoch,
}

/// One host owns the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// What it works at.
    pub run: Run,
    /// Who.
    pub owner: Owner,
}

/// One host owns the session, and brings it to rest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quiescing {
    /// What it worked at.
    pub run: Run,
    /// Who.
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
    /// Why.
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
    pub agent: Option<Pause>,
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
    /// When.
    pub at: Timestamp,
    /// How.
    pub how: SessionEnd,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    /// Somebody closed it.
    Closed,
    /// Its driver ended it.
    Driver,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was asked to.
    Completed,
    /// It did not.
    Failed,
    /// Somebody ended it.
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
    /// Which.
    pub id: RunId,
    /// How.
    pub outcome: Outcome,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When.
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
    /// The name that the agent gave the conversation.
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

impl Session {
    /// Returns where the session stands, in one word.
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Idle => Phase::Idle,
            State::Ready(_) => Phase::Ready,
            State::Running(_) => Phase::Running,
            State::Quiescing(quiescing) => match (&quiescing.stopping, quiescing.draining) {
                (Stopping::Canceling(_), _) => Phase::Canceling,
                (Stopping::Parking(_), false) => Phase::Requested,
                (Stopping::Parking(_), true) => Phase::Quiescing,
            },
            State::Suspended(suspended) => match (&suspended.park.pause.wait, &suspended.hold) {
                (Wait::Question(_), None) => Phase::Asking,
                _ => Phase::Suspended,
            },
            State::Ended(_) => Phase::Ended,
        }
    }

    /// Returns the run under way, parked or not.
    pub fn run(&self) -> Option<&Run> {
        match &self.state {
            State::Idle | State::Ended(_) => None,
            State::Ready(run) => Some(run),
            State::Running(running) => Some(&running.run),
            State::Quiescing(quiescing) => Some(&quiescing.run),
            State::Suspended(suspended) => match &suspended.prior {
                Prior::Idle => None,
                Prior::Run(run) | Prior::Kept(KeptEnd { run, .. }) => Some(run),
            },
        }
    }

    /// Returns who drives the session.
    pub fn owner(&self) -> Option<Owner> {
        match &self.state {
            State::Running(running) => Some(running.owner),
            State::Quiescing(quiescing) => Some(quiescing.owner),
            State::Idle | State::Ready(_) | State::Suspended(_) | State::Ended(_) => None,
        }
    }

    /// Returns the suspension and the hold over it.
    pub fn suspended(&self) -> Option<&Suspended> {
        match &self.state {
            State::Suspended(suspended) => Some(suspended),
            _ => None,
        }
    }

    /// Returns the pause that is accepted and not yet in force: a client's before the agent's own.
    pub fn pending_pause(&self) -> Option<&Pause> {
        match &self.state {
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                let client = parking.client.as_ref().map(|client| &client.pause);
                client.or(parking.agent.as_ref())
            }
            _ => None,
        }
    }

    /// Returns the keys under which an event can find this session's waits.
    pub fn subscriptions(&self) -> std::collections::BTreeSet<Key> {
        let waits = self.suspended().into_iter().flat_map(Suspended::waits);
        waits
            .filter_map(|parked| parked.pause.conditions.as_ref())
            .flat_map(Conditions::keys)
            .collect()
    }

    /// Returns when a deadline of a suspension acts; the store keeps it in an index.
    pub fn due(&self) -> Option<Timestamp> {
        let suspended = self.suspended()?;
        suspended.waits().filter_map(|parked| parked.due).map(|due| due.at).min()
    }

    /// Returns the window of the turn that is open or interrupted: events younger than it may
    /// still be waited for, and are not to be dropped.
    pub fn open_window(&self) -> Option<Seq> {
        match &self.state {
            State::Idle | State::Ended(_) => None,
            State::Ready(run) | State::Running(Running { run, .. }) => Some(run.window),
            State::Quiescing(Quiescing { run, stopping, .. }) => match stopping {
                Stopping::Canceling(_) => Some(run.window),
                // A pause that is pending may look back further than its turn does.
                Stopping::Parking(Parking { client, agent }) => {
                    let client = client.as_ref().map(|client| &client.pause);
                    let pauses = client.into_iter().chain(agent).map(|pause| pause.window);
                    pauses.chain([run.window]).min()
                }
            },
            State::Suspended(suspended) => match &suspended.prior {
                Prior::Run(run) if suspended.park.pause.initiator == Initiator::Client => {
                    Some(run.window)
                }
                Prior::Idle | Prior::Run(_) | Prior::Kept(_) => None,
            },
        }
    }

    /// Returns the event up to which this session needs none: those that its turn may wait for are
    /// younger, and so is one that the agent has yet to be told of, with its data.
    pub fn needs_events_after(&self) -> Option<Seq> {
        let before = |arrival: &Arrival| Seq(arrival.seq.0.saturating_sub(1));
        let (run, fired) = match &self.state {
            State::Idle | State::Ended(_) => (None, None),
            State::Ready(run)
            | State::Running(Running { run, .. })
            | State::Quiescing(Quiescing { run, .. }) => (Some(run), None),
            State::Suspended(suspended) => {
                let run = match &suspended.prior {
                    Prior::Run(run) => Some(run),
                    Prior::Idle | Prior::Kept(_) => None,
                };
                (run, suspended.fired.as_ref())
            }
        };
        let untold = match run {
            Some(Run { told: false, opening: Opening::Wake(report), .. }) => Some(report),
            _ => None,
        };
        let reports =
            untold.into_iter().flat_map(|report| [Some(report), report.earlier.as_deref()]);
        let arrivals = reports.flatten().filter_map(|report| report.arrival.as_ref());
        let fired = fired.and_then(|fired| match fired {
            Fired::Event(arrival) => Some(arrival),
            Fired::Deadline(_) => None,
        });
        arrivals.chain(fired).map(before).chain(self.open_window()).min()
    }

    /// Returns when the owner may abandon calls in flight, by the times of the journal.
    ///
    /// The wall clock may be set meanwhile: an owner waits for what [`Session::grace`] was when it
    /// first saw this time, by a clock that cannot be set.
    pub fn abandon_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Quiescing(Quiescing { stopping: Stopping::Canceling(canceling), .. }) => {
                Some(canceling.abandon_at)
            }
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                parking.client.as_ref().and_then(|client| client.abandon_at)
            }
            _ => None,
        }
    }

    /// Returns how long calls in flight may go on, counted from the last event.
    pub fn grace(&self) -> Option<std::time::Duration> {
        self.abandon_at().map(|until| until.since(self.at))
    }

    /// Returns whether the session stops without waiting for permissions that are asked for.
    ///
    /// A cancel drops the calls that need them; a suspend defers them, unless it waits for the run
    /// and so for them, too.
    pub fn withdraws_permissions(&self) -> bool {
        match &self.state {
            State::Quiescing(Quiescing { stopping: Stopping::Canceling(_), .. }) => true,
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                let client = parking.client.as_ref();
                client.is_some_and(|client| client.mode != Mode::WaitForCompletion)
            }
            _ => false,
        }
    }

    /// Returns whether a step may begin: the run has none under way, and nothing but a gate or a
    /// limit could keep one from beginning when a host has taken the session.
    pub fn awaits_step(&self) -> bool {
        self.run().is_some_and(|run| run.step.is_none())
    }

    /// Returns whether a model call or a tool call is in flight.
    pub fn in_flight(&self) -> bool {
        self.calls.any(CallState::Dispatched)
            || self.run().and_then(|run| run.step).is_some_and(|step| step.model_in_flight)
    }
}

impl Resumed {
    /// Returns what the turn that follows is told, about the pause that has ended.
    pub(crate) fn report(&self, pause: &Pause) -> WakeReport {
        WakeReport {
            resumption: self.resumption.clone(),
            reason: pause.reason.clone(),
            host_interrupted: pause.host_interrupted,
            summary: pause.summary.clone(),
            waited_ms: self.waited_ms,
            arrival: self.arrival.clone(),
            input: self.input.clone(),
            value: self.value.clone(),
            question: match &pause.wait {
                Wait::Open => None,
                Wait::Question(question) => {
                    Some(crate::limits::excerpt(&question.question, crate::limits::EXCERPT_BYTES))
                }
            },
            earlier: None,
        }
    }
}

impl Suspended {
    /// Returns what a client sees: the hold, if one lies over the agent's wait.
    pub fn shown(&self) -> &Parked {
        self.hold.as_ref().unwrap_or(&self.park)
    }

    /// Returns the waits that can still fire.
    pub fn waits(&self) -> impl Iterator<Item = &Parked> {
        self.hold.iter().chain(self.fired.is_none().then_some(&self.park))
    }
}

impl Session {
    /// Returns whether a gate wants this session stopped, or has stopped it.
    pub fn is_gated(&self) -> bool {
        self.gates().next().is_some()
    }

    /// Returns the gates that want this session stopped, or have stopped it.
    pub fn gates(&self) -> impl Iterator<Item = GateId> {
        let shown = self.suspended().map(|suspended| &suspended.shown().pause);
        let named = shown.or(self.pending_pause()).map(|pause| pause.requesters.named.as_slice());
        named.unwrap_or_default().iter().filter_map(|named| match named {
            Requester::Gate(gate) => Some(*gate),
            _ => None,
        })
    }
}
