//! What can be read off a session's state.

use super::{
    Fired, Initiator, KeptEnd, Opening, Owner, Parked, Parking, Pause, Phase, Prior, Quiescing,
    Run, Running, Session, State, Stopping, Suspended, Wait, WakeReport,
};
use crate::arrival::Arrival;
use crate::carry::{Limit, UsedUp};
use crate::command::{Mode, Requester};
use crate::conditions::{Conditions, EventPattern, Key};
use crate::event::Resumed;
use crate::id::{GateId, Handle, Seq};
use crate::ledger::CallState;
use crate::time::Timestamp;

impl Session {
    /// Returns where the session stands, in one word.
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Idle => Phase::Idle,
            State::Ready(_) => Phase::Ready,
            State::Running(_) => Phase::Running,
            State::Quiescing(quiescing) => match (&quiescing.stopping, quiescing.draining) {
                (Stopping::Canceling(_), _) => Phase::Canceling,
                (Stopping::Parking(_), false) => Phase::Requested,
                (Stopping::Parking(_), true) => Phase::Quiescing,
            },
            State::Suspended(suspended) => match (&suspended.park.pause.wait, &suspended.hold) {
                (Wait::Question(_), None) => Phase::Asking,
                _ => Phase::Suspended,
            },
            State::Ended(_) => Phase::Ended,
        }
    }

    /// Returns the run under way, parked or not.
    pub fn run(&self) -> Option<&Run> {
        match &self.state {
            State::Idle | State::Ended(_) => None,
            State::Ready(run) => Some(run),
            State::Running(running) => Some(&running.run),
            State::Quiescing(quiescing) => Some(&quiescing.run),
            State::Suspended(suspended) => match &suspended.prior {
                Prior::Idle => None,
                Prior::Run(run) | Prior::Kept(KeptEnd { run, .. }) => Some(run),
            },
        }
    }

    /// Returns who drives the session.
    pub fn owner(&self) -> Option<Owner> {
        match &self.state {
            State::Running(running) => Some(running.owner),
            State::Quiescing(quiescing) => Some(quiescing.owner),
            State::Idle | State::Ready(_) | State::Suspended(_) | State::Ended(_) => None,
        }
    }

    /// Returns what is used up of the budget, if it is suspended for that.
    pub fn used_up(&self) -> Vec<UsedUp> {
        let limit = self.suspended().and_then(|suspended| suspended.shown().pause.limit);
        match limit {
            Some(Limit::BudgetExceeded) => self.budget.used_up(&self.totals),
            _ => Vec::new(),
        }
    }

    /// Returns the suspension and the hold over it.
    pub fn suspended(&self) -> Option<&Suspended> {
        match &self.state {
            State::Suspended(suspended) => Some(suspended),
            _ => None,
        }
    }

    /// Returns the pause that is accepted and not yet in force: a client's before the agent's own.
    pub fn pending_pause(&self) -> Option<&Pause> {
        match &self.state {
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                let client = parking.client.as_ref().map(|client| &*client.pause);
                client.or(parking.agent.as_deref())
            }
            _ => None,
        }
    }

    /// Returns the agent's own pause, pending or in force, whatever lies over it.
    pub fn agents_pause(&self) -> Option<&Pause> {
        let pause = match &self.state {
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                parking.agent.as_deref()
            }
            State::Suspended(suspended) => Some(&*suspended.park.pause),
            _ => None,
        };
        pause.filter(|pause| pause.initiator == Initiator::Agent)
    }

    /// Returns the keys under which an event can find this session's waits.
    pub fn subscriptions(&self) -> std::collections::BTreeSet<Key> {
        let waits = self.suspended().into_iter().flat_map(Suspended::waits);
        waits
            .filter_map(|parked| parked.pause.conditions.as_ref())
            .flat_map(Conditions::keys)
            .collect()
    }

    /// Returns whether a wait of this session that can still fire is about `pattern`; see
    /// [`Conditions::are_about`].
    pub fn waits_for(&self, pattern: &EventPattern) -> bool {
        let mut waits = self.suspended().into_iter().flat_map(Suspended::waits);
        waits.any(|parked| {
            parked.pause.conditions.as_ref().is_some_and(|waits| waits.are_about(pattern))
        })
    }

    /// Returns the reason that is shown for the pause that is pending or in force.
    pub fn pause_reason(&self) -> Option<&str> {
        let shown = self.suspended().map(|suspended| &*suspended.shown().pause);
        shown.or_else(|| self.pending_pause())?.reason.as_deref()
    }

    /// Returns when a deadline of a suspension acts; the store keeps it in an index.
    pub fn due(&self) -> Option<Timestamp> {
        let suspended = self.suspended()?;
        suspended.waits().filter_map(|parked| parked.due).map(|due| due.at).min()
    }

    /// Returns the window of the turn that is open or interrupted: events younger than it may
    /// still be waited for, and are not to be dropped.
    pub fn open_window(&self) -> Option<Seq> {
        match &self.state {
            State::Idle | State::Ended(_) => None,
            State::Ready(run) | State::Running(Running { run, .. }) => Some(run.window),
            State::Quiescing(Quiescing { run, stopping, .. }) => match stopping {
                Stopping::Canceling(_) => Some(run.window),
                // A pause that is pending may look back further than its turn does.
                Stopping::Parking(Parking { client, agent, .. }) => {
                    let client = client.as_ref().map(|client| &client.pause);
                    let pauses = client.into_iter().chain(agent).map(|pause| pause.window);
                    pauses.chain([run.window]).min()
                }
            },
            State::Suspended(suspended) => match &suspended.prior {
                Prior::Run(run) if suspended.park.pause.initiator == Initiator::Client => {
                    Some(run.window)
                }
                Prior::Idle | Prior::Run(_) | Prior::Kept(_) => None,
            },
        }
    }

    /// Returns the event up to which this session needs none: those that its turn may wait for are
    /// younger, and so is one that the agent has yet to be told of, with its data.
    pub fn needs_events_after(&self) -> Option<Seq> {
        let before = |arrival: &Arrival| Seq(arrival.seq.0.saturating_sub(1));
        let (run, fired) = match &self.state {
            State::Idle | State::Ended(_) => (None, None),
            State::Ready(run)
            | State::Running(Running { run, .. })
            | State::Quiescing(Quiescing { run, .. }) => (Some(run), None),
            State::Suspended(suspended) => {
                let run = match &suspended.prior {
                    Prior::Run(run) => Some(run),
                    Prior::Idle | Prior::Kept(_) => None,
                };
                (run, suspended.fired.as_ref())
            }
        };
        let untold = match run {
            Some(Run { told: false, opening: Opening::Wake(report), .. }) => Some(&**report),
            _ => None,
        };
        let reports = untold.into_iter().flat_map(WakeReport::newest_first);
        let arrivals = reports.filter_map(|report| report.arrival.as_ref());
        let fired = fired.and_then(|fired| match fired {
            Fired::Event(arrival) => Some(arrival),
            Fired::Deadline(_) => None,
        });
        arrivals.chain(fired).map(before).chain(self.open_window()).min()
    }

    /// Returns when the owner may abandon calls in flight, by the times of the journal.
    ///
    /// The wall clock may be set meanwhile: an owner waits for what [`Session::grace`] was when it
    /// first saw this time, by a clock that cannot be set.
    pub fn abandon_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Quiescing(Quiescing { stopping: Stopping::Canceling(canceling), .. }) => {
                Some(canceling.abandon_at)
            }
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                parking.client.as_ref().and_then(|client| client.abandon_at)
            }
            _ => None,
        }
    }

    /// Returns how long calls in flight may go on, counted from the last event.
    pub fn grace(&self) -> Option<std::time::Duration> {
        self.abandon_at().map(|until| until.since(self.at))
    }

    /// Returns whether the session stops without waiting for permissions that are asked for.
    ///
    /// A cancel drops the calls that need them; a suspend defers them, unless it waits for the run
    /// and so for them, too.
    pub fn withdraws_permissions(&self) -> bool {
        match &self.state {
            State::Quiescing(Quiescing { stopping: Stopping::Canceling(_), .. }) => true,
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                let client = parking.client.as_ref();
                parking.worker().is_some()
                    || client.is_some_and(|client| client.mode != Mode::WaitForCompletion)
            }
            _ => false,
        }
    }

    /// Returns whether a step may begin: the run has none under way, and nothing but a gate or a
    /// limit could keep one from beginning when a host has taken the session.
    pub fn awaits_step(&self) -> bool {
        self.run().is_some_and(|run| run.step.is_none())
    }

    /// Returns whether a model call or a tool call is in flight.
    pub fn in_flight(&self) -> bool {
        self.calls.any(CallState::Dispatched)
            || self.run().and_then(|run| run.step).is_some_and(|step| step.model_in_flight)
    }
}

