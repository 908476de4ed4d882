//! `tasks/await_resumption` over real HTTP: workers that live outside of the server.

use adjourn_core::transcript::Digest;
use adjourn_testkit::http;
use serde_json::json;

use super::{JSON, STATES, Server, message, request};
use crate::home::Home;

/// A call that is in flight for long, and a step behind it.
const BUILDS: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 600000}}, {"say": "merged"}]}"#;

#[test]
fn an_await_is_pending_over_a_kill_of_the_server_and_in_force_behind_it() {
    let mut server = Server::new(BUILDS, &["--insecure-open"]);
    let mut params = message("m1");
    params["configuration"] = json!({ "returnImmediately": true });
    let sent = server.result(&[STATES], "SendMessage", params);
    let task = &sent["task"]["id"];
    let session = sent.pointer("/task/contextId").unwrap().as_str().unwrap();
    server.home.until_shown(session, |shown| shown["inFlight"] == json!(["build"]));
    let wait = json!({ "taskId": task, "reason": "ci", "conditions": { "onEvent": "ci.passed" } });
    let waiting = server.begin(&[], &request("tasks/await_resumption", wait.clone()));
    let shown = server.home.until_shown(session, |shown| shown["phase"] == "requested");
    // The worker goes away before it is answered: that takes nothing back.
    drop(waiting);
    assert_eq!((&shown["initiator"], &shown["reason"]), (&json!("agent"), &json!("ci")));
    server.kill();

    // The call died with its host, which is what the await waited for.
    server.start(&["--insecure-open"]);
    let parked = server.result(&[], "tasks/await_resumption", wait);
    assert_eq!(
        (&parked["state"], &parked["handle"]),
        (&json!("paused-by-agent"), &shown["handle"])
    );
    let now = server.result(&[STATES], "GetTask", json!({ "id": task }));
    assert_eq!(now.pointer("/status/state"), Some(&"TASK_STATE_PAUSED_BY_AGENT".into()));
    let mut watch = server.watch(task, None);
    server.home.json(&["event", "ci.passed"]);
    let told = watch.states("");
    let states = ["TASK_STATE_PAUSED_BY_AGENT", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"];
    assert_eq!(told, states);
    assert_eq!(server.serving.take().unwrap().terminate(), 0);
}

#[test]
fn a_worker_needs_the_scope_of_the_agent_and_its_name_is_in_the_journal() {
    let home = Home::new();
    home.file("agent.json", BUILDS);
    let digest = |token: &str| Digest::of(token.as_bytes());
    let tokens = format!(
        "boss {} read,send,pause,resume\nci-worker {} agent\n",
        digest("all"),
        digest("work")
    );
    home.file("tokens", &tokens);
    let file = home.path("tokens").display().to_string();
    let mut server = Server { home, serving: None, address: String::new() };
    server.start(&["--tokens-file", &file]);
    let boss = ("authorization", "Bearer all");
    let mut params = message("m1");
    params["configuration"] = json!({ "returnImmediately": true });
    let sent = server.result(&[boss], "SendMessage", params);
    let (task, session) = (&sent["task"]["id"], sent.pointer("/task/contextId").unwrap());
    let path = format!("POST /a2a/tasks/{}:awaitResumption", task.as_str().unwrap());
    let wait = json!({ "reason": "ci" }).to_string();
    let refused = http::send(&*server.address, &path, &[JSON, boss], &wait);
    assert_eq!(refused.status, 403, "{}", refused.body);
    let session = session.as_str().unwrap();
    server.home.until_shown(session, |shown| shown["inFlight"] == json!(["build"]));
    let wait = request("tasks/await_resumption", json!({ "taskId": task, "reason": "ci" }));
    let waiting = server.begin(&[("authorization", "Bearer work")], &wait);
    server.home.until_shown(session, |shown| shown["initiator"] == "agent");
    drop(waiting);
    let log = server.home.told(&["log", session]).data;
    assert!(log.contains("await_requested") && log.contains("ci-worker"), "{log}");
}
