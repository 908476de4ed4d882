//! Pauses in the metadata of messages, as an earlier implementation asks for them.

use std::time::Duration;

use adjourn_a2a::Scope;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::store::TENANT;
use serde_json::{Value, json};

use crate::peer::{Peer, caller, message};
use crate::refusals::with_task;

/// A message that pauses a task.
fn pausing(task: &str, pause: Value) -> Value {
    let mut message = with_task(message("m2", "wait"), task);
    message["metadata"] = json!({ "harn": { "pause": pause } });
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_by_a_message_waits_for_calls_in_flight_unless_its_sender_does_not() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"steps": [{"tool": {"name": "deploy", "ms": 60000}}, {"say": "done"}]}"#;
    let peer = Peer::knowing(&fixture, script);
    let task = peer.begin().await;
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_in_flight(session.id(), "deploy").await;
    let params = json!({ "message": pausing(&task, json!({ "reason": "from afar" })),
                         "configuration": { "blocking": false } });
    // The call takes a minute of a clock that stands still.
    let asked = peer.result("message/send", params.clone());
    let shown = tokio::time::timeout(Duration::from_secs(10), asked).await.unwrap();
    assert_eq!(shown["status"]["state"], "working", "it is accepted, and not in force");
    let mut waits = params;
    waits["configuration"]["blocking"] = true.into();
    let (shown, _) = tokio::join!(
        peer.result("message/send", waits),
        fixture.pass_until(session.id(), "suspended")
    );
    assert_eq!(shown["status"]["state"], "paused-by-client");
    assert_eq!(shown.pointer("/metadata/harn/pause/reason"), Some(&"from afar".into()));
    host.stop().await;
}