impl Resumed {
    /// Returns what the turn that follows is told, about the pause that has ended.
    pub(crate) fn report(&self, pause: &Pause) -> WakeReport {
        WakeReport {
            resumption: self.resumption.clone(),
            reason: pause.reason.clone(),
            host_interrupted: pause.host_interrupted,
            summary: pause.summary.clone(),
            waited_ms: self.waited_ms,
            arrival: self.arrival.clone(),
            input: self.input.clone(),
            value: self.value.clone(),
            added: self.added.filter(|_| self.tells_added),
            question: match &pause.wait {
                Wait::Open => None,
                Wait::Question(question) => {
                    Some(crate::limits::excerpt(&question.question, crate::limits::EXCERPT_BYTES))
                }
            },
            earlier: None,
        }
    }
}

impl Parking {
    /// Returns the pending await of a worker outside the host.
    pub fn worker(&self) -> Option<&Pause> {
        self.agent.as_deref().filter(|_| self.from_worker)
    }

    /// Returns how soon the session stops, by the strongest mode of what is pending. A worker's await
    /// takes effect at the boundary of `finish_step`; there is no mode where the agent has parked
    /// itself, because only calls in flight are waited for then.
    pub fn mode(&self) -> Option<Mode> {
        let client = self.client.as_ref().map(|client| client.mode);
        match (&self.agent, self.from_worker) {
            (None, _) => client,
            (Some(_), true) => client.max(Some(Mode::FinishStep)),
            (Some(_), false) => None,
        }
    }
}

