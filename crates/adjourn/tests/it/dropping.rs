//! Futures of the library that are dropped: each does what its documentation says.

mod commits;
mod hosts;
mod maintenance;

use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adjourn::core::id::RequestId;
use adjourn::core::session::{Outcome, Phase};
use adjourn::{Adjourn, Event, SessionRef, StoreError};
use adjourn_store::{Store as _, Transaction};

use crate::fixture::Fixture;

const LONG_CALL: &str = r#"{"steps": [{"tools": [{"name": "build", "ms": 60000}]}]}"#;
const SHORT: &str = r#"{"steps": [{"say": "done"}]}"#;

/// Polls a future once, and drops it. What it asked for may be done by then, if its thread was held
/// up: then it has taken its course, too.
pub(crate) fn touch<F: Future>(future: F) {
    let mut future = pin!(future);
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

/// Waits until something has happened to a session, and returns all that has by then.
pub(crate) async fn until(session: &SessionRef, what: &str) -> Vec<&'static str> {
    let mut moments = session.watch().await.unwrap();
    let mut happened = Vec::new();
    while !happened.ends_with(&[what]) {
        happened.push(moments.next().await.unwrap().unwrap().event.what.name());
    }
    happened
}

/// Waits behind all that is queued.
async fn behind(adjourn: &Adjourn) {
    adjourn.transact(|_| Ok::<_, StoreError>(())).await.unwrap();
}

/// Returns a session whose long call is in flight.
async fn at_work(fixture: &Fixture, adjourn: &Adjourn) -> SessionRef {
    let session = adjourn.session(fixture.create(LONG_CALL));
    session.prompt("build").await.unwrap();
    until(&session, "calls_dispatched").await;
    session
}

#[tokio::test]
async fn what_is_never_polled_does_nothing() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(SHORT));
    let entries = fixture.store.size().unwrap().entries;
    drop(adjourn.create("patient").prompt("wait").into_future());
    drop(adjourn.publish(Event::new("ci.passed")));
    drop(session.prompt("go").into_future());
    drop(session.suspend().into_future());
    drop(session.suspend().accepted());
    drop(session.await_resumption("ci").into_future());
    drop(session.await_resumption("ci").accepted());
    drop(session.resume().into_future());
    drop(session.cancel().into_future());
    drop(session.close().into_future());
    drop(session.remove().into_future());
    drop(session.take_over().into_future());
    drop(session.set_option("mode", "ask").into_future());
    drop(session.export().into_future());
    drop(session.withdraw(RequestId::new(adjourn.clock().uuid())).into_future());
    drop(adjourn.publish_all([Event::new("ci.passed"), Event::new("ci.failed")]));
    drop(Adjourn::open(fixture.store.path().with_extension("other")));
    drop(session.finished());
    drop(session.watch().into_future());
    drop(adjourn.host().scripts().start());
    behind(&adjourn).await;
    let size = fixture.store.size().unwrap();
    assert_eq!((size.entries, size.events, size.sessions), (entries, 0, 1));
    assert_eq!(fixture.store.hosts().unwrap(), []);
    assert!(!fixture.store.path().with_extension("other").exists());
}

#[tokio::test]
async fn a_withdraw_that_is_dropped_takes_its_course() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = at_work(&fixture, &adjourn).await;
    let accepted = session.suspend().accepted().await.unwrap();
    touch(session.withdraw(accepted.request).into_future());
    until(&session, "suspend_withdrawn").await;
    assert_eq!(session.load().await.unwrap().phase(), Phase::Running);
    host.kill().await;
}

#[tokio::test]
async fn several_events_whose_publishing_is_dropped_are_stored_together() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    touch(adjourn.publish_all(["a", "b"].map(|name| Event::new(name).id(name))));
    // The same again, behind them: both are known.
    let again = adjourn.publish_all(["a", "b"].map(|name| Event::new(name).id(name)));
    let fresh: Vec<_> = again.await.unwrap().iter().map(|published| published.fresh).collect();
    assert_eq!(fresh, [false, false]);
}

#[tokio::test]
async fn a_pause_that_is_accepted_stays_pending_when_no_one_waits_for_it() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = at_work(&fixture, &adjourn).await;
    let accepted = session.suspend().accepted().await.unwrap();
    let before = session.load().await.unwrap();
    touch(session.in_force(&accepted));
    behind(&adjourn).await;
    let after = session.load().await.unwrap();
    assert_eq!((after.phase(), after.revision), (Phase::Requested, before.revision));
    host.kill().await;
}

