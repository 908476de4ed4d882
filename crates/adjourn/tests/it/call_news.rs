//! What calls tell of themselves while they run: soon durable, told in order, and kept.

use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::command::{Cancel, Suspend};
use adjourn_core::id::SessionId;
use adjourn_driver::{Role, Shown};
use serde_json::{Map, Value, json};

use crate::fixture::Fixture;
use crate::points::within;

const BUILD: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 900, "updates": [
    "compiling", {"title": "Linking", "locations": ["/src/a.rs"]}
]}}]}"#;

fn compiling() -> Value {
    let block = json!({ "type": "content", "content": { "type": "text", "text": "compiling" } });
    json!({ "content": [block] })
}

fn linking() -> Value {
    json!({ "title": "Linking", "locations": [{ "path": "/src/a.rs" }] })
}

/// Returns what calls have told and what came of them, as the transcript has it.
fn told(fixture: &Fixture, id: SessionId) -> Vec<Value> {
    let said = fixture.said(id).into_iter().filter_map(|said| match said.shown {
        Some(Shown::Call { update, .. }) => Some(Value::Object(update)),
        None if said.role == Role::Tool => Some(said.text().into()),
        _ => None,
    });
    said.collect()
}

/// Lets a call run until it has told its first news, which are not committed.
async fn running(fixture: &Fixture) -> SessionId {
    let id = fixture.create(BUILD);
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, "build").await;
    // The host's own waits, and the call.
    let waits = within(async {
        loop {
            let waits = fixture.clock.waiting();
            tokio::time::sleep(Duration::from_millis(20)).await;
            if waits > 0 && waits == fixture.clock.waiting() {
                return waits;
            }
        }
    })
    .await;
    fixture.clock.advance(Duration::from_millis(300));
    // The call goes on, and its news wait to be committed.
    fixture.clock.until_waited_for(waits + 1).await;
    assert_eq!(told(fixture, id), [Value::Null; 0]);
    id
}

async fn until_told(fixture: &Fixture, id: SessionId, expected: &[Value]) {
    within(async {
        while told(fixture, id) != expected {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_tells_is_durable_within_fifty_milliseconds() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = running(&fixture).await;
    fixture.clock.advance(Duration::from_millis(50));
    until_told(&fixture, id, &[compiling()]).await;
    assert!(fixture.happened(id).contains(&"progressed"));
    fixture.pass_until(id, "idle").await;
    assert_eq!(told(&fixture, id), [compiling(), linking(), "build done".into()]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_tells_is_durable_while_the_session_comes_to_rest() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = running(&fixture).await;
    fixture.suspend(id, Suspend::default());
    fixture.clock.advance(Duration::from_millis(50));
    until_told(&fixture, id, &[compiling()]).await;
    fixture.pass_until(id, "suspended").await;
    assert_eq!(told(&fixture, id), [compiling(), linking(), "build done".into()]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_leaves_what_it_has_told() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = running(&fixture).await;
    let cancel = Cancel { grace_ms: Some(0), ..Cancel::default() };
    fixture.give(id, Command::Cancel(cancel), Vec::new()).unwrap();
    fixture.until_state(id, "idle").await;
    assert_eq!(told(&fixture, id), [compiling()]);
    let happened = fixture.happened(id);
    let end: Vec<_> = happened.iter().rev().take(3).rev().collect();
    assert_eq!(end, [&"progressed", &"calls_abandoned", &"run_ended"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_of_one_call_are_one_until_they_are_committed_at_the_latest_with_its_result() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(&BUILD.replace("900", "0"));
    fixture.prompt(id, "go");
    fixture.until_state(id, "idle").await;
    let fields = |value: Value| value.as_object().unwrap().clone();
    let both: Map<_, _> = fields(compiling()).into_iter().chain(fields(linking())).collect();
    assert_eq!(told(&fixture, id), [Value::Object(both), "build done".into()]);
    assert!(!fixture.happened(id).contains(&"progressed"), "{:?}", fixture.happened(id));
    host.stop().await;
}
