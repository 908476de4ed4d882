//! A host without a process: it drives one session with a scripted agent, in virtual time.
//!
//! It does what a real host must: it claims what is ready, starts and finishes steps, dispatches
//! calls before they run, stops where it is refused, breaks off the model when it is interrupted,
//! gives up calls when the grace is over, answers every call before the model speaks again,
//! delivers events in order and looks at deadlines. All it keeps in memory is lost when it is
//! killed. Every commit goes through [`World::give`], which checks what must always hold.

mod agent;
mod drive;
mod trace;
mod transcript;

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_core::actor::Actor;
use adjourn_core::arrival::Arrival;
use adjourn_core::command::{Loss, Owned, Recover};
use adjourn_core::event::What;
use adjourn_core::id::{Epoch, Seq};
use adjourn_core::ledger::{CallId, CallState};
use adjourn_core::limits;
use adjourn_core::session::{Cause, Opening, Run, State};
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Event, Rejected, Session};
use adjourn_driver::script::Script;
use serde_json::Value;

use crate::world::{self, World, ann, host_actor};

pub use agent::read;
pub use trace::Trace;
use transcript::{Line, Transcript};

/// How much may happen at one moment; scenarios stay below fifty.
const AT_ONCE: u32 = 1_000;

/// One session, the store it lives in, and the host that drives it.
pub struct Simulation {
    pub world: World,
    pub trace: Trace,
    script: Script,
    transcript: Transcript,
    /// How many runs there have been.
    runs: usize,
    /// How many events have been delivered.
    delivered: usize,
    /// What events carried; the core sees only that they came.
    data: BTreeMap<Seq, Value>,
    host: Option<Host>,
    /// When the next host starts, while there is none.
    next_host: Timestamp,
    /// How many hosts there have been.
    hosts: u64,
}

/// What a host has in memory.
struct Host {
    number: u64,
    /// When the model has spoken.
    model: Option<Timestamp>,
    /// When each call in flight returns.
    calls: BTreeMap<CallId, Timestamp>,
    /// What the turn is told first, if nothing else tells it why it woke.
    note: Option<String>,
    leaving: Option<Leaving>,
}

/// A host that drains.
struct Leaving {
    /// When it no longer waits for calls in flight.
    until: Timestamp,
    /// How long nobody is there after it.
    away: Duration,
}

impl Simulation {
    pub fn new(script: Script) -> Self {
        let world = World::new();
        Self {
            trace: Trace::default(),
            script,
            transcript: Transcript::new(),
            runs: 0,
            delivered: 0,
            data: BTreeMap::new(),
            host: None,
            next_host: world.now,
            hosts: 0,
            world,
        }
    }

    /// Lets time pass, and everything happen that falls due meanwhile.
    pub fn advance(&mut self, to: Timestamp) {
        self.settle();
        while let Some(next) = self.next().filter(|next| *next <= to) {
            self.world.now = next;
            self.trace.stirred.push(next);
            self.settle();
        }
        self.world.now = to;
    }

    /// Lets everything happen that takes no time.
    pub fn settle(&mut self) {
        for _ in 0..AT_ONCE {
            if !self.act() {
                return;
            }
        }
        panic!("the host goes round in circles: {:?}", self.session().state);
    }

    /// Gives a client's command; `words` is what it adds to the transcript if it is taken.
    pub fn ask(&mut self, command: Command, words: Option<&str>) -> Result<Vec<Event>, Rejected> {
        self.ask_by(ann(), command, words)
    }

    /// Gives a command of another client.
    pub fn ask_by(
        &mut self,
        by: Actor,
        command: Command,
        words: Option<&str>,
    ) -> Result<Vec<Event>, Rejected> {
        self.commit(by, command, words.map(Line::words).into_iter().collect())
    }

    /// Acknowledges an event; the host delivers it. An event that is known is acknowledged again.
    pub fn event(&mut self, mut arrival: Arrival, data: Option<Value>) {
        let known = |known: &Arrival| (&known.source, &known.id) == (&arrival.source, &arrival.id);
        if self.world.arrivals.iter().any(known) {
            return;
        }
        arrival.seq = Seq(self.world.arrivals.len() as u64 + 1);
        self.data.extend(data.map(|data| (arrival.seq, data)));
        self.world.arrivals.push(arrival);
    }

    /// The host's process is gone, with all it had in memory.
    pub fn kill(&mut self, away: Duration) {
        self.host = None;
        self.next_host = self.world.now.after(away);
    }

    /// The host stops at the next boundary, or when it has waited long enough.
    pub fn drain(&mut self, grace: Option<Duration>, away: Duration) {
        let until = self.world.now.after(grace.unwrap_or(limits::GRACE));
        if let Some(host) = &mut self.host {
            host.leaving = Some(Leaving { until, away });
        }
    }

    /// Returns whether a host is there to stay.
    pub fn is_served(&self) -> bool {
        self.host.as_ref().is_some_and(|host| host.leaving.is_none())
    }

