//! How a pause comes into the state, and how it ends.

use crate::event::{Event, Resumed, ResumedTo, SuspendedEvent};
use crate::id::Handle;
use crate::ledger::CallState;
use crate::limits;
use crate::session::{
    Fate, KeptEnd, Opening, Parking, PastSuspension, Prior, Quiescing, Running, Session, State,
    Step, Stopping, Suspended,
};

impl Session {
    /// Adds a pause to those that are pending.
    pub(super) fn park(&mut self, add: impl FnOnce(&mut Parking)) {
        self.state = match self.take_state() {
            State::Running(Running { run, owner }) => {
                let mut parking = Parking::default();
                add(&mut parking);
                State::Quiescing(Quiescing {
                    run,
                    owner,
                    stopping: Stopping::Parking(parking),
                    draining: false,
                })
            }
            State::Quiescing(mut quiescing) => {
                if let Stopping::Parking(parking) = &mut quiescing.stopping {
                    add(parking);
                }
                State::Quiescing(quiescing)
            }
            other => other,
        };
    }

    /// Takes a pause from those that are pending; the session runs on if it was the last one.
    pub(super) fn stop_parking(&mut self, take: impl FnOnce(&mut Parking)) {
        self.state = match self.take_state() {
            State::Quiescing(mut quiescing) => {
                let still_stopping = match &mut quiescing.stopping {
                    Stopping::Parking(parking) => {
                        take(parking);
                        parking.client.is_some() || parking.agent.is_some()
                    }
                    Stopping::Canceling(_) => true,
                };
                if still_stopping {
                    State::Quiescing(quiescing)
                } else {
                    State::Running(Running { run: quiescing.run, owner: quiescing.owner })
                }
            }
            other => other,
        };
    }

    pub(super) fn suspended_by(&mut self, event: &SuspendedEvent) {
        self.calls.set(&event.deferred, CallState::Deferred);
        self.calls.set(&event.not_run, CallState::NotRun);
        self.calls.set(&event.unknown, CallState::Unknown);
        let run = match self.take_state() {
            State::Ready(run)
            | State::Running(Running { run, .. })
            | State::Quiescing(Quiescing { run, .. }) => Some(run),
            State::Idle | State::Suspended(_) | State::Ended(_) => None,
        };
        let prior = match (run, &event.kept) {
            (None, _) => Prior::Idle,
            (Some(run), None) => Prior::Run(run),
            (Some(run), Some(end)) => Prior::Kept(KeptEnd { run, end: end.clone() }),
        };
        let mut park = event.park.clone();
        park.pause.complete();
        self.state =
            State::Suspended(Suspended { park, hold: event.hold.clone(), fired: None, prior });
    }

    pub(super) fn resumed_by(&mut self, event: &Event, resumed: &Resumed) {
        self.over(event, resumed.resumption.handle, Fate::Resumed(resumed.resumption.cause));
        self.woke = Some(resumed.resumption.clone());
        self.calls.set(&resumed.dispatch, CallState::Asked);
        self.calls.set(&resumed.not_run, CallState::NotRun);
        self.calls.set(&resumed.unknown, CallState::Unknown);
        self.transcript = resumed.transcript;
        self.raise(resumed.added);
        let State::Suspended(suspended) = self.take_state() else { return };
        let pause = suspended.park.pause;
        self.state = match (resumed.to, suspended.prior) {
            (ResumedTo::Idle, _) | (_, Prior::Idle) => State::Idle,
            (ResumedTo::Ready | ResumedTo::Outcome, Prior::Run(run))
            | (ResumedTo::Ready | ResumedTo::Outcome, Prior::Kept(KeptEnd { run, .. })) => {
                let mut run = run;
                run.turn = run.turn.saturating_add(1);
                run.window = resumed.window;
                if let Some(limit) = resumed.reset {
                    run.progress.reset(limit);
                }
                // Calls that go on belong to the step that asked for them; without any, it is over.
                run.step = (!resumed.dispatch.is_empty()).then(|| Step {
                    number: run.step.map_or(run.progress.iterations, |step| step.number),
                    model_in_flight: false,
                    opens: false,
                    continues: false,
                });
                if !resumed.keeps_opening {
                    let mut report = resumed.report(&pause);
                    // A report that no step has begun with yet is told with this one.
                    if let (false, Opening::Wake(mut untold)) = (run.told, run.opening) {
                        if !resumed.tells_all {
                            untold.earlier = None;
                        }
                        report.earlier = Some(untold);
                        report.bound();
                    }
                    run.opening = Opening::Wake(Box::new(report));
                }
                run.told = false;
                State::Ready(run)
            }
        };
    }

    /// Remembers what became of a suspension.
    pub(super) fn over(&mut self, event: &Event, handle: Handle, fate: Fate) {
        if self.past.len() == limits::CONSUMED {
            self.past.remove(0);
        }
        self.past.push(PastSuspension { handle, fate, at: event.at, by: event.by.clone() });
    }
}
