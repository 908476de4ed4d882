//! SIGKILL of the server, again and again, while a task is paused, resumed and watched: what was
//! acknowledged is there, a message that is sent again is the same one, and a watcher that comes back
//! each time is told every event once.

use adjourn_testkit::dice::Dice;
use adjourn_testkit::http::{self, Answer};
use serde_json::{Value, json};

use super::{JSON, STATES, Server, message, request};

const ROUNDS: usize = 6;

/// An agent that waits for an event, so that nothing but the peers moves its task.
const WAITS: &str = r#"{"steps": [{"await": {"reason": "ci", "conditions": {"onEvent": "ci.passed"}}}, {"say": "merged"}]}"#;

/// Sends a request in a thread of its own, and kills the server at some time meanwhile. Returns the
/// answer, if there was one.
fn ask_and_kill(
    server: &mut Server,
    method: &str,
    params: Value,
    dice: &mut Dice,
) -> Option<Value> {
    let address = server.address.clone();
    let body = request(method, params).to_string();
    let asking = std::thread::spawn(move || -> Option<Answer> {
        // The server may die before there is an answer, or in the middle of it.
        std::panic::catch_unwind(|| http::send(&*address, "POST /a2a", &[JSON, STATES], &body)).ok()
    });
    // How far the request has come by then is left to chance.
    for _ in 0..dice.index(2000) {
        std::hint::spin_loop();
    }
    server.kill();
    let answer = asking.join().unwrap().map(|answer| answer.json());
    server.start(&["--insecure-open"]);
    answer.filter(|answer| answer.get("result").is_some()).map(|answer| answer["result"].clone())
}

#[test]
fn a_server_that_is_killed_in_the_middle_loses_nothing_that_it_has_acknowledged() {
    let mut dice = Dice::drawn();
    let mut server = Server::new(WAITS, &["--insecure-open"]);
    // A message that was perhaps taken is sent again until there is an answer.
    let sent = ask_and_kill(&mut server, "SendMessage", message("m1"), &mut dice);
    let again = server.result(&[STATES], "SendMessage", message("m1"));
    let task = again["task"]["id"].clone();
    if let Some(sent) = sent {
        assert_eq!(sent["task"]["id"], task);
    }
    let listed = server.result(&[STATES], "ListTasks", json!({}));
    assert_eq!(listed["totalSize"], 1, "{listed}");

    let mut seen = vec![server.watch(&task, None).next().unwrap()];
    for _ in 0..ROUNDS {
        let last = seen.last().unwrap().0.clone();
        let mut watch = server.watch(&task, Some(&last));
        let paused = ask_and_kill(
            &mut server,
            "tasks/pause",
            json!({ "taskId": task, "reason": "review" }),
            &mut dice,
        );
        // What the stream told before it was cut off is kept.
        while let Some(event) = watch.next() {
            seen.push(event);
        }
        let shown = server.result(&[STATES], "GetTask", json!({ "id": task }));
        let handle = shown.pointer("/metadata/urn:adjourn:a2a:pause:v1/handle").cloned();
        if let Some(paused) = paused {
            assert_eq!(shown.pointer("/status/state"), Some(&"TASK_STATE_PAUSED_BY_CLIENT".into()));
            assert_eq!(handle.as_ref(), Some(&paused["handle"]));
        }
        // It is paused, or was never asked to be.
        let handle = server.result(&[], "tasks/pause", json!({ "taskId": task }))["handle"].clone();
        let resume = json!({ "taskId": task, "handle": handle });
        let last = seen.last().unwrap().0.clone();
        let mut watch = server.watch(&task, Some(&last));
        let resumed = ask_and_kill(&mut server, "tasks/resume", resume.clone(), &mut dice);
        while let Some(event) = watch.next() {
            seen.push(event);
        }
        let once = server.post(&[JSON], &request("tasks/resume", resume)).json();
        let reason = once.pointer("/error/data/0/reason");
        match resumed {
            Some(_) => assert_eq!(reason, Some(&"ALREADY_RESUMED".into()), "{once}"),
            None => {
                assert!(reason.is_none() || reason == Some(&"ALREADY_RESUMED".into()), "{once}");
            }
        }
    }
    let last = seen.last().unwrap().0.clone();
    let mut watch = server.watch(&task, Some(&last));
    server.home.json(&["event", "ci.passed"]);
    while let Some(event) = watch.next() {
        seen.push(event);
    }
    // One who was never cut off is told the same.
    let mut whole = vec![seen[0].clone()];
    let mut watch = server.watch(&task, Some(&seen[0].0.clone()));
    while let Some(event) = watch.next() {
        whole.push(event);
    }
    assert_eq!(seen, whole);
    let (_, end) = seen.last().unwrap();
    let state = end.pointer("/result/statusUpdate/status/state");
    assert_eq!(state, Some(&"TASK_STATE_COMPLETED".into()), "{end}");
    assert_eq!(server.serving.take().unwrap().terminate(), 0);
}
