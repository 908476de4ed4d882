//! All the rules: what a command does to a session, or why it may not.
//!
//! One file per family of moves, each written as LIFECYCLE states it. They share a [`Draft`]: a
//! copy of the session that takes every event as it is decided, so that a rule can look at what
//! the rules before it have led to. The last rule of most moves is [`settle`]: a session that is
//! to stop, and has come to rest, stops. It is the only place where a pending suspension takes
//! effect, whether a call returned, a grace ran out, or the host died.

mod cancel;
mod close;
mod create;
mod drive;
mod export;
mod import;
mod option;
mod park;
mod prompt;
mod recover;
mod resume;
mod settle;
mod suspend;
mod wake;

pub use create::Founding;

use crate::arrival::Arrival;
use crate::command::{Await, AwaitResumption, Command, Resume, Suspend};
use crate::conditions::Conditions;
use crate::event::{Event, What};
use crate::facts::{Facts, Needs};
use crate::id::{Epoch, Handle};
use crate::journal::{CarriedState, Decided};
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{Owner, PendingPause, Quiescing, Session, State, Stopping};
use crate::time::Timestamp;

impl Session {
    /// Decides what `command` does to this session, or why it may not.
    ///
    /// Pure: equal inputs give equal outputs. Time, actor and fresh ids come in `facts`, which
    /// must hold what [`Session::needs`] asked for. No events mean that nothing changes, as for
    /// an event that the session does not wait for.
    ///
    /// # Errors
    /// Why the command was refused. Nothing changes then.
    pub fn decide(&self, facts: &Facts, command: &Command) -> Result<Vec<Event>, Rejected> {
        Ok(Draft::new(self, facts).decide(command)?.events)
    }

    /// Decides as [`Session::decide`] does; returns also what the journal holds of it, so that no
    /// event is folded a second time to be recorded.
    ///
    /// # Errors
    /// Why the command was refused. Nothing changes then.
    pub fn decide_recorded(&self, facts: &Facts, command: &Command) -> Result<Decided, Rejected> {
        let draft = Draft { states: Some(Vec::new()), ..Draft::new(self, facts) };
        let Draft { session, events, states, .. } = draft.decide(command)?;
        Ok(Decided { session, events, states: states.unwrap_or_default() })
    }

    /// Decides as [`Session::decide`] does; returns the session after the events, for a host that
    /// keeps no journal of them.
    ///
    /// # Errors
    /// Why the command was refused. Nothing changes then.
    pub fn decide_state(&self, facts: &Facts, command: &Command) -> Result<Self, Rejected> {
        Ok(Draft::new(self, facts).decide(command)?.session)
    }

    /// Returns why a suspension cannot be resumed that is not the one to resume: what became of it.
    pub fn past_suspension(&self, handle: Handle) -> Rejected {
        resume::past(self, handle)
    }

    /// Returns what a transaction must look up before it can decide `command`.
    pub fn needs<'a>(&'a self, command: &'a Command) -> Needs<'a> {
        let mut needs = Needs::default();
        match command {
            Command::Prompt(prompt) => needs.message_id = prompt.message_id.as_deref(),
            Command::Resume(resume) => {
                needs.key = resume.idempotency_key.as_deref();
                needs.message_id = resume.message_id.as_deref();
            }
            // Its window opens with its acceptance; only `since` makes it look further back.
            Command::Suspend(Suspend { resume_when: Some(conditions), .. }) => {
                if let Some(since) = conditions.since {
                    needs.pause(since, Some(conditions));
                }
            }
            Command::Await(Await { conditions, .. })
            | Command::AwaitResumption(AwaitResumption { conditions, .. }) => {
                if let Some(run) = self.run() {
                    let conditions = conditions.as_ref();
                    let since = conditions.and_then(|conditions| conditions.since);
                    needs.wait(since.unwrap_or(run.window), conditions, self.id);
                }
            }
            _ => {}
        }
        needs.keyless_waits = command.conditions().is_some_and(Conditions::is_keyless);
        // Whatever brings a quiescing session to rest begins its waits.
        if let State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) =
            &self.state
        {
            if let Some(PendingPause { pause, .. }) = &parking.client {
                needs.pause(pause.window, pause.conditions.as_ref());
            }
            if let Some(pause) = &parking.agent {
                needs.wait(pause.window, pause.conditions.as_ref(), self.id);
            }
        }
        needs
    }
}

