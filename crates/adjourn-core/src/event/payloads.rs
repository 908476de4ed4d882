//! What an event says, kind by kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arrival::Arrival;
use crate::carry::{AddBudget, Budget, Limit, Notes, Usage};
use crate::command::{Loss, Mode, Requester, ReturnedCall, RunEnd};
use crate::driver::DriverSpec;
use crate::id::{Epoch, Handle, HostId, RunId, Seq, SessionId};
use crate::ledger::{AskedCall, CallId};
use crate::session::{Fate, Fired, Parked, Pause, Resumption, Session, SessionEnd, WakeReport};
use crate::time::Timestamp;
use crate::transcript::{Content, Digest, Head};

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
        /// The id by which the session is known from now on.
        id: SessionId,
        /// The tenant that the session belongs to.
        tenant: String,
        /// The labels by which operators find the session.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        labels: BTreeMap<String, String>,
        /// The session on whose behalf it was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<SessionId>,
        /// The driver that runs the session, with its configuration.
        driver: DriverSpec,
        /// The money, tokens, steps and time that the session may use.
        #[serde(default)]
        budget: Budget,
        /// What the conversation is called, until the agent calls it otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    }
}
payload! {
    /// The session exists, and goes on from where a portable record says that it was parked.
    SessionImported {
        /// What it is made from; its budget and title are those of the state.
        founding: SessionCreated,
        /// The suspension that it goes on with.
        from: Origin,
        /// The session as it was parked, with windows that open in this store.
        state: Session,
    }
}
payload! {
    /// Where an imported session comes from.
    Origin {
        /// The session that was exported.
        session: SessionId,
        /// The suspension that its record is of; a store takes it in once.
        handle: Handle,
        /// The record, as its seal names it.
        record: SealedRecord,
    }
}
payload! {
    /// A portable record, as its seal names it: whoever has both can tell that a record is this one.
    SealedRecord {
        /// The id of the key that sealed it.
        key: String,
        /// The token that the seal of the record has.
        token: String,
    }
}
payload! {
    /// A prompt was taken.
    RunStarted {
        /// The run that the prompt started.
        run: RunId,
        /// What was said; nothing if a timeout's value started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Content>,
        /// The wake that started it, if it was not a plain prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wake: Option<Box<WakeReport>>,
        /// The id its sender gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Where the first turn's window opens.
        window: Seq,
        /// The transcript with the prompt.
        transcript: Head,
    }
}

impl RunStarted {
    /// Returns the number of the run's first entry in the transcript: the prompt, if there is one.
    pub fn first_entry(&self) -> u64 {
        self.transcript.length.saturating_sub(u64::from(self.content.is_some()))
    }
}

payload! {
    /// A host took the session.
    Claimed {
        /// The host that took it.
        host: HostId,
        /// The claim under which it drives the session.
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
        /// What the agent noted about its progress.
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
        /// The calls that were started: their outcome is unknown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<CallId>,
        /// The calls that were not started: they did not run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_run: Vec<CallId>,
    }
}
payload! {
    /// The model asked for calls.
    CallsAsked {
        /// The calls that the model asked for, as the ledger has them.
        calls: Vec<AskedCall>,
        /// What the model call used.
        #[serde(default)]
        usage: Usage,
        /// What the agent noted about its progress.
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
        /// The money, tokens and time that the model call used.
        usage: Usage,
        /// What the agent noted about its progress.
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
        /// The calls that start.
        calls: Vec<CallId>,
        /// Tools that a person has allowed for good.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        always: Vec<String>,
    }
}
payload! {
    /// Calls came back.
    CallsReturned {
        /// The calls that came back, each with how it ended.
        calls: Vec<ReturnedCall>,
        /// The money, tokens and time that calls used since that was last said.
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: Usage,
        /// The transcript with their results.
        transcript: Head,
    }
}
payload! {
    /// Calls in flight were given up.
    CallsAbandoned {
        /// The calls that were in flight: their outcome is unknown.
        calls: Vec<CallId>,
    }
}
payload! {
    /// A step is over.
    StepFinished {
        /// The money, tokens and time that the step used since the last such event.
        usage: Usage,
        /// What the agent noted about its progress.
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
        /// The pause that the client asked for.
        pause: Box<Pause>,
        /// The mode, which says at which boundary the pause takes effect.
        mode: Mode,
        /// When calls in flight are abandoned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        abandon_at: Option<Timestamp>,
    }
}
payload! {
    /// One more caller wants the pause.
    SuspendJoined {
        /// The pause that is joined.
        handle: Handle,
        /// The caller, if callers can be told apart.
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
        /// The pause that goes on for its other callers.
        handle: Handle,
        /// The caller who no longer wants it.
        requester: Requester,
    }
}
payload! {
    /// A pending pause was taken back.
    SuspendWithdrawn {
        /// The suspension that is taken back.
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
        /// The pause that the agent asked for.
        pause: Box<Pause>,
    }
}
payload! {
    /// A worker outside the host asked to have the session parked.
    AwaitRequested {
        /// What it asked for.
        pause: Box<Pause>,
    }
}
payload! {
    /// A worker's await is over before it took effect.
    AwaitEnded {
        /// The suspension that did not come.
        handle: Handle,
        /// Whether the run was canceled, or came to its end or to a park of its agent's own first.
        fate: Fate,
    }
}
payload! {
    /// The session is parked: the suspension's receipt.
    SuspendedEvent {
        /// The suspension that has taken effect.
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
        /// The hold, a suspension with a handle of its own.
        hold: Parked,
    }
}
payload! {
    /// The agent's wait is over.
    FiredUnderHold {
        /// The agent's suspension.
        handle: Handle,
        /// The event or the deadline that ended the wait.
        fired: Fired,
    }
}
payload! {
    /// The hold is gone.
    HoldLifted {
        /// The resumption that lifted the hold.
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
        /// The resumption: who or what woke the session, and how.
        resumption: Resumption,
        /// The state that the session goes to.
        to: ResumedTo,
        /// The time that the session was parked, in milliseconds.
        waited_ms: u64,
        /// The event that woke it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arrival: Option<Arrival>,
        /// The input that came with the resume.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Content>,
        /// The value that a timeout gave the agent.
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
        /// Whether the agent is told of every wake before this one that no step has begun with;
        /// older programs told of the last one alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tells_all: bool,
        /// The counter that starts again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reset: Option<Limit>,
        /// What was added to the budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<AddBudget>,
        /// Whether the agent is told what was added; older programs did not.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tells_added: bool,
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
        /// The idempotency key, as the caller gave it.
        key: String,
        /// The digest of what was asked.
        body: Digest,
        /// The run that was under way, if one was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
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
        /// The suspension that ended.
        handle: Handle,
        /// The hold that went with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<Handle>,
        /// What became of the suspension: failed, canceled, closed, withdrawn or exported.
        fate: Fate,
        /// The record that it goes on with elsewhere, if it was exported.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<SealedRecord>,
    }
}
payload! {
    /// A cancel was accepted.
    CancelRequested {
        /// The reason for the cancel, for people.
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
        /// The run that ended.
        run: RunId,
        /// The outcome of the run, and what went wrong if it failed.
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
        /// The host that lost the session.
        host: HostId,
        /// The way in which it is known that the host is gone.
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
    /// An option has another value.
    OptionSet {
        /// The id of the option.
        option: String,
        /// The id of the value that holds from now on.
        value: String,
    }
}
payload! {
    /// The session is over.
    SessionEnded {
        /// The way in which the session ended: closed, by its driver, or exported.
        how: SessionEnd,
        /// The reason for the end, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
}
