//! How long peers are kept waiting: so long and no longer, and what they have asked for takes its
//! course.

use std::ops::Range;
use std::time::Duration;

use adjourn::SessionRef;
use adjourn::core::Session;
use adjourn::store::Sqlite;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::told;
use expect_test::expect;
use serde_json::{Value, json};

use crate::peer::{Peer, message};

/// How long a second of a peer's patience takes.
const TURN: Duration = Duration::from_millis(20);

/// The agent works at something that takes a minute, on a clock that stands still meanwhile.
const BUILDS: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 60000}}, {"say": "merged"}]}"#;

/// Begins a task, and waits until its call is in flight.
async fn at_work(fixture: &Fixture, peer: &Peer) -> (String, SessionRef<Sqlite>) {
    let task = peer.begin().await;
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    (task, session)
}

/// Asks for something, and requires that it is answered after so many seconds of a peer's patience.
async fn answered(peer: &Peer, method: &str, params: Value, after: Range<u64>) -> Value {
    // The clock of the patience is moved by hand: while a thread blocks, it does not go on by itself.
    tokio::time::pause();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocking = tokio::task::spawn_blocking(move || blocked.recv());
    let asking = peer.result(method, params);
    tokio::pin!(asking);
    let mut passed = 0;
    let result = loop {
        tokio::select! {
            result = &mut asking => break result,
            // The store and the host have threads of their own, and do what is due.
            _ = tokio::task::spawn_blocking(|| std::thread::sleep(TURN)) => {}
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        passed += 1;
        assert!(passed < 2 * after.end, "{method} is never answered");
    };
    drop(release);
    assert!(blocking.await.unwrap().is_err());
    tokio::time::resume();
    assert!(after.contains(&passed), "{method} was answered after {passed} s");
    result
}

#[tokio::test]
async fn a_pause_that_takes_too_long_is_answered_as_pending_and_comes_into_force() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::knowing(&fixture, BUILDS);
    let (task, session) = at_work(&fixture, &peer).await;
    let params = json!({ "taskId": task, "reason": "operator review" });
    let pending = answered(&peer, "tasks/pause", params, 20..30).await;
    expect![[r#"
        {
          "taskId": "run-1",
          "state": "working",
          "phase": "quiescing",
          "handle": "suspend-2",
          "reason": "operator review"
        }
    "#]]
    .assert_eq(&told(&pending));
    assert_eq!(peer.get(&task).await["status"]["state"], "working");
    fixture.pass_until(session.id(), "suspended").await;
    let shown = peer.get(&task).await;
    assert_eq!(shown["status"]["state"], "paused-by-client");
    assert_eq!(shown["metadata"]["urn:adjourn:a2a:pause:v1"]["handle"], pending["handle"]);
    host.stop().await;
}

#[tokio::test]
async fn a_message_that_pauses_is_answered_as_soon_as_a_pause_also_if_it_is_sent_again() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::knowing(&fixture, BUILDS);
    let (task, session) = at_work(&fixture, &peer).await;
    let mut pauses = message("m2", "wait");
    pauses["taskId"] = task.as_str().into();
    pauses["metadata"] = json!({ "harn": { "pause": true } });
    let params = json!({ "message": pauses, "configuration": { "blocking": true } });
    for _ in 0..2 {
        let sent = answered(&peer, "message/send", params.clone(), 20..30).await;
        assert_eq!(sent["status"]["state"], "working");
    }
    fixture.pass_until(session.id(), "suspended").await;
    assert_eq!(peer.get(&task).await["status"]["state"], "paused-by-client");
    host.stop().await;
}

#[tokio::test]
async fn a_send_that_waits_is_answered_after_a_minute_with_the_task_as_it_is() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::new(&fixture, BUILDS);
    let (task, session) = at_work(&fixture, &peer).await;
    // The same message again waits for the task that the first one began.
    let params = json!({ "message": message("m1", "go"), "configuration": { "blocking": true } });
    let sent = answered(&peer, "message/send", params, 60..70).await;
    assert_eq!((&sent["id"], &sent["status"]["state"]), (&json!(task), &json!("working")));
    fixture.pass_until(session.id(), "idle").await;
    assert_eq!(peer.get(&task).await["status"]["state"], "completed");
    host.stop().await;
}

#[tokio::test]
async fn a_cancel_that_takes_too_long_is_answered_with_the_task_as_it_is_and_ends_it() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::new(&fixture, BUILDS);
    let (task, session) = at_work(&fixture, &peer).await;
    // The call has a grace, and its clock stands still meanwhile.
    let canceling = answered(&peer, "tasks/cancel", json!({ "id": task }), 20..30).await;
    assert_eq!(canceling["status"]["state"], "working");
    fixture.pass_until(session.id(), "idle").await;
    assert_eq!(peer.get(&task).await["status"]["state"], "canceled");
    host.stop().await;
}

#[tokio::test]
async fn a_peer_that_goes_away_takes_no_pause_back() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::knowing(&fixture, BUILDS);
    let (task, session) = at_work(&fixture, &peer).await;
    let is_asked = |session: &Session| session.pause_reason() == Some("operator review");
    tokio::select! {
        handle = peer.pause(&task) => panic!("{handle} is in force beside a call in flight"),
        _ = fixture.until(session.id(), "asked to pause", is_asked) => {}
    }
    fixture.pass_until(session.id(), "suspended").await;
    let shown = peer.get(&task).await;
    assert_eq!(shown["status"]["state"], "paused-by-client");
    host.stop().await;
}
