//! What the log says of requests: what was asked for, of which task, and why it was refused; no word
//! of what a peer has said.

use adjourn_testkit::host::Fixture;
use adjourn_testkit::log::Log;
use serde_json::json;
use tracing::Level;

use crate::peer::{Peer, message};

const DONE: &str = r#"{"steps": [{"say": "done"}]}"#;
const NO_HANDLE: &str = "suspend-019abf6b-7d51-7c1d-bb02-0123456789ab";
const SECRET: &str = "my password is swordfish";

/// Returns the only line that has all of these in it.
fn line(log: &Log, wanted: &[&str]) -> String {
    let lines = log.lines();
    let has_all = |line: &&String| wanted.iter().all(|wanted| line.contains(wanted));
    let found: Vec<_> = lines.iter().filter(has_all).collect();
    match found.as_slice() {
        [line] => (*line).clone(),
        _ => panic!("{} lines have {wanted:?} in {lines:#?}", found.len()),
    }
}

#[tokio::test]
async fn an_answer_is_told_with_its_method_and_its_task() {
    let log = Log::of(Level::DEBUG);
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, DONE);
    let params =
        json!({ "message": message("m1", SECRET), "configuration": { "blocking": false } });
    let task = peer.result("message/send", params).await["id"].as_str().unwrap().to_owned();
    peer.get(&task).await;
    let session = peer.face.adjourn.session_of(task.parse().unwrap()).await.unwrap().unwrap();
    let (session, run) = (format!("session={}", session.id()), format!("run={task}"));
    for method in ["message/send", "tasks/get"] {
        line(&log, &[&format!("method={method:?}"), &session, &run, "}: adjourn_a2a", "answered"]);
    }
    let all = log.lines().join("\n");
    assert!(!all.contains("swordfish"), "{all}");
}

#[tokio::test]
async fn what_fails_is_told_with_its_cause_and_a_peer_is_told_no_more_than_that_it_did() {
    let log = Log::of(Level::WARN);
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, DONE);
    let path = fixture.store.path();
    std::fs::remove_file(path).unwrap();
    let answer = peer.ask("message/send", json!({ "message": message("m1", "go") })).await;
    let error = &answer["error"];
    let words = "INTERNAL: the agent cannot do this now; the log of its server says why";
    assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!(words)));
    let path = path.display().to_string();
    assert!(!answer.to_string().contains(&path), "{answer}");
    line(&log, &["code=-32603", "refused: ", &path]);
}

#[tokio::test]
async fn a_refusal_is_told_with_its_reason_where_only_the_most_important_is() {
    let log = Log::of(Level::INFO);
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, DONE);
    let task = peer.begin().await;
    let session = peer.face.adjourn.session_of(task.parse().unwrap()).await.unwrap().unwrap();
    peer.refused("tasks/resume", json!({ "taskId": task, "handle": NO_HANDLE })).await;
    let found = line(&log, &["tasks/resume", "refused"]);
    peer.refused("tasks/get", json!({ "id": SECRET })).await;
    let unknown = line(&log, &["tasks/get", "refused"]);
    assert!(unknown.contains("code=-32001 reason=\"TASK_NOT_FOUND\""), "{unknown}");
    peer.refused(SECRET, json!({})).await;
    line(&log, &["code=-32601 reason=\"METHOD_NOT_FOUND\"", "refused"]);
    let ids = [format!("session={}", session.id()), format!("run={task}")];
    assert!(ids.iter().all(|id| found.contains(id)), "{found}");
    let all = log.lines().join("\n");
    assert!(!all.contains("swordfish"), "{all}");
}