#[tokio::test]
async fn a_store_whose_opening_is_dropped_can_be_opened_and_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    touch(Adjourn::open(&path));
    let adjourn = Adjourn::open(&path).await.unwrap();
    assert_eq!(adjourn.size().await.unwrap().entries, 0);
    // Nothing holds it: it can be replaced when the last one has closed it.
    drop(adjourn);
    let backup = directory.path().join("backup.db");
    Adjourn::open(&path).await.unwrap().backup(&backup).await.unwrap();
    adjourn::restore(&backup, &path).await.unwrap();
}

#[tokio::test]
async fn a_prompt_that_is_dropped_is_taken_and_driven() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    // Each time it would be claimed, and left to nobody, if the claim went with the future.
    for _ in 0..20 {
        let session = adjourn.session(fixture.create(SHORT));
        touch(session.prompt("go").into_future());
        assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
        let happened = fixture.happened(session.id());
        assert!(!happened.contains(&"host_lost"), "{happened:?}");
    }
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_session_whose_creation_is_dropped_is_there_and_driven() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let id = adjourn::core::id::SessionId::new(adjourn.clock().uuid());
    let spec = adjourn::core::driver::DriverSpec::script(SHORT);
    touch(adjourn.create_with(spec).id(id).prompt("go").into_future());
    fixture.store.transact(|_| Ok::<_, adjourn::StoreError>(())).await.unwrap();
    let run = adjourn.session(id).finished().await.unwrap();
    assert_eq!(run.end.outcome, Outcome::Completed);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn commands_that_are_dropped_take_their_course() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();

    let session = at_work(&fixture, &adjourn).await;
    touch(session.take_over().into_future());
    until(&session, "host_lost").await;
    touch(session.cancel().into_future());
    until(&session, "run_ended").await;
    touch(session.close().into_future());
    until(&session, "session_ended").await;

    let session = at_work(&fixture, &adjourn).await;
    touch(session.suspend().accepted());
    until(&session, "suspend_requested").await;
    touch(session.resume().into_future());
    until(&session, "suspend_withdrawn").await;
    touch(session.remove().even_at_work().into_future());
    until(&session, "session_ended").await;

    let spec = adjourn::core::driver::DriverSpec::script(SHORT);
    let session = adjourn.create_with(spec).prompt("go").await.unwrap();
    session.finished().await.unwrap();
    session.suspend().on_event("ci.passed").await.unwrap();
    touch(adjourn.publish(Event::new("ci.passed")));
    until(&session, "resumed").await;
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_pending_suspend_that_is_dropped_is_withdrawn() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = at_work(&fixture, &adjourn).await;

    // Dropped when it is accepted.
    let suspend = session.suspend().into_future();
    tokio::select! {
        _ = suspend => panic!("the call is in flight"),
        _ = until(&session, "suspend_requested") => {}
    }
    let happened = until(&session, "suspend_withdrawn").await;
    assert!(happened.ends_with(&["suspend_requested", "suspend_withdrawn"]), "{happened:?}");
    assert_eq!(session.load().await.unwrap().phase(), Phase::Running);

    // Dropped before it is known whether it is.
    let before = session.load().await.unwrap();
    touch(session.suspend().into_future());
    let mut moments = session.watch().after(&before).await.unwrap();
    for what in ["suspend_requested", "suspend_withdrawn"] {
        assert_eq!(moments.next().await.unwrap().unwrap().event.what.name(), what);
    }

    // The session goes on: with it, its call.
    fixture.clock.until_waited_for(1).await;
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_suspend_that_is_dropped_before_it_is_queued_is_withdrawn_all_the_same() {
    let fixture = Fixture::new();
    let elsewhere = fixture.another_adjourn();
    let host = elsewhere.host().scripts().start().await.unwrap();
    let session = at_work(&fixture, &elsewhere).await;
    let adjourn = fixture.adjourn();
    // The writer is busy, and its queue is full.
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let idle = |_: &mut Transaction<'_>| Ok::<_, adjourn::StoreError>(());
    let busy = fixture.store.transact(move |_| {
        let _ = wait.recv();
        Ok::<_, adjourn::StoreError>(())
    });
    let queued: Vec<_> = (0..1100).map(|_| fixture.store.transact(idle)).collect();
    touch(adjourn.session(session.id()).suspend().into_future());
    drop(go_on);
    busy.await.unwrap();
    for queued in queued {
        queued.await.unwrap();
    }
    let happened = until(&session, "suspend_withdrawn").await;
    assert!(happened.contains(&"suspend_requested"));
    assert_eq!(session.load().await.unwrap().phase(), Phase::Running);
    host.kill().await;
}