impl Suspended {
    /// Returns what a client sees: the hold, if one lies over the agent's wait.
    pub fn shown(&self) -> &Parked {
        self.hold.as_ref().unwrap_or(&self.park)
    }

    /// Returns the waits that can still fire.
    pub fn waits(&self) -> impl Iterator<Item = &Parked> {
        self.hold.iter().chain(self.fired.is_none().then_some(&self.park))
    }
}

impl Session {
    /// Returns the suspension that it is in, as clients see it, or else the one that its run was last
    /// woken from.
    pub fn last_suspension(&self) -> Option<Handle> {
        match self.suspended() {
            Some(suspended) => Some(suspended.shown().pause.handle),
            None => self.woke.as_ref().map(|woke| woke.handle),
        }
    }

    /// Returns whether a gate wants this session stopped, or has stopped it.
    pub fn is_gated(&self) -> bool {
        self.gates().next().is_some()
    }

    /// Returns the gates that want this session stopped, or have stopped it.
    pub fn gates(&self) -> impl Iterator<Item = GateId> {
        let shown = self.suspended().map(|suspended| &*suspended.shown().pause);
        let named = shown.or(self.pending_pause()).map(|pause| pause.requesters.named.as_slice());
        named.unwrap_or_default().iter().filter_map(|named| match named {
            Requester::Gate(gate) => Some(*gate),
            _ => None,
        })
    }
}
