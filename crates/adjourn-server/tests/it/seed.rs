//! Every message of the proposal, as it is written there, over real HTTP.

use adjourn::Event;
use adjourn_server::Access;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::Events;
use adjourn_testkit::store::TENANT;
use expect_test::expect;
use serde_json::{Value, json};

use crate::agent::{BOSS, DONE, JSON, STATES, Setting, request, token, words};
use crate::bindings::check;

const PARKS: &str = r#"{"steps": [
    {"await": {"reason": "waiting on ci/build:1234", "summary": "Paused on CI build 1234; ETA 3m.",
               "conditions": {"onEvent": "ci.build.completed:1234",
                              "timeout": {"durationMinutes": 30, "onTimeout": "fail"}}}},
    {"say": "merged"}]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_and_a_resume_are_answered_and_told_in_frames() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    let mut watch = served.watch(&task, &[STATES], None);
    watch.next().unwrap();
    // PAU-22 to PAU-32.
    let params = json!({ "taskId": task, "reason": "operator review", "mode": "finish_step", "metadata": {} });
    let paused = served.ask(&[], "tasks/pause", &params);
    check(
        &paused,
        expect![[r#"
            {
              "jsonrpc": "2.0",
              "id": "req-1",
              "result": {
                "taskId": "run-1",
                "state": "paused-by-client",
                "handle": "suspend-2",
                "pausedAt": "2026-11-16T09:00:00.000Z",
                "reason": "operator review"
              }
            }
        "#]],
    );
    let (_, update) = watch.next().unwrap();
    assert_eq!(update.pointer("/result/status/state"), Some(&"paused-by-client".into()));
    // PAU-48 to PAU-54.
    check(
        &watch.next().unwrap().1,
        expect![[r#"
            {
              "jsonrpc": "2.0",
              "method": "tasks/statusUpdate",
              "params": {
                "taskId": "run-1",
                "state": "paused-by-client",
                "handle": "suspend-2",
                "reason": "operator review",
                "initiator": "client",
                "pausedAt": "2026-11-16T09:00:00.000Z",
                "conditions": null
              }
            }
        "#]],
    );
    // PAU-41 to PAU-47.
    let params = json!({ "taskId": task, "handle": paused["result"]["handle"], "input": null,
                         "continueTranscript": true, "metadata": {} });
    check(
        &served.ask(&[], "tasks/resume", &params),
        expect![[r#"
            {
              "jsonrpc": "2.0",
              "id": "req-1",
              "result": {
                "taskId": "run-1",
                "state": "working",
                "previousState": "paused-by-client",
                "cause": "explicit_resume",
                "hadResumeInput": false,
                "continueTranscript": true,
                "resumedAt": "2026-11-16T09:00:00.000Z"
              }
            }
        "#]],
    );
    let (_, update) = watch.next().unwrap();
    assert_eq!(update.pointer("/result/status/state"), Some(&"working".into()));
    check(
        &watch.next().unwrap().1,
        expect![[r#"
            {
              "jsonrpc": "2.0",
              "method": "tasks/statusUpdate",
              "params": {
                "taskId": "run-1",
                "state": "working",
                "previousState": "paused-by-client",
                "cause": "explicit_resume",
                "hadResumeInput": false,
                "continueTranscript": true,
                "resumedAt": "2026-11-16T09:00:00.000Z"
              }
            }
        "#]],
    );
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_self_park_and_the_wake_by_its_condition_are_told_in_frames() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let served = Setting::new(PARKS).on(&fixture).await;
    let body = request("message/stream", &json!({ "message": words("m1") }));
    let events = Events::open(served.address, "POST /a2a", &[JSON, BOSS, STATES], &body);
    let mut frames = Vec::new();
    for (_, event) in events {
        if event["method"] != "tasks/statusUpdate" {
            continue;
        }
        frames.push(event);
        if frames.len() == 1 {
            let event = Event::new("ci.build.completed").subject("1234");
            fixture.adjourn().publish(event).await.unwrap();
        }
    }
    check(
        &json!(frames),
        expect![[r#"
            [
              {
                "jsonrpc": "2.0",
                "method": "tasks/statusUpdate",
                "params": {
                  "taskId": "run-1",
                  "state": "paused-by-agent",
                  "handle": "suspend-2",
                  "reason": "waiting on ci/build:1234",
                  "initiator": "agent",
                  "pausedAt": "2026-11-16T09:00:00.000Z",
                  "conditions": {
                    "onEvent": "ci.build.completed:1234",
                    "timeout": {
                      "durationMinutes": 30,
                      "onTimeout": "fail"
                    }
                  }
                }
              },
              {
                "jsonrpc": "2.0",
                "method": "tasks/statusUpdate",
                "params": {
                  "taskId": "run-1",
                  "state": "working",
                  "previousState": "paused-by-agent",
                  "cause": "condition_fired",
                  "hadResumeInput": false,
                  "continueTranscript": true,
                  "resumedAt": "2026-11-16T09:00:00.000Z"
                }
              }
            ]
        "#]],
    );
    host.stop().await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_await_of_a_worker_is_answered_and_told_in_a_frame() {
    let fixture = Fixture::new();
    let tokens = [token("boss", "admin", TENANT), token("worker", "agent", TENANT)];
    let served = Setting { access: Access::with(tokens), ..Setting::new(DONE) }.on(&fixture).await;
    let task = served.begin("m1");
    let mut watch = served.watch(&task, &[STATES], None);
    watch.next().unwrap();
    // The worker speaks for the agent, and may do nothing else.
    let worker = |what: &str, body: &str| {
        served.send(what, &[JSON, ("authorization", "Bearer worker")], body)
    };
    let get = worker("POST /a2a", &request("tasks/get", &json!({ "id": task })));
    assert_eq!(get.status, 403, "{}", get.body);
    // PAU-33 to PAU-40.
    let params = json!({
        "taskId": task,
        "reason": "waiting on ci/build:1234",
        "conditions": {
            "onEvent": "ci.build.completed:1234",
            "timeout": { "durationMinutes": 30, "onTimeout": "fail" },
        },
        "summary": "Paused on CI build 1234; ETA 3m.",
        "metadata": {},
    });
    let parked = worker("POST /a2a", &request("tasks/await_resumption", &params)).json();
    check(
        &parked,
        expect![[r#"
            {
              "jsonrpc": "2.0",
              "id": "req-1",
              "result": {
                "taskId": "run-1",
                "state": "paused-by-agent",
                "handle": "suspend-2",
                "pausedAt": "2026-11-16T09:00:00.000Z",
                "reason": "waiting on ci/build:1234",
                "conditions": {
                  "onEvent": "ci.build.completed:1234",
                  "timeout": {
                    "durationMinutes": 30,
                    "onTimeout": "fail"
                  }
                }
              }
            }
        "#]],
    );
    let (_, update) = watch.next().unwrap();
    assert_eq!(update.pointer("/result/status/state"), Some(&"paused-by-agent".into()));
    check(
        &watch.next().unwrap().1,
        expect![[r#"
            {
              "jsonrpc": "2.0",
              "method": "tasks/statusUpdate",
              "params": {
                "taskId": "run-1",
                "state": "paused-by-agent",
                "handle": "suspend-2",
                "reason": "waiting on ci/build:1234",
                "initiator": "agent",
                "pausedAt": "2026-11-16T09:00:00.000Z",
                "conditions": {
                  "onEvent": "ci.build.completed:1234",
                  "timeout": {
                    "durationMinutes": 30,
                    "onTimeout": "fail"
                  }
                }
              }
            }
        "#]],
    );
    // By its other names: a retry is told the same.
    let alias = worker("POST /a2a", &request("AwaitTaskResumption", &params)).json();
    assert_eq!(alias, parked);
    let path = format!("POST /a2a/tasks/{task}:awaitResumption");
    let by_path = worker(&path, &params.to_string());
    assert_eq!((by_path.status, &by_path.json()), (200, &parked["result"]));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_table_holds_for_each_family_of_names() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    let nobody = "run-019abf6b-7d51-7c1d-bb02-0123456789ab";
    let no_handle = "suspend-019abf6b-7d51-7c1d-bb02-0123456789ab";
    let codes = |method: &str, alias: &str, params: &Value| {
        let refused = |method: &str| {
            let answer = served.ask(&[], method, params);
            let error = &answer["error"];
            let info = &error["data"][0];
            assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{answer}");
            let reason = info["reason"].as_str().unwrap().to_owned();
            let message = error["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("{reason}: ")), "{message}");
            (error["code"].as_i64().unwrap(), reason)
        };
        let ((code, reason), (other, same)) = (refused(method), refused(alias));
        assert_eq!(reason, same);
        (code, other, reason)
    };
    let is = |code, other, reason: &str| (code, other, reason.to_owned());
    let pause = |params: Value| codes("tasks/pause", "PauseTask", &params);
    let resume = |params: Value| codes("tasks/resume", "ResumeTask", &params);
    let wait = |params: Value| codes("tasks/await_resumption", "AwaitTaskResumption", &params);
    // PAU-66.
    for wrong in [
        json!({}),
        json!({ "taskId": null }),
        json!({ "taskId": task, "mode": "soon" }),
        json!({ "taskId": task, "reason": 7 }),
        json!({ "taskId": task, "metadata": [] }),
        json!({ "taskId": task, "conditions": { "timeout": { "durationMinutes": 1, "onTimeout": "x" } } }),
        json!({ "taskId": task, "conditions": { "whatever": 1 } }),
    ] {
        assert_eq!(pause(wrong.clone()), is(-32602, -32602, "INVALID_PARAMS"), "{wrong}");
    }
    for wrong in [
        json!({ "reason": "ci" }),
        json!({ "taskId": task, "reason": " " }),
        json!({ "taskId": task, "reason": "ci", "summary": 7 }),
        json!({ "taskId": task, "reason": "ci", "conditions": { "onEvent": 7 } }),
    ] {
        assert_eq!(wait(wrong.clone()), is(-32602, -32602, "INVALID_PARAMS"), "{wrong}");
    }
    // PAU-67.
    assert_eq!(pause(json!({ "taskId": nobody })), is(-32004, -32001, "TASK_NOT_FOUND"));
    assert_eq!(resume(json!({ "taskId": nobody })), is(-32004, -32001, "TASK_NOT_FOUND"));
    let waits = |task: &str| json!({ "taskId": task, "reason": "ci" });
    assert_eq!(wait(waits(nobody)), is(-32004, -32001, "TASK_NOT_FOUND"));
    // PAU-68, PAU-69.
    assert_eq!(resume(json!({ "taskId": task })), is(-32011, -32011, "TASK_NOT_PAUSED"));
    served.result("tasks/pause", &json!({ "taskId": task }));
    let mismatch = json!({ "taskId": task, "handle": no_handle });
    assert_eq!(resume(mismatch), is(-32012, -32012, "SUSPENSION_HANDLE_MISMATCH"));
    assert_eq!(wait(waits(&task)), is(-32011, -32011, "TASK_NOT_PAUSABLE"));
    served.result("tasks/cancel", &json!({ "id": task }));
    assert_eq!(pause(json!({ "taskId": task })), is(-32011, -32011, "TASK_NOT_PAUSABLE"));
    assert_eq!(wait(waits(&task)), is(-32011, -32011, "TASK_NOT_PAUSABLE"));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_and_the_tunnel_of_an_earlier_implementation_are_as_the_proposal_has_them() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    // PAU-61 to PAU-64, PAU-77, PAU-79.
    let card = served.send("GET /.well-known/agent-card.json", &[], "").json();
    let capabilities = &card["capabilities"];
    let causes = json!(["explicit_resume", "condition_fired", "timeout", "external_event"]);
    let params = &capabilities["extensions"][0]["params"];
    for place in [capabilities, params] {
        assert_eq!((&place["supportsPause"], &place["resumeCauses"]), (&json!(true), &causes));
        assert_eq!(place["supportsAwaitResumption"], true, "{place}");
    }
    let tunnel = &capabilities["_meta"]["harn"]["pause"];
    assert_eq!((&tunnel["supports_pause"], &tunnel["resume_causes"]), (&json!(true), &causes));
    assert_eq!(tunnel["supports_await_resumption"], true);
    // PAU-72 to PAU-76: in, and out to a peer that knows no paused states.
    let task = served.begin("m1");
    let mut message = words("m2");
    message["taskId"] = task.as_str().into();
    message["metadata"] = json!({ "harn": { "pause": {
        "reason": "from afar", "mode": "finish_step", "conditions": { "on_event": "lunch.over" } } } });
    let paused = served.result("message/send", &json!({ "message": message }));
    assert_eq!(paused["status"]["state"], "working");
    assert_eq!(paused["history"].as_array().unwrap().len(), 1, "nothing was said");
    check(
        &paused["metadata"]["harn"],
        expect![[r#"
            {
              "pause": {
                "state": "paused-by-client",
                "reason": "from afar",
                "initiator": "client",
                "handle": "suspend-1",
                "conditions": {
                  "on_event": "lunch.over"
                }
              }
            }
        "#]],
    );
    served.stop().await;
}
