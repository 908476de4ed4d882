//! How each event changes the state. Total: nothing here decides, refuses or fails.
//!
//! Live state, recovered state and replayed state are folds of the one function below. An event
//! that does not fit the state it meets (a journal with a hole in it, which verification finds)
//! changes what it can and leaves the rest.

mod pauses;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use crate::carry::{AddBudget, Budget, Limit, Totals};
use crate::command::Mode;
use crate::driver::DriverSummary;
use crate::event::{Event, SessionCreated, SessionImported, What};
use crate::id::{Epoch, SessionId};
use crate::ledger::{CallState, Ledger};
use crate::limits;
use crate::option::SessionOption;
use crate::session::{
    Canceling, Cause, Ended, Fate, KeptEnd, LastRun, Memory, Opening, Owner, PastSuspension,
    PendingPause, Phase, Prior, Quiescing, Run, Running, Session, State, Step, Stopping, Suspended,
};
use crate::time::Timestamp;
use crate::transcript::{Content, Head, ShownAt};

impl Session {
    /// Folds a journal, from the event that created the session on.
    ///
    /// Returns nothing if the first event is not the creation.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut session = Self::born(events.next()?)?;
        for event in events {
            session.evolve(event);
        }
        Some(session)
    }

    /// Returns the session that `event` creates, if it creates one.
    pub fn born(event: &Event) -> Option<Self> {
        let created = match &event.what {
            What::SessionCreated(created) => created,
            What::SessionImported(imported) => return Some(Self::arrived(imported, event.at)),
            _ => return None,
        };
        let SessionCreated { id, tenant, labels, parent, driver, budget, title } = created;
        let untouched = Self::untouched(*id, tenant.clone(), driver.summary(), event.at);
        let memory = Memory { title: title.clone().unwrap_or_default(), ..Memory::default() };
        let (labels, parent, budget) = (labels.clone(), *parent, *budget);
        let options = driver.options.clone();
        Some(Self { labels, parent, budget, memory, options, ..untouched })
    }

    /// Returns a session that goes on from where it was parked in another store.
    fn arrived(imported: &SessionImported, at: Timestamp) -> Self {
        let SessionImported { founding, state, .. } = imported;
        Self {
            id: founding.id,
            tenant: founding.tenant.clone(),
            labels: founding.labels.clone(),
            parent: founding.parent,
            driver: founding.driver.summary(),
            created_at: at,
            revision: 1,
            at,
            epoch: Epoch(0),
            ..state.clone()
        }
    }

    /// Returns what is known of a session whose journal cannot be read: its name, whose it is, and
    /// how long its journal is. It stands in for the session where that is to be ended.
    pub fn unreadable(id: SessionId, tenant: &str, revision: u64) -> Self {
        let driver =
            DriverSummary { kind: "unknown".to_owned(), name: None, needs: BTreeSet::new() };
        let untouched = Self::untouched(id, tenant.to_owned(), driver, Timestamp::from_millis(0));
        Self { revision, ..untouched }
    }

    /// Returns a session that nothing has happened to but its creation.
    fn untouched(id: SessionId, tenant: String, driver: DriverSummary, at: Timestamp) -> Self {
        Self {
            id,
            tenant,
            labels: BTreeMap::new(),
            parent: None,
            driver,
            created_at: at,
            revision: 1,
            at,
            epoch: Epoch(0),
            state: State::Idle,
            calls: Ledger::default(),
            transcript: Head::EMPTY,
            shown_at: ShownAt::default(),
            totals: Totals::default(),
            budget: Budget::default(),
            added: AddBudget::default(),
            memory: Memory::default(),
            driver_state: None,
            allowed: BTreeSet::new(),
            options: Vec::new(),
            last_run: None,
            woke: None,
            past: Vec::new(),
        }
    }

    /// Takes one event into the state.
    pub fn evolve(&mut self, event: &Event) {
        self.revision += 1;
        self.at = event.at;
        match &event.what {
            // A session is created once; see `born`.
            What::SessionCreated(_) | What::SessionImported(_) => {}
            What::RunStarted(started) => {
                if self.memory.first_prompt.is_empty()
                    && let Some(content) = &started.content
                {
                    self.memory.first_prompt = content.excerpt.clone();
                }
                self.transcript = started.transcript;
                let opening = match (&started.wake, &started.content) {
                    (Some(report), _) => Opening::Wake(report.clone()),
                    (None, Some(content)) => Opening::Prompt(content.clone()),
                    (None, None) => Opening::Prompt(Content::text("")),
                };
                // What woke an earlier run says nothing about this one.
                if started.wake.is_none() {
                    self.woke = None;
                }
                self.state = State::Ready(Run {
                    id: started.run,
                    started_at: event.at,
                    from: started.first_entry(),
                    turn: 1,
                    opening,
                    told: false,
                    window: started.window,
                    step: None,
                    broken: false,
                    progress: crate::carry::Progress::default(),
                });
            }
            What::Claimed(claimed) => {
                self.epoch = claimed.epoch;
                let owner = Owner { host: claimed.host, epoch: claimed.epoch };
                if let State::Ready(run) = self.take_state() {
                    self.state = State::Running(Running { run, owner });
                }
            }
            What::StepStarted(started) => {
                self.transcript = started.transcript;
                self.calls.told(true);
                self.with_run(|run| {
                    run.step = Some(Step {
                        number: started.number,
                        model_in_flight: true,
                        opens: !run.told,
                        continues: std::mem::take(&mut run.broken),
                    });
                    run.told = true;
                });
            }
            What::Progressed(progressed) => self.progressed(progressed),
            What::CallsLeft(left) => {
                self.calls.set(&left.unknown, CallState::Unknown);
                self.calls.set(&left.not_run, CallState::NotRun);
            }
            What::CallsAsked(asked) => {
                self.transcript = asked.transcript;
                for call in &asked.calls {
                    self.calls.ask(call.clone());
                }
                self.totals.add(&asked.usage);
                if asked.driver_state.is_some() {
                    self.driver_state.clone_from(&asked.driver_state);
                }
                self.noted(&asked.notes, asked.last_words.as_deref());
                self.with_run(|run| {
                    if let Some(step) = &mut run.step {
                        step.model_in_flight = false;
                    }
                    run.progress.model_done(&asked.usage, &asked.notes);
                });
                self.something_returned();
            }
            What::StepAborted(aborted) => {
                self.transcript = aborted.transcript;
                self.totals.add(&aborted.usage);
                self.noted(&aborted.notes, aborted.last_words.as_deref());
                self.with_run(|run| {
                    run.step = None;
                    run.broken = true;
                    run.progress.spent(&aborted.usage);
                });
                self.something_returned();
            }
            What::CallsDispatched(dispatched) => {
                self.calls.set(&dispatched.calls, CallState::Dispatched);
                for tool in &dispatched.always {
                    if self.allowed.len() < limits::ALLOWED_TOOLS {
                        self.allowed.insert(tool.clone());
                    }
                }
            }
            What::CallsReturned(returned) => self.calls_returned(returned),
            What::CallsAbandoned(abandoned) => {
                self.calls.set(&abandoned.calls, CallState::Unknown);
                self.owner_gives_up();
            }
            What::StepFinished(finished) => self.step_finished(finished),
            What::SuspendRequested(requested) => {
                let pending = PendingPause {
                    pause: requested.pause.clone(),
                    mode: requested.mode,
                    abandon_at: requested.abandon_at,
                };
                self.park(|parking| parking.client = Some(pending));
            }
            What::SuspendJoined(joined) => match &mut self.state {
                State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                    if let Some(client) = &mut parking.client {
                        client.mode = joined.mode;
                        client.abandon_at = joined.abandon_at;
                        client.pause.join(&event.by, joined);
                    }
                }
                State::Suspended(suspended) => {
                    let shown = suspended.hold.as_mut().unwrap_or(&mut suspended.park);
                    shown.pause.join(&event.by, joined);
                }
                _ => {}
            },
            What::RequesterLeft(left) => match &mut self.state {
                State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                    if let Some(client) = &mut parking.client {
                        client.pause.leave(left.requester);
                    }
                }
                State::Suspended(suspended) => {
                    let shown = suspended.hold.as_mut().unwrap_or(&mut suspended.park);
                    shown.pause.leave(left.requester);
                }
                _ => {}
            },
            What::SuspendWithdrawn(withdrawn) => {
                self.over(event, withdrawn.handle, Fate::Withdrawn);
                self.raise(withdrawn.added);
                self.stop_parking(|parking| parking.client = None);
            }
            What::ParkRequested(requested) => {
                if let Some(call) = &requested.pause.call {
                    self.calls.set(std::slice::from_ref(call), CallState::Waiting);
                }
                self.park(|parking| {
                    (parking.agent, parking.from_worker) = (Some(requested.pause.clone()), false);
                });
            }
            What::AwaitRequested(requested) => self.park(|parking| {
                (parking.agent, parking.from_worker) = (Some(requested.pause.clone()), true);
            }),
            What::AwaitEnded(ended) => {
                self.over(event, ended.handle, ended.fate);
                self.stop_parking(|parking| {
                    (parking.agent, parking.from_worker) = (None, false);
                });
            }
            What::Suspended(suspended) => self.suspended_by(suspended),
            What::HoldLaid(laid) => {
                if let State::Suspended(suspended) = &mut self.state {
                    suspended.hold = Some(laid.hold.clone());
                }
            }
            What::FiredUnderHold(fired) => {
                if let State::Suspended(suspended) = &mut self.state {
                    suspended.fired = Some(fired.fired.clone());
                }
            }
            What::HoldLifted(lifted) => {
                self.over(event, lifted.resumption.handle, Fate::Resumed(lifted.resumption.cause));
                self.raise(lifted.added);
                if let State::Suspended(suspended) = &mut self.state {
                    suspended.hold = None;
                    let limit = &mut suspended.park.pause.limit;
                    // The budget that stopped the agent has been raised already.
                    if *limit == Some(Limit::BudgetExceeded)
                        && lifted.added.is_some_and(|added| added.is_to_spend())
                    {
                        *limit = None;
                    }
                }
            }
            What::Resumed(resumed) => self.resumed_by(event, resumed),
            What::SuspensionEnded(ended) => {
                self.over(event, ended.handle, ended.fate);
                if let Some(hold) = ended.hold {
                    self.over(event, hold, ended.fate);
                }
                self.state = match self.take_state() {
                    State::Suspended(suspended) => match suspended.prior {
                        Prior::Idle => State::Idle,
                        Prior::Run(run) | Prior::Kept(KeptEnd { run, .. }) => State::Ready(run),
                    },
                    other => other,
                };
            }
            What::CancelRequested(requested) => {
                let canceling = Canceling {
                    reason: requested.reason.clone(),
                    abandon_at: requested.abandon_at,
                };
                if let Some(handle) = requested.overrides {
                    self.over(event, handle, Fate::Canceled);
                }
                self.state = match self.take_state() {
                    State::Running(Running { run, owner }) => State::Quiescing(Quiescing {
                        run,
                        owner,
                        stopping: Stopping::Canceling(canceling),
                        draining: false,
                    }),
                    State::Quiescing(quiescing) => State::Quiescing(Quiescing {
                        stopping: Stopping::Canceling(canceling),
                        ..quiescing
                    }),
                    other => other,
                };
            }
            What::RunEnded(ended) => {
                self.last_run = Some(LastRun {
                    id: ended.run,
                    outcome: ended.end.outcome,
                    error: ended.end.error.clone(),
                    at: event.at,
                });
                self.calls.run_ended();
                self.state = State::Idle;
            }
            What::Drained(drained) => {
                self.calls.set(&drained.unknown, CallState::Unknown);
                self.owner_leaves();
            }
            What::HostLost(lost) => {
                self.calls.set(&lost.again, CallState::Asked);
                self.calls.set(&lost.unknown, CallState::Unknown);
                self.owner_leaves();
            }
            What::OptionSet(set) => {
                self.choose(&set.option, &set.value);
                if set.option == SessionOption::MODE {
                    self.shown_at.mode = None;
                }
            }
            What::SessionEnded(ended) => {
                self.state = State::Ended(Ended { at: event.at, how: ended.how });
            }
        }
    }

    /// Takes what is added to the budget.
    fn raise(&mut self, added: Option<AddBudget>) {
        if let Some(added) = added {
            self.budget = self.budget.raised(added);
            self.added = self.added.and(added);
        }
    }

    /// Moves the state out, to be put back changed within the same event.
    fn take_state(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Idle)
    }

    fn with_run(&mut self, change: impl FnOnce(&mut Run)) {
        match &mut self.state {
            State::Ready(run)
            | State::Running(Running { run, .. })
            | State::Quiescing(Quiescing { run, .. })
            | State::Suspended(Suspended {
                prior: Prior::Run(run) | Prior::Kept(KeptEnd { run, .. }),
                ..
            }) => change(run),
            State::Idle | State::Suspended(_) | State::Ended(_) => {}
        }
    }

    /// The owner has let go of everything in flight: what is pending comes at once.
    fn owner_gives_up(&mut self) {
        self.with_run(|run| {
            if run.step.is_some_and(|step| step.model_in_flight) {
                run.step = None;
                run.broken = true;
            }
        });
        if let State::Quiescing(quiescing) = &mut self.state {
            quiescing.draining = true;
            if let Stopping::Parking(parking) = &mut quiescing.stopping {
                // No step goes on to its end any more.
                parking.from_worker = false;
                if let Some(client) = &mut parking.client {
                    client.mode = Mode::InterruptImmediate;
                }
            }
        }
    }

    /// The owner is gone: a run that was to go on is ready for another.
    fn owner_leaves(&mut self) {
        self.owner_gives_up();
        self.state = match self.take_state() {
            State::Running(Running { run, .. }) => State::Ready(run),
            other => other,
        };
    }
}

impl Phase {
    /// Returns whether nothing runs and nothing will, until a caller or an event wakes it.
    pub const fn is_parked(self) -> bool {
        matches!(self, Self::Suspended | Self::Asking)
    }
}

impl PastSuspension {
    /// Returns why it was resumed, if it was.
    pub const fn cause(&self) -> Option<Cause> {
        match self.fate {
            Fate::Resumed(cause) => Some(cause),
            Fate::Withdrawn | Fate::Canceled | Fate::Failed | Fate::Closed | Fate::Exported => None,
        }
    }
}
