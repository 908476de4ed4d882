//! HTTP+JSON of both versions, and what both bindings have in common.

use adjourn_a2a::Profile;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::{Awaited, Events};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::agent::{BOSS, DONE, JSON, STATES, Setting, request};

const ASKS: &str = r#"{"steps": [{"say": "I look."},
    {"ask": {"question": "Mend it?", "choices": ["yes", "no"]}},
    {"tool": {"name": "mend", "ms": 1000}}, {"say": "Done."}]}"#;

/// Returns JSON as a person reads it, with ids by the order in which they come up.
pub fn check(value: &Value, expect: Expect) {
    expect.assert_eq(&adjourn_testkit::http::told(value));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_begun_answered_watched_and_canceled_over_http_json_of_0_3() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let served = Setting::new(ASKS).on(&fixture).await;
    let send = |what: &str, body: &Value| {
        let answer = served.send(what, &[JSON, BOSS], &body.to_string());
        assert_eq!(answer.status, 200, "{what}: {}", answer.body);
        answer.json()
    };
    // As the proto file has it: an empty text is none, a flag that is not set is not written.
    let content = json!([{ "text": "fix it" }, { "data": { "data": { "line": 7 } } }]);
    let message =
        json!({ "messageId": "m1", "contextId": "", "role": "ROLE_USER", "content": content });
    let params = json!({ "message": message, "configuration": { "blocking": true } });
    let asking = send("POST /a2a/v1/message:send", &params);
    check(
        &asking,
        expect![[r#"
            {
              "task": {
                "id": "run-1",
                "contextId": "sess-2",
                "status": {
                  "state": "TASK_STATE_INPUT_REQUIRED",
                  "message": {
                    "messageId": "run-1-question-1",
                    "contextId": "sess-2",
                    "taskId": "run-1",
                    "role": "ROLE_AGENT",
                    "content": [
                      {
                        "text": "Mend it?\n\n[yes | no]"
                      },
                      {
                        "data": {
                          "data": {
                            "question": "Mend it?",
                            "choices": [
                              "yes",
                              "no"
                            ]
                          }
                        }
                      }
                    ]
                  },
                  "timestamp": "2026-11-16T09:00:00.000Z"
                },
                "artifacts": [
                  {
                    "artifactId": "m1",
                    "parts": [
                      {
                        "text": "I look."
                      }
                    ]
                  }
                ],
                "history": [
                  {
                    "messageId": "m1",
                    "contextId": "sess-2",
                    "taskId": "run-1",
                    "role": "ROLE_USER",
                    "content": [
                      {
                        "text": "fix it"
                      },
                      {
                        "data": {
                          "data": {
                            "line": 7
                          }
                        }
                      }
                    ]
                  }
                ]
              }
            }
        "#]],
    );
    let task = asking["task"]["id"].as_str().unwrap();
    let answer = json!({ "messageId": "m2", "taskId": task, "role": "ROLE_USER", "content": [{ "text": "yes" }] });
    let body = json!({ "message": answer }).to_string();
    let mut events =
        Events::open(served.address, "POST /a2a/v1/message:stream", &[JSON, BOSS], &body);
    let (_, first) = events.next().unwrap();
    assert!(first.get("task").is_some(), "{first}");
    let session = asking["task"]["contextId"].as_str().unwrap().parse().unwrap();
    fixture.pass_until(session, "idle").await;
    let (_, mut last) = events.last().unwrap();
    let status = last["statusUpdate"]["status"].as_object_mut().unwrap();
    assert!(status.shift_remove("timestamp").is_some(), "how late it is depends on the host");
    check(
        &last,
        expect![[r#"
            {
              "statusUpdate": {
                "taskId": "run-1",
                "contextId": "sess-2",
                "status": {
                  "state": "TASK_STATE_COMPLETED"
                },
                "final": true
              }
            }
        "#]],
    );
    let shown = served.send(&format!("GET /a2a/v1/tasks/{task}?historyLength=1"), &[BOSS], "");
    assert_eq!(shown.json()["history"].as_array().unwrap().len(), 1);
    let begun = json!({ "message": { "messageId": "m3", "content": [{ "text": "again" }] } });
    let begun = send("POST /a2a/v1/message:send", &begun);
    let cancel = format!("POST /a2a/v1/tasks/{}:cancel", begun["task"]["id"].as_str().unwrap());
    assert_eq!(send(&cancel, &json!({}))["status"]["state"], "TASK_STATE_CANCELLED");
    let listed = served.send("GET /a2a/v1/tasks?status=TASK_STATE_CANCELLED", &[BOSS], "").json();
    assert_eq!(listed["totalSize"], 1);
    let refused = served.send(&cancel, &[JSON, BOSS], "");
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!(-32002)));
    host.stop().await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pauses_have_verbs_and_errors_of_their_own_over_http_json() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    for (prefix, code) in [("", "/error/code"), ("acme/", "/error/code"), ("v1/", "/code")] {
        let pause = format!("POST /a2a/{prefix}tasks/{task}:pause");
        let resume = format!("POST /a2a/{prefix}tasks/{task}:resume/");
        let kind = ("content-type", "application/a2a+json");
        let paused = served.send(&pause, &[kind, BOSS], r#"{"reason":"review"}"#);
        assert_eq!((paused.status, &paused.json()["state"]), (200, &json!("paused-by-client")));
        assert!(paused.head.contains("content-type: application/a2a+json"), "{}", paused.head);
        let wrong = r#"{"handle":"suspend-019abf6b-7d51-7c1d-bb02-0123456789ab"}"#;
        let refused = served.send(&resume, &[JSON, BOSS], wrong);
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body.contains("SUSPENSION_HANDLE_MISMATCH"), "{}", refused.body);
        let resumed = served.send(&resume, &[BOSS], "");
        assert_eq!((resumed.status, &resumed.json()["state"]), (200, &json!("working")));
        let refused = served.send(&resume, &[BOSS], "");
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body.contains("TASK_NOT_PAUSED"), "{}", refused.body);
        let refused = served.send(&pause, &[JSON, BOSS], r#"{"mode":"soon"}"#);
        let code = refused.json().pointer(code).cloned();
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert!(code == Some(json!(400)) || code == Some(json!(-32602)), "{}", refused.body);
        let wait = format!("POST /a2a/{prefix}tasks/{task}:awaitResumption");
        let parked = served.send(&wait, &[JSON, BOSS], r#"{"reason":"ci"}"#);
        assert_eq!((parked.status, &parked.json()["state"]), (200, &json!("paused-by-agent")));
        let other = r#"{"reason":"lunch","conditions":{"onEvent":"lunch.over"}}"#;
        let refused = served.send(&wait, &[JSON, BOSS], other);
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body.contains("CONDITIONS_DIFFER"), "{}", refused.body);
        assert_eq!(served.send(&wait, &[JSON, BOSS], "{}").status, 400);
        assert_eq!(served.send(&resume, &[BOSS], "").status, 200);
        for verb in ["pause", "resume", "awaitResumption"] {
            let nobody = format!("POST /a2a/{prefix}tasks/run-x:{verb}");
            let answer = served.send(&nobody, &[JSON, BOSS], r#"{"reason":"ci"}"#);
            assert_eq!(answer.status, 404, "{verb}: {}", answer.body);
        }
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_the_head_alone_changes_nothing_and_is_sent_no_body() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    let head = async |path: &str| {
        let mut connection = Awaited::open(served.address).await;
        connection.begin(&format!("HEAD /a2a/{path}"), &[BOSS, ("connection", "close")], "").await;
        let mut answer = Vec::new();
        connection.rest(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    };
    for verb in ["cancel", "pause", "resume", "awaitResumption"] {
        let answer = head(&format!("tasks/{task}:{verb}")).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{verb}: {answer}");
    }
    assert!(head("message:send").await.starts_with("HTTP/1.1 404 "));
    let answer = head(&format!("tasks/{task}")).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");
    let still = served.result("tasks/get", &json!({ "id": task }));
    assert_eq!(still["status"]["state"], "working");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_tasks_cannot_be_paused_does_not_have_the_methods_by_any_name() {
    let fixture = Fixture::new();
    let served = Setting { pausable: false, ..Setting::new(DONE) }.on(&fixture).await;
    let task = served.begin("m1");
    let card = served.send("GET /.well-known/agent-card.json", &[], "").json();
    let capabilities = &card["capabilities"];
    assert_eq!(capabilities["supportsPause"], false);
    assert_eq!((capabilities.get("_meta"), capabilities.get("extensions")), (None, None));
    assert_eq!(capabilities.get("resumeCauses"), None, "nothing is resumed");
    assert_eq!(capabilities["supportsAwaitResumption"], false);
    for method in [
        "tasks/pause",
        "tasks/resume",
        "tasks/await_resumption",
        "PauseTask",
        "ResumeTask",
        "AwaitTaskResumption",
    ] {
        let answer = served.ask(&[], method, &json!({ "taskId": task, "reason": "ci" }));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    for verb in ["pause", "resume", "awaitResumption"] {
        let answer = served.send(&format!("POST /a2a/tasks/{task}:{verb}"), &[BOSS], "");
        assert_eq!(
            (answer.status, &answer.json()["error"]["status"]),
            (404, &json!("UNIMPLEMENTED"))
        );
    }
    // Nor by the back door of a message, which is refused as messages are: its method is there.
    let mut message = crate::agent::words("m2");
    message["taskId"] = task.as_str().into();
    message["metadata"] = json!({ "harn": { "pause": { "reason": "from afar" } } });
    let answer = served.ask(&[], "message/send", &json!({ "message": message }));
    assert_eq!(answer["error"]["code"], -32004, "{answer}");
    // An operator's pause is told as to every peer that has activated nothing: there is nothing to
    // activate, whichever words peers ask for and the server has for others.
    let run = task.parse().unwrap();
    let session = fixture.adjourn().session_of(run).await.unwrap().unwrap();
    session.suspend().reason("lunch").await.unwrap();
    let by_proposal = Setting { pausable: false, profile: Profile::Rfc, ..Setting::new(DONE) };
    let by_proposal = by_proposal.on(&fixture).await;
    for served in [&served, &by_proposal] {
        let get = request("tasks/get", &json!({ "id": task }));
        let answer = served.send("POST /a2a", &[JSON, BOSS, STATES], &get);
        assert!(!answer.head.contains("a2a-extensions"), "{}", answer.head);
        let shown = &answer.json()["result"];
        assert_eq!(shown["status"]["state"], "working", "{shown}");
        assert_eq!(shown["metadata"]["harn"]["pause"]["reason"], "lunch", "{shown}");
    }
    served.stop().await;
    by_proposal.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trace_of_a_request_is_kept_with_the_pause_the_wake_and_the_park() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    let trace = |digit: char| {
        let (trace, span) = (digit.to_string().repeat(32), digit.to_string().repeat(16));
        format!("00-{trace}-{span}-01")
    };
    let (header, inner) = (trace('a'), trace('b'));
    let params = json!({ "taskId": task, "metadata": { "traceparent": inner, "baggage": "k=v" } });
    let paused = served.ask(&[("traceparent", &header)], "tasks/pause", &params);
    assert_eq!(paused["result"]["metadata"], params["metadata"], "it is echoed");
    let resumed =
        served.ask(&[("traceparent", &header)], "tasks/resume", &json!({ "taskId": task }));
    assert_eq!(resumed["result"]["state"], "working");
    // Of a header, what all readers of a task would see is not kept.
    let headers = [("traceparent", header.as_str()), ("tracestate", "a=1"), ("baggage", "k=v")];
    let park = json!({ "taskId": task, "reason": "ci" });
    let parked = served.ask(&headers, "tasks/await_resumption", &park);
    assert_eq!(parked["result"]["state"], "paused-by-agent");
    assert_eq!(parked["result"].get("metadata"), None);
    let run = task.parse().unwrap();
    let session = fixture.adjourn().session_of(run).await.unwrap().unwrap();
    let mut traces = Vec::new();
    for entry in session.journal(1, 100).await.unwrap() {
        let decision = serde_json::to_value(&entry).unwrap();
        let trace = decision.pointer("/decision/facts/pipelineSpanLink/traceId");
        traces.extend(trace.and_then(Value::as_str).map(str::to_owned));
    }
    assert_eq!(traces, ["b".repeat(32), "a".repeat(32), "a".repeat(32)]);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_comes_back_with_all_that_its_sender_said_and_hides_nothing() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let added = json!({ "metadata": { "ticket": 7 }, "extensions": ["urn:example:x"],
                        "referenceTaskIds": ["run-before"] });
    let mut message = json!({
        "kind": "message", "messageId": "m1", "role": "user",
        "parts": [{ "kind": "text", "text": "go" },
                  { "kind": "text", "text": "hidden",
                    "metadata": { "adjourn/digest": true, "mine": 1 } }],
    });
    message.as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
    let params = json!({ "message": message, "configuration": { "blocking": false } });
    let task = served.result("message/send", &params)["id"].as_str().unwrap().to_owned();
    for (what, words, first) in [
        ("tasks/get", "/result/history/0/parts/1", "/result/history/0"),
        ("GetTask", "/result/history/0/parts/1", "/result/history/0"),
        ("GET /a2a/tasks/", "/history/0/parts/1", "/history/0"),
        ("GET /a2a/v1/tasks/", "/history/0/content/1", "/history/0"),
    ] {
        let shown = match what.starts_with("GET ") {
            true => served.send(&format!("{what}{task}"), &[BOSS], "").json(),
            false => served.ask(&[], what, &json!({ "id": task })),
        };
        let message = shown.pointer(first).unwrap();
        assert_eq!(message["metadata"], added["metadata"], "{what}: {message}");
        assert_eq!(message["extensions"], added["extensions"], "{what}: {message}");
        // The proto file of 0.3 has no such field.
        let references = (!what.contains("/v1/")).then_some(&added["referenceTaskIds"]);
        assert_eq!(message.get("referenceTaskIds"), references, "{what}: {message}");
        let hidden = shown.pointer(words).unwrap();
        assert_eq!(
            (&hidden["text"], &hidden["metadata"]),
            (&json!("hidden"), &json!({ "mine": 1 }))
        );
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_in_the_order_of_the_last_changes_and_counts_tasks() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let second = || fixture.clock.advance(std::time::Duration::from_secs(1));
    // Three tasks of one context, two of others; each comes to its end a second after it began.
    let mut ended = Vec::new();
    for (id, context) in
        [("a", Some("c")), ("b", None), ("d", Some("c")), ("e", Some("c")), ("f", None)]
    {
        let mut message = crate::agent::words(id);
        if let Some(context) = context {
            message["contextId"] = context.into();
        }
        let params = json!({ "message": message, "configuration": { "blocking": false } });
        let task = served.result("message/send", &params)["id"].clone();
        second();
        if id != "f" {
            served.result("tasks/cancel", &json!({ "id": task }));
            second();
        }
        ended.push(task);
    }
    ended.reverse();
    let pages = |filter: &Value| {
        let (mut listed, mut token) = (Vec::new(), json!(""));
        loop {
            let mut params = filter.clone();
            params["pageSize"] = 2.into();
            params["pageToken"] = token;
            let page = served.result("ListTasks", &params);
            let tasks = page["tasks"].as_array().unwrap();
            assert!(tasks.len() <= 2 && page["pageSize"] == 2, "{page}");
            listed.extend(tasks.iter().map(|task| (task["id"].clone(), page["totalSize"].clone())));
            token = page["nextPageToken"].clone();
            if token == "" {
                return listed;
            }
        }
    };
    let of = |tasks: &[&Value]| -> Vec<_> {
        tasks.iter().map(|task| ((*task).clone(), json!(tasks.len()))).collect()
    };
    let [f, e, d, b, a] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(pages(&json!({})), of(&[f, e, d, b, a]));
    assert_eq!(pages(&json!({ "contextId": "c" })), of(&[e, d, a]));
    assert_eq!(pages(&json!({ "status": "TASK_STATE_CANCELED" })), of(&[e, d, b, a]));
    assert_eq!(pages(&json!({ "status": "TASK_STATE_WORKING" })), of(&[f]));
    // A task is working from its first commit on.
    for submitted in ["TASK_STATE_SUBMITTED", "submitted"] {
        let listed = served.result("ListTasks", &json!({ "status": submitted }));
        assert_eq!((&listed["tasks"], &listed["totalSize"]), (&json!([]), &json!(0)));
    }
    let since = json!({ "statusTimestampAfter": "2026-11-16T09:00:05Z" });
    assert_eq!(pages(&since), of(&[f, e, d]));
    // One that changes comes to the front, and the place behind a page stays where it was.
    let page = served.result("ListTasks", &json!({ "pageSize": 2 }));
    second();
    served.result("tasks/cancel", &json!({ "id": f }));
    let next = json!({ "pageSize": 2, "pageToken": page["nextPageToken"] });
    let next = served.result("ListTasks", &next);
    assert_eq!((&next["tasks"][0]["id"], &next["tasks"][1]["id"]), (d, b));
    for (name, value) in [
        ("pageToken", "x"),
        ("pageToken", "1.run-x"),
        ("pageSize", "0"),
        ("pageSize", "101"),
        ("status", "asleep"),
        ("statusTimestampAfter", "yesterday"),
    ] {
        let path = format!("GET /a2a/tasks?{name}={value}");
        assert_eq!(served.send(&path, &[BOSS], "").status, 400, "{path}");
    }
    let listed =
        served.send("POST /a2a", &[JSON, BOSS], &request("ListTasks", &Value::Null)).json();
    assert_eq!(listed["result"]["tasks"][0].get("artifacts"), None);
    served.stop().await;
}
