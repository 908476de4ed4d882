//! What the log says of commits: one line for each thing that happened to a session and matters to
//! the operator of its host, with the ids that lead to the rest.
//!
//! Lines are written where commits are told, so that every command of this process is in the log,
//! through whichever face it came, and none that was not kept. Up to the level `info` they hold no
//! words of a person or an agent: no prompt, reason, error or result. The journal has these, and
//! `adjourn show` and `adjourn log` show them to those who may read the store.

use std::fmt;
use std::sync::Arc;

use adjourn_core::carry::Limit;
use adjourn_core::command::Loss;
use adjourn_core::driver::DriverKind;
use adjourn_core::event::{Claimed, ResumedTo, SuspendedEvent, What};
use adjourn_core::id::{Handle, HostId, RunId, SessionId};
use adjourn_core::ledger::CallId;
use adjourn_core::pause::{Initiator, Wait};
use adjourn_core::session::{Opening, Outcome, SessionEnd};
use adjourn_core::{Event, Session};
use adjourn_store::Change;
use tracing::Level;
use tracing::field::display;

use crate::declined::Declined;

/// The ids that every line has, as far as they are known.
pub(crate) struct Ids {
    pub(crate) session: SessionId,
    run: Option<RunId>,
    handle: Option<Handle>,
    host: Option<HostId>,
}

impl Ids {
    /// Returns those of a session that a host has to do with.
    pub(crate) fn of(session: &Session, host: HostId) -> Self {
        let run = session.run().map(|run| run.id);
        Self { session: session.id, run, handle: session.last_suspension(), host: Some(host) }
    }

    /// Returns what is known of a session that a host cannot read.
    pub(crate) fn unread(session: SessionId, host: HostId) -> Self {
        Self { session, run: None, handle: None, host: Some(host) }
    }
}

/// Writes a line of a level about one session.
macro_rules! line {
    ($level:ident, $ids:expr, $($rest:tt)+) => {{
        let Ids { session, run, handle, host } = &$ids;
        tracing::$level!(
            session = %session,
            run = run.as_ref().map(display),
            handle = handle.as_ref().map(display),
            host = host.as_ref().map(display),
            $($rest)+
        )
    }};
}

/// Writes to the log that a host leaves a session to others, and why.
pub(crate) fn left_to_others(ids: &Ids, declined: &Declined) {
    let why = declined.kind();
    match declined.is_fault() {
        true => line!(warn, *ids, "left to other hosts: {why}"),
        // Another host may have what it lacks, or this one later: a client to ask, say.
        false => line!(info, *ids, "left to other hosts: {why}"),
    }
    if let Some(words) = declined.words() {
        line!(debug, *ids, "its driver says: {words}");
    }
}

/// Writes to the log what a host has come across with a session.
pub(crate) fn came_across(ids: &Ids, what: &str) {
    line!(warn, *ids, "{what}");
}

/// Writes to the log what a commit has done to sessions.
pub(crate) fn committed(changes: &[Arc<Change>]) {
    // One look at a number, where there is no log.
    if !tracing::enabled!(Level::WARN) {
        return;
    }
    for (index, change) in changes.iter().enumerate() {
        let mut run = run_before(change);
        for event in change.events.iter() {
            if let What::RunStarted(started) = &event.what {
                run = Some(started.run);
            }
            write(&change.session, run, event, || {
                was_made_ready(changes.iter().take(index), change.session.id)
            });
        }
    }
}

/// Returns the run that the first event of a change is about. The session is as the last event
/// left it: its run may be over by then, or be another one.
fn run_before(change: &Change) -> Option<RunId> {
    let of_event = |event: &Event| match &event.what {
        What::RunEnded(ended) => Some(Some(ended.run)),
        What::RunStarted(_) => Some(None),
        _ => None,
    };
    let of_session = || change.session.run().map(|run| run.id);
    change.events.iter().find_map(of_event).unwrap_or_else(of_session)
}

/// Returns whether changes made a session ready to be claimed, which is a line of its own.
fn was_made_ready<'a>(mut changes: impl Iterator<Item = &'a Arc<Change>>, id: SessionId) -> bool {
    let is_ready = |event: &Event| matches!(event.what, What::RunStarted(_) | What::Resumed(_));
    changes.any(|change| change.session.id == id && change.events.iter().any(is_ready))
}

