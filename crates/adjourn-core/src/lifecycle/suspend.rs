//! `suspend` by a client: accepted at once, in force at the boundary its mode names, never lost.

use std::time::Duration;

use super::{Draft, resume, settle};
use crate::carry::AddBudget;
use crate::command::{Mode, ReleaseGate, Requester, Suspend, Withdraw};
use crate::conditions::Conditions;
use crate::event::{
    AnsweredKey, HoldLaid, RequesterLeft, SuspendJoined, SuspendRequested, SuspendWithdrawn, What,
};
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{
    Cause, Initiator, Parking, Pause, PendingPause, Quiescing, Requesters, State, Stopping, Wait,
};
use crate::time::Timestamp;

pub(super) fn decide(draft: &mut Draft<'_>, suspend: &Suspend) -> Result<(), Rejected> {
    draft.not_ended()?;
    check(suspend)?;
    draft.findable("resumeWhen", suspend.resume_when.as_ref())?;
    draft.looks_back("resumeWhen", suspend.resume_when.as_ref())?;
    let by_panic = matches!(suspend.requester, Some(Requester::Gate(_)));
    match &draft.session.state {
        // A gate keeps these from starting by itself; only what runs, and would go on, is stopped.
        State::Idle
        | State::Ready(_)
        | State::Suspended(_)
        | State::Quiescing(Quiescing { stopping: Stopping::Canceling(_), .. })
            if by_panic =>
        {
            Ok(())
        }
        State::Idle | State::Ready(_) => {
            let pause = client_pause(draft, suspend);
            settle::commit(draft, pause);
            Ok(())
        }
        State::Running(_) => {
            request(draft, suspend);
            Ok(())
        }
        State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
            match &parking.client {
                Some(client) => {
                    let joined = join_pending(draft, client, suspend)?;
                    draft.emit(What::SuspendJoined(joined));
                    settle::settle(draft);
                }
                None => request(draft, suspend),
            }
            Ok(())
        }
        State::Suspended(suspended) => {
            let shown = suspended.shown();
            match (shown.pause.initiator, &shown.pause.wait) {
                (Initiator::Client, _) => {
                    same_conditions(&shown.pause, suspend.resume_when.as_ref())?;
                    let joined = SuspendJoined {
                        handle: shown.pause.handle,
                        requester: suspend.requester,
                        mode: suspend.mode,
                        abandon_at: None,
                        reason: joins_with(draft, &shown.pause, suspend),
                    };
                    draft.emit(What::SuspendJoined(joined));
                    Ok(())
                }
                (Initiator::Agent, Wait::Open) => {
                    let hold = settle::parked(draft, Box::new(client_pause(draft, suspend)));
                    draft.emit(What::HoldLaid(HoldLaid { hold }));
                    settle::look_back(draft);
                    Ok(())
                }
                (Initiator::Agent, Wait::Question(_)) => not_suspendable(draft),
            }
        }
        State::Quiescing(_) | State::Ended(_) => not_suspendable(draft),
    }
}

/// Takes one caller's pending suspend back; the last one's withdrawal takes the suspend back.
pub(super) fn withdraw(draft: &mut Draft<'_>, withdraw: &Withdraw) -> Result<(), Rejected> {
    draft.not_ended()?;
    let Some(client) = pending(&draft.session.state) else {
        return Err(Rejected::NothingToWithdraw);
    };
    let requester = Requester::Call(withdraw.request);
    if !client.pause.requesters.named.contains(&requester) {
        return Err(Rejected::NothingToWithdraw);
    }
    leave(draft, requester);
    Ok(())
}

/// Takes a panic's part in a pause back, and resumes what only this panic had stopped.
pub(super) fn release(draft: &mut Draft<'_>, release: &ReleaseGate) {
    let requester = Requester::Gate(release.gate);
    let wants = |pause: &Pause| pause.requesters.named.contains(&requester);
    let concerned = match &draft.session.state {
        State::Suspended(suspended) => wants(&suspended.shown().pause),
        state => pending(state).is_some_and(|client| wants(&client.pause)),
    };
    if !concerned {
        return;
    }
    if let State::Suspended(suspended) = &draft.session.state
        && suspended.shown().pause.requesters.is_only(requester)
    {
        let by = resume::By::cause(Cause::ExternalEvent);
        if suspended.hold.is_some() {
            resume::lift(draft, by);
        } else {
            resume::go_on(draft, by);
        }
    } else {
        leave(draft, requester);
    }
}

/// Takes a pending pause back, for all callers that wanted it.
pub(super) fn take_back(
    draft: &mut Draft<'_>,
    answered: Option<AnsweredKey>,
    added: Option<AddBudget>,
) {
    if let Some(client) = pending(&draft.session.state) {
        let handle = client.pause.handle;
        draft.emit(What::SuspendWithdrawn(SuspendWithdrawn { handle, answered, added }));
        settle::settle(draft);
    }
}

