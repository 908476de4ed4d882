//! Coming to rest: a session that is to stop, and in which nothing is in flight any more, stops.

use super::{Draft, park, wake};
use crate::command::{Mode, RunEnd};
use crate::event::{RunEnded, SessionEnded, SuspendedEvent, What};
use crate::ledger::CallState;
use crate::session::{
    Fate, Initiator, Outcome, Parked, Parking, Pause, Quiescing, SessionEnd, State, Stopping,
};

/// Lets a pending pause or cancel take effect if the session has come to rest.
pub(super) fn settle(draft: &mut Draft<'_>) {
    let State::Quiescing(quiescing) = &draft.session.state else { return };
    if draft.session.in_flight() {
        return;
    }
    match &quiescing.stopping {
        Stopping::Canceling(canceling) => {
            let end = RunEnd {
                outcome: Outcome::Canceled,
                error: canceling.reason.clone(),
                ends_session: false,
            };
            end_run(draft, end);
        }
        Stopping::Parking(parking) => {
            if at_rest(quiescing, parking) {
                let parking = parking.clone();
                commit_pending(draft, parking, None);
            }
        }
    }
}

/// Whether what is pending may take effect, given that nothing is in flight.
fn at_rest(quiescing: &Quiescing, parking: &Parking) -> bool {
    match parking.mode() {
        // The agent has parked itself; a client's mode cannot ask for more.
        None | Some(Mode::InterruptImmediate) => true,
        Some(Mode::FinishStep) => quiescing.run.step.is_none(),
        Some(Mode::WaitForCompletion) => false,
    }
}

/// Ends the run: at once, or when the suspension that is pending is resumed.
pub(super) fn end_run(draft: &mut Draft<'_>, end: RunEnd) {
    // A run that has come to its end has nothing more to wait for.
    park::end_await(draft, Fate::Withdrawn);
    if let State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) =
        &draft.session.state
    {
        let parking = parking.clone();
        commit_pending(draft, parking, Some(end));
        return;
    }
    let end = match &draft.session.state {
        State::Quiescing(Quiescing { stopping: Stopping::Canceling(canceling), .. }) => RunEnd {
            outcome: Outcome::Canceled,
            error: canceling.reason.clone(),
            ends_session: false,
        },
        _ => end,
    };
    close_run(draft, end);
}

/// Ends the run now, and the session with it if the driver says so.
pub(super) fn close_run(draft: &mut Draft<'_>, end: RunEnd) {
    let Some(run) = draft.session.run().map(|run| run.id) else { return };
    let ends_session = end.ends_session;
    draft.emit(What::RunEnded(RunEnded { run, end }));
    if ends_session {
        let ended = SessionEnded { how: SessionEnd::Driver, reason: None };
        draft.emit(What::SessionEnded(ended));
    }
}

/// Parks a session that has nothing in flight and nothing pending.
pub(super) fn commit(draft: &mut Draft<'_>, pause: Pause) {
    let park = parked(draft, Box::new(pause));
    suspend(draft, park, None, None);
}

fn commit_pending(draft: &mut Draft<'_>, parking: Parking, kept: Option<RunEnd>) {
    let client = parking.client.map(|client| parked(draft, client.pause));
    let agent = parking.agent.map(|pause| parked(draft, pause));
    match (agent, client) {
        (Some(park), hold) => suspend(draft, park, hold, kept),
        (None, Some(park)) => suspend(draft, park, None, kept),
        (None, None) => {}
    }
}

fn suspend(draft: &mut Draft<'_>, park: Parked, hold: Option<Parked>, kept: Option<RunEnd>) {
    let calls = &draft.session.calls;
    let mut unknown = calls.at(CallState::Unknown);
    // What a client's pause came before may run later; the siblings of an await or ask never do.
    let (deferred, not_run) = match park.pause.initiator {
        Initiator::Client if kept.is_none() => (calls.at(CallState::Asked), Vec::new()),
        Initiator::Client | Initiator::Agent => {
            let (fresh, started) = calls.split(CallState::Asked);
            unknown.extend(started);
            (Vec::new(), fresh)
        }
    };
    let event = SuspendedEvent {
        park,
        hold,
        kept,
        deferred,
        not_run,
        unknown,
        transcript: draft.session.transcript,
    };
    draft.emit(What::Suspended(event));
    look_back(draft);
}

/// Turns a pause into one that is in force now: its deadline counts from here.
pub(super) fn parked(draft: &Draft<'_>, pause: Box<Pause>) -> Parked {
    let suspended_at = draft.now();
    // By the clock as it is: an entry's time may be ahead of it, a deadline must not be.
    let due = pause.conditions.as_ref().and_then(|conditions| conditions.next_due(draft.facts.now));
    Parked { pause, suspended_at, due }
}

/// Lets events act that came after a wait's window opened and before the wait began.
///
/// They act as they would have, had they come a moment later: see [`wake::deliver`].
pub(super) fn look_back(draft: &mut Draft<'_>) {
    let mut missed: Vec<_> = draft.facts.arrivals.iter().collect();
    missed.sort_by_key(|arrival| arrival.seq);
    for arrival in missed {
        wake::deliver(draft, arrival);
    }
}
