//! What happened to a session: the journal's vocabulary, which outlives every release.
//!
//! An event says what happened and everything that follows from it for the state, so that
//! [`Session::evolve`](crate::Session::evolve) has nothing to decide. Its encoding is JSON; the
//! key names the kind and its version (`"suspended/1"`). A kind that changes gets the next
//! version beside the old one, which stays readable for ever. `tests/golden/` holds one example
//! of each.

mod reading;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actor::Actor;
use crate::arrival::Arrival;
use crate::carry::{AddBudget, Budget, Limit, Notes, Usage};
use crate::command::{Loss, Mode, Requester, ReturnedCall, RunEnd};
use crate::driver::DriverSpec;
use crate::facts::Answer;
use crate::id::{Epoch, Handle, HostId, RunId, Seq, SessionId};
use crate::ledger::{AskedCall, CallId};
use crate::session::{Fate, Fired, Parked, Pause, Resumption, SessionEnd, WakeReport};
use crate::time::Timestamp;
use crate::transcript::{Content, Digest, Head};

/// One thing that happened to a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When; never earlier than the event before it.
    pub at: Timestamp,
    /// Who caused it.
    pub by: Actor,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum What {
    /// The session exists.
    #[serde(rename = "session_created/1")]
    SessionCreated(SessionCreated),
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
    /// The session is over.
    #[serde(rename = "session_ended/1")]
    SessionEnded(SessionEnded),
}

impl What {
    /// Returns the kind's name, without its version.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SessionCreated(_) => "session_created",
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
            Self::SessionEnded(_) => "session_ended",
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

