//! Who runs what becomes ready: the process that took the prompt, or the one that shows the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use adjourn::clock::Clock;
use adjourn::script::Scripted;
use adjourn::{Claims, Config, Error};
use adjourn_core::Rejected;
use adjourn_core::command::Suspend;
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::What;
use adjourn_core::facts::Gate;
use adjourn_core::id::{GateId, HostId, SessionId};
use adjourn_core::ledger::CallState;
use adjourn_driver::{Driver, Drivers};
use adjourn_store::rows::{GateRow, Scope, SessionNo};
use adjourn_store::{CommandError, Environment as _, Store as _};

use crate::fixture::{Fixture, Working, ann};

const SAYS: &str = r#"{"steps": [{"say": "done"}]}"#;
/// The clock stands still: it goes on until that is moved.
const BUILDS: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 1000}}]}"#;
const WAITS: &str = r#"{"steps": [
    {"await": {"reason": "x", "conditions": {"onEvent": "go"}}}, {"say": "done"}]}"#;

/// Returns the hosts that claimed a session, in order.
fn claims(fixture: &Fixture, id: SessionId) -> Vec<HostId> {
    let entries = fixture.store.journal(id, 1, 1000).unwrap();
    let claims = entries.into_iter().filter_map(|entry| match entry.event.what {
        What::Claimed(claimed) => Some(claimed.host),
        _ => None,
    });
    claims.collect()
}

fn owner(fixture: &Fixture, id: SessionId) -> Option<HostId> {
    fixture.session(id).owner().map(|owner| owner.host)
}

