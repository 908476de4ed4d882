//! What is refused, with which code and which word.

use adjourn::core::Session;
use adjourn::core::session::Initiator;
use adjourn_a2a::Scope;
use adjourn_a2a::rpc::Reply;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::store::TENANT;
use serde_json::{Value, json};

use crate::peer::{Peer, caller, message};

const DONE: &str = r#"{"steps": [{"say": "done"}]}"#;
const NOBODY: &str = "run-019abf6b-7d51-7c1d-bb02-0123456789ab";
const NO_HANDLE: &str = "suspend-019abf6b-7d51-7c1d-bb02-0123456789ab";

fn is(code: i64, reason: &str) -> (i64, String) {
    (code, reason.to_owned())
}

#[tokio::test]
async fn an_unknown_task_has_the_code_of_the_methods_family() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, DONE);
    for task in [NOBODY, "", "x", "task-1", "run-", "../../etc/passwd"] {
        for (method, id, code) in [
            ("tasks/get", "id", -32001),
            ("GetTask", "id", -32001),
            ("tasks/cancel", "id", -32001),
            ("tasks/resubscribe", "id", -32001),
            ("tasks/pause", "taskId", -32004),
            ("tasks/resume", "taskId", -32004),
            ("tasks/await_resumption", "taskId", -32004),
            ("PauseTask", "taskId", -32001),
            ("ResumeTask", "taskId", -32001),
            ("AwaitTaskResumption", "taskId", -32001),
        ] {
            let refused = peer.refused(method, json!({ id: task, "reason": "ci" })).await;
            let expected = match task {
                "" => is(-32602, "INVALID_PARAMS"),
                _ => is(code, "TASK_NOT_FOUND"),
            };
            assert_eq!(refused, expected, "{method} {task:?}");
        }
    }
}

#[tokio::test]
async fn the_task_of_another_tenant_is_not_there() {
    let fixture = Fixture::new();
    let mut peer = Peer::new(&fixture, DONE);
    let task = peer.begin().await;
    let handle = peer.pause(&task).await;
    peer.caller = caller("another", &Scope::ALL);
    for (method, code) in [("tasks/pause", -32004), ("tasks/resume", -32004), ("PauseTask", -32001)]
    {
        let params = json!({ "taskId": task, "handle": handle });
        assert_eq!(peer.refused(method, params).await, is(code, "TASK_NOT_FOUND"), "{method}");
    }
    let stranger = peer.refused("tasks/get", json!({ "id": task })).await;
    assert_eq!(stranger, peer.refused("tasks/get", json!({ "id": NOBODY })).await);
    assert_eq!(peer.result("ListTasks", json!({})).await["tasks"], json!([]));
    // One who names another tenant is told no more.
    peer.caller = caller(TENANT, &Scope::ALL);
    let params = json!({ "id": task, "tenant": "another" });
    assert_eq!(peer.refused("GetTask", params).await, is(-32001, "TASK_NOT_FOUND"));
    let params = json!({ "id": task, "tenant": TENANT });
    assert_eq!(peer.result("GetTask", params).await["id"], task.as_str());
}

#[tokio::test]
async fn what_a_token_does_not_allow_is_refused_and_a_handle_is_for_those_who_may_resume() {
    let fixture = Fixture::new();
    let mut peer = Peer::new(&fixture, DONE);
    let task = peer.begin().await;
    peer.pause(&task).await;
    peer.caller = caller(TENANT, &[Scope::Read]);
    for (method, params) in [
        ("tasks/pause", json!({ "taskId": task })),
        ("tasks/resume", json!({ "taskId": task })),
        ("tasks/await_resumption", json!({ "taskId": task, "reason": "ci" })),
        ("tasks/cancel", json!({ "id": task })),
        ("message/send", json!({ "message": message("m2", "x") })),
    ] {
        assert_eq!(peer.refused(method, params).await, is(-32050, "PERMISSION_DENIED"), "{method}");
    }
    let shown = peer.get(&task).await;
    assert_eq!(shown.pointer("/metadata/harn/pause/state"), Some(&"paused-by-client".into()));
    assert!(!shown.to_string().contains("suspend-"), "{shown}");
    peer.caller = caller(TENANT, &[Scope::Read, Scope::Resume]);
    assert!(peer.get(&task).await.pointer("/metadata/harn/pause/handle").is_some());
}