#[test]
fn a_command_that_is_dropped_on_another_thread_takes_its_course() {
    let fixture = Fixture::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let adjourn = runtime.block_on(async { fixture.adjourn() });
    let host = runtime.block_on(adjourn.host().scripts().start()).unwrap();
    let session = adjourn.session(fixture.create(SHORT));
    let mut prompt = session.prompt("go").into_future();
    runtime.block_on(async {
        let polled = Pin::new(&mut prompt).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    });
    // Here is no runtime.
    drop(prompt);
    let run = runtime.block_on(session.finished()).unwrap();
    assert_eq!(run.end.outcome, Outcome::Completed);
    runtime.block_on(host.stop()).unwrap();
}

#[tokio::test]
#[should_panic(expected = "polled after it was done")]
async fn a_command_that_is_polled_after_its_answer_panics_and_does_not_hang() {
    let fixture = Fixture::new();
    let mut created = fixture.adjourn().create("patient").into_future();
    (&mut created).await.unwrap();
    let _ = created.await;
}

#[tokio::test]
async fn handles_can_be_shown_in_messages() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.create("patient").label("secret", "plan").await.unwrap();
    let host = adjourn.host().start().await.unwrap();
    let shown = format!("{adjourn:?} {session:?} {:?} {host:?}", session.watch().await.unwrap());
    assert!(shown.contains(&session.id().to_string()), "{shown}");
    assert!(!shown.contains("plan"), "{shown}");
    let missing = adjourn.session(adjourn::core::id::SessionId::new(adjourn.clock().uuid()));
    let error = missing.watch().await.unwrap_err();
    assert_eq!(error.hint(), None);
    let defect = adjourn::Error::Unexpected("a prompt began no run".to_owned());
    assert!(!defect.hint().unwrap().contains("backup"));
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_suspend_of_two_is_pending_until_both_have_dropped_it() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = at_work(&fixture, &adjourn).await;
    let other = fixture.another_adjourn().session(session.id());
    let accepted = other.suspend().accepted().await.unwrap();
    assert_eq!(accepted.suspension, None);
    let suspend = session.suspend().into_future();
    tokio::select! {
        _ = suspend => panic!("the call is in flight"),
        _ = until(&session, "suspend_joined") => {}
    }
    until(&session, "requester_left").await;
    assert_eq!(session.load().await.unwrap().phase(), Phase::Requested);
    assert!(!other.withdraw(accepted.request).await.unwrap().still_pending);
    assert_eq!(session.load().await.unwrap().phase(), Phase::Running);
    host.kill().await;
}

#[tokio::test]
async fn a_suspend_that_took_effect_before_it_was_dropped_stays() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(SHORT));
    // It rests: the commit that accepts it brings it into force.
    touch(session.suspend().into_future());
    until(&session, "suspended").await;
    behind(&adjourn).await;
    assert_eq!(fixture.happened(session.id()), ["session_created", "suspended"]);
}

#[tokio::test]
async fn those_who_only_wait_change_nothing_when_they_go() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(SHORT));
    let mut moments = session.watch().await.unwrap();
    assert_eq!(moments.next().await.unwrap().unwrap().event.what.name(), "session_created");
    touch(moments.next());
    touch(session.finished());
    session.prompt("go").await.unwrap();
    let next = moments.next().await.unwrap().unwrap();
    assert_eq!(next.event.what.name(), "run_started", "what was dropped took nothing with it");
    assert_eq!(fixture.happened(session.id()), ["session_created", "run_started"]);
}

/// A long journal is found by another thread, which goes on while its caller does something else.
#[tokio::test]
async fn what_happens_next_is_found_although_each_look_for_it_is_short() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(SHORT));
    for _ in 0..600 {
        session.suspend().await.unwrap();
        session.resume().await.unwrap();
    }
    let mut moments = session.watch().await.unwrap();
    let start = std::time::Instant::now();
    let first = loop {
        let mut next = pin!(moments.next());
        if let Poll::Ready(first) = next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            break first;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "nothing is ever told");
        tokio::task::yield_now().await;
    };
    assert_eq!(first.unwrap().unwrap().event.what.name(), "session_created");
}
