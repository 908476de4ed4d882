//! A session that is closed while its task is paused: the task is at its end, and stays there.

use serde_json::json;

use super::{PARKS, STATES, Server, message};

#[test]
fn a_paused_task_of_a_session_that_is_closed_is_canceled_and_nothing_moves_it() {
    let server = Server::new(PARKS, &["--insecure-open"]);
    let sent = server.result(&[STATES], "SendMessage", message("m1"));
    assert_eq!(sent.pointer("/task/status/state"), Some(&"TASK_STATE_PAUSED_BY_AGENT".into()));
    let (task, session) = (&sent["task"]["id"], sent["task"]["contextId"].as_str().unwrap());
    let handle = sent.pointer("/task/metadata/urn:adjourn:a2a:pause:v1/handle").unwrap();
    let mut watch = server.watch(task, None);
    watch.next().unwrap();
    server.home.json(&["close", session]);
    // One who watches is told of the end, and the stream ends.
    assert_eq!(watch.states(""), ["TASK_STATE_CANCELED"]);
    let get = || server.result(&[STATES], "GetTask", json!({ "id": task }));
    let closed = get();
    assert_eq!(closed.pointer("/status/state"), Some(&"TASK_STATE_CANCELED".into()));
    assert_eq!(closed.pointer("/metadata/urn:adjourn:a2a:pause:v1"), None, "{closed}");
    let refused = server.refused("tasks/resume", json!({ "taskId": task }));
    assert_eq!(refused, (-32011, "TASK_NOT_PAUSED".to_owned()));
    // A handle names the suspension, and is told what became of its session.
    let refused = server.refused("tasks/resume", json!({ "taskId": task, "handle": handle }));
    assert_eq!(refused, (-32011, "ENDED".to_owned()));
    let refused = server.refused("tasks/pause", json!({ "taskId": task }));
    assert_eq!(refused, (-32011, "TASK_NOT_PAUSABLE".to_owned()));
    let mut more = message("m2");
    more["message"]["taskId"] = task.clone();
    assert_eq!(server.refused("SendMessage", more).0, -32004);
    // What it waited for comes too late.
    server.home.json(&["event", "ci.passed"]);
    assert_eq!(get(), closed);
}
