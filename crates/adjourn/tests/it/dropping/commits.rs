//! Commits whose futures are dropped after they were polled: they are made all the same.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adjourn::core::driver::DriverSpec;
use adjourn::core::id::SessionId;
use adjourn::core::session::{Outcome, Phase};
use adjourn::store::Retention;
use adjourn::{Event, StoreError};

use super::{SHORT, behind, touch, until};
use crate::fixture::Fixture;

const MODES: &str = r#"{"modes": [{"id": "code"}, {"id": "ask"}], "steps": []}"#;

#[tokio::test]
async fn an_option_whose_setting_is_dropped_is_set() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let mut spec = DriverSpec::script(MODES);
    spec.options = adjourn::script::Script::parse(MODES).unwrap().options();
    let session = adjourn.create_with(spec).await.unwrap();
    drop(session.set_option("mode", "ask").into_future());
    behind(&adjourn).await;
    assert_eq!(session.load().await.unwrap().options[0].value, "code", "it was never polled");
    touch(session.set_option("mode", "ask").into_future());
    until(&session, "option_set").await;
    assert_eq!(session.load().await.unwrap().options[0].value, "ask");
}

#[tokio::test]
async fn a_session_whose_creation_with_its_commit_is_dropped_is_there() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let id = SessionId::new(adjourn.clock().uuid());
    touch(adjourn.create_with(DriverSpec::script(SHORT)).id(id).prompt("go").with_commit());
    behind(&adjourn).await;
    let run = adjourn.session(id).finished().await.unwrap();
    assert_eq!(run.end.outcome, Outcome::Completed);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_is_dropped_is_made() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let done = Arc::new(AtomicBool::new(false));
    let sets = || {
        let done = Arc::clone(&done);
        adjourn.transact(move |_| {
            done.store(true, Ordering::Relaxed);
            Ok::<_, StoreError>(())
        })
    };
    touch(sets());
    behind(&adjourn).await;
    assert!(done.load(Ordering::Relaxed));
}

/// Where a host lives, the event is stored and delivered; where none does, it is stored.
#[tokio::test]
async fn an_event_whose_publishing_and_delivery_is_dropped_is_stored_and_delivered() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let event = || Event::new("ci.passed").id("1");
    let session = adjourn.session(fixture.create(SHORT));
    session.suspend().on_event("ci.*").await.unwrap();
    touch(adjourn.publish_and_deliver(event()));
    let (again, reception) = loop {
        // The first of its two commits is undone: it only finds out what there is to wake.
        let (published, reception) = adjourn.publish_and_deliver(event()).await.unwrap();
        if !published.fresh {
            break (published, reception);
        }
    };
    assert_eq!((again.seq.0, reception.left), (1, 1), "it is stored once, and waits for a host");
    let host = adjourn.host().scripts().start().await.unwrap();
    until(&session, "resumed").await;
    let session = adjourn.session(fixture.create(SHORT));
    session.suspend().on_event("ci.*").await.unwrap();
    touch(adjourn.publish_and_deliver(Event::new("ci.failed")));
    until(&session, "resumed").await;
    host.stop().await.unwrap();
}

/// The portion that was begun is dropped, and the next one is not begun.
#[tokio::test]
async fn pruning_that_is_dropped_leaves_the_rest() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    for _ in 0..3 {
        adjourn.publish_all((0..500).map(|_| Event::new("ci.passed"))).await.unwrap();
    }
    let host = adjourn.host().start().await.unwrap();
    while adjourn.tally().await.unwrap().undelivered > 0 {
        tokio::task::yield_now().await;
    }
    host.stop().await.unwrap();
    fixture.clock.advance(Duration::from_secs(60 * 60));
    let retention = Retention { events: Duration::from_secs(60), ..Retention::default() };
    touch(adjourn.prune(retention));
    behind(&adjourn).await;
    let left = adjourn.size().await.unwrap().events;
    assert!((1..1500).contains(&left), "one portion is dropped: {left} are left");
    let pruned = adjourn.prune(retention).await.unwrap().events;
    assert_eq!(pruned, left, "it goes on from there");
}

/// Dropped on its own thread, the last handle would wait for the writer, which waits for this test.
#[tokio::test]
async fn a_store_is_closed_without_keeping_the_thread_of_the_runtime() {
    let fixture = Fixture::new();
    let store = fixture.another();
    let path = store.path().to_owned();
    let clock: Arc<dyn adjourn::clock::Clock> = Arc::new(fixture.clock.clone());
    let adjourn = adjourn_testkit::host::embed(store.clone(), clock).unwrap();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    drop(adjourn_store::Store::transact(&store, move |_| {
        let _ = wait.recv();
        Ok::<_, StoreError>(())
    }));
    drop(store);
    let session = adjourn.session(SessionId::new(adjourn.clock().uuid()));
    let other = session.adjourn().clone();
    other.close().await;
    assert_eq!(session.adjourn().path(), path, "another handle is open, and works");
    assert_eq!(session.load().await.unwrap_err().hint(), None);
    let last = session.adjourn().clone();
    drop((session, adjourn));
    tokio::join!(last.close(), async { drop(go_on) });
}

#[tokio::test]
async fn a_prompt_that_is_dropped_without_a_host_is_taken() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(SHORT));
    touch(session.prompt("go").into_future());
    behind(&adjourn).await;
    assert_eq!(session.load().await.unwrap().phase(), Phase::Ready);
}