#[tokio::test]
async fn moves_that_the_state_machine_does_not_have_are_refused() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, DONE);
    let task = peer.begin().await;
    let resume = |handle: Option<&str>| json!({ "taskId": task, "handle": handle });
    assert_eq!(peer.refused("tasks/resume", resume(None)).await, is(-32011, "TASK_NOT_PAUSED"));
    let to_busy = json!({ "message": with_task(message("m2", "x"), &task) });
    assert_eq!(peer.refused("message/send", to_busy).await, is(-32004, "TASK_BUSY"));

    let handle = peer.pause(&task).await;
    assert_eq!(peer.pause(&task).await, handle, "a second pause joins the first");
    let to_paused = json!({ "message": with_task(message("m3", "x"), &task) });
    assert_eq!(peer.refused("SendMessage", to_paused).await, is(-32004, "TASK_PAUSED"));
    let other = json!({ "taskId": task, "conditions": { "onEvent": "a" } });
    assert_eq!(peer.refused("tasks/pause", other).await, is(-32011, "CONDITIONS_DIFFER"));
    for wrong in [NO_HANDLE, "x"] {
        let refused = peer.refused("tasks/resume", resume(Some(wrong))).await;
        assert_eq!(refused, is(-32012, "SUSPENSION_HANDLE_MISMATCH"), "{wrong}");
    }
    peer.result("tasks/resume", resume(Some(&handle))).await;
    let again = peer.refused("tasks/resume", resume(Some(&handle))).await;
    assert_eq!(again, is(-32011, "ALREADY_RESUMED"));

    let canceled = peer.result("tasks/cancel", json!({ "id": task })).await;
    assert_eq!(canceled["status"]["state"], "canceled");
    let terminal = peer.refused("tasks/pause", json!({ "taskId": task })).await;
    assert_eq!(terminal, is(-32011, "TASK_NOT_PAUSABLE"));
    let terminal = peer.refused("tasks/cancel", json!({ "id": task })).await;
    assert_eq!(terminal, is(-32002, "TASK_NOT_CANCELABLE"));
    let terminal = peer.refused("tasks/resubscribe", json!({ "id": task })).await;
    assert_eq!(terminal, is(-32004, "UNSUPPORTED_OPERATION"));
    let to_terminal = json!({ "message": with_task(message("m4", "x"), &task) });
    assert_eq!(peer.refused("message/send", to_terminal).await.0, -32004);
    // What was refused has left the session as it was.
    assert_eq!(peer.get(&task).await["status"]["state"], "canceled");
}

