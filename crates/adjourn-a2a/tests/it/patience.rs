//! How long peers are kept waiting: so long and no longer, and what they have asked for takes its
//! course.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use adjourn::SessionRef;
use adjourn::core::Session;
use adjourn::driver::BoxFuture;
use adjourn::store::Sqlite;
use adjourn_a2a::{RECIPIENT_KIND, Receivers};
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::told;
use expect_test::expect;
use serde_json::{Value, json};

use crate::peer::{Peer, message};

/// How long a second of a peer's patience takes.
const TURN: Duration = Duration::from_millis(20);

/// Less than any patience, and more than an answer takes that waits for nothing.
const AT_ONCE: Duration = Duration::from_secs(10);

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

/// A message that pauses a task, and waits.
fn pausing(task: &str) -> Value {
    let mut pauses = message("m2", "wait");
    pauses["taskId"] = task.into();
    pauses["metadata"] = json!({ "harn": { "pause": true } });
    json!({ "message": pauses, "configuration": { "blocking": true } })
}

#[tokio::test]
async fn a_message_that_pauses_is_answered_as_soon_as_a_pause_also_if_it_is_sent_again() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::knowing(&fixture, BUILDS);
    let (task, session) = at_work(&fixture, &peer).await;
    let params = pausing(&task);
    for _ in 0..2 {
        let sent = answered(&peer, "message/send", params.clone(), 20..30).await;
        assert_eq!(sent["status"]["state"], "working");
    }
    fixture.pass_until(session.id(), "suspended").await;
    assert_eq!(peer.get(&task).await["status"]["state"], "paused-by-client");
    host.stop().await;
}

#[tokio::test]
async fn a_message_that_pauses_and_is_sent_again_when_the_task_works_on_is_answered_at_once() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let builds = r#"{"steps": [{"tool": {"name": "build", "ms": 60000}},
        {"tool": {"name": "deploy", "ms": 60000}}, {"say": "merged"}]}"#;
    let peer = Peer::knowing(&fixture, builds);
    let (task, session) = at_work(&fixture, &peer).await;
    let (sent, _) = tokio::join!(
        peer.result("message/send", pausing(&task)),
        fixture.pass_until(session.id(), "suspended")
    );
    assert_eq!(sent["status"]["state"], "paused-by-client");
    peer.result("tasks/resume", json!({ "taskId": task })).await;
    fixture.until_in_flight(session.id(), "deploy").await;
    let again = answered(&peer, "message/send", pausing(&task), 0..20).await;
    assert_eq!(again["status"]["state"], "working");
    fixture.pass_until(session.id(), "idle").await;
    host.stop().await;
}

#[tokio::test]
async fn a_stream_of_a_message_that_pauses_begins_at_once_and_tells_of_the_pause() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::knowing(&fixture, BUILDS);
    let (task, session) = at_work(&fixture, &peer).await;
    let mut watches = Vec::new();
    // The same message again is told the same.
    for _ in 0..2 {
        let watch = peer.watch("message/stream", pausing(&task), None);
        let mut watch = tokio::time::timeout(AT_ONCE, watch).await.unwrap();
        assert_eq!(watch.update().await["status"]["state"], "working");
        watches.push(watch);
    }
    fixture.pass_until(session.id(), "suspended").await;
    for mut watch in watches {
        assert_eq!(watch.update().await["status"]["state"], "paused-by-client");
    }
    host.stop().await;
}

/// Lets all receivers through.
struct Anywhere;

impl Receivers for Anywhere {
    fn check<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn the_receiver_that_comes_with_a_pause_is_there_before_the_pause_is_waited_for() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let mut peer = Peer::knowing(&fixture, BUILDS);
    peer.face = peer.face.pushing_to(Arc::new(Anywhere));
    let (task, session) = at_work(&fixture, &peer).await;
    let run = task.parse().unwrap();
    // The second is the same message again, with another receiver.
    for id in ["a", "b"] {
        let mut params = pausing(&task);
        let receiver = json!({ "id": id, "url": "https://example.org/hook" });
        params["configuration"]["pushNotificationConfig"] = receiver;
        let is_there = async {
            loop {
                let all = session.recipients(run, RECIPIENT_KIND).await.unwrap();
                if all.iter().any(|recipient| recipient.id == id) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            sent = peer.result("message/send", params) => panic!("{sent} came first"),
            there = tokio::time::timeout(AT_ONCE, is_there) => there.unwrap(),
        }
    }
    fixture.pass_until(session.id(), "suspended").await;
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