/// Starts a host that drives one session at a time.
async fn narrow(fixture: &Fixture, claims: Claims) -> Working {
    let clock: Arc<dyn Clock> = Arc::new(fixture.clock.clone());
    let config = Config { max_running: 1, claims, ..Config::default() };
    fixture.host_as(Arc::new(Scripted::new(clock)), config).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_is_claimed_in_the_commit_that_takes_it() {
    let fixture = Fixture::new();
    let hosts = [fixture.host().await, fixture.host().await, fixture.host().await];
    for host in &hosts {
        let id = fixture.create(SAYS);
        for turn in 1..=20 {
            let prompted = host.adjourn.session(id).prompt("go").await.unwrap();
            let state = prompted.commit.session.state.name();
            assert_eq!(state, "ready", "what the prompt itself has done");
            fixture.until_state(id, "idle").await;
            assert_eq!(claims(&fixture, id), vec![host.id; turn]);
        }
        let happened = fixture.happened(id);
        let starts = happened.iter().enumerate().filter(|(_, name)| **name == "run_started");
        for (start, _) in starts {
            assert_eq!(happened[start + 1], "claimed");
        }
    }
    for host in hosts {
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_is_claimed_in_the_commit_that_takes_it() {
    let fixture = Fixture::new();
    let (host, other) = (fixture.host().await, fixture.host().await);
    let id = fixture.create(BUILDS);
    fixture.suspend(id, Suspend::default());
    host.adjourn.session(id).resume().input("go").await.unwrap();
    assert_eq!(owner(&fixture, id), Some(host.id));
    fixture.pass_until(id, "idle").await;
    for host in [host, other] {
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_and_its_claim_are_one_commit() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(BUILDS);
    let before = fixture.store.metrics().commits;
    host.adjourn.session(id).prompt("go").await.unwrap();
    fixture.until_in_flight(id, "build").await;
    // The prompt with its claim and the step, what the model asks for, and the start of the call.
    assert_eq!(fixture.store.metrics().commits - before, 3);
    fixture.pass_until(id, "idle").await;
    host.stop().await;
}

/// Scripts, and how often one was to be followed.
struct Counted(Scripted, AtomicUsize);

impl Drivers for Counted {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.make(spec)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_that_is_refused_prepares_nothing() {
    let fixture = Fixture::new();
    let clock: Arc<dyn Clock> = Arc::new(fixture.clock.clone());
    let drivers = Arc::new(Counted(Scripted::new(clock), AtomicUsize::new(0)));
    let host = fixture.host_with(Arc::clone(&drivers) as _).await;
    let id = fixture.create(BUILDS);
    host.adjourn.session(id).prompt("go").await.unwrap();
    fixture.until_in_flight(id, "build").await;
    let refused = host.adjourn.session(id).prompt("and?").await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Rejected::Busy { .. })), "{refused}");
    assert_eq!(drivers.1.load(Ordering::Relaxed), 1);
    fixture.pass_until(id, "idle").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_without_room_takes_the_prompt_and_leaves_the_session_to_others() {
    let fixture = Fixture::new();
    let host = narrow(&fixture, Claims::All).await;
    let (busy, id) = (fixture.create(BUILDS), fixture.create(SAYS));
    host.adjourn.session(busy).prompt("go").await.unwrap();
    fixture.until_in_flight(busy, "build").await;
    host.adjourn.session(id).prompt("go").await.unwrap();
    assert_eq!(fixture.session(id).state.name(), "ready");
    let other = fixture.host().await;
    fixture.until_state(id, "idle").await;
    assert_eq!(claims(&fixture, id), [other.id]);
    fixture.pass_until(busy, "idle").await;
    for host in [host, other] {
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_a_gate_refuses_leaves_the_prompt_standing() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(SAYS);
    let gate = GateRow {
        gate: Gate { id: GateId::new(fixture.clock.uuid()), by: ann(), reason: None },
        scope: Scope::default(),
        at: fixture.clock.now(),
    };
    let laid = gate.clone();
    host.adjourn.transact(move |tx| tx.lay_gate(&laid)).await.unwrap();
    host.adjourn.session(id).prompt("go").await.unwrap();
    assert_eq!(fixture.happened(id).last(), Some(&"run_started"));
    host.adjourn.transact(move |tx| tx.release_gate(gate.gate.id)).await.unwrap();
    fixture.until_state(id, "idle").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_takes_no_prompt() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let (busy, id) = (fixture.create(BUILDS), fixture.create(SAYS));
    host.adjourn.session(busy).prompt("go").await.unwrap();
    fixture.until_in_flight(busy, "build").await;
    let (adjourn, claimant) = (host.adjourn.clone(), host.claimant.clone());
    let stopping = tokio::spawn(host.stop());
    // What it runs is not given back before its call returns.
    let start = Instant::now();
    while claimant.has_room() {
        assert!(start.elapsed() < Duration::from_secs(20), "it never stops");
        tokio::task::yield_now().await;
    }
    adjourn.session(id).prompt("go").await.unwrap();
    assert_eq!(fixture.happened(id).last(), Some(&"run_started"));
    fixture.pass_until(busy, "ready").await;
    stopping.await.unwrap();
    adjourn.session(busy).cancel().await.unwrap();
    let other = fixture.host().await;
    fixture.until_state(id, "idle").await;
    assert_eq!(claims(&fixture, id), [other.id]);
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_for_one_session_claims_no_other() {
    let fixture = Fixture::new();
    let (own, id) = (fixture.create(BUILDS), fixture.create(SAYS));
    let host = fixture.host_for(own).await;
    host.adjourn.session(id).prompt("go").await.unwrap();
    assert_eq!(fixture.session(id).state.name(), "ready");
    host.adjourn.session(own).prompt("go").await.unwrap();
    assert_eq!(owner(&fixture, own), Some(host.id));
    fixture.pass_until(own, "idle").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_wakes_goes_to_the_process_that_shows_it() {
    let fixture = Fixture::new();
    let hosts = [fixture.host().await, fixture.host().await, fixture.host().await];
    let shows = &hosts[1];
    let ids: Vec<_> = (0..10).map(|_| fixture.create(WAITS)).collect();
    let showing: Vec<_> = ids.iter().map(|id| shows.claimant.show(*id)).collect();
    for id in &ids {
        fixture.prompt(*id, "go");
    }
    for id in &ids {
        fixture.until_state(*id, "suspended").await;
    }
    fixture.event("go");
    for id in &ids {
        fixture.until_state(*id, "idle").await;
        assert_eq!(claims(&fixture, *id), [shows.id; 2], "it was ready twice");
    }
    drop(showing);
    for host in hosts {
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_process_that_shows_it_does_not_take_is_taken_by_another() {
    let fixture = Fixture::new();
    let shows = narrow(&fixture, Claims::All).await;
    let (busy, id) = (fixture.create(BUILDS), fixture.create(SAYS));
    shows.adjourn.session(busy).prompt("go").await.unwrap();
    fixture.until_in_flight(busy, "build").await;
    let _showing = shows.claimant.show(id);
    let other = fixture.host().await;
    let start = Instant::now();
    fixture.prompt(id, "go");
    fixture.until_state(id, "idle").await;
    assert_eq!(claims(&fixture, id), [other.id]);
    assert!(start.elapsed() >= Duration::from_millis(100), "it had no time: {:?}", start.elapsed());

    // As soon as it is dead, it is not waited for.
    shows.kill().await;
    assert_eq!(fixture.hosts().shown_by(other.id).len(), 0);
    fixture.prompt(id, "go");
    fixture.until_state(id, "idle").await;
    assert_eq!(claims(&fixture, id), [other.id; 2]);
    fixture.pass_until(busy, "suspended").await;
    other.stop().await;
}

/// A gate that is there before its panic has come to a session lets no further call of it start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_is_laid_between_two_calls_stops_the_second() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(
        r#"{"runs": [[{"sequence": [{"name": "a", "ms": 1000}, {"name": "b"}]}, {"say": "done"}]]}"#,
    );
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, "a").await;
    let gate = GateRow {
        gate: Gate { id: GateId::new(fixture.clock.uuid()), by: ann(), reason: None },
        scope: Scope::default(),
        at: fixture.clock.now(),
    };
    let (laid, gate) = (gate.clone(), gate.gate.id);
    host.adjourn.transact(move |tx| tx.lay_gate(&laid)).await.unwrap();
    let session = fixture.pass_until(id, "suspended").await;
    assert_eq!(fixture.dispatched(id), 1);
    assert_eq!(session.calls.at(CallState::Deferred).len(), 1, "the run did not fail over it");
    let released = host.adjourn.transact(move |tx| -> Result<_, CommandError> {
        tx.release_gate(gate)?;
        tx.let_go(gate, ann(), SessionNo(0), 10)
    });
    released.await.unwrap();
    let session = fixture.pass_until(id, "idle").await;
    assert_eq!(session.last_run.as_ref().unwrap().outcome.as_str(), "completed");
    host.stop().await;
}