#[tokio::test]
async fn a_pause_that_comes_behind_the_end_of_its_task_pauses_nothing_else() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, DONE);
    let first = peer.begin().await;
    let context = peer.get(&first).await["contextId"].clone();
    peer.result("tasks/cancel", json!({ "id": first })).await;
    let mut again = message("m2", "again");
    again["contextId"] = context.clone();
    let params = json!({ "message": again, "configuration": { "blocking": false } });
    let second = peer.result("message/send", params).await;
    assert_eq!(second["contextId"], context, "the idle session goes on");
    let refused = peer.refused("tasks/pause", json!({ "taskId": first })).await;
    assert_eq!(refused, is(-32011, "TASK_NOT_PAUSABLE"));
    let refused = peer.refused("tasks/resume", json!({ "taskId": first })).await;
    assert_eq!(refused, is(-32011, "TASK_NOT_PAUSED"));
    let second = second["id"].as_str().unwrap();
    let handle = peer.pause(second).await;
    // What is told of it is its own state, and not that of what its session does now.
    for (method, params) in [
        ("tasks/pause", json!({ "taskId": first })),
        ("tasks/await_resumption", json!({ "taskId": first, "reason": "ci" })),
    ] {
        let refused = peer.ask(method, params).await;
        let message = "TASK_NOT_PAUSABLE: the task is canceled";
        assert_eq!(refused["error"]["message"], message, "{method}");
    }
    let params = json!({ "taskId": first, "handle": handle });
    let refused = peer.refused("tasks/resume", params).await;
    assert_eq!(refused, is(-32012, "SUSPENSION_HANDLE_MISMATCH"), "it is another task's");
    // A key makes no difference to that.
    let params = json!({ "taskId": first, "handle": handle, "idempotencyKey": "k" });
    let refused = peer.refused("tasks/resume", params).await;
    assert_eq!(refused, is(-32012, "SUSPENSION_HANDLE_MISMATCH"));
    let keyed = |task: &str, key: &str| json!({ "taskId": task, "idempotencyKey": key });
    let refused = peer.refused("tasks/resume", keyed(&first, "k")).await;
    assert_eq!(refused, is(-32011, "TASK_NOT_PAUSED"));
    let state = |task: Value| task.pointer("/metadata/harn/pause/state").cloned();
    assert_eq!(state(peer.get(second).await), Some("paused-by-client".into()));
    // What was refused has left the key free.
    let woken = peer.result("tasks/resume", keyed(second, "k")).await;
    assert_eq!(woken["taskId"], second);
    // And a session that is parked while it has no task is none of theirs.
    peer.result("tasks/cancel", json!({ "id": second })).await;
    let run = second.parse().unwrap();
    let session = fixture.adjourn().session_of(run).await.unwrap().unwrap();
    session.suspend().await.unwrap();
    for task in [first.as_str(), second] {
        let refused = peer.refused("tasks/resume", keyed(task, "other")).await;
        assert_eq!(refused, is(-32011, "TASK_NOT_PAUSED"));
    }
    assert!(session.load().await.unwrap().suspended().is_some());
}

#[tokio::test]
async fn a_key_that_woke_one_task_wakes_no_other_one_of_its_context() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, DONE);
    let first = peer.begin().await;
    let keyed = |task: &str, key: &str| json!({ "taskId": task, "idempotencyKey": key });
    peer.pause(&first).await;
    let woken = peer.result("tasks/resume", keyed(&first, "k")).await;
    peer.result("tasks/cancel", json!({ "id": first })).await;
    let mut again = message("m2", "again");
    again["contextId"] = peer.get(&first).await["contextId"].clone();
    let params = json!({ "message": again, "configuration": { "blocking": false } });
    let second = peer.result("message/send", params).await["id"].as_str().unwrap().to_owned();
    peer.pause(&second).await;
    let refused = peer.refused("tasks/resume", keyed(&second, "k")).await;
    assert_eq!(refused, is(-32011, "IDEMPOTENCY_KEY_REUSED"));
    // A caller that repeats the first resume is answered as the first time, and nothing else wakes.
    assert_eq!(peer.result("tasks/resume", keyed(&first, "k")).await, woken);
    let shown = peer.get(&second).await;
    assert_eq!(shown.pointer("/metadata/harn/pause/state"), Some(&"paused-by-client".into()));
    assert_eq!(peer.result("tasks/resume", keyed(&second, "l")).await["taskId"], second.as_str());
}