/// A claim is news where another process, or an earlier commit, made the session ready. What woke it
/// may stand in no other line of this log, so it is told here.
fn claim(ids: Ids, session: &Session, claimed: &Claimed, is_told: bool) {
    let ids = Ids { host: Some(claimed.host), ..ids };
    let epoch = display(claimed.epoch);
    if is_told {
        return line!(debug, ids, epoch, "claimed");
    }
    let Some(woke) = &session.woke else { return line!(info, ids, epoch, "claimed") };
    let waited_ms = match session.run().map(|run| &run.opening) {
        Some(Opening::Wake(wake)) => Some(wake.waited_ms),
        // A pause that its caller has lifted is no news to the agent, and not counted.
        Some(Opening::Prompt(_)) | None => None,
    };
    let ids = Ids { handle: Some(woke.handle), ..ids };
    line!(info, ids, epoch, cause = woke.cause.as_str(), waited_ms, "claimed");
}

/// Writes a line about one event and the run it is about; `is_told` says whether the commit made
/// the session ready.
fn write(session: &Session, run: Option<RunId>, event: &Event, is_told: impl Fn() -> bool) {
    let ids =
        |handle: Option<Handle>| Ids { session: session.id, run, handle, host: event.by.host };
    let by = &event.by;
    match &event.what {
        What::SessionCreated(created) => {
            let driver = created.driver.kind.name();
            // Where hosts know it by a name of its own.
            let agent = match &created.driver.kind {
                DriverKind::Named { name, .. } => Some(name.as_str()),
                _ => None,
            };
            line!(info, ids(None), driver, agent, %by, "session created");
        }
        What::SessionImported(imported) => {
            let ids = ids(Some(imported.from.handle));
            line!(info, ids, from = %imported.from.session, %by, "session imported");
        }
        What::RunStarted(_) => {
            line!(info, ids(None), %by, "run started");
        }
        What::Claimed(claimed) => claim(ids(None), session, claimed, is_told()),
        What::StepStarted(started) => {
            line!(debug, ids(None), step = started.number, "step started");
        }
        What::Progressed(progressed) => {
            let call_ids = Calls(&progressed.started);
            line!(debug, ids(None), %call_ids, returned = progressed.returned.len(), "step goes on");
        }
        What::StepFinished(_) => line!(debug, ids(None), "step finished"),
        What::StepAborted(_) => line!(debug, ids(None), "step broken off"),
        What::CallsAsked(asked) => {
            line!(debug, ids(None), calls = asked.calls.len(), "calls asked for");
        }
        What::CallsDispatched(dispatched) => {
            line!(debug, ids(None), call_ids = %Calls(&dispatched.calls), "calls started");
        }
        What::CallsReturned(returned) => {
            line!(debug, ids(None), calls = returned.calls.len(), "calls returned");
        }
        What::CallsLeft(left) if left.unknown.is_empty() => {
            line!(debug, ids(None), call_ids = %Calls(&left.not_run), "calls not run");
        }
        What::CallsLeft(left) => unknown_calls(ids(None), &left.unknown),
        What::CallsAbandoned(abandoned) => unknown_calls(ids(None), &abandoned.calls),
        What::SuspendRequested(requested) => {
            let ids = ids(Some(requested.pause.handle));
            line!(debug, ids, mode = requested.mode.as_str(), %by, "suspend requested");
        }
        What::SuspendJoined(joined) => {
            line!(debug, ids(Some(joined.handle)), %by, "suspend joined");
        }
        What::RequesterLeft(left) => {
            line!(debug, ids(Some(left.handle)), %by, "one of several no longer wants the pause");
        }
        What::SuspendWithdrawn(withdrawn) => {
            line!(info, ids(Some(withdrawn.handle)), %by, "suspend taken back");
        }
        What::ParkRequested(requested) => {
            line!(debug, ids(Some(requested.pause.handle)), "park requested");
        }
        What::AwaitRequested(requested) => {
            line!(debug, ids(Some(requested.pause.handle)), %by, "park requested by a worker");
        }
        What::AwaitEnded(ended) => {
            line!(info, ids(Some(ended.handle)), %by, "a worker's await came to nothing");
        }
        What::Suspended(suspended) => parked(ids(None), suspended, event),
        What::HoldLaid(laid) => {
            line!(info, ids(Some(laid.hold.pause.handle)), %by, "held over the agent's own wait");
        }
        What::FiredUnderHold(fired) => {
            let ids = ids(Some(fired.handle));
            line!(info, ids, "its wait is over, and it wakes when the hold is lifted");
        }
        What::HoldLifted(lifted) => {
            let resumption = &lifted.resumption;
            let ids = ids(Some(resumption.handle));
            line!(info, ids, cause = resumption.cause.as_str(), %by, "hold lifted");
        }
        What::Resumed(resumed) => {
            let resumption = &resumed.resumption;
            let (ids, cause) = (ids(Some(resumption.handle)), resumption.cause.as_str());
            let waited_ms = resumed.waited_ms;
            match resumed.to {
                ResumedTo::Ready => line!(info, ids, cause, waited_ms, %by, "woken"),
                ResumedTo::Idle | ResumedTo::Outcome => {
                    line!(info, ids, cause, waited_ms, %by, "resumed, with no run to go on with");
                }
            }
        }
        What::SuspensionEnded(ended) => {
            line!(debug, ids(Some(ended.handle)), %by, "suspension over without a resume");
        }
        What::CancelRequested(_) => line!(info, ids(None), %by, "cancel requested"),
        What::RunEnded(ended) => {
            let ids = Ids { run: Some(ended.run), ..ids(None) };
            let outcome = ended.end.outcome;
            match outcome {
                Outcome::Completed | Outcome::Canceled | Outcome::Rejected => {
                    line!(info, ids, outcome = outcome.as_str(), "run over");
                }
                Outcome::Failed => {
                    line!(
                        warn,
                        ids,
                        outcome = outcome.as_str(),
                        "run failed; see why with: adjourn show {}",
                        session.id
                    );
                }
            }
        }
        What::OptionSet(set) => {
            line!(info, ids(None), option = set.option, value = set.value, %by, "option set");
        }
        What::Drained(_) => {
            line!(info, ids(None), "given back, because its host stops; another host goes on");
        }
        What::HostLost(lost) => {
            let (lost_host, again, unknown) = (lost.host, lost.again.len(), lost.unknown.len());
            let how = match lost.how {
                Loss::Died => "its host died",
                Loss::Takeover => "an operator took it from its host",
                Loss::Stopped => "its host stopped before its calls had returned",
            };
            match unknown {
                0 => line!(
                    warn, ids(None), %lost_host, again, unknown,
                    "recovered: {how}; the next host goes on with it"
                ),
                _ => line!(
                    warn, ids(None), %lost_host, again, unknown,
                    "recovered: {how}, and what became of calls in flight is unknown; look at it, \
                     and go on with: adjourn resume {}", session.id
                ),
            }
        }
        What::SessionEnded(ended) => {
            let how = match ended.how {
                SessionEnd::Closed => "closed",
                SessionEnd::Driver => "by its driver",
                SessionEnd::Exported => "exported",
            };
            line!(info, ids(None), how, %by, "session over");
        }
    }
}

