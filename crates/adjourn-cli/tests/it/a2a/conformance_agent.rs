//! The agent that test kits talk to, by the beginnings that they use.

use serde_json::{Value, json};

use super::Server;
use crate::home::Home;

fn server() -> Server {
    let home = Home::new();
    let (serving, said) =
        home.serve_with(&["--listen", "127.0.0.1:0", "--agent", "conformance", "--insecure-open"]);
    let (_, address) = said.split_once("an A2A agent on http://").unwrap();
    let address = address.split_once("/a2a").unwrap().0.to_owned();
    Server { home, serving: Some(serving), address }
}

/// Says something under an id, with a text; returns the whole answer.
fn send(server: &Server, id: &str, text: &str, more: Value) -> Value {
    let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
    let mut params = json!({ "message": message });
    for (name, value) in more.as_object().unwrap() {
        match name.as_str() {
            "taskId" | "contextId" => params["message"][name] = value.clone(),
            _ => params[name] = value.clone(),
        }
    }
    server.result(&[], "SendMessage", params)
}

#[test]
fn each_beginning_of_an_id_or_a_text_has_its_behaviour() {
    let server = server();
    let sent = |id: &str, text: &str| send(&server, id, text, json!({}));
    let completed = "TASK_STATE_COMPLETED";
    for (name, state, parts) in [
        ("tck-complete-task", completed, json!([{ "text": "Hello from TCK" }])),
        ("tck-artifact-text", completed, json!([{ "text": "Generated text content" }])),
        (
            "tck-artifact-file",
            completed,
            json!([{ "raw": "dGNr", "mediaType": "text/plain", "filename": "output.txt" }]),
        ),
        (
            "tck-artifact-file-url",
            completed,
            json!([{ "url": "https://example.com/output.txt", "mediaType": "text/plain", "filename": "output.txt" }]),
        ),
        ("tck-artifact-data", completed, json!([{ "data": { "key": "value", "count": 42 } }])),
        ("tck-stream-002", completed, Value::Null),
        ("tck-stream-artifact-chunked", completed, json!([{ "text": "chunk-1 chunk-2" }])),
        ("tck-reject-task", "TASK_STATE_REJECTED", Value::Null),
        ("tck-task-failure", "TASK_STATE_FAILED", Value::Null),
        ("tck-input-required", "TASK_STATE_INPUT_REQUIRED", Value::Null),
        ("tck-auth-required", "TASK_STATE_AUTH_REQUIRED", Value::Null),
        ("anything", completed, json!([{ "text": "Done" }])),
    ] {
        for (id, text) in [(format!("{name}-1f2e"), "x"), (format!("m-{name}"), name)] {
            let task = &sent(&id, text)["task"];
            let shown = task.pointer("/artifacts/0/parts").unwrap_or(&Value::Null);
            assert_eq!((&task["status"]["state"], shown), (&json!(state), &parts), "{id}: {task}");
        }
    }
    let answer = &sent("tck-message-response-1", "x")["message"];
    assert_eq!(answer["parts"], json!([{ "text": "Direct message response" }]), "{answer}");
    assert_eq!((&answer["role"], answer.get("taskId")), (&json!("ROLE_AGENT"), None));
    assert!(answer["contextId"].is_string());
}

#[test]
fn questions_of_the_agent_are_answered_in_one_turn_or_several() {
    let server = server();
    for (name, turns, last) in [
        ("tck-input-required", vec!["more"], "Received: more"),
        ("tck-multi-turn", vec!["more input", "and more", "done"], "Received: done"),
    ] {
        let mut task = send(&server, &format!("{name}-0"), "x", json!({}))["task"].clone();
        for (number, turn) in (1..).zip(turns) {
            assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{name}: {task}");
            let about = json!({ "taskId": task["id"], "contextId": task["contextId"] });
            task = send(&server, &format!("{name}-{number}"), turn, about)["task"].clone();
        }
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{name}: {task}");
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], last);
        // What comes next in the same context is no answer.
        let next =
            send(&server, "tck-artifact-text-9", "x", json!({ "contextId": task["contextId"] }));
        assert_eq!(next["task"]["artifacts"][0]["parts"][0]["text"], "Generated text content");
    }
}

#[test]
fn work_that_takes_its_time_is_seen_watched_paused_and_canceled() {
    let server = server();
    let at_once = json!({ "configuration": { "returnImmediately": true } });
    for name in
        ["tck-cancel", "test-resubscribe-message-id", "tck-long-running", "tck-delayed-complete"]
    {
        let task = &send(&server, &format!("{name}-1"), "x", at_once.clone())["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_WORKING", "{name}: {task}");
        let id = json!({ "id": task["id"] });
        let canceled = server.result(&[], "CancelTask", id);
        assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED", "{name}: {canceled}");
    }
    // A pause that breaks the work off, and a resume that goes on with it.
    let task = &send(&server, "tck-long-running-2", "x", at_once)["task"]["id"];
    let pause = json!({ "taskId": task, "mode": "interrupt_immediate" });
    let paused = server.result(&[], "tasks/pause", pause);
    assert_eq!(paused["state"], "paused-by-client");
    server.result(&[], "tasks/resume", json!({ "taskId": task, "handle": paused["handle"] }));
    let mut watch = server.watch(task, None);
    assert_eq!(watch.states("").last().map(String::as_str), Some("TASK_STATE_COMPLETED"));
    let done = server.result(&[], "GetTask", json!({ "id": task }));
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "long running result", "{done}");
}

#[test]
fn pieces_are_told_as_they_come() {
    let server = server();
    let message = json!({ "message": { "messageId": "tck-stream-artifact-chunked-1", "role": "ROLE_USER", "parts": [{ "text": "x" }] },
                          "configuration": { "returnImmediately": true } });
    let task = server.result(&[], "SendMessage", message)["task"]["id"].clone();
    let mut watch = server.watch(&task, None);
    let mut pieces = Vec::new();
    while let Some((_, event)) = watch.next() {
        if let Some(update) = event.pointer("/result/artifactUpdate") {
            pieces.push((
                update["artifact"]["artifactId"].clone(),
                update["artifact"]["parts"][0]["text"].as_str().unwrap().to_owned(),
                update["append"] == json!(true),
                update["lastChunk"] == json!(true),
            ));
        }
    }
    let same = |piece: &(Value, String, bool, bool)| piece.0 == pieces[0].0;
    assert!(pieces.len() >= 2 && pieces.iter().all(same), "{pieces:?}");
    assert_eq!(pieces.iter().map(|piece| piece.1.as_str()).collect::<String>(), "chunk-1 chunk-2");
    assert!(!pieces[0].2 && pieces[1..].iter().all(|piece| piece.2), "{pieces:?}");
    let lasts: Vec<_> = pieces.iter().map(|piece| piece.3).collect();
    assert_eq!(lasts.iter().filter(|last| **last).count(), 1, "{pieces:?}");
    assert_eq!(lasts.last(), Some(&true));
}

#[test]
fn it_is_an_agent_like_any_other_and_its_name_is_taken() {
    let home = Home::new();
    let told = home.told(&["run", "tck-complete-task", "--agent", "conformance"]);
    assert_eq!((told.code, told.data.as_str()), (0, "Hello from TCK\n"), "{told:?}");
    let told = home.told(&["run", "x", "--agent", "conformance", "--model", "openai/x"]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.contains("has no model and no tools"), "{told:?}");
    home.config("[agent.conformance]\nmodel = \"scripted:x.json\"\n");
    let told = home.told(&["ls"]);
    assert!(told.talk.contains("lists use that name for something else"), "{told:?}");
}
