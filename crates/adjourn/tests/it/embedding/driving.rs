//! Who drives the sessions of a program, and what becomes of drivers and of what dead hosts have left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjourn::core::event::What;
use adjourn::core::session::Phase;
use adjourn::driver::{BoxFuture, BoxStream, Driver, Part, Step};
use adjourn::{Adjourn, TakenOver};
use serde_json::json;

use super::{LONG_CALL, Patient, until};
use crate::fixture::Fixture;

#[tokio::test]
async fn a_prompt_is_claimed_with_the_commit_that_takes_it() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
    let session = adjourn.create("patient").await.unwrap();
    let prompted = session.prompt("wait").await.unwrap();
    assert_eq!(prompted.commit.session.run().unwrap().id, prompted.run);
    let journal = fixture.happened(session.id());
    assert_eq!(journal[..3], ["session_created", "run_started", "claimed"]);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_session_is_driven_by_whichever_host_knows_its_driver() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.adjourn(), fixture.another_adjourn());
    let stranger = one.host().driver("stranger", |_| Patient).start().await.unwrap();
    let created = one.create("patient").config(json!({ "sugar": 2 })).prompt("wait");
    let session = created.await.unwrap();
    assert_eq!(session.load().await.unwrap().driver.name.as_deref(), Some("patient"));
    let seen = Arc::new(std::sync::Mutex::new(None));
    let made = Arc::clone(&seen);
    let make = move |config: &serde_json::Value| {
        *made.lock().unwrap() = Some(config.clone());
        Patient
    };
    let host = two.host().driver("patient", make).start().await.unwrap();
    let parked = until(&session, "suspended").await;
    assert_eq!(parked.phase(), Phase::Suspended);
    assert_eq!(*seen.lock().unwrap(), Some(json!({ "sugar": 2 })));
    host.stop().await.unwrap();
    stranger.stop().await.unwrap();
}

#[tokio::test]
async fn two_hosts_of_one_program_each_take_what_they_know() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let patient = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
    let scripted = adjourn.host().scripts().start().await.unwrap();
    let one = adjourn.create("patient").prompt("wait").await.unwrap();
    let spec = adjourn::core::driver::DriverSpec::script(r#"{"steps": [{"say": "hi"}]}"#);
    let two = adjourn.create_with(spec).prompt("talk").await.unwrap();
    until(&one, "suspended").await;
    two.finished().await.unwrap();
    let claims = |id| {
        let entries = adjourn_store::Store::journal(&fixture.store, id, 1, 100).unwrap();
        entries.into_iter().find_map(|entry| match entry.event.what {
            What::Claimed(claimed) => Some(claimed.host),
            _ => None,
        })
    };
    assert_eq!(claims(one.id()), Some(patient.id()));
    assert_eq!(claims(two.id()), Some(scripted.id()));
    patient.stop().await.unwrap();
    scripted.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_dead_host_has_left_is_taken_over_by_those_who_wait() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let host = adjourn.host().scripts().start().await.unwrap();
    session.prompt("build").await.unwrap();
    until(&session, "calls_dispatched").await;
    host.kill().await;
    let other = fixture.another_adjourn();
    let suspension = other.session(session.id()).suspend().await.unwrap();
    assert_eq!(fixture.session(session.id()).suspended().unwrap().shown(), &suspension.parked);
    assert!(fixture.happened(session.id()).contains(&"host_lost"));
}

#[tokio::test]
async fn what_a_verb_returns_is_what_its_own_commit_did_also_with_a_dead_host() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    for verb in ["suspend", "cancel"] {
        let session = adjourn.session(fixture.create(LONG_CALL));
        let host = adjourn.host().scripts().start().await.unwrap();
        session.prompt("build").await.unwrap();
        until(&session, "calls_dispatched").await;
        host.kill().await;
        let other = fixture.another_adjourn().session(session.id());
        let commit = match verb {
            "suspend" => other.suspend().accepted().await.unwrap().commit,
            _ => other.cancel().await.unwrap().commit,
        };
        let last = commit.session.revision;
        let first = last + 1 - commit.events.len() as u64;
        let journal = adjourn_store::Store::journal(&fixture.store, session.id(), first, 100);
        let journal: Vec<_> = journal.unwrap().into_iter().map(|entry| entry.event).collect();
        assert_eq!(journal, *commit.events, "{verb}");
        let phase = if verb == "suspend" { Phase::Suspended } else { Phase::Idle };
        assert_eq!(commit.session.phase(), phase, "{verb}");
        assert!(fixture.happened(session.id()).contains(&"host_lost"));
    }
}

/// What hosts have done with drivers.
#[derive(Clone, Default)]
struct Counts {
    made: Arc<AtomicUsize>,
    killed: Arc<AtomicUsize>,
}

/// A patient driver that is counted, and kept while its session is parked.
struct Counted {
    counts: Counts,
    warm: bool,
}

impl Driver for Counted {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        Patient.step(step)
    }

    fn keep(&mut self) -> bool {
        self.warm
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        self.counts.killed.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {})
    }
}

impl Counts {
    fn host(&self, adjourn: &Adjourn, warm: bool) -> adjourn::HostBuilder {
        let counts = self.clone();
        adjourn.host().driver("patient", move |_| {
            counts.made.fetch_add(1, Ordering::Relaxed);
            Counted { counts: counts.clone(), warm }
        })
    }

    fn of(&self) -> (usize, usize) {
        (self.made.load(Ordering::Relaxed), self.killed.load(Ordering::Relaxed))
    }
}

/// A driver is made when a session is claimed, once, however many hosts could have it.
#[tokio::test]
async fn no_driver_is_made_that_is_not_used() {
    let fixture = Fixture::new();
    let (adjourn, counts) = (fixture.adjourn(), Counts::default());
    let hosts = [
        counts.host(&adjourn, false).start().await.unwrap(),
        counts.host(&adjourn, false).start().await.unwrap(),
    ];
    let session = adjourn.create("patient").prompt("wait").await.unwrap();
    until(&session, "suspended").await;
    assert_eq!(counts.made.load(Ordering::Relaxed), 1);
    session.resume().await.unwrap();
    session.finished().await.unwrap();
    session.close().await.unwrap();
    for host in hosts {
        host.stop().await.unwrap();
    }
    assert_eq!(counts.of(), (2, 2), "each that was made is ended");
}

/// Where a driver is kept warm, the one that was made in case it is of no use is ended as any other.
#[tokio::test]
async fn a_driver_that_a_kept_one_replaces_is_ended() {
    let fixture = Fixture::new();
    let (adjourn, counts) = (fixture.adjourn(), Counts::default());
    let host = counts.host(&adjourn, true).start().await.unwrap();
    let session = adjourn.create("patient").prompt("wait").await.unwrap();
    until(&session, "suspended").await;
    session.resume().await.unwrap();
    session.finished().await.unwrap();
    host.stop().await.unwrap();
    let (made, killed) = counts.of();
    assert_eq!((made, killed), (2, 2));
}

#[tokio::test]
async fn a_session_is_taken_from_its_host_and_from_nobody() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let TakenOver::Nobody(idle) = session.take_over().await.unwrap() else { panic!("it is idle") };
    assert_eq!(idle.phase(), Phase::Idle);
    let host = adjourn.host().scripts().start().await.unwrap();
    session.prompt("build").await.unwrap();
    until(&session, "calls_dispatched").await;
    let TakenOver::From { host: from, .. } = session.take_over().await.unwrap() else {
        panic!("a host has it")
    };
    assert_eq!(from, host.id());
    host.kill().await;
}
