//! Waking by itself: events, deadlines, and wakes that the host or a policy decides.

use super::{Draft, resume, settle};
use crate::arrival::Arrival;
use crate::carry::Limit;
use crate::command::{RunEnd, Wake};
use crate::conditions::{DueWhy, OnTimeout};
use crate::event::{FiredUnderHold, SuspensionEnded, What};
use crate::rejected::Rejected;
use crate::session::{
    Cause, Fate, Fired, Initiator, Outcome, Parked, Pause, Prior, Session, Suspended, Wait,
};

/// An event arrived: it wakes the session if it waits for it.
pub(super) fn deliver(draft: &mut Draft<'_>, arrival: &Arrival) {
    let Some(suspended) = draft.session.suspended() else { return };
    let lifts = suspended.hold.as_ref().is_some_and(|hold| hold.awaits(arrival));
    let wakes = suspended.fired.is_none()
        && (suspended.park.awaits(arrival) || suspended.park.is_called(arrival, &draft.session));
    if wakes {
        fire(draft, Fired::Event(arrival.clone()));
    }
    if lifts {
        lift(draft, Fired::Event(arrival.clone()));
    }
}

/// A deadline may have passed: every one that has acts, in the order in which they fell due.
pub(super) fn expire(draft: &mut Draft<'_>) {
    while let Some(suspended) = draft.session.suspended() {
        let now = draft.facts.now;
        let passed = |parked: &&Parked| parked.due.is_some_and(|due| due.at <= now);
        let Some(first) = suspended.waits().filter(passed).min_by_key(|parked| parked.due) else {
            break;
        };
        let Some(due) = first.due else { break };
        let is_hold =
            suspended.hold.as_ref().is_some_and(|hold| hold.pause.handle == first.pause.handle);
        if is_hold {
            lift(draft, Fired::Deadline(due));
        } else {
            fire(draft, Fired::Deadline(due));
        }
    }
}

/// The host or a policy wakes the session.
pub(super) fn decide(draft: &mut Draft<'_>, wake: &Wake) -> Result<(), Rejected> {
    draft.not_ended()?;
    let Some(suspended) = draft.session.suspended() else {
        return Err(resume::no_suspension(&draft.session, None));
    };
    if let Some(hold) = &suspended.hold {
        return Err(resume::held(&draft.session, hold));
    }
    let pause = &suspended.park.pause;
    if matches!(pause.wait, Wait::Question(_)) {
        return Err(Rejected::EmptyReply);
    }
    if pause.is_clients() && !is_refilled(pause) {
        return Err(resume::paused(&draft.session, pause));
    }
    resume::budget_allows(&draft.session, &suspended.park, wake.add_budget)?;
    let by = resume::By { added: wake.add_budget, ..resume::By::cause(Cause::ExternalEvent) };
    resume::go_on(draft, by);
    Ok(())
}

/// Returns whether a refilled budget ends this pause: the budget alone made it, and no client joined.
fn is_refilled(pause: &Pause) -> bool {
    pause.limit == Some(Limit::BudgetExceeded) && pause.requesters.is_single()
}

/// The wait is over: it acts now, or when the hold over it is lifted.
pub(super) fn fire(draft: &mut Draft<'_>, fired: Fired) {
    let Some(suspended) = draft.session.suspended() else { return };
    if suspended.hold.is_some() {
        let handle = suspended.park.pause.handle;
        draft.emit(What::FiredUnderHold(FiredUnderHold { handle, fired }));
    } else {
        act_now(draft, fired);
    }
}

/// A hold's own condition lifts it.
pub(super) fn lift(draft: &mut Draft<'_>, fired: Fired) {
    let Some(hold) = draft.session.suspended().and_then(|suspended| suspended.hold.as_ref()) else {
        return;
    };
    if hold.fails(&fired) {
        fail(draft);
        return;
    }
    let cause = fired.cause(&draft.session, hold);
    let arrival = fired.arrival();
    resume::lift(draft, resume::By { arrival, ..resume::By::cause(cause) });
}

/// Acts as it fires.
fn act_now(draft: &mut Draft<'_>, fired: Fired) {
    act_with(draft, fired, true, true);
}

/// What is known when a wait's end acts after the hold over it is lifted.
pub(super) struct Late {
    pub(super) continue_transcript: bool,
}

/// Acts after the hold is lifted.
pub(super) fn act(draft: &mut Draft<'_>, fired: Fired, late: Late) {
    act_with(draft, fired, false, late.continue_transcript);
}

