//! When the owner lets go: the grace ran out, it stops, or it died.

use super::{Draft, settle};
use crate::command::{Owned, Recover};
use crate::event::{CallsAbandoned, Drained, HostLost, What};
use crate::ledger::{CallId, CallState};
use crate::rejected::Rejected;
use crate::session::{Initiator, Owner, Pause, Quiescing, Requesters, State, Stopping, Wait};

/// The grace is over: the owner has killed what was in flight.
pub(super) fn abandon(draft: &mut Draft<'_>, owned: &Owned) -> Result<(), Rejected> {
    draft.owned(owned.epoch)?;
    match draft.session.abandon_at() {
        Some(until) if until > draft.facts.now => Err(Rejected::GraceRunning { until }),
        Some(_) => {
            let calls = draft.session.calls.at(CallState::Dispatched);
            draft.emit(What::CallsAbandoned(CallsAbandoned { calls }));
            settle::settle(draft);
            Ok(())
        }
        None => Err(Rejected::out_of_step("nothing limits the calls in flight")),
    }
}

/// The owner stops: the session is ready for another host, or its suspension takes effect.
pub(super) fn drain(draft: &mut Draft<'_>, owned: &Owned) -> Result<(), Rejected> {
    draft.owned(owned.epoch)?;
    let unknown = draft.session.calls.at(CallState::Dispatched);
    draft.emit(What::Drained(Drained { unknown }));
    settle::settle(draft);
    Ok(())
}

/// The owner is gone: calls that may be run twice are, and the others park the session.
pub(super) fn decide(draft: &mut Draft<'_>, recover: &Recover) -> Result<(), Rejected> {
    let Owner { host, .. } = draft.owned(recover.epoch)?;
    if host != recover.host {
        return Err(draft.not_owner(recover.epoch));
    }
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
    let interrupted = !unknown.is_empty();
    let lost = HostLost { host, how: recover.how, again: with(true), unknown };
    draft.emit(What::HostLost(lost));
    match &draft.session.state {
        State::Ready(_) if interrupted => settle::commit(draft, host_interrupted(draft)),
        _ => settle::settle(draft),
    }
    Ok(())
}

/// Nobody knows whether those calls did their work: somebody has to look.
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
        meta: None,
        spans: draft.facts.spans.clone(),
    }
}
