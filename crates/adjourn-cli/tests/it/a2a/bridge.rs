//! One session through both faces, each in a process of its own.

use adjourn_testkit::editor::Editor;
use serde_json::{Value, json};

use super::{STATES, Server};

const WORKS: &str =
    r#"{"steps": [{"tool": {"name": "build", "ms": 3000, "result": "ok"}}, {"say": "merged"}]}"#;

/// An editor that knows the proposal: it is told of suspensions in the proposal's own updates.
fn editor(server: &Server, script: &str) -> Editor {
    let capabilities = json!({ "supportsSuspend": true });
    let greeting = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    Editor::greeted(&server.home, script, &[], &greeting)
}

/// Requires that two faces say the same, byte for byte.
fn same(ours: &Value, theirs: &Value, what: &str) {
    assert!(!ours.is_null(), "{what} is missing");
    assert_eq!(ours.to_string(), theirs.to_string(), "{what}");
}

#[test]
fn a_task_that_is_paused_over_a2a_is_suspended_over_acp_and_woken_there() {
    let server = Server::new(WORKS, &["--insecure-open"]);
    let message = json!({ "messageId": "m1", "parts": [{ "text": "merge it" }] });
    let params = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let sent = server.result(&[STATES], "SendMessage", params);
    let (task, session) = (&sent["task"]["id"], &sent["task"]["contextId"]);
    let conditions = json!({ "onEvent": "review.done:pr/12",
                             "timeout": { "durationMinutes": 30.5, "onTimeout": "resume_with_summary" } });
    let params =
        json!({ "taskId": task, "reason": "operator review: é\"\\", "conditions": conditions });
    let paused = server.result(&[], "tasks/pause", params);
    assert_eq!(paused["state"], "paused-by-client");
    let mut watch = server.watch(task, None);
    watch.next().unwrap();

    let mut editor = editor(&server, WORKS);
    let attach = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
    let attaching = editor.request("session/resume", attach);
    let suspended = editor.update("suspended");
    for (ours, theirs) in [
        ("handle", "handle"),
        ("reason", "reason"),
        ("conditions", "resumeWhen"),
        ("pausedAt", "suspendedAt"),
    ] {
        same(&paused[ours], &suspended[theirs], ours);
    }
    same(&paused["conditions"], &conditions, "conditions");
    editor.answer(attaching).unwrap();

    let wake =
        json!({ "sessionId": session, "handle": paused["handle"], "input": { "go": [1, 2.5] } });
    let woken = editor.call("session/resume", wake).unwrap();
    let woken = &woken["_meta"]["adjourn/suspend"]["resumed"];
    let resumed = editor.update("resumed");
    let frame = loop {
        let (_, event) = watch.next().unwrap();
        if event["method"] == "tasks/statusUpdate" {
            break event["params"].clone();
        }
    };
    assert_eq!(
        (&frame["state"], &frame["previousState"]),
        (&json!("working"), &json!("paused-by-client"))
    );
    for field in ["cause", "hadResumeInput", "continueTranscript", "resumedAt"] {
        same(&frame[field], &resumed[field], field);
        same(&frame[field], &woken[field], field);
    }
    assert_eq!(
        (&frame["cause"], &frame["hadResumeInput"]),
        (&json!("explicit_resume"), &json!(true))
    );
    assert_eq!(watch.states(""), ["TASK_STATE_COMPLETED"]);
}

#[test]
fn a_self_park_is_the_same_over_both_faces_and_a_pause_over_acp_is_shown_over_a2a() {
    let server = Server::new(super::PARKS, &["--insecure-open"]);
    let sent = server.result(&[STATES], "SendMessage", super::message("m1"));
    let (task, session) = (&sent["task"]["id"], &sent["task"]["contextId"]);
    let pause = sent.pointer("/task/metadata/urn:adjourn:a2a:pause:v1").unwrap();
    let mut editor = editor(&server, super::PARKS);
    let attach = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
    let attaching = editor.request("session/resume", attach);
    let suspended = editor.update("suspended");
    let fields = [
        ("handle", "handle"),
        ("reason", "reason"),
        ("conditions", "resumeWhen"),
        ("pausedAt", "suspendedAt"),
        ("initiator", "initiator"),
    ];
    for (ours, theirs) in fields {
        same(&pause[ours], &suspended[theirs], ours);
    }
    editor.answer(attaching).unwrap();
    // Paused over ACP: a hold, which A2A shows as a client's pause.
    let held = editor.call("session/suspend", json!({ "sessionId": session, "reason": "lunch" }));
    let held = held.unwrap();
    let shown = server.result(&[STATES], "GetTask", json!({ "id": task }));
    assert_eq!(shown.pointer("/status/state"), Some(&"TASK_STATE_PAUSED_BY_CLIENT".into()));
    let pause = shown.pointer("/metadata/urn:adjourn:a2a:pause:v1").unwrap();
    for (ours, theirs) in [("handle", "handle"), ("reason", "reason"), ("pausedAt", "suspendedAt")]
    {
        same(&pause[ours], &held[theirs], ours);
    }
    // Lifted over A2A.
    let lifted =
        server.result(&[], "tasks/resume", json!({ "taskId": task, "handle": pause["handle"] }));
    assert_eq!(lifted["state"], "paused-by-agent");
    let resumed = editor.update("resumed");
    same(&lifted["cause"], &resumed["cause"], "cause");
    same(&lifted["resumedAt"], &resumed["resumedAt"], "resumedAt");
}
