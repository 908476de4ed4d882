//! Workers outside of a host that park a session for its agent: they hold no claim.

use std::future::IntoFuture as _;
use std::time::Duration;

use adjourn::core::Rejected;
use adjourn::core::session::{Initiator, Outcome, Phase};
use adjourn::{Error, Event, NotSuspended};

use crate::fixture::Fixture;

const TWO_CALLS: &str = r#"{"steps": [
    {"sequence": [{"name": "build", "ms": 60000}, {"name": "lint"}]}, {"say": "merged"}]}"#;
const LAST_CALL: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 60000}}]}"#;

#[tokio::test]
async fn it_takes_effect_when_the_step_is_over_and_an_event_wakes_it() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = adjourn.session(fixture.create(TWO_CALLS));
    session.prompt("build").await.unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    // Another process, which has no host.
    let worker = fixture.another_adjourn().session(session.id());
    let wait = worker.await_resumption("ci").on_event("ci.passed").summary("ETA 3m");
    let accepted = wait.accepted().await.unwrap();
    assert_eq!(accepted.suspension, None, "a call is in flight");
    assert_eq!(session.load().await.unwrap().phase(), Phase::Requested);
    // It tries again, and finds what it has asked for.
    let again = worker.await_resumption("ci").on_event("ci.passed").accepted().await.unwrap();
    assert_eq!((again.handle, again.commit.events.len()), (accepted.handle, 0));
    let parked = fixture.pass_until(session.id(), "suspended").await;
    let suspension = worker.in_force(&accepted).await.unwrap();
    let pause = &parked.suspended().unwrap().park.pause;
    assert_eq!((pause.handle, pause.initiator), (suspension.handle, Initiator::Agent));
    assert_eq!(pause.summary.as_deref(), Some("ETA 3m"));
    assert_eq!(fixture.dispatched(session.id()), 2, "calls of the step run to its end");
    adjourn.publish(Event::new("ci.passed")).await.unwrap();
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_run_that_ends_with_the_step_ends_it() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = adjourn.session(fixture.create(LAST_CALL));
    let prompted = session.prompt("build").await.unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    let accepted = session.await_resumption("ci").accepted().await.unwrap();
    fixture.pass_until(session.id(), "idle").await;
    let error = session.in_force(&accepted).await.unwrap_err();
    assert!(matches!(error, Error::NotSuspended { why: NotSuspended::Overtaken, .. }), "{error}");
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    // One that comes behind the end parks nothing else.
    let late = session.await_resumption("ci").of_run(prompted.run).await.unwrap_err();
    let refused = Rejected::NotSuspendable { phase: Phase::Idle };
    assert!(matches!(late, Error::Refused(why) if why == refused));
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_cancel_that_comes_first_ends_it() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = adjourn.session(fixture.create(LAST_CALL));
    session.prompt("build").await.unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    let accepted = session.await_resumption("ci").accepted().await.unwrap();
    session.cancel().await.unwrap();
    let error = session.in_force(&accepted).await.unwrap_err();
    assert!(matches!(error, Error::NotSuspended { why: NotSuspended::Canceled(_), .. }), "{error}");
    host.kill().await;
}

#[tokio::test]
async fn it_is_taken_over_from_a_host_that_died() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = adjourn.session(fixture.create(LAST_CALL));
    session.prompt("build").await.unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    let worker = fixture.another_adjourn().session(session.id());
    let accepted = worker.await_resumption("ci").accepted().await.unwrap();
    host.kill().await;
    // No host is left: whoever waits for it finds out.
    let waited = tokio::time::timeout(Duration::from_secs(30), worker.in_force(&accepted)).await;
    assert_eq!(waited.unwrap().unwrap().handle, accepted.handle);
    let session = worker.load().await.unwrap();
    assert_eq!(session.status().unknown_calls, ["build"]);
}

#[tokio::test]
async fn nothing_takes_it_back_when_it_is_dropped() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LAST_CALL));
    session.prompt("build").await.unwrap();
    drop(session.await_resumption("ci").into_future());
    assert_eq!(session.load().await.unwrap().phase(), Phase::Ready, "it was never polled");
    crate::dropping::touch(session.await_resumption("ci").into_future());
    let mut moments = session.watch().await.unwrap();
    while moments.next().await.unwrap().unwrap().event.what.name() != "suspended" {}
}

#[tokio::test]
async fn it_is_asked_for_when_it_is_dropped_before_it_is_accepted() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = adjourn.session(fixture.create(LAST_CALL));
    session.prompt("build").await.unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    crate::dropping::touch(session.await_resumption("ci").accepted());
    crate::dropping::until(&session, "await_requested").await;
    assert_eq!(session.load().await.unwrap().phase(), Phase::Requested);
    host.kill().await;
}
