//! Hosts whose start, stop or end is dropped.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adjourn::Adjourn;
use adjourn::core::session::Phase;
use adjourn::core::time::Timestamp;
use adjourn::keys::{Key, Keys};
use adjourn_store::Store as _;

use super::{SHORT, at_work, behind, touch, until};
use crate::fixture::Fixture;

#[tokio::test]
async fn a_host_that_is_dropped_gives_everything_back() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().drain(Duration::ZERO).start().await.unwrap();
    let id = host.id();
    let session = at_work(&fixture, &adjourn).await;
    let mut moments = session.watch().from_now().await.unwrap();
    drop(host);
    assert_eq!(moments.next().await.unwrap().unwrap().event.what.name(), "host_lost");
    while fixture.hosts().is_alive(id).unwrap() {
        tokio::task::yield_now().await;
    }
    // What it was told of is given to no host any more, and to none that is not there.
    let prompted = adjourn.session(fixture.create(SHORT)).prompt("go").await.unwrap();
    assert_eq!(prompted.commit.session.phase(), Phase::Ready);
    assert_eq!(poll_once(session.finished()), Poll::Pending);
}

#[tokio::test]
async fn a_stop_that_is_dropped_goes_on() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().drain(Duration::ZERO).start().await.unwrap();
    let id = host.id();
    let session = at_work(&fixture, &adjourn).await;
    touch(host.stop());
    until(&session, "host_lost").await;
    while fixture.hosts().is_alive(id).unwrap() {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.store.hosts().unwrap(), []);
}

/// The row of a host that was about to start is removed again, and its files are, too.
#[tokio::test]
async fn a_start_that_is_dropped_leaves_no_host() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    touch(adjourn.host().scripts().start());
    behind(&adjourn).await;
    assert_eq!(fixture.store.hosts().unwrap(), []);
    while !fixture.hosts().living().is_empty() {
        tokio::task::yield_now().await;
    }
    let prompted = adjourn.session(fixture.create(SHORT)).prompt("go").await.unwrap();
    assert_eq!(prompted.commit.session.phase(), Phase::Ready, "no host claims it");
}

#[tokio::test]
async fn a_kill_that_is_dropped_ends_the_host_all_the_same() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let id = host.id();
    let session = at_work(&fixture, &adjourn).await;
    touch(host.kill());
    while fixture.hosts().is_alive(id).unwrap() {
        tokio::task::yield_now().await;
    }
    // As if its process had died: nothing is given back.
    assert_eq!(session.load().await.unwrap().owner().unwrap().host, id);
    assert!(!fixture.happened(session.id()).contains(&"host_lost"));
}

#[tokio::test]
async fn a_kill_that_is_never_polled_stops_the_host_as_dropping_it_does() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().drain(Duration::ZERO).start().await.unwrap();
    let session = at_work(&fixture, &adjourn).await;
    drop(host.kill());
    until(&session, "host_lost").await;
}

#[tokio::test]
async fn a_host_whose_end_is_no_longer_waited_for_goes_on() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let mut host = adjourn.host().scripts().start().await.unwrap();
    assert_eq!(poll_once(host.ended()), Poll::Pending);
    let session = adjourn.session(fixture.create(SHORT));
    session.prompt("go").await.unwrap();
    until(&session, "run_ended").await;
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_store_is_closed_whose_closing_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    let log = directory.path().join("agents.db-wal");
    let keys = Keys::only(Key::from_secrets(Timestamp::from_millis(0), &[1; 32], &[1; 32]));
    for polled in [true, false] {
        let adjourn = Adjourn::builder(&path).keys(keys.clone()).open().await.unwrap();
        assert!(log.exists());
        let closing = adjourn.close();
        match polled {
            true => touch(closing),
            false => drop(closing),
        }
        while log.exists() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_change_that_is_no_longer_waited_for_is_told_all_the_same() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(SHORT));
    let mut moments = session.watch().from_now().await.unwrap();
    assert_eq!(poll_once(moments.changed()), Poll::Pending);
    session.prompt("go").await.unwrap();
    assert_eq!(moments.next().await.unwrap().unwrap().event.what.name(), "run_started");
}

fn poll_once<F: Future>(future: F) -> Poll<()> {
    let mut future = pin!(future);
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).map(|_| ())
}
