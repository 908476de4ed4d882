//! A host that is alive and does nothing: what others can do without it, and what they cannot.

use std::time::Duration;

use adjourn::doorbell::Presence;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::{AskCalls, Cancel, Dispatch, Loss, Recover, StartStep, Suspend};
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::ledger::{AskedCall, CallId};
use adjourn_core::{Command, Session};
use adjourn_store::rows::HostRow;
use adjourn_store::{Environment as _, Request, Store as _};

use crate::fixture::Fixture;

/// A host that holds its lock, owns a session, and never does anything for it by itself.
struct Hung<'a> {
    fixture: &'a Fixture,
    id: HostId,
    /// Held while it lives.
    _presence: Presence,
}

impl<'a> Hung<'a> {
    fn new(fixture: &'a Fixture) -> Self {
        let id = HostId::new(fixture.clock.uuid());
        let presence = fixture.hosts().join(id).unwrap();
        let row = HostRow { id, since: fixture.clock.now(), about: "{}".to_owned() };
        fixture.store.transact(move |tx| tx.announce(&row)).wait().unwrap();
        Self { fixture, id, _presence: presence }
    }

    /// Claims a session that has a prompt.
    fn claims(&self) -> SessionId {
        let id = self.fixture.create(r#"{"runs": [[{"say": "done"}]]}"#);
        self.fixture.prompt(id, "go");
        self.commits(id, |_| Command::Claim);
        id
    }

    /// Brings a call of the session in flight.
    fn calls(&self, id: SessionId) {
        let call = CallId("c1".to_owned());
        let asked = AskedCall::new(call.clone(), "deploy");
        self.commits(id, |session| {
            Command::StartStep(StartStep { epoch: session.epoch, entries: Vec::new() })
        });
        self.commits(id, |session| {
            Command::AskCalls(AskCalls {
                epoch: session.epoch,
                calls: vec![asked.clone()],
                ..AskCalls::default()
            })
        });
        self.commits(id, |session| {
            Command::Dispatch(Dispatch {
                epoch: session.epoch,
                calls: vec![call.clone()],
                always: Vec::new(),
            })
        });
    }

    fn commits(&self, id: SessionId, command: impl Fn(&Session) -> Command) {
        let command = command(&self.fixture.session(id));
        let by = Actor::new(Face::Host, "").on(self.id);
        let request = Request::new(id, by, command);
        self.fixture.store.transact(move |tx| tx.command(request)).wait().unwrap();
    }

    fn is_taken_over(&self, id: SessionId) {
        let owner = self.fixture.session(id).owner().unwrap();
        let recover = Recover { host: owner.host, epoch: owner.epoch, how: Loss::Takeover };
        self.fixture.give(id, Command::Recover(recover), Vec::new()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_a_boundary_a_suspend_or_cancel_needs_no_host() {
    let fixture = Fixture::new();
    let hung = Hung::new(&fixture);
    let id = hung.claims();
    fixture.suspend(id, Suspend::default());
    assert_eq!(fixture.session(id).state.name(), "suspended");
    let id = hung.claims();
    fixture.give(id, Command::Cancel(Cancel::default()), Vec::new()).unwrap();
    assert_eq!(fixture.session(id).state.name(), "idle");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_hung_host_keeps_a_suspend_pending_until_a_takeover() {
    let fixture = Fixture::new();
    let hung = Hung::new(&fixture);
    let sessions = [None, Some(1000)].map(|grace_ms| (hung.claims(), grace_ms));
    // Another host is there, and does not touch what belongs to a host that lives.
    let other = fixture.host().await;
    for (id, grace_ms) in sessions {
        hung.calls(id);
        fixture.suspend(id, Suspend { grace_ms, ..Suspend::default() });
        let pending = fixture.session(id);
        assert_eq!(pending.status().in_flight, ["deploy"]);
        // The grace is the owner's: nobody else could end the call.
        for _ in 0..60 {
            fixture.clock.advance(Duration::from_secs(1));
            fixture.ring_hosts();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(fixture.session(id).revision, pending.revision);
        hung.is_taken_over(id);
        let parked = fixture.session(id);
        assert_eq!(parked.state.name(), "suspended");
        assert_eq!(parked.status().unknown_calls, ["deploy"]);
        assert_eq!(parked.status().pause.unwrap().reason, None, "the suspend that was pending");
    }
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hung_host_had_at_a_boundary_goes_on_elsewhere() {
    let fixture = Fixture::new();
    let hung = Hung::new(&fixture);
    let id = hung.claims();
    let other = fixture.host().await;
    hung.is_taken_over(id);
    let done = fixture.until_state(id, "idle").await;
    assert_eq!(done.epoch.0, 2);
    // What the hung host sends when it goes on is too late.
    let late = Command::StartStep(StartStep { epoch: adjourn_core::id::Epoch(1), entries: vec![] });
    assert!(fixture.give(id, late, Vec::new()).is_err());
    other.stop().await;
}
