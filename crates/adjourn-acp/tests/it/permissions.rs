//! Who is asked when several clients see a session, or none does.

use serde_json::{Value, json};

use crate::process::Process;

const DEPLOYS: &str = r#"{"steps": [{"tool": {"name": "deploy", "permission": true}}]}"#;

const METHOD: &str = "session/request_permission";

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

fn statuses(heard: &[Value]) -> Vec<&str> {
    let updates = heard.iter().map(|message| &message["params"]["update"]);
    updates
        .filter_map(|update| update["toolCallId"].as_str().and(update["status"].as_str()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_see_it_are_asked_and_the_first_answer_counts() {
    let process = Process::start(DEPLOYS).await;
    let (mut first, mut second) = (process.connect().await, process.connect().await);
    let session = first.new_session().await;
    second.call("session/resume", json!({ "sessionId": session })).await;
    first.prompt(&session).await;
    let asked = first.told(METHOD).await;
    let also = second.told(METHOD).await;
    assert_eq!(asked["params"], also["params"]);
    let status = second.call("session/status", json!({ "sessionId": session })).await;
    assert_eq!(status["state"]["state"], "requires_action");
    second.reply(&also["id"], selected("allow")).await;
    let taken_back = first.told("$/cancel_request").await;
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    first.reply(&asked["id"], selected("reject")).await;
    for client in [&mut first, &mut second] {
        client.until_state("running").await;
        client.until_state("idle").await;
        assert_eq!(statuses(client.heard()), ["pending", "in_progress", "completed"]);
    }
    let taken_back = second.heard().iter().any(|message| message["method"] == "$/cancel_request");
    assert!(!taken_back, "it was answered: {:#?}", second.heard());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_sees_waits_and_is_asked_after_somebody_was_attached() {
    let process = Process::start(DEPLOYS).await;
    let mut first = process.connect().await;
    let session = first.new_session().await;
    first.prompt(&session).await;
    first.told(METHOD).await;
    first.leave().await;

    let mut second = process.connect().await;
    let status = second.call("session/status", json!({ "sessionId": session })).await;
    assert_eq!(status["state"]["state"], "running", "nobody is asked");
    second.call("session/resume", json!({ "sessionId": session })).await;
    let asked = second.told(METHOD).await;
    second.reply(&asked["id"], selected("reject")).await;
    second.until_state("idle").await;
    assert_eq!(statuses(second.heard()), ["pending", "failed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_holds_without_anybody_to_ask_is_freed_from_elsewhere() {
    let process = Process::start(DEPLOYS).await;
    let mut first = process.connect().await;
    let session = first.new_session().await;
    first.prompt(&session).await;
    first.told(METHOD).await;
    first.leave().await;

    // Another process, on the same store, whose client sees the session.
    let other = process.beside(DEPLOYS).await;
    let mut second = other.connect().await;
    second.call("session/resume", json!({ "sessionId": session })).await;
    let status = second.call("session/status", json!({ "sessionId": session })).await;
    assert_eq!(status["state"]["state"], "running", "it is not asked");
    let suspended = second.call("session/suspend", json!({ "sessionId": session })).await;
    let resume = json!({ "sessionId": session, "handle": suspended["handle"] });
    second.call("session/resume", resume).await;
    let asked = second.told(METHOD).await;
    second.reply(&asked["id"], selected("allow")).await;
    second.until_state("idle").await;
    assert_eq!(statuses(second.heard()).last(), Some(&"completed"));
}

/// Numbers that are equal in value are the same id, however a client writes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_counts_however_its_id_is_written() {
    for (id, result) in [("1.0", selected("allow")), ("10e-1", selected("allow"))] {
        let process = Process::start(DEPLOYS).await;
        let mut client = process.connect().await;
        let session = client.new_session().await;
        client.prompt(&session).await;
        assert_eq!(client.told(METHOD).await["id"], 1);
        client.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
        client.until_state("idle").await;
        assert_eq!(statuses(client.heard()).last(), Some(&"completed"), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sees_it_elsewhere_is_told_where_permission_is_asked() {
    let process = Process::start(DEPLOYS).await;
    let mut first = process.connect().await;
    let session = first.new_session().await;
    first.prompt(&session).await;
    let asked = first.told(METHOD).await;
    let other = process.beside(DEPLOYS).await;
    let mut second = other.connect().await;
    second.call("session/resume", json!({ "sessionId": session })).await;
    let words = |told: &Value| told["params"]["update"]["content"][0]["content"]["text"].clone();
    let waits = second.until("told", |told| words(told).is_string()).await;
    assert_eq!(words(&waits), "waits for permission in another window");
    assert_eq!(waits["params"]["update"]["status"], "pending");
    first.reply(&asked["id"], selected("allow")).await;
    second.until_state("idle").await;
    assert_eq!(statuses(second.heard()).last(), Some(&"completed"));
    let asked = second.heard().iter().any(|message| message["method"] == METHOD);
    assert!(!asked, "{:#?}", second.heard());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sees_it_is_told_that_permission_is_asked_nowhere() {
    let process = Process::start(DEPLOYS).await;
    let mut first = process.connect().await;
    let session = first.new_session().await;
    first.prompt(&session).await;
    first.told(METHOD).await;
    first.leave().await;
    let other = process.beside(DEPLOYS).await;
    let mut second = other.connect().await;
    second.call("session/resume", json!({ "sessionId": session })).await;
    let nowhere = "waits for permission, and no window shows it";
    second.until("told", |told| told.to_string().contains(nowhere)).await;
}
