//! Watching a session: where it begins, where it ends, and as a stream.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream as _;

use super::{LONG_CALL, until};
use crate::fixture::Fixture;

#[tokio::test]
async fn watching_begins_where_it_is_told_and_ends_with_the_session() {
    let fixture = Fixture::new();
    let (adjourn, other) = (fixture.adjourn(), fixture.another_adjourn());
    let session = adjourn.session(fixture.create(LONG_CALL));
    let created = session.load().await.unwrap();
    session.prompt("build").await.unwrap();
    let mut all = session.watch().await.unwrap();
    let mut later = session.watch().after(&created).await.unwrap();
    let mut live = session.watch().from_now().await.unwrap();
    // Another process ends it, without a host anywhere.
    other.session(session.id()).close().await.unwrap();
    for (moments, expected) in [
        (&mut all, &["session_created", "run_started", "run_ended", "session_ended"][..]),
        (&mut later, &["run_started", "run_ended", "session_ended"][..]),
        (&mut live, &["run_ended", "session_ended"][..]),
    ] {
        let mut happened = Vec::new();
        while let Some(moment) = moments.next().await.unwrap() {
            happened.push(moment.event.what.name());
        }
        assert_eq!(happened, expected);
        assert_eq!(moments.next().await.unwrap(), None, "it stays over");
    }
}

#[tokio::test]
async fn watching_a_session_that_has_ended_ends_at_once() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let mut paged = session.watch().await.unwrap();
    let mut whole = session.watch().await.unwrap();
    session.close().await.unwrap();
    let ended = session.load().await.unwrap();
    for mut moments in [
        session.watch().from_now().await.unwrap(),
        session.watch().after(&ended).await.unwrap(),
        // Another process has ended it, as far as this one knows.
        fixture.another_adjourn().session(session.id()).watch().from_now().await.unwrap(),
    ] {
        assert_eq!(at_once(moments.next()).await.unwrap(), None);
    }
    assert_eq!(paged.page().await.unwrap().last().unwrap().event.what.name(), "session_ended");
    assert_eq!(at_once(paged.next()).await.unwrap(), None, "a page has told the end");
    assert_eq!(whole.rest().await.unwrap().last().unwrap().event.what.name(), "session_ended");
    assert_eq!(at_once(whole.next()).await.unwrap(), None, "the rest has told the end");
}

/// Returns what a future comes to that must not wait for anything.
async fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let output = std::future::poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    });
    output.await.unwrap()
}

/// Returns the name of what comes next out of a stream.
async fn next(stream: &mut adjourn::Moments) -> Option<&'static str> {
    let next = poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await;
    next.map(|moment| moment.unwrap().event.what.name())
}

/// Moments come out of a stream as they do one by one, past and live, to the end of the session.
#[tokio::test]
async fn moments_are_a_stream() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let mut stream = session.watch().await.unwrap();
    assert_eq!(next(&mut stream).await, Some("session_created"));
    // It waits, and is left alone while something else of the process waits for the same.
    let is_pending = |context: &mut Context<'_>| {
        Poll::Ready(Pin::new(&mut stream).poll_next(context).is_pending())
    };
    assert!(poll_fn(is_pending).await);
    let other = fixture.another_adjourn();
    let (seen, suspended) =
        tokio::join!(until(&session, "suspended"), other.session(session.id()).suspend());
    assert_eq!(seen.revision, suspended.unwrap().revision);
    assert_eq!(next(&mut stream).await, Some("suspended"));
    session.close().await.unwrap();
    assert_eq!(next(&mut stream).await, Some("suspension_ended"));
    assert_eq!(next(&mut stream).await, Some("session_ended"));
    assert_eq!(next(&mut stream).await, None);
}
