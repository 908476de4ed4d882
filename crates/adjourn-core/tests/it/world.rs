//! A transaction without a store: it fills the facts, lets the core decide, and keeps the journal.
//!
//! Every command given here is also checked for what must always hold: the fold of the journal is
//! the live state, every entry survives its encoding, and every decision can be taken again.

use std::collections::{BTreeMap, BTreeSet};

use adjourn_core::actor::{Actor, Face};
use adjourn_core::arrival::Arrival;
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::{Origin, SealedRecord, SessionImported};
use adjourn_core::facts::{Answered, Fresh, Gate, SpanLinks};
use adjourn_core::id::{GateId, Handle, HostId, RequestId, RunId, Seq, SessionId};
use adjourn_core::journal::{Decision, Entry, Given};
use adjourn_core::option::{OptionValue, SessionOption};
use adjourn_core::session::State;
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Event, Facts, Founding, Rejected, Session};
use uuid::Uuid;

/// Makes ids that read `…-000000000007`.
pub fn uuid(kind: u8, number: u64) -> Uuid {
    Uuid::from_u128((u128::from(kind) << 120) | (0x7 << 76) | (0x8 << 60) | u128::from(number))
}

pub fn session_id(number: u64) -> SessionId {
    SessionId::new(uuid(1, number))
}
pub fn handle(number: u64) -> Handle {
    Handle::new(uuid(3, number))
}
pub fn host(number: u64) -> HostId {
    HostId::new(uuid(4, number))
}
pub fn gate(number: u64) -> GateId {
    GateId::new(uuid(5, number))
}
pub fn request(number: u64) -> RequestId {
    RequestId::new(uuid(6, number))
}

pub fn ann() -> Actor {
    Actor::new(Face::Cli, "ann")
}

/// The agent, speaking through the host that drives it.
pub fn agent(number: u64) -> Actor {
    Actor::new(Face::Agent, "").on(host(number)).for_session(session_id(1))
}

/// A host, speaking for itself.
pub fn host_actor(number: u64) -> Actor {
    Actor::new(Face::Host, "").on(host(number))
}