/// A decision in the making: the events so far, and the session they lead to.
struct Draft<'a> {
    facts: &'a Facts,
    session: Session,
    events: Vec<Event>,
    /// The state that each event carries into the journal, if it is to be recorded.
    states: Option<Vec<CarriedState>>,
}

impl<'a> Draft<'a> {
    fn new(session: &Session, facts: &'a Facts) -> Self {
        Self { facts, session: session.clone(), events: Vec::new(), states: None }
    }

    fn decide(mut self, command: &Command) -> Result<Self, Rejected> {
        check_facts(self.facts)?;
        match command {
            Command::Prompt(prompt) => prompt::decide(&mut self, prompt),
            Command::Suspend(suspend) => suspend::decide(&mut self, suspend),
            Command::Withdraw(withdraw) => suspend::withdraw(&mut self, withdraw),
            Command::Resume(resume) => resume::decide(&mut self, resume),
            Command::Cancel(cancel) => cancel::decide(&mut self, cancel),
            Command::Close(close) => close::decide(&mut self, close),
            Command::Export(export) => export::decide(&mut self, export),
            Command::SetOption(set) => option::set(&mut self, set),
            Command::AwaitResumption(wait) => park::await_from_outside(&mut self, wait),
            Command::Deliver(arrival) => {
                check_arrival(arrival)?;
                wake::deliver(&mut self, arrival);
                Ok(())
            }
            Command::Expire => {
                wake::expire(&mut self);
                Ok(())
            }
            Command::Wake(wake) => wake::decide(&mut self, wake),
            Command::ReleaseGate(release) => {
                suspend::release(&mut self, release);
                Ok(())
            }
            Command::Claim => drive::claim(&mut self),
            Command::Take(take) => drive::take(&mut self, take),
            Command::StartStep(start) => drive::start_step(&mut self, start),
            Command::Progress(progress) => drive::progress(&mut self, progress),
            Command::AskCalls(ask) => drive::ask_calls(&mut self, ask),
            Command::AbortStep(abort) => drive::abort_step(&mut self, abort),
            Command::Dispatch(dispatch) => drive::dispatch(&mut self, dispatch),
            Command::ReturnCalls(calls) => drive::return_calls(&mut self, calls),
            Command::FinishStep(finish) => drive::finish_step(&mut self, finish),
            Command::FinishRun(finish) => drive::finish_run(&mut self, finish),
            Command::Await(wait) => park::await_resumption(&mut self, wait),
            Command::Ask(ask) => park::ask(&mut self, ask),
            Command::Abandon(owned) => recover::abandon(&mut self, owned),
            Command::Drain(owned) => recover::drain(&mut self, owned),
            Command::Recover(recover) => recover::decide(&mut self, recover),
        }?;
        self.finish(command)
    }

    /// Returns the time of this decision: the clock, or the last event's time if the clock went back.
    fn now(&self) -> Timestamp {
        self.facts.now.max(self.session.at)
    }

    /// Takes one more event into the decision.
    fn emit(&mut self, what: What) {
        let event = Event { at: self.now(), by: self.facts.by.clone(), what };
        if let Some(states) = &mut self.states {
            states.push(CarriedState::of(&event, &self.session));
        }
        self.session.evolve(&event);
        self.events.push(event);
    }

    /// Refuses a gated start.
    fn not_gated(&self) -> Result<(), Rejected> {
        self.facts.gates.first().map_or(Ok(()), |gate| {
            Err(Rejected::Gated { gate: gate.id, by: gate.by.clone(), reason: gate.reason.clone() })
        })
    }

    /// Refuses one more wait that every event would have to be matched against.
    fn findable(&self, path: &str, conditions: Option<&Conditions>) -> Result<(), Rejected> {
        check_findable(self.facts, path, conditions)
    }

    /// Refuses to look back from a place that has not been reached: it would hide what comes.
    fn looks_back(&self, path: &str, conditions: Option<&Conditions>) -> Result<(), Rejected> {
        let since = conditions.and_then(|conditions| conditions.since);
        if since.is_some_and(|since| since > self.facts.high) {
            let problem = format!("the last event has the number {}", self.facts.high);
            return Err(Rejected::invalid(format!("{path}.since"), problem));
        }
        Ok(())
    }

