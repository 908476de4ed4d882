//! Every message of the proposal, as it is written there.

use adjourn::Event;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::told;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::peer::Peer;

fn check(value: &Value, expect: Expect) {
    expect.assert_eq(&told(value));
}

const PARKS: &str = r#"{"steps": [
    {"await": {"reason": "waiting on ci/build:1234", "summary": "Paused on CI build 1234; ETA 3m.",
               "conditions": {"onEvent": "ci.build.completed:1234",
                              "timeout": {"durationMinutes": 30, "onTimeout": "fail"}}}},
    {"say": "merged"}]}"#;

#[tokio::test]
async fn a_pause_and_a_resume_are_answered() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let params = json!({ "taskId": task, "reason": "operator review", "mode": "finish_step", "metadata": {} });
    let paused = peer.ask("tasks/pause", params).await;
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
    let params = json!({ "taskId": task, "handle": paused["result"]["handle"], "input": null,
                         "continueTranscript": true, "metadata": {} });
    check(
        &peer.ask("tasks/resume", params).await,
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
}

#[tokio::test]
async fn what_was_given_with_a_pause_is_kept_and_echoed() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let params = json!({
        "taskId": task, "reason": "lunch", "mode": "interrupt_immediate", "graceMs": 1000,
        "conditions": { "onEvent": "lunch.over" }, "metadata": { "ticket": 7 },
    });
    let paused = peer.result("PauseTask", params).await;
    check(
        &paused,
        expect![[r#"
            {
              "taskId": "run-1",
              "state": "paused-by-client",
              "handle": "suspend-2",
              "pausedAt": "2026-11-16T09:00:00.000Z",
              "reason": "lunch",
              "conditions": {
                "onEvent": "lunch.over"
              },
              "metadata": {
                "ticket": 7
              }
            }
        "#]],
    );
    check(
        &peer.get(&task).await["metadata"],
        expect![[r#"
            {
              "urn:adjourn:a2a:pause:v1": {
                "state": "paused-by-client",
                "handle": "suspend-1",
                "reason": "lunch",
                "initiator": "client",
                "pausedAt": "2026-11-16T09:00:00.000Z",
                "conditions": {
                  "onEvent": "lunch.over"
                },
                "summary": "paused by coordinator: lunch",
                "metadata": {
                  "ticket": 7
                }
              },
              "harn": {
                "pause": {
                  "state": "paused-by-client",
                  "reason": "lunch",
                  "initiator": "client",
                  "handle": "suspend-1",
                  "conditions": {
                    "on_event": "lunch.over"
                  }
                }
              }
            }
        "#]],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_self_park_and_the_wake_by_its_condition_are_told_in_frames() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::knowing(&fixture, PARKS);
    let params = json!({ "message": crate::peer::message("m1", "merge it") });
    let mut watch = peer.watch("message/stream", params, None).await;
    let mut frames = Vec::new();
    let mut published = false;
    while let Some((_, event)) = watch.next().await {
        if event["method"] == "tasks/statusUpdate" {
            frames.push(event);
        }
        if !published && !frames.is_empty() {
            published = true;
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
}

#[tokio::test]
async fn a_pause_by_a_client_is_told_in_a_frame_that_has_conditions_also_where_there_are_none() {
    let fixture = Fixture::new();
    let peer = Peer::knowing(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let mut watch = peer.watch("SubscribeToTask", json!({ "id": task }), None).await;
    watch.next().await.unwrap();
    peer.pause(&task).await;
    let (_, update) = watch.next().await.unwrap();
    assert_eq!(update["result"]["statusUpdate"]["status"]["state"], "TASK_STATE_PAUSED_BY_CLIENT");
    check(
        &watch.next().await.unwrap().1,
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
}

#[tokio::test]
async fn the_card_says_what_the_agent_can_do_in_every_place_where_clients_look() {
    let fixture = Fixture::new();
    let mut peer = Peer::new(&fixture, r#"{"steps": []}"#);
    let card = peer.face.card("http://localhost:7070/a2a", true);
    check(
        &card["capabilities"],
        expect![[r#"
            {
              "streaming": true,
              "pushNotifications": false,
              "stateTransitionHistory": false,
              "extendedAgentCard": true,
              "supportsPause": true,
              "supportsAwaitResumption": true,
              "resumeCauses": [
                "explicit_resume",
                "condition_fired",
                "timeout",
                "external_event"
              ],
              "extensions": [
                {
                  "uri": "urn:adjourn:a2a:pause:v1",
                  "description": "tasks/pause, tasks/resume, tasks/await_resumption; a paused task is a working one that says so in its metadata",
                  "required": false,
                  "params": {
                    "supportsPause": true,
                    "supportsAwaitResumption": true,
                    "resumeCauses": [
                      "explicit_resume",
                      "condition_fired",
                      "timeout",
                      "external_event"
                    ],
                    "modes": [
                      "finish_step",
                      "interrupt_immediate",
                      "wait_for_completion"
                    ],
                    "methods": {
                      "pause": [
                        "tasks/pause",
                        "PauseTask"
                      ],
                      "resume": [
                        "tasks/resume",
                        "ResumeTask"
                      ],
                      "awaitResumption": [
                        "tasks/await_resumption",
                        "AwaitTaskResumption"
                      ]
                    },
                    "pausedStates": "urn:adjourn:a2a:paused-states:v1"
                  }
                },
                {
                  "uri": "urn:adjourn:a2a:paused-states:v1",
                  "description": "paused-by-client and paused-by-agent as states, and tasks/statusUpdate frames in streams",
                  "required": false
                }
              ],
              "_meta": {
                "harn": {
                  "pause": {
                    "supports_pause": true,
                    "supports_await_resumption": true,
                    "resume_causes": [
                      "explicit_resume",
                      "condition_fired",
                      "timeout",
                      "external_event"
                    ]
                  }
                }
              }
            }
        "#]],
    );
    for (field, value) in [
        ("/url", "http://localhost:7070/a2a"),
        ("/protocolVersion", "0.3.0"),
        ("/preferredTransport", "JSONRPC"),
        ("/supportedInterfaces/0/protocolVersion", "1.0"),
        ("/supportedInterfaces/1/protocolBinding", "HTTP+JSON"),
        ("/supportedInterfaces/2/protocolVersion", "0.3"),
        ("/securitySchemes/bearer/type", "http"),
        ("/securitySchemes/bearer/httpAuthSecurityScheme/scheme", "Bearer"),
        ("/skills/0/id", "rebase-worker"),
    ] {
        assert_eq!(card.pointer(field), Some(&value.into()), "{field}");
    }
    let open = peer.face.card("http://localhost:7070/a2a", false);
    assert_eq!(open.get("securitySchemes"), None);

    // An agent whose tasks cannot be paused says so, and does not have the methods.
    peer.face.agent.pausable = false;
    check(
        &peer.face.card("http://localhost:7070/a2a", false)["capabilities"],
        expect![[r#"
            {
              "streaming": true,
              "pushNotifications": false,
              "stateTransitionHistory": false,
              "extendedAgentCard": false,
              "supportsPause": false,
              "supportsAwaitResumption": false
            }
        "#]],
    );
    for method in ["tasks/pause", "tasks/resume", "PauseTask", "ResumeTask"] {
        assert_eq!(peer.refused(method, json!({ "taskId": "run-x" })).await.0, -32601, "{method}");
    }
}