/// Returns a client's pause that is accepted and not yet in force.
pub(super) fn pending(state: &State) -> Option<&PendingPause> {
    match state {
        State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
            let Parking { client, .. } = parking;
            client.as_ref()
        }
        _ => None,
    }
}

fn leave(draft: &mut Draft<'_>, requester: Requester) {
    let pending = pending(&draft.session.state);
    if pending.is_some_and(|client| client.pause.requesters.is_only(requester)) {
        take_back(draft, None, None);
        return;
    }
    let handle = match (&draft.session.state, pending) {
        (State::Suspended(suspended), _) => suspended.shown().pause.handle,
        (_, Some(client)) => client.pause.handle,
        (_, None) => return,
    };
    draft.emit(What::RequesterLeft(RequesterLeft { handle, requester }));
}

fn request(draft: &mut Draft<'_>, suspend: &Suspend) {
    let pause = Box::new(client_pause(draft, suspend));
    let abandon_at = abandon_at(draft, suspend);
    draft.emit(What::SuspendRequested(SuspendRequested { pause, mode: suspend.mode, abandon_at }));
    settle::settle(draft);
}

fn join_pending(
    draft: &Draft<'_>,
    client: &PendingPause,
    suspend: &Suspend,
) -> Result<SuspendJoined, Rejected> {
    same_conditions(&client.pause, suspend.resume_when.as_ref())?;
    // The earliest end of grace holds; a caller who set no grace does not take another's away.
    let abandon_at = match (client.abandon_at, abandon_at(draft, suspend)) {
        (Some(earlier), Some(later)) => Some(earlier.min(later)),
        (one, other) => one.or(other),
    };
    Ok(SuspendJoined {
        handle: client.pause.handle,
        requester: suspend.requester,
        mode: client.mode.max(suspend.mode),
        abandon_at,
        reason: joins_with(draft, &client.pause, suspend),
    })
}

/// Returns the reason of a caller who joins, if the pause keeps it beside the first one.
fn joins_with(draft: &Draft<'_>, pause: &Pause, suspend: &Suspend) -> Option<String> {
    let face = draft.facts.by.face;
    let kept = pause.host_interrupted || pause.is_new_to(face, suspend.requester);
    suspend.reason.clone().filter(|_| kept)
}

/// Joining takes the conditions that are there, or none.
pub(super) fn same_conditions(
    current: &Pause,
    wanted: Option<&Conditions>,
) -> Result<(), Rejected> {
    match wanted {
        None => Ok(()),
        wanted if wanted == current.conditions.as_ref() => Ok(()),
        Some(_) => Err(Rejected::ConditionsDiffer {
            handle: current.handle,
            current: current.conditions.clone().map(Box::new),
        }),
    }
}

fn client_pause(draft: &Draft<'_>, suspend: &Suspend) -> Pause {
    let conditions = suspend.resume_when.clone();
    Pause {
        handle: draft.facts.fresh.handle,
        initiator: Initiator::Client,
        wait: Wait::Open,
        reason: suspend.reason.clone(),
        host_interrupted: false,
        window: window(conditions.as_ref(), draft),
        conditions,
        summary: None,
        call: None,
        limit: suspend.limit,
        requested_at: draft.now(),
        by: draft.facts.by.clone(),
        requesters: Requesters::of(suspend.requester),
        joined: None,
        joined_later: Vec::new(),
        meta: suspend.meta.clone(),
        spans: draft.facts.spans.clone(),
    }
}

/// A client's window opens with the acceptance of its request, unless it looks back further.
fn window(conditions: Option<&Conditions>, draft: &Draft<'_>) -> crate::id::Seq {
    conditions.and_then(|conditions| conditions.since).unwrap_or(draft.facts.high)
}

fn abandon_at(draft: &Draft<'_>, suspend: &Suspend) -> Option<Timestamp> {
    let by_panic = matches!(suspend.requester, Some(Requester::Gate(_)));
    let grace = suspend.grace_ms.map(Duration::from_millis);
    grace.or(by_panic.then_some(limits::GRACE)).map(|grace| draft.now().after(grace))
}

fn check(suspend: &Suspend) -> Result<(), Rejected> {
    limits::optional("reason", suspend.reason.as_deref(), limits::REASON_BYTES)?;
    if suspend.reason.as_deref().is_some_and(|reason| reason.trim().is_empty()) {
        return Err(Rejected::invalid("reason", "must not be blank; it may be left out"));
    }
    limits::json("_meta", &suspend.meta, limits::META_BYTES)?;
    limits::grace(suspend.grace_ms)
}

pub(super) fn not_suspendable(draft: &Draft<'_>) -> Result<(), Rejected> {
    Err(Rejected::NotSuspendable { phase: draft.session.phase() })
}

impl Mode {
    /// Returns whether a step may still begin under this mode.
    pub(super) const fn lets_steps_begin(self) -> bool {
        matches!(self, Self::WaitForCompletion)
    }

    /// Returns whether a call of the step under way may still be dispatched under this mode.
    pub(super) const fn lets_calls_begin(self) -> bool {
        matches!(self, Self::WaitForCompletion | Self::FinishStep)
    }
}