pub fn founding() -> Founding {
    Founding {
        id: session_id(1),
        tenant: "acme".to_owned(),
        labels: BTreeMap::new(),
        parent: None,
        driver: DriverSpec::script(r#"{"steps":[]}"#),
        budget: adjourn_core::carry::Budget::default(),
        title: None,
    }
}

/// What a session begins with whose agent writes code, or asks before it does.
pub fn founding_with_modes() -> Founding {
    let mut founding = founding();
    founding.driver.options.extend(SessionOption::mode(vec![
        OptionValue { id: "code".into(), name: "Code".into(), description: None },
        OptionValue {
            id: "ask".into(),
            name: "Ask".into(),
            description: Some("Asks before it changes anything.".into()),
        },
    ]));
    founding
}

/// One session, its journal, and the part of the world it can see.
#[derive(Clone)]
pub struct World {
    pub session: Session,
    pub journal: Vec<Vec<u8>>,
    pub now: Timestamp,
    pub arrivals: Vec<Arrival>,
    pub gates: Vec<Gate>,
    pub answers: BTreeMap<String, Answered>,
    pub messages: BTreeSet<String>,
    pub spans: SpanLinks,
    pub made: u64,
}

impl World {
    pub fn new() -> Self {
        Self::founded(founding())
    }

    /// A session whose agent writes code, or asks before it does.
    pub fn with_modes() -> Self {
        Self::founded(founding_with_modes())
    }

    /// A world in which the session goes on as another one does in this world, parked; its store has
    /// had `high` events.
    pub fn imported(&self, high: u64) -> Result<Self, Rejected> {
        let state = self.session.clone();
        let record = SealedRecord { key: "key-1".to_owned(), token: "nonce.mac".to_owned() };
        let parked = state.suspended().map(|parked| parked.park.pause.handle);
        let founding = Founding { id: session_id(2), tenant: "globex".to_owned(), ..founding() };
        let from = Origin { session: state.id, handle: parked.unwrap_or(handle(0)), record };
        let mut there = Self { now: self.now, made: self.made, ..Self::founded(founding.clone()) };
        let fresh = Fresh { handle: handle(0), run: RunId::new(uuid(2, 0)) };
        let mut facts = Facts::new(self.now, ann(), fresh);
        facts.high = Seq(high);
        let imported = SessionImported { founding: founding.into(), from, state };
        let events = Session::import(&facts, imported)?;
        let decision = Decision::new(Given::Creation, facts);
        let recorded = Entry::record_creation(&decision, events.clone()).unwrap();
        let (entries, session) = recorded.unwrap();
        assert_eq!(entries[0].again(None).unwrap().unwrap().unwrap(), events, "decided again");
        there.journal = entries.iter().map(|entry| entry.encode().unwrap()).collect();
        there.session = session;
        Ok(there)
    }

    pub fn founded(founding: Founding) -> Self {
        let now = Timestamp::parse("2026-11-16T09:00:00Z").unwrap();
        let fresh = Fresh { handle: handle(0), run: RunId::new(uuid(2, 0)) };
        let facts = Facts::new(now, ann(), fresh);
        let events = Session::create(&facts, founding).unwrap();
        let decision = Decision::new(Given::Creation, facts);
        let recorded = Entry::record_creation(&decision, events.clone()).unwrap();
        let (entries, session) = recorded.unwrap();
        assert_eq!(entries[0].again(None).unwrap().unwrap().unwrap(), events, "decided again");
        let journal = entries.iter().map(|entry| entry.encode().unwrap()).collect();
        Self {
            session,
            journal,
            now,
            arrivals: Vec::new(),
            gates: Vec::new(),
            answers: BTreeMap::new(),
            messages: BTreeSet::new(),
            spans: SpanLinks::default(),
            made: 0,
        }
    }

    /// Acknowledges an event, without delivering it.
    pub fn arrive(&mut self, name: &str, subject: Option<&str>, to: Option<SessionId>) -> Arrival {
        let seq = Seq(self.arrivals.len() as u64 + 1);
        let arrival = Arrival {
            seq,
            id: format!("e{}", seq.0),
            source: "test".to_owned(),
            name: name.to_owned(),
            subject: subject.map(str::to_owned),
            time: self.now,
            session: to,
        };
        self.arrivals.push(arrival.clone());
        arrival
    }

    /// Fills the facts as a store would.
    pub fn facts(&mut self, by: Actor, command: &Command) -> Facts {
        self.made += 1;
        let fresh = Fresh { handle: handle(self.made), run: RunId::new(uuid(2, self.made)) };
        let mut facts = Facts::new(self.now, by, fresh);
        let needs = self.session.needs(command);
        for look_back in &needs.look_backs {
            facts
                .arrivals
                .extend(self.arrivals.iter().find(|arrival| look_back.finds(arrival)).cloned());
        }
        facts.high = Seq(self.arrivals.len() as u64);
        facts.gates = self.gates.clone();
        facts.spans = self.spans.clone();
        facts.answered = needs.key.and_then(|key| self.answers.get(key)).cloned();
        facts.message_seen = needs.message_id.is_some_and(|id| self.messages.contains(id));
        facts
    }

    /// Lets the session decide, keeps what it decided, and checks what must always hold.
    pub fn give(&mut self, by: Actor, command: Command) -> Result<Vec<Event>, Rejected> {
        let facts = self.facts(by, &command);
        let before = self.session.clone();
        let decided = self.session.decide_recorded(&facts, &command)?;
        let events = decided.events.clone();
        if events.is_empty() {
            return Ok(events);
        }
        let decision = Decision::new(Given::Command(command), facts);
        let (entries, after) = Entry::record(&decision, decided).unwrap();
        self.session = after;
        for event in &events {
            self.index(event);
        }
        self.check(&before, &entries, &events);
        self.journal.extend(entries.iter().map(|entry| entry.encode().unwrap()));
        Ok(events)
    }

    /// What a store indexes beside the journal.
    fn index(&mut self, event: &Event) {
        if let Some((key, answer)) = event.answer() {
            let answered = Answered { body: key.body, run: key.run, answer };
            self.answers.insert(key.key.clone(), answered);
        }
        self.messages.extend(event.message_id().map(str::to_owned));
    }

    fn check(&self, before: &Session, entries: &[Entry], events: &[Event]) {
        let mut folded = before.clone();
        for (entry, event) in entries.iter().zip(events) {
            let bytes = entry.encode().unwrap();
            let read = Entry::decode(&bytes).unwrap();
            assert_eq!(read.event, *event, "an event survives its encoding");
            assert_eq!(read.encode().unwrap(), bytes, "an entry has one encoding");
            folded.evolve(&read.event);
            assert_eq!(read.revision, folded.revision);
            if let Some(state) = read.state().unwrap() {
                assert_eq!(state, folded, "the state a suspension carries is the fold");
            }
        }
        assert_eq!(folded, self.session, "the fold is the live state");
        let again = entries[0].again(Some(before)).unwrap().unwrap();
        assert_eq!(again.unwrap(), events, "decided again");
        let state = serde_json::to_vec(&self.session).unwrap();
        assert_eq!(serde_json::from_slice::<Session>(&state).unwrap(), self.session);
        assert!(state.len() <= adjourn_core::limits::STATE_BYTES);
        invariants(&self.session);
    }

    /// Folds the whole journal from its bytes, and from its last carried state.
    pub fn refold(&self) -> (Session, Session) {
        let entries: Vec<_> =
            self.journal.iter().map(|bytes| Entry::decode(bytes).unwrap()).collect();
        let whole = Session::fold(entries.iter().map(|entry| &entry.event)).unwrap();
        let mut short = None;
        for entry in &entries {
            if let Some(state) = entry.state().unwrap() {
                short = Some(state);
            } else if let Some(session) = &mut short {
                session.evolve(&entry.event);
            }
        }
        (whole.clone(), short.unwrap_or(whole))
    }

    pub fn events(&self) -> Vec<Event> {
        self.journal.iter().map(|bytes| Entry::decode(bytes).unwrap().event).collect()
    }
}

/// What holds in every state that can be reached.
pub fn invariants(session: &Session) {
    use adjourn_core::ledger::CallState;
    use adjourn_core::session::Stopping;

    match &session.state {
        State::Quiescing(quiescing) => {
            if let Stopping::Parking(parking) = &quiescing.stopping {
                assert!(
                    parking.client.is_some() || parking.agent.is_some(),
                    "something is pending"
                );
            }
        }
        State::Suspended(_) | State::Idle | State::Ready(_) => {
            assert!(!session.in_flight(), "nothing is in flight unless somebody owns the session");
            assert!(!session.calls.any(CallState::Dispatched));
        }
        State::Running(_) | State::Ended(_) => {}
    }
    // Beside an await or cancel that waits for calls in flight, the step is over and others remain.
    let parks_itself = match &session.state {
        State::Quiescing(quiescing) => match &quiescing.stopping {
            Stopping::Parking(parking) => parking.agent.is_some() && !parking.from_worker,
            Stopping::Canceling(_) => true,
        },
        _ => false,
    };
    let between_steps = session.run().is_some_and(|run| run.step.is_none());
    if session.owner().is_some() && between_steps && !parks_itself {
        assert!(!session.calls.any(CallState::Asked), "a call belongs to a step");
    }
    if let State::Suspended(suspended) = &session.state {
        assert!(!session.calls.any(CallState::Asked), "a parked session's calls are settled");
        assert!(suspended.fired.is_none() || suspended.hold.is_some(), "only a hold delays");
    } else {
        assert!(!session.calls.any(CallState::Deferred), "only a suspension defers");
    }
    let mut handles: Vec<_> = session.past.iter().map(|past| past.handle).collect();
    handles.sort();
    handles.dedup();
    assert_eq!(handles.len(), session.past.len(), "a suspension ends once");
}