#[tokio::test]
async fn what_is_no_request_is_told_as_such() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, DONE);
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"tasks/get"}]"#, -32600),
        (r#"{"id":1,"method":"tasks/get"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"tasks/get"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{}}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":0}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageToken":"x"}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"status":"x"}}"#, -32602),
    ] {
        let headers = adjourn_a2a::rpc::Headers::default();
        let reply = peer.face.rpc(&peer.caller, headers, body.as_bytes()).await;
        let Reply::Object { json, error } = reply else { panic!("{body}: a stream") };
        let answer: Value = adjourn::core::json::stored_text(&json).unwrap();
        assert_eq!((&answer["error"]["code"], error), (&json!(code), Some(code)), "{body}: {json}");
        let expected = if body.contains("\"id\":1") && !body.starts_with('[') {
            json!(1)
        } else {
            Value::Null
        };
        assert_eq!(answer["id"], expected, "{body}");
    }
    let headers = adjourn_a2a::rpc::Headers { version: Some("2.0"), ..Default::default() };
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": NOBODY } });
    let reply = peer.face.rpc(&peer.caller, headers, body.to_string().as_bytes()).await;
    let Reply::Object { error, .. } = reply else { panic!("a stream") };
    assert_eq!(error, Some(-32009));
}

pub fn with_task(mut message: Value, task: &str) -> Value {
    message["taskId"] = task.into();
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_lost_its_host_is_not_paused_and_wakes_when_a_person_has_looked() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"steps": [{"tool": {"name": "deploy", "ms": 1000}}, {"say": "done"}]}"#;
    let peer = Peer::new(&fixture, script);
    let task = peer.begin().await;
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_in_flight(session.id(), "deploy").await;
    host.kill().await;
    let host = fixture.host().await;
    fixture.pass_until(session.id(), "suspended").await;
    let shown = peer.get(&task).await;
    assert_eq!(shown["status"]["state"], "input-required");
    assert!(shown["status"]["message"].to_string().contains("deploy"), "{shown}");
    let revision = session.load().await.unwrap().revision;
    let params = json!({ "taskId": task });
    let refused = peer.refused("tasks/pause", params.clone()).await;
    assert_eq!(refused, is(-32011, "TASK_NOT_PAUSABLE"));
    assert_eq!(session.load().await.unwrap().revision, revision, "it is as it was");
    peer.result("tasks/resume", params).await;
    fixture.pass_until(session.id(), "idle").await;
    host.stop().await;
}

#[tokio::test]
async fn a_resume_behind_the_deadline_of_a_pause_is_told_that_the_pause_is_over() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, r#"{"steps": [{"await": {"reason": "ci"}}, {"say": "done"}]}"#);
    for (on_timeout, reason) in
        [("resume_with_summary", "ALREADY_RESUMED"), ("fail", "TASK_NOT_PAUSED")]
    {
        let params = json!({ "message": message(on_timeout, "go"),
                             "configuration": { "blocking": false } });
        let task = peer.result("message/send", params).await["id"].as_str().unwrap().to_owned();
        let timeout = json!({ "durationMinutes": 1, "onTimeout": on_timeout });
        let params = json!({ "taskId": task, "conditions": { "timeout": timeout } });
        let paused = peer.result("tasks/pause", params).await;
        let host = fixture.host().await;
        fixture.clock.advance(std::time::Duration::from_secs(61));
        let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
        let is_over = |session: &Session| {
            session.suspended().is_none_or(|there| there.park.pause.initiator == Initiator::Agent)
        };
        fixture.until(session.id(), "over", is_over).await;
        let params = json!({ "taskId": task, "handle": paused["handle"] });
        let refused = peer.refused("tasks/resume", params).await;
        assert_eq!(refused, is(-32011, reason), "{on_timeout}");
        host.stop().await;
    }
}

#[tokio::test]
async fn a_verb_of_the_library_that_means_a_run_which_is_over_touches_no_other_one() {
    let fixture = Fixture::new();
    let session = fixture.adjourn().session(fixture.create(DONE));
    let first = session.prompt("one").await.unwrap().run;
    session.cancel().of_run(first).await.unwrap();
    let second = session.prompt("two").await.unwrap().run;
    session.suspend().of_run(second).await.unwrap();
    let before = session.load().await.unwrap();
    assert!(session.suspend().of_run(first).await.is_err());
    assert!(session.resume().of_run(first).await.is_err());
    assert!(session.cancel().of_run(first).await.is_err());
    assert_eq!(session.load().await.unwrap().revision, before.revision);
    session.resume().of_run(second).await.unwrap();
}