    /// Returns how far the transcript went after this event, if the event says so.
    pub const fn transcript(&self) -> Option<Head> {
        match &self.what {
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

macro_rules! payload {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }
    };
}

payload! {
    /// The session exists.
    SessionCreated {
        /// Its id.
        id: SessionId,
        /// Whose it is.
        tenant: String,
        /// What operators find it by.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        labels: BTreeMap<String, String>,
        /// The session on whose behalf it was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<SessionId>,
        /// What it takes to run it.
        driver: DriverSpec,
        /// What it may use.
        #[serde(default)]
        budget: Budget,
    }
}
payload! {
    /// A prompt was taken.
    RunStarted {
        /// The run.
        run: RunId,
        /// What was said; nothing if a timeout's value started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Content>,
        /// The wake that started it, if it was not a plain prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wake: Option<WakeReport>,
        /// The id its sender gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Where the first turn's window opens.
        window: Seq,
        /// The transcript with the prompt.
        transcript: Head,
    }
}
payload! {
    /// A host took the session.
    Claimed {
        /// Who.
        host: HostId,
        /// Under which claim.
        epoch: Epoch,
    }
}
payload! {
    /// A model call began.
    StepStarted {
        /// The step's number within the run.
        number: u64,
        /// The transcript with what the model is told first.
        transcript: Head,
    }
}
payload! {
    /// Something of a step that goes on is durable.
    Progressed {
        /// Calls that the agent is about to run by itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        asked: Vec<AskedCall>,
        /// Calls of these that it starts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        started: Vec<CallId>,
        /// Calls of these that came back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        returned: Vec<ReturnedCall>,
        /// The money, tokens and time that the step used since the last such event.
        #[serde(default)]
        usage: Usage,
        /// What the agent noted.
        #[serde(default, skip_serializing_if = "Notes::is_empty")]
        notes: Notes,
        /// The beginning of what the agent said last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_words: Option<String>,
        /// Where the driver finds its place again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        driver_state: Option<String>,
        /// The transcript with what was said.
        transcript: Head,
    }
}
payload! {
    /// Calls that an agent ran by itself, and that had not ended when it stopped speaking.
    CallsLeft {
        /// Those that were started: their outcome is unknown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<CallId>,
        /// Those that were not.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_run: Vec<CallId>,
    }
}
payload! {
    /// The model asked for calls.
    CallsAsked {
        /// The calls.
        calls: Vec<AskedCall>,
        /// What the model call used.
        #[serde(default)]
        usage: Usage,
        /// What the agent noted.
        #[serde(default, skip_serializing_if = "Notes::is_empty")]
        notes: Notes,
        /// The beginning of what the agent said last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_words: Option<String>,
        /// Where the driver finds its place again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        driver_state: Option<String>,
        /// The transcript with what the model said.
        transcript: Head,
    }
}
payload! {
    /// The model call was broken off.
    StepAborted {
        /// What it used.
        usage: Usage,
        /// What the agent noted.
        #[serde(default, skip_serializing_if = "Notes::is_empty")]
        notes: Notes,
        /// The beginning of what the agent said last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_words: Option<String>,
        /// The transcript with what it had said.
        transcript: Head,
    }
}
payload! {
    /// Calls were about to start.
    CallsDispatched {
        /// Which.
        calls: Vec<CallId>,
        /// Tools that a person has allowed for good.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        always: Vec<String>,
    }
}
payload! {
    /// Calls came back.
    CallsReturned {
        /// Which, and how they ended.
        calls: Vec<ReturnedCall>,
        /// The transcript with their results.
        transcript: Head,
    }
}
payload! {
    /// Calls in flight were given up.
    CallsAbandoned {
        /// Those whose outcome is unknown.
        calls: Vec<CallId>,
    }
}
payload! {
    /// A step is over.
    StepFinished {
        /// What it used.
        usage: Usage,
        /// What the agent noted.
        #[serde(default)]
        notes: Notes,
        /// The beginning of what the agent said last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_words: Option<String>,
        /// Where the driver finds its place again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        driver_state: Option<String>,
        /// The transcript with all the step said.
        transcript: Head,
    }
}
payload! {
    /// A client's pause was accepted.
    SuspendRequested {
        /// What was asked for.
        pause: Pause,
        /// How soon.
        mode: Mode,
        /// When calls in flight are abandoned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        abandon_at: Option<Timestamp>,
    }
}
payload! {
    /// One more caller wants the pause.
    SuspendJoined {
        /// Which.
        handle: Handle,
        /// Who, if they can be told apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requester: Option<Requester>,
        /// The stronger mode, while it is pending.
        mode: Mode,
        /// The earlier end of grace, while it is pending.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        abandon_at: Option<Timestamp>,
        /// Why, if no client had made the pause before, or only clients of another face.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
}
payload! {
    /// A caller no longer wants the pause.
    RequesterLeft {
        /// Which.
        handle: Handle,
        /// Who.
        requester: Requester,
    }
}
payload! {
    /// A pending pause was taken back.
    SuspendWithdrawn {
        /// Which.
        handle: Handle,
        /// The key under which the answer is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered: Option<AnsweredKey>,
        /// What was added to the budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<AddBudget>,
    }
}
payload! {
    /// The agent asked to be parked.
    ParkRequested {
        /// What it asked for.
        pause: Pause,
    }
}
payload! {
    /// The session is parked: the suspension's receipt.
    SuspendedEvent {
        /// The suspension.
        park: Parked,
        /// The hold that came with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<Parked>,
        /// How the run had ended by then, if it had.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<RunEnd>,
        /// Calls that wait for the resume to decide.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        deferred: Vec<CallId>,
        /// Calls that will not run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_run: Vec<CallId>,
        /// Calls whose outcome is unknown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<CallId>,
        /// How far the transcript goes.
        transcript: Head,
    }
}
payload! {
    /// A client's hold lies over the agent's wait.
    HoldLaid {
        /// The hold.
        hold: Parked,
    }
}
payload! {
    /// The agent's wait is over.
    FiredUnderHold {
        /// The agent's suspension.
        handle: Handle,
        /// What ended it.
        fired: Fired,
    }
}
payload! {
    /// The hold is gone.
    HoldLifted {
        /// How.
        resumption: Resumption,
        /// The event that lifted it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arrival: Option<Arrival>,
        /// The key under which the answer is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered: Option<AnsweredKey>,
        /// What was added to the budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<AddBudget>,
    }
}
payload! {
    /// The session goes on: the resumption's receipt.
    Resumed {
        /// How.
        resumption: Resumption,
        /// Where it goes.
        to: ResumedTo,
        /// How long it was parked.
        waited_ms: u64,
        /// The event that woke it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arrival: Option<Arrival>,
        /// What was fed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Content>,
        /// What was fed by a timeout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
        /// The id of the message that answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Deferred calls that are dispatched now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dispatch: Vec<CallId>,
        /// Deferred calls that will not run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_run: Vec<CallId>,
        /// Deferred calls that had been started once, will not run again, and came to no result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<CallId>,
        /// Whether the turn begins with what the run had been told to begin with before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_opening: bool,
        /// The counter that starts again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reset: Option<Limit>,
        /// What was added to the budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<AddBudget>,
        /// The key under which the answer is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered: Option<AnsweredKey>,
        /// Where the next turn's window opens.
        window: Seq,
        /// The transcript with the input.
        transcript: Head,
    }
}
payload! {
    /// An idempotency key and what it was used for.
    AnsweredKey {
        /// The key.
        key: String,
        /// The digest of what was asked.
        body: Digest,
    }
}

/// Where a resumed session goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumedTo {
    /// Back to idle; an input starts the next run.
    Idle,
    /// On with its run.
    Ready,
    /// To the end that its run came to before; an input starts the next run.
    Outcome,
}

payload! {
    /// A suspension ended without a resume.
    SuspensionEnded {
        /// Which.
        handle: Handle,
        /// The hold that went with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<Handle>,
        /// How.
        fate: Fate,
    }
}
payload! {
    /// A cancel was accepted.
    CancelRequested {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// When calls in flight are abandoned.
        abandon_at: Timestamp,
        /// The client's pending pause that it overrides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overrides: Option<Handle>,
    }
}
payload! {
    /// A run is over.
    RunEnded {
        /// Which.
        run: RunId,
        /// How.
        end: RunEnd,
    }
}
payload! {
    /// The owner stopped and gave the session back: the drain's receipt.
    Drained {
        /// Calls whose outcome is unknown. Earlier releases gave a session back with them; since
        /// then a drain that does not wait for its calls loses the host.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<CallId>,
    }
}
payload! {
    /// The owner is gone.
    HostLost {
        /// Who.
        host: HostId,
        /// How that is known.
        how: Loss,
        /// Calls that are dispatched again: running them twice does no harm.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        again: Vec<CallId>,
        /// Calls whose outcome is unknown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<CallId>,
    }
}
payload! {
    /// The session is over.
    SessionEnded {
        /// How.
        how: SessionEnd,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
}
