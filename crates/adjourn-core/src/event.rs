//! What happened to a session: the journal's vocabulary, which outlives every release.
//!
//! An event says what happened and everything that follows from it for the state, so that
//! [`Session::evolve`](crate::Session::evolve) has nothing to decide. Its encoding is JSON; the
//! key names the kind and its version (`"suspended/1"`). A kind that changes gets the next
//! version beside the old one, which stays readable for ever. `tests/golden/` holds one example
//! of each.

mod payloads;
mod reading;

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::carry::{Notes, Usage};
use crate::facts::Answer;
use crate::time::Timestamp;
use crate::transcript::Head;

pub use payloads::{
    AnsweredKey, AwaitEnded, AwaitRequested, CallsAbandoned, CallsAsked, CallsDispatched,
    CallsLeft, CallsReturned, CancelRequested, Claimed, Drained, FiredUnderHold, HoldLaid,
    HoldLifted, HostLost, OptionSet, Origin, ParkRequested, Progressed, RequesterLeft, Resumed,
    ResumedTo, RunEnded, RunStarted, SealedRecord, SessionCreated, SessionEnded, SessionImported,
    StepAborted, StepFinished, StepStarted, SuspendJoined, SuspendRequested, SuspendWithdrawn,
    SuspendedEvent, SuspensionEnded,
};

/// One thing that happened to a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When; never earlier than the event before it.
    pub at: Timestamp,
    /// Who caused it.
    pub by: Actor,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum What {
    /// The session exists.
    #[serde(rename = "session_created/1")]
    SessionCreated(SessionCreated),
    /// The session exists, and goes on from where a portable record says that it was parked.
    #[serde(rename = "session_imported/1")]
    SessionImported(Box<SessionImported>),
    /// A prompt was taken; work is due.
    #[serde(rename = "run_started/1")]
    RunStarted(RunStarted),
    /// A host took the session.
    #[serde(rename = "claimed/1")]
    Claimed(Claimed),
    /// A model call began.
    #[serde(rename = "step_started/1")]
    StepStarted(StepStarted),
    /// Something of a step that goes on is durable.
    #[serde(rename = "progressed/1")]
    Progressed(Progressed),
    /// The model has stopped speaking, and calls that the agent ran by itself have not ended.
    #[serde(rename = "calls_left/1")]
    CallsLeft(CallsLeft),
    /// The model asked for calls.
    #[serde(rename = "calls_asked/1")]
    CallsAsked(CallsAsked),
    /// The model call was broken off.
    #[serde(rename = "step_aborted/1")]
    StepAborted(StepAborted),
    /// Calls were about to start.
    #[serde(rename = "calls_dispatched/1")]
    CallsDispatched(CallsDispatched),
    /// Calls came back.
    #[serde(rename = "calls_returned/1")]
    CallsReturned(CallsReturned),
    /// Calls in flight were given up, and perhaps a model call with them.
    #[serde(rename = "calls_abandoned/1")]
    CallsAbandoned(CallsAbandoned),
    /// A step is over.
    #[serde(rename = "step_finished/1")]
    StepFinished(StepFinished),
    /// A client's pause was accepted and waits for its boundary.
    #[serde(rename = "suspend_requested/1")]
    SuspendRequested(SuspendRequested),
    /// One more caller wants the pause that is pending or in force.
    #[serde(rename = "suspend_joined/1")]
    SuspendJoined(SuspendJoined),
    /// A caller no longer wants the pause; others still do.
    #[serde(rename = "requester_left/1")]
    RequesterLeft(RequesterLeft),
    /// A pending pause was taken back.
    #[serde(rename = "suspend_withdrawn/1")]
    SuspendWithdrawn(SuspendWithdrawn),
    /// The agent asked to be parked and waits for its calls.
    #[serde(rename = "park_requested/1")]
    ParkRequested(ParkRequested),
    /// A worker outside the host asked to have the session parked, which waits for its boundary.
    #[serde(rename = "await_requested/1")]
    AwaitRequested(AwaitRequested),
    /// A worker's await is over before it took effect.
    #[serde(rename = "await_ended/1")]
    AwaitEnded(AwaitEnded),
    /// The session is parked.
    #[serde(rename = "suspended/1")]
    Suspended(SuspendedEvent),
    /// A client's hold lies over the agent's wait.
    #[serde(rename = "hold_laid/1")]
    HoldLaid(HoldLaid),
    /// The agent's wait is over, and acts when the hold is lifted.
    #[serde(rename = "fired_under_hold/1")]
    FiredUnderHold(FiredUnderHold),
    /// The hold is gone.
    #[serde(rename = "hold_lifted/1")]
    HoldLifted(HoldLifted),
    /// The session goes on.
    #[serde(rename = "resumed/1")]
    Resumed(Resumed),
    /// A suspension ended without a resume.
    #[serde(rename = "suspension_ended/1")]
    SuspensionEnded(SuspensionEnded),
    /// A cancel was accepted and waits for calls in flight.
    #[serde(rename = "cancel_requested/1")]
    CancelRequested(CancelRequested),
    /// A run is over.
    #[serde(rename = "run_ended/1")]
    RunEnded(RunEnded),
    /// The owner stopped and gave the session back.
    #[serde(rename = "drained/1")]
    Drained(Drained),
    /// The owner is gone.
    #[serde(rename = "host_lost/1")]
    HostLost(HostLost),
    /// An option has another value.
    #[serde(rename = "option_set/1")]
    OptionSet(OptionSet),
    /// The session is over.
    #[serde(rename = "session_ended/1")]
    SessionEnded(SessionEnded),
}