    /// Returns when something happens next by itself.
    fn next(&self) -> Option<Timestamp> {
        let Some(host) = &self.host else { return Some(self.next_host) };
        let driving = self.session().owner().is_some();
        let in_flight = host.calls.values().copied().chain(host.model);
        let grace = self.session().abandon_at().into_iter();
        let leaves = host.leaving.as_ref().map(|leaving| leaving.until);
        let owned = in_flight.chain(grace).chain(leaves).filter(|_| driving);
        // What is past and still there waits for something else.
        owned.chain(self.session().due()).filter(|next| *next > self.world.now).min()
    }

    /// Does one thing that is due; returns whether there was one.
    fn act(&mut self) -> bool {
        if self.host.is_none() {
            return self.start_host();
        }
        self.deliver() || self.expire() || self.drive()
    }

    fn start_host(&mut self) -> bool {
        if self.world.now < self.next_host {
            return false;
        }
        self.hosts += 1;
        let number = self.hosts;
        self.host =
            Some(Host { number, model: None, calls: BTreeMap::new(), note: None, leaving: None });
        // An owner that is still on record died: nobody else hosts this session.
        if let Some(owner) = self.session().owner() {
            let recover = Recover { host: owner.host, epoch: owner.epoch, how: Loss::Died };
            let recovered = self.commit(host_actor(number), Command::Recover(recover), Vec::new());
            recovered.expect("the dead are recovered");
        }
        true
    }

    fn deliver(&mut self) -> bool {
        let Some(arrival) = self.world.arrivals.get(self.delivered).cloned() else { return false };
        self.delivered += 1;
        let command = Command::Deliver(arrival);
        self.commit(self.host_actor(), command, Vec::new()).expect("an event is never refused");
        true
    }

    fn expire(&mut self) -> bool {
        if self.session().due().is_none_or(|due| due > self.world.now) {
            return false;
        }
        let events = self.commit(self.host_actor(), Command::Expire, Vec::new());
        !events.expect("a deadline is never refused").is_empty()
    }

    fn drive(&mut self) -> bool {
        if self.session().owner().is_some() {
            return self.take_returns()
                || self.give_back()
                || self.give_up()
                || self.interrupt()
                || self.go_on();
        }
        // Whatever was in flight belongs to a run that is over; its results are nobody's.
        let host = self.host_mut();
        host.model = None;
        host.calls.clear();
        if let Some(Leaving { away, .. }) = host.leaving {
            self.kill(away);
            return true;
        }
        matches!(self.session().state, State::Ready(_)) && self.claim()
    }

    fn claim(&mut self) -> bool {
        self.commit(self.host_actor(), Command::Claim, Vec::new()).expect("what is ready is free");
        let run = self.run().clone();
        let begins = self.trace.turn(&self.world.session, &run, &self.data);
        // A pause that a client made and lifted is told to nobody: the turn goes on as if it had
        // not been. The agent's own wait is told why it is over by the answer to its call.
        if let Opening::Wake(report) = &run.opening
            && begins
            && report.resumption.cause != Cause::ExplicitResume
            && !self.session().calls.any(CallState::Waiting)
        {
            let text = report.text(&self.session().status().unknown_calls);
            self.host_mut().note = Some(text);
        }
        true
    }

    /// A host that leaves gives the session back at a boundary, or when its patience is at an end.
    fn give_back(&mut self) -> bool {
        let Some(Leaving { until, .. }) = &self.host().leaving else { return false };
        let at_boundary = self.run().step.is_none();
        if !at_boundary && self.world.now < *until {
            return false;
        }
        let owned = Owned { epoch: self.epoch() };
        let drain = Command::Drain(owned);
        self.commit(self.host_actor(), drain, Vec::new()).expect("an owner may leave");
        true
    }

    /// Commits a command, and the lines that go into the transcript with it.
    fn commit(
        &mut self,
        by: Actor,
        command: Command,
        lines: Vec<Line>,
    ) -> Result<Vec<Event>, Rejected> {
        let events = self.world.give(by, command)?;
        if !events.is_empty() {
            self.transcript.append(lines);
        }
        assert_eq!(
            self.transcript.head(),
            self.session().transcript,
            "the journal binds the transcript, and what was said is all there is in it"
        );
        for event in &events {
            self.trace.notice(event);
            if let What::RunStarted(_) = &event.what {
                self.runs += 1;
                self.transcript.begin_run();
            }
        }
        Ok(events)
    }

    /// Commits a command of the agent's, under the host's claim.
    fn drive_by(&mut self, command: Command, lines: Vec<Line>) -> Result<(), Rejected> {
        self.commit(world::agent(self.host().number), command, lines).map(drop)
    }

    fn session(&self) -> &Session {
        &self.world.session
    }

    fn epoch(&self) -> Epoch {
        self.session().epoch
    }

    fn run(&self) -> &Run {
        self.session().run().expect("a session that is driven has a run")
    }

    fn host(&self) -> &Host {
        self.host.as_ref().expect("a host is there")
    }

    fn host_mut(&mut self) -> &mut Host {
        self.host.as_mut().expect("a host is there")
    }

    fn host_actor(&self) -> Actor {
        host_actor(self.host().number)
    }
}