/// Does what a wait's end asks for: wakes the session, or fails its run.
fn act_with(draft: &mut Draft<'_>, fired: Fired, at_once: bool, continue_transcript: bool) {
    let Some(suspended) = draft.session.suspended() else { return };
    let park = &suspended.park;
    if park.fails(&fired) {
        fail(draft);
        return;
    }
    let by = resume::By {
        at_once,
        continue_transcript,
        value: park.value(&fired, draft),
        arrival: fired.arrival(),
        ..resume::By::cause(fired.cause(&draft.session, park))
    };
    resume::go_on(draft, by);
}

/// The deadline's action is to fail: the suspension is over, and so is the run.
fn fail(draft: &mut Draft<'_>) {
    let Some(Suspended { park, hold, prior, .. }) = draft.session.suspended() else { return };
    let minutes = |parked: &Parked| {
        let conditions = parked.pause.conditions.as_ref();
        conditions
            .and_then(|conditions| conditions.timeout.as_ref())
            .map(|timeout| timeout.minutes.to_string())
    };
    let shown = hold.as_ref().unwrap_or(park);
    let error = format!(
        "timed out after {} minutes of waiting{}",
        minutes(shown).or_else(|| minutes(park)).unwrap_or_default(),
        shown.pause.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default()
    );
    // A run that had come to its end before keeps it.
    let end = match prior {
        Prior::Idle => None,
        Prior::Kept(kept) => Some(kept.end.clone()),
        Prior::Run(_) => Some(RunEnd {
            outcome: Outcome::Failed,
            error: Some(crate::limits::excerpt(&error, crate::limits::EXCERPT_BYTES)),
            ends_session: false,
        }),
    };
    let ended = SuspensionEnded {
        handle: park.pause.handle,
        hold: hold.as_ref().map(|hold| hold.pause.handle),
        fate: Fate::Failed,
        record: None,
    };
    draft.emit(What::SuspensionEnded(ended));
    if let Some(end) = end {
        settle::close_run(draft, end);
    }
}

impl Parked {
    /// Returns whether this waits for `arrival`, by its conditions.
    fn awaits(&self, arrival: &Arrival) -> bool {
        let conditions = self.pause.conditions.as_ref();
        arrival.seq > self.pause.window
            && conditions.is_some_and(|conditions| conditions.matches(arrival.view()))
    }

    /// Returns whether `arrival` is addressed to the session and may end this wait: the agent's own,
    /// never a client's pause.
    fn is_called(&self, arrival: &Arrival, session: &Session) -> bool {
        arrival.seq > self.pause.window
            && arrival.session == Some(session.id)
            && self.pause.initiator == Initiator::Agent
            && matches!(self.pause.wait, Wait::Open)
    }

    pub(super) fn fails(&self, fired: &Fired) -> bool {
        self.timed_out(fired) == Some(OnTimeout::Fail)
    }

    /// Returns what the deadline asks for, if it was the timeout that passed.
    fn timed_out(&self, fired: &Fired) -> Option<OnTimeout> {
        match fired {
            Fired::Deadline(due) if due.why == DueWhy::Timeout => {
                Some(self.pause.conditions.as_ref()?.timeout.as_ref()?.action())
            }
            Fired::Deadline(_) | Fired::Event(_) => None,
        }
    }

    /// Returns what a timeout feeds to the agent: what was set, or a note of the wait.
    fn value(&self, fired: &Fired, draft: &Draft<'_>) -> Option<serde_json::Value> {
        if self.timed_out(fired)? != OnTimeout::ResumeWithInput {
            return None;
        }
        let timeout = self.pause.conditions.as_ref()?.timeout.as_ref()?;
        Some(timeout.input.clone().unwrap_or_else(|| {
            serde_json::json!({
                "reason": self.pause.reason,
                "summary": self.pause.summary,
                "timedOut": true,
                "waitedMs": u64::try_from(draft.now().since(self.suspended_at).as_millis()).unwrap_or(u64::MAX),
            })
        }))
    }
}

impl Fired {
    fn cause(&self, session: &Session, parked: &Parked) -> Cause {
        match self {
            Self::Deadline(due) => match due.why {
                DueWhy::Timeout => Cause::Timeout,
                DueWhy::At => Cause::ConditionFired,
            },
            Self::Event(arrival) if parked.awaits(arrival) => Cause::ConditionFired,
            Self::Event(arrival) => {
                debug_assert_eq!(arrival.session, Some(session.id), "only a call fires unasked");
                Cause::ExternalEvent
            }
        }
    }

    fn arrival(&self) -> Option<Arrival> {
        match self {
            Self::Event(arrival) => Some(arrival.clone()),
            Self::Deadline(_) => None,
        }
    }
}
