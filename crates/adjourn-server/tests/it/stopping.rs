//! A server that stops: streams end behind an event and go on elsewhere, and what waits is answered.

use adjourn::core::Session;
use adjourn::core::ledger::CallState;
use adjourn::core::session::State;
use adjourn::{Filter, Query};
use adjourn_testkit::host::Fixture;
use serde_json::{Value, json};

use crate::agent::{DONE, STATES, Setting, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_in_order_and_goes_on_at_another_server_without_a_gap() {
    let fixture = Fixture::new();
    let first = Setting::new(DONE).on(&fixture).await;
    let task = first.begin("m1");
    let mut watch = first.watch(&task, &[STATES], None);
    let mut seen = vec![watch.next().unwrap()];
    let handle = first.result("tasks/pause", &json!({ "taskId": task }))["handle"].clone();
    seen.extend(watch.by_ref().take(2));
    let address = first.address;
    first.stop().await;
    assert_eq!(watch.next(), None);
    assert!(watch.is_whole, "the stream was cut off");
    assert!(std::net::TcpStream::connect(address).is_err(), "it still listens");

    let second = Setting::new(DONE).on(&fixture).await;
    second.result("tasks/resume", &json!({ "taskId": task, "handle": handle }));
    second.result("tasks/cancel", &json!({ "id": task }));
    let whole: Vec<_> = second.watch(&task, &[STATES], Some(&seen[0].0)).collect();
    assert_eq!(whole[..2], seen[1..], "what was told is told again in the same words");
    for (index, (id, _)) in seen.iter().enumerate() {
        let rest: Vec<_> = second.watch(&task, &[STATES], Some(id)).collect();
        assert_eq!(rest, whole[index..], "behind {id}");
    }
    second.stop().await;
}

/// Waits until the store has a session whose state is as wanted.
async fn until(fixture: &Fixture, wanted: impl Fn(&Session) -> bool) {
    let filter = Filter { prompted: true, ..Filter::default() };
    loop {
        let found = fixture.adjourn().query(Query::new(filter.clone(), 1)).await.unwrap();
        if found.sessions.iter().flatten().any(|session| wanted(session)) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_that_waits_is_answered_with_its_task_when_the_server_stops() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    // No host runs it, so that the send would wait for a minute.
    let body = request("message/send", &json!({ "message": crate::agent::words("m1") }));
    let waiting = served.send_aside(body);
    until(&fixture, |_| true).await;
    served.stop().await;
    let answer = waiting.join().unwrap();
    let state = answer.json().pointer("/result/status/state").cloned();
    assert_eq!((answer.status, state), (200, Some(json!("working"))), "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_a_park_and_a_cancel_that_wait_are_answered_when_the_server_stops() {
    let slow = r#"{"steps": [{"tool": {"name": "build", "ms": 3600000}}, {"say": "done"}]}"#;
    for (method, state, phase) in [
        ("tasks/pause", "/result/state", Some("quiescing")),
        ("tasks/await_resumption", "/result/state", Some("quiescing")),
        ("tasks/cancel", "/result/status/state", None),
    ] {
        let fixture = Fixture::new();
        let host = fixture.host().await;
        let served = Setting::new(slow).on(&fixture).await;
        let task = served.begin("m1");
        until(&fixture, |session| session.calls.any(CallState::Dispatched)).await;
        let params = json!({ "id": task, "taskId": task, "reason": "lunch" });
        let waiting = served.send_aside(request(method, &params));
        until(&fixture, |session| matches!(session.state, State::Quiescing(_))).await;
        served.stop().await;
        let answer = waiting.join().unwrap().json();
        assert_eq!(answer.pointer(state), Some(&json!("working")), "{method}: {answer}");
        assert_eq!(answer.pointer("/result/phase").and_then(Value::as_str), phase, "{answer}");
        host.kill().await;
    }
}
