//! Pauses, resumes and events: what the verbs return.

use std::future::IntoFuture as _;
use std::time::Duration;

use adjourn::core::Rejected;
use adjourn::core::command::{Mode, Reach};
use adjourn::core::facts::Answer;
use adjourn::core::session::{Cause, Outcome, Phase};
use adjourn::{Error, Event, NotSuspended};

use super::{LONG_CALL, until};
use crate::fixture::Fixture;

#[tokio::test]
async fn a_suspend_resolves_when_it_is_in_force_and_says_what_is() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let host = adjourn.host().scripts().start().await.unwrap();
    session.prompt("build").await.unwrap();
    until(&session, "calls_dispatched").await;
    let suspend = session.suspend().mode(Mode::FinishStep).reason("lunch");
    let suspend = tokio::spawn(suspend.on_event("lunch.over").into_future());
    let pending = until(&session, "suspend_requested").await;
    assert_eq!(pending.phase(), Phase::Requested);
    fixture.clock.until_waited_for(1).await;
    fixture.clock.advance(Duration::from_secs(60));
    let suspension = suspend.await.unwrap().unwrap();
    let parked = session.load().await.unwrap();
    assert_eq!(parked.suspended().unwrap().shown(), &suspension.parked);
    assert_eq!(parked.revision, suspension.revision);
    assert_eq!(suspension.parked.pause.reason.as_deref(), Some("lunch"));
    // A second program asks for the same, and finds it in force.
    let other = fixture.another_adjourn();
    let joined = other.session(session.id()).suspend().await.unwrap();
    assert_eq!(joined.handle, suspension.handle);
    // An event ends it, whichever program says that it happened.
    other.publish(Event::new("lunch.over")).await.unwrap();
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_pending_suspend_that_something_else_comes_before_says_what() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    for how in ["resume", "cancel", "close"] {
        let session = adjourn.session(fixture.create(LONG_CALL));
        session.prompt("build").await.unwrap();
        until(&session, "calls_dispatched").await;
        let suspend = tokio::spawn(session.suspend().into_future());
        until(&session, "suspend_requested").await;
        match how {
            "resume" => {
                let woken = session.resume().await.unwrap();
                assert!(matches!(woken.answer, Answer::Withdrawn { .. }) && !woken.repeated);
            }
            "cancel" => assert!(session.cancel().await.unwrap().ended.is_none()),
            _ => drop(session.close().await.unwrap()),
        }
        let Err(Error::NotSuspended { why, .. }) = suspend.await.unwrap() else { panic!("{how}") };
        let fits = match how {
            "resume" => matches!(why, NotSuspended::Withdrawn(_)),
            "cancel" => matches!(why, NotSuspended::Canceled(_)),
            _ => matches!(why, NotSuspended::Ended(_)),
        };
        assert!(fits, "{how}: {why}");
        session.remove().even_at_work().await.unwrap();
    }
    drop(host);
}

#[tokio::test]
async fn a_resume_says_what_it_did_also_the_second_time() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    session.prompt("build").await.unwrap();
    let pause = session.suspend().await.unwrap();
    let first = session.resume().handle(pause.handle).key("k").await.unwrap();
    let second = session.resume().handle(pause.handle).key("k").await.unwrap();
    assert!(!first.repeated && second.repeated);
    assert_eq!(first.answer, second.answer);
    assert_eq!(first.resumption().unwrap().cause, Cause::ExplicitResume);
    assert!(second.commit.events.is_empty());
    let Err(Error::Refused(refused)) = session.resume().handle(pause.handle).await else {
        panic!("it was resumed before")
    };
    assert!(matches!(refused, Rejected::AlreadyResumed { .. }));
    let busy = session.prompt("more").reach(Reach::OwnFace).await;
    assert!(matches!(busy, Err(Error::Refused(Rejected::Busy { .. }))));
}

#[tokio::test]
async fn events_are_stored_all_or_none_and_once() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let event = || Event::new("ci.passed").subject("pr/12").id("1").source("ci");
    let first = adjourn.publish(event()).await.unwrap();
    let again = adjourn.publish(event()).await.unwrap();
    assert!(first.fresh && !again.fresh);
    assert_eq!(first.seq, again.seq);
    let refused = adjourn.publish_all([Event::new("fine"), Event::new("")]).await.unwrap_err();
    assert_eq!(refused.index, Some(1));
    assert!(matches!(refused.error, Error::Refused(Rejected::Invalid { .. })));
    let next = adjourn.publish_all([Event::new("a"), Event::new("b")]).await.unwrap();
    assert_eq!(next[0].seq.0, first.seq.0 + 1, "nothing of what was refused is there");
}