    /// Refuses a host that does not drive the session under its current claim.
    fn owned(&self, epoch: Epoch) -> Result<Owner, Rejected> {
        match self.session.owner() {
            Some(owner) if owner.epoch == epoch => Ok(owner),
            _ => Err(self.not_owner(epoch)),
        }
    }

    fn not_owner(&self, given: Epoch) -> Rejected {
        Rejected::NotOwner { given, current: self.session.epoch, phase: self.session.phase() }
    }

    fn not_ended(&self) -> Result<(), Rejected> {
        match &self.session.state {
            State::Ended(ended) => Err(Rejected::Ended { at: ended.at }),
            _ => Ok(()),
        }
    }

    /// Returns the decision, unless the state they lead to has no room for what they add.
    fn finish(self, command: &Command) -> Result<Self, Rejected> {
        let room = command.room();
        if let Some(room) = room
            && !self.events.is_empty()
            && limits::json_exceeds(&self.session, room)
        {
            let path = command.name();
            return Err(Rejected::invalid(path, format!("the session would exceed {room} bytes")));
        }
        Ok(self)
    }
}

impl Command {
    /// Returns how large the state may be after this command, if the command adds to it.
    ///
    /// A command that adds words is refused before one that works on, and one that only moves a
    /// session on never is: recovery, delivery, deadlines, a resume without input, cancel and close
    /// always find room.
    const fn room(&self) -> Option<usize> {
        match self {
            Self::Prompt(_)
            | Self::Suspend(_)
            | Self::SetOption(_)
            | Self::Resume(Resume { input: Some(_), .. })
            | Self::AwaitResumption(_)
            | Self::Await(_)
            | Self::Ask(_) => {
                Some(limits::STATE_BYTES - limits::RESERVED_FOR_WORK - limits::RESERVED_FOR_MOVES)
            }
            Self::Progress(_) | Self::AskCalls(_) | Self::FinishStep(_) => {
                Some(limits::STATE_BYTES - limits::RESERVED_FOR_MOVES)
            }
            Self::Withdraw(_)
            // The pause that ends with it makes room for the report.
            | Self::Resume(Resume { input: None, .. })
            | Self::Cancel(_)
            | Self::Close(_)
            | Self::Export(_)
            | Self::Deliver(_)
            | Self::Expire
            | Self::Wake(_)
            | Self::ReleaseGate(_)
            | Self::Claim
            | Self::Take(_)
            | Self::StartStep(_)
            | Self::AbortStep(_)
            | Self::Dispatch(_)
            | Self::ReturnCalls(_)
            | Self::FinishRun(_)
            | Self::Abandon(_)
            | Self::Drain(_)
            | Self::Recover(_) => None,
        }
    }
}

/// Refuses one more wait that every event would have to be matched against.
fn check_findable(
    facts: &Facts,
    path: &str,
    conditions: Option<&Conditions>,
) -> Result<(), Rejected> {
    let too_many = facts.keyless_waits >= limits::KEYLESS_WAITS;
    if too_many && conditions.is_some_and(Conditions::is_keyless) {
        let most = limits::KEYLESS_WAITS;
        let problem = format!("{most} waits of this tenant have no literal name already");
        return Err(Rejected::invalid(path, problem));
    }
    Ok(())
}

/// Refuses facts that would not fit into the state.
fn check_facts(facts: &Facts) -> Result<(), Rejected> {
    limits::text("by.principal", &facts.by.principal, limits::NAME_BYTES)?;
    for span in facts.spans.prior.iter().chain(&facts.spans.pipeline) {
        limits::text("traceId", &span.trace_id, limits::SPAN_BYTES)?;
        limits::text("spanId", &span.span_id, limits::SPAN_BYTES)?;
    }
    Ok(())
}

/// Refuses events that would not fit into the state.
fn check_arrival(arrival: &Arrival) -> Result<(), Rejected> {
    limits::name("id", &arrival.id)?;
    limits::name("source", &arrival.source)?;
    limits::name("name", &arrival.name)?;
    arrival.subject.as_deref().map_or(Ok(()), |subject| limits::name("subject", subject))
}