impl What {
    /// Returns the kind's name, without its version.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SessionCreated(_) => "session_created",
            Self::SessionImported(_) => "session_imported",
            Self::RunStarted(_) => "run_started",
            Self::Claimed(_) => "claimed",
            Self::StepStarted(_) => "step_started",
            Self::Progressed(_) => "progressed",
            Self::CallsLeft(_) => "calls_left",
            Self::CallsAsked(_) => "calls_asked",
            Self::StepAborted(_) => "step_aborted",
            Self::CallsDispatched(_) => "calls_dispatched",
            Self::CallsReturned(_) => "calls_returned",
            Self::CallsAbandoned(_) => "calls_abandoned",
            Self::StepFinished(_) => "step_finished",
            Self::SuspendRequested(_) => "suspend_requested",
            Self::SuspendJoined(_) => "suspend_joined",
            Self::RequesterLeft(_) => "requester_left",
            Self::SuspendWithdrawn(_) => "suspend_withdrawn",
            Self::ParkRequested(_) => "park_requested",
            Self::AwaitRequested(_) => "await_requested",
            Self::AwaitEnded(_) => "await_ended",
            Self::Suspended(_) => "suspended",
            Self::HoldLaid(_) => "hold_laid",
            Self::FiredUnderHold(_) => "fired_under_hold",
            Self::HoldLifted(_) => "hold_lifted",
            Self::Resumed(_) => "resumed",
            Self::SuspensionEnded(_) => "suspension_ended",
            Self::CancelRequested(_) => "cancel_requested",
            Self::RunEnded(_) => "run_ended",
            Self::Drained(_) => "drained",
            Self::HostLost(_) => "host_lost",
            Self::OptionSet(_) => "option_set",
            Self::SessionEnded(_) => "session_ended",
        }
    }
}

impl What {
    /// Returns what a session was made from, if this is how it came to be.
    pub fn founding(&self) -> Option<&SessionCreated> {
        match self {
            Self::SessionCreated(created) => Some(created),
            Self::SessionImported(imported) => Some(&imported.founding),
            _ => None,
        }
    }
}

impl Event {
    /// Returns the idempotency key this event answers, and the answer to keep under it.
    pub fn answer(&self) -> Option<(&AnsweredKey, Answer)> {
        let (key, answer) = match &self.what {
            What::Resumed(resumed) => {
                (resumed.answered.as_ref(), Answer::Resumed(resumed.resumption.clone()))
            }
            What::HoldLifted(lifted) => {
                (lifted.answered.as_ref(), Answer::Resumed(lifted.resumption.clone()))
            }
            What::SuspendWithdrawn(withdrawn) => {
                let (handle, at) = (withdrawn.handle, self.at);
                (withdrawn.answered.as_ref(), Answer::Withdrawn { handle, at })
            }
            _ => return None,
        };
        key.map(|key| (key, answer))
    }

    /// Returns who asked for this: a pause is its requester's, whichever host commits it.
    pub const fn asked_by(&self) -> &Actor {
        match &self.what {
            What::Suspended(SuspendedEvent { park, .. }) => &park.pause.by,
            _ => &self.by,
        }
    }

    /// Returns what the agent noted about its progress with this event, if it can have.
    pub const fn notes(&self) -> Option<&Notes> {
        match &self.what {
            What::Progressed(progressed) => Some(&progressed.notes),
            What::CallsAsked(asked) => Some(&asked.notes),
            What::StepAborted(aborted) => Some(&aborted.notes),
            What::StepFinished(finished) => Some(&finished.notes),
            _ => None,
        }
    }

    /// Returns what was used since the last event that said so, if this one can say so.
    pub const fn usage(&self) -> Option<&Usage> {
        match &self.what {
            What::Progressed(progressed) => Some(&progressed.usage),
            What::CallsAsked(asked) => Some(&asked.usage),
            What::StepAborted(aborted) => Some(&aborted.usage),
            What::StepFinished(finished) => Some(&finished.usage),
            _ => None,
        }
    }

    /// Returns how far the transcript went after this event, if the event says so.
    pub fn transcript(&self) -> Option<Head> {
        match &self.what {
            What::SessionImported(imported) => Some(imported.state.transcript),
            What::RunStarted(started) => Some(started.transcript),
            What::StepStarted(started) => Some(started.transcript),
            What::Progressed(progressed) => Some(progressed.transcript),
            What::CallsAsked(asked) => Some(asked.transcript),
            What::StepAborted(aborted) => Some(aborted.transcript),
            What::CallsReturned(returned) => Some(returned.transcript),
            What::StepFinished(finished) => Some(finished.transcript),
            What::Suspended(suspended) => Some(suspended.transcript),
            What::Resumed(resumed) => Some(resumed.transcript),
            _ => None,
        }
    }

    /// Returns the id of the message this event took.
    pub fn message_id(&self) -> Option<&str> {
        match &self.what {
            What::RunStarted(started) => started.message_id.as_deref(),
            What::Resumed(resumed) => resumed.message_id.as_deref(),
            _ => None,
        }
    }
}
