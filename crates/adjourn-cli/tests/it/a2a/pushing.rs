//! Push notifications of the program, over SIGKILL and with more than one server.

use adjourn_testkit::receiver::{Received, Receiver, Reply};
use serde_json::{Value, json};

use super::{STATES, Server, message};

const ARGUMENTS: &[&str] = &["--insecure-open", "--push", "loopback"];

/// An agent that waits for an event, so that nothing but the peers moves its task.
const WAITS: &str = r#"{"steps": [{"await": {"reason": "ci", "conditions": {"onEvent": "ci.passed"}}}, {"say": "merged"}]}"#;

/// Begins a task with a receiver, and returns its id.
fn begin(server: &Server, receiver: &Receiver) -> Value {
    let mut params = message("m1");
    params["configuration"] = json!({ "returnImmediately": true,
        "taskPushNotificationConfig": { "id": "c", "url": receiver.url("/hook"), "token": "t0ken" } });
    server.result(&[STATES], "SendMessage", params)["task"]["id"].clone()
}

#[test]
fn a_server_that_is_killed_while_it_tells_a_receiver_loses_nothing_and_keeps_the_order() {
    let receiver = Receiver::new();
    let mut server = Server::new(WAITS, ARGUMENTS);
    let task = begin(&server, &receiver);
    let mut all = receiver.until("TASK_STATE_PAUSED_BY_AGENT");
    for _ in 0..4 {
        // The server is killed while it waits for the answer to one, with more behind it.
        receiver.replies([Reply::Nothing]);
        let paused = server.result(&[], "tasks/pause", json!({ "taskId": task }));
        all.push(receiver.next());
        server.result(&[], "tasks/resume", json!({ "taskId": task, "handle": paused["handle"] }));
        server.kill();
        server.start(ARGUMENTS);
        // The pause again, and the two of the resume: the next one is sent when these are known to
        // have been told, so that no kill falls in between.
        all.extend([(); 3].map(|()| receiver.next()));
    }
    server.home.json(&["event", "ci.passed"]);
    all.extend(receiver.until("TASK_STATE_COMPLETED"));
    // What had no answer came again, at once, with the same key; nothing else came twice.
    let mut keys: Vec<_> = all.iter().map(Received::key).collect();
    keys.dedup();
    assert_eq!(keys.len(), all.len() - 4, "{keys:?}");
    // It is what the stream tells.
    let mut watch = server.watch(&task, Some("2"));
    let mut told = Vec::new();
    while let Some((id, event)) = watch.next() {
        if event.get("result").is_some() {
            told.push(format!("{}/c/{id}", task.as_str().unwrap()));
        }
    }
    assert_eq!(keys, told);
    assert_eq!(server.serving.take().unwrap().terminate(), 0);
}

#[test]
fn another_server_tells_the_receivers_of_one_that_was_killed() {
    let receiver = Receiver::new();
    let mut server = Server::new(WAITS, ARGUMENTS);
    let task = begin(&server, &receiver);
    receiver.until("TASK_STATE_PAUSED_BY_AGENT");
    let script = server.home.path("agent.json").display().to_string();
    let other = ["--listen", "127.0.0.1:0", "--script", &script];
    let (other, _) = server.home.serve_with(&[&other, ARGUMENTS].concat());
    receiver.replies([Reply::Nothing]);
    server.result(&[], "tasks/pause", json!({ "taskId": task }));
    let first = receiver.next();
    server.kill();
    let again = receiver.next();
    assert_eq!((again.key(), again.state()), (first.key(), first.state()));
    assert_eq!(other.terminate(), 0);
}

#[test]
fn where_notifications_may_go_is_a_setting() {
    let receiver = Receiver::new();
    for (push, code) in [("off", -32003), ("public", -32602)] {
        let server = Server::new(WAITS, &["--insecure-open", "--push", push]);
        let task = server.result(&[STATES], "SendMessage", message("m1"))["task"]["id"].clone();
        let params = json!({ "taskId": task, "url": receiver.url("/") });
        let request = super::request("CreateTaskPushNotificationConfig", params);
        let refused = server.post(&[super::JSON], &request).json();
        assert_eq!(refused["error"]["code"], code, "{push}: {refused}");
    }
}
