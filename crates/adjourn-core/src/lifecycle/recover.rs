//! When the owner lets go: the grace ran out, it stops, or it died.

use super::{Draft, drive, settle};
use crate::command::{Loss, Owned, Recover};
use crate::event::{CallsAbandoned, Drained, HostLost, What};
use crate::id::HostId;
use crate::ledger::{CallId, CallState};
use crate::rejected::Rejected;
use crate::session::{Initiator, Owner, Pause, Quiescing, Requesters, State, Stopping, Wait};

/// The grace is over: the owner has killed what was in flight.
///
/// The owner measures the grace, by a clock that cannot be set. The clock of the facts does not
/// tell how much of it has passed.
pub(super) fn abandon(draft: &mut Draft<'_>, owned: &Owned) -> Result<(), Rejected> {
    draft.owned(owned.epoch)?;
    if draft.session.abandon_at().is_none() {
        return Err(Rejected::out_of_step("nothing limits the calls in flight"));
    }
    drive::leave_agent_calls(draft);
    let calls = draft.session.calls.at(CallState::Dispatched);
    draft.emit(What::CallsAbandoned(CallsAbandoned { calls }));
    settle::settle(draft);
    Ok(())
}

/// The owner stops: the session is ready for another host, or its suspension takes effect.
///
/// If the owner has not waited for what is in flight, it leaves the session as if it had died.
pub(super) fn drain(draft: &mut Draft<'_>, owned: &Owned) -> Result<(), Rejected> {
    let Owner { host, .. } = draft.owned(owned.epoch)?;
    if draft.session.in_flight() {
        lose(draft, host, Loss::Stopped);
    } else {
        draft.emit(What::Drained(Drained { unknown: Vec::new() }));
        settle::settle(draft);
    }
    Ok(())
}

/// The owner is gone.
pub(super) fn decide(draft: &mut Draft<'_>, recover: &Recover) -> Result<(), Rejected> {
    let Owner { host, .. } = draft.owned(recover.epoch)?;
    if host != recover.host {
        return Err(draft.not_owner(recover.epoch));
    }
    lose(draft, host, recover.how);
    Ok(())
}

/// Takes the session from its owner, whatever was in flight: calls that may be run twice are, and
/// the others park the session.
fn lose(draft: &mut Draft<'_>, host: HostId, how: Loss) {
    let agent_lost_one = drive::leave_agent_calls(draft);
    let dispatched: Vec<_> = draft
        .session
        .calls
        .iter()
        .filter(|open| open.state == CallState::Dispatched)
        .map(|open| (open.call.idempotent, open.call.id.clone()))
        .collect();
    // Beside an await or ask nothing is dispatched any more, so nothing is dispatched again.
    let parks_itself = matches!(
        &draft.session.state,
        State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. })
            if parking.agent.is_some()
    );
    let with = |again: bool| -> Vec<CallId> {
        let calls = dispatched.iter().filter(|(harmless, _)| (*harmless && !parks_itself) == again);
        calls.map(|(_, id)| id.clone()).collect()
    };
    let unknown = with(false);
    let interrupted = agent_lost_one || !unknown.is_empty();
    draft.emit(What::HostLost(HostLost { host, how, again: with(true), unknown }));
    match &draft.session.state {
        State::Ready(_) if interrupted => settle::commit(draft, host_interrupted(draft)),
        _ => settle::settle(draft),
    }
}

/// Whether those calls did their work is not known: a person has to look.
fn host_interrupted(draft: &Draft<'_>) -> Pause {
    Pause {
        handle: draft.facts.fresh.handle,
        initiator: Initiator::Client,
        wait: Wait::Open,
        reason: Some(Pause::HOST_INTERRUPTED.to_owned()),
        host_interrupted: true,
        conditions: None,
        window: draft.facts.high,
        summary: None,
        call: None,
        limit: None,
        requested_at: draft.now(),
        by: draft.facts.by.clone(),
        requesters: Requesters::default(),
        joined: None,
        joined_later: Vec::new(),
        meta: None,
        spans: draft.facts.spans.clone(),
    }
}