#[tokio::test]
async fn a_message_that_pauses_is_taken_once() {
    let fixture = Fixture::new();
    let peer = Peer::knowing(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    let send = async |id: &str| {
        let mut message = pausing(&task, json!(true));
        message["messageId"] = id.into();
        let configuration = json!({ "blocking": false });
        let params = json!({ "message": message, "configuration": configuration });
        peer.result("message/send", params).await["status"]["state"].clone()
    };
    for _ in 0..2 {
        assert_eq!(send("m2").await, "paused-by-client");
    }
    // One that comes to a paused task was taken, too.
    assert_eq!(send("m3").await, "paused-by-client");
    peer.result("tasks/resume", json!({ "taskId": task })).await;
    let revision = session.load().await.unwrap().revision;
    for id in ["m2", "m3"] {
        assert_eq!(send(id).await, "working", "{id}: it was taken before");
    }
    assert_eq!(session.load().await.unwrap().revision, revision);
    assert_eq!(send("m4").await, "paused-by-client");
    peer.result("tasks/cancel", json!({ "id": task })).await;
    assert_eq!(send("m4").await, "canceled");
    let late = json!({ "message": pausing(&task, json!(true)) });
    assert_eq!(peer.result("message/send", late).await["status"]["state"], "canceled");
    let mut new = pausing(&task, json!(true));
    new["messageId"] = "m5".into();
    let refused = peer.refused("message/send", json!({ "message": new })).await;
    assert_eq!(refused.1, "TASK_NOT_PAUSABLE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_pauses_and_is_sent_again_is_shown_what_the_task_asks() {
    let fixture = Fixture::new();
    let asks = r#"{"steps": [{"ask": {"question": "Mend it?"}}, {"say": "done"}]}"#;
    let peer = Peer::knowing(&fixture, asks);
    let task = peer.begin().await;
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    let pause = json!({ "message": pausing(&task, json!(true)) });
    let paused = peer.result("message/send", pause.clone()).await;
    assert_eq!(paused["status"]["state"], "paused-by-client");
    peer.result("tasks/resume", json!({ "taskId": task })).await;
    let host = fixture.host().await;
    fixture.until_state(session.id(), "suspended").await;
    let again = peer.result("message/send", pause).await;
    assert_eq!(again["status"]["state"], "input-required");
    assert_eq!(again.pointer("/status/message/parts/0/text"), Some(&"Mend it?".into()), "{again}");
    let shown = peer.result("tasks/get", json!({ "id": task })).await;
    assert_eq!((&again["status"], &again["history"]), (&shown["status"], &shown["history"]));
    host.stop().await;
}

#[tokio::test]
async fn a_pause_by_a_message_is_for_those_who_may_send_and_pause() {
    let fixture = Fixture::new();
    let mut peer = Peer::knowing(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let params = json!({ "message": pausing(&task, json!(true)) });
    for scopes in [
        &[Scope::Send][..],
        &[Scope::Pause],
        &[Scope::Send, Scope::Read, Scope::Resume, Scope::Agent, Scope::Event],
    ] {
        peer.caller = caller(TENANT, scopes);
        for method in ["message/send", "message/stream"] {
            let (_, reason) = peer.refused(method, params.clone()).await;
            assert_eq!(reason, "PERMISSION_DENIED", "{method} with {scopes:?}");
        }
    }
    peer.caller = caller(TENANT, &Scope::ALL);
    assert_eq!(peer.get(&task).await["status"]["state"], "working");
    // What was refused was not taken.
    peer.caller = caller(TENANT, &[Scope::Send, Scope::Pause]);
    let paused = peer.result("message/send", params).await;
    assert_eq!(paused["status"]["state"], "paused-by-client");
}

#[tokio::test]
async fn a_pause_by_a_message_is_refused_in_the_names_of_the_message_and_pauses_nothing() {
    let fixture = Fixture::new();
    let peer = Peer::knowing(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let mut elsewhere = pausing(&task, json!(true));
    elsewhere["contextId"] = "another".into();
    let day = 24 * 60 * 60 * 1000;
    for (message, path) in [
        (elsewhere, "message.contextId"),
        (pausing(&task, json!({ "grace_ms": day + 1 })), "metadata.harn.pause.grace_ms"),
        (pausing(&task, json!({ "reason": " " })), "metadata.harn.pause.reason"),
    ] {
        let refused = peer.ask("message/send", json!({ "message": message })).await;
        let error = &refused["error"];
        assert_eq!(error["code"], -32602, "{refused}");
        assert_eq!(error["data"][0]["metadata"]["path"], path);
    }
    assert_eq!(peer.get(&task).await["status"]["state"], "working");
}

#[tokio::test]
async fn a_message_that_is_refused_is_told_which_of_its_fields_is_wrong() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, r#"{"steps": [{"ask": {"question": "Which?"}}]}"#);
    let name = peer.caller.name.len();
    let longest = "x".repeat(256 - name - 1);
    for (message, path) in [
        (message("m1", " "), "message.parts"),
        (message(&format!("{longest}x"), "go"), "message.messageId"),
        (message("m\n1", "go"), "message.messageId"),
    ] {
        let refused = peer.ask("message/send", json!({ "message": message })).await;
        let error = &refused["error"];
        assert_eq!(error["code"], -32602, "{refused}");
        assert_eq!(error["data"][0]["metadata"]["path"], path);
        let text = error["message"].as_str().unwrap();
        assert!(text.starts_with(&format!("INVALID_PARAMS: {path}: ")), "{text}");
        if path.ends_with("Id") && !text.contains("control") {
            assert!(text.ends_with(&format!("at most {} bytes", longest.len())), "{text}");
        }
    }
    let params =
        json!({ "message": message(&longest, "go"), "configuration": { "blocking": false } });
    peer.result("message/send", params).await;
}

/// The metadata of the parameters is where the proposal has it.
#[tokio::test]
async fn a_pause_is_read_from_the_metadata_of_the_parameters_too() {
    let fixture = Fixture::new();
    let peer = Peer::knowing(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let pause = json!({ "reason": "from afar", "resume_when": { "on_event": "ci.passed" } });
    let params = json!({ "message": with_task(message("m2", "wait"), &task),
                         "metadata": { "harn": { "pause": pause } } });
    let shown = peer.result("message/send", params).await;
    assert_eq!(shown["status"]["state"], "paused-by-client");
    let told = shown.pointer("/metadata/harn/pause").unwrap();
    assert_eq!(
        (&told["reason"], &told["conditions"]),
        (&json!("from afar"), &json!({ "on_event": "ci.passed" }))
    );
}