fn parked(ids: Ids, suspended: &SuspendedEvent, event: &Event) {
    let SuspendedEvent { park, hold, .. } = suspended;
    let pause = &park.pause;
    let ids = Ids { handle: Some(pause.handle), ..ids };
    let by = event.asked_by();
    let due = park.due.as_ref().map(|due| display(due.at));
    let held = hold.as_ref().map(|hold| display(hold.pause.handle));
    let limit = pause.limit.map(Limit::as_str);
    match (&pause.wait, pause.initiator) {
        (Wait::Question(_), _) => line!(info, ids, held, due, "parked: asks a question"),
        (Wait::Open, Initiator::Agent) => {
            line!(info, ids, held, due, limit, "parked: waits by itself");
        }
        (Wait::Open, Initiator::Client) if pause.host_interrupted => {
            line!(info, ids, held, due, "parked: lost its host, and waits for a decision");
        }
        (Wait::Open, Initiator::Client) => line!(info, ids, held, due, limit, %by, "parked"),
    }
}

fn unknown_calls(ids: Ids, calls: &[CallId]) {
    line!(warn, ids, calls = calls.len(), "calls given up; whether they were done is unknown");
}

/// Names of calls, put together where they are written.
struct Calls<'a>(&'a [CallId]);

impl fmt::Display for Calls<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, call) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{call}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use adjourn_testkit::log::Log;

    use super::*;

    #[tokio::test]
    async fn a_session_is_told_with_the_name_that_hosts_know_its_driver_by() {
        let directory = tempfile::tempdir().unwrap();
        let adjourn = crate::Adjourn::open(directory.path().join("agents.db")).await.unwrap();
        let (_, done) = adjourn.create("reviewer").with_commit().await.unwrap();
        let change = Change { session: done.session, events: done.events, said: Vec::new() };
        let log = Log::of(Level::INFO);
        committed(&[Arc::new(change)]);
        let line = log.lines().join("\n");
        assert!(line.contains(r#"session created"#), "{line}");
        assert!(line.contains(r#"driver="named" agent="reviewer""#), "{line}");
    }
}
