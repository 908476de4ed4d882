//! Tasks as peers of both versions see them.

use adjourn::core::carry::Budget;
use adjourn::core::command::{Mode, Suspend};
use adjourn::core::driver::DriverSpec;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::told;
use expect_test::expect;
use serde_json::json;

use crate::peer::{Peer, STATES, message};
use crate::refusals::with_task;

const ASKS: &str = r#"{"steps": [
    {"say": {"text": "I look.", "think": "hm"}},
    {"tool": {"name": "grep", "result": "3 matches"}},
    {"ask": {"question": "Mend it?", "context": "It is slow.", "choices": ["yes", "no"]}},
    {"say": "Done."}]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_was_imported_is_the_same_task_and_can_be_answered() {
    let (from, to) = (Fixture::new(), Fixture::new());
    let host = from.host().await;
    let first = Peer::new(&from, ASKS);
    let asking = first.result("message/send", json!({ "message": message("m1", "fix it") })).await;
    let task = asking["id"].as_str().unwrap();
    let session = from.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    host.stop().await;
    let exported = session.export().await.unwrap();
    to.adjourn().import(exported.record).await.unwrap();

    let (host, peer) = (to.host().await, Peer::new(&to, ASKS));
    let shown = peer.result("tasks/get", json!({ "id": task })).await;
    assert_eq!(shown["status"]["state"], "input-required", "{shown}");
    assert_eq!(shown["status"]["message"]["parts"], asking["status"]["message"]["parts"]);
    let listed = peer.result("tasks/list", json!({})).await;
    assert_eq!(listed["tasks"][0]["id"], task);
    let answer = json!({ "message": with_task(message("m2", "yes"), task) });
    let done = peer.result("message/send", answer).await;
    assert_eq!((&done["id"], &done["status"]["state"]), (&json!(task), &json!("completed")));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_imported_session_has_the_task_that_goes_on_and_none_that_was_over() {
    let (from, to) = (Fixture::new(), Fixture::new());
    let host = from.host().await;
    let script = r#"{"runs": [[{"say": "Done."}], [{"await": {"reason": "ci"}}]]}"#;
    let peer = Peer::new(&from, script);
    let done = peer.result("message/send", json!({ "message": message("m1", "one") })).await;
    let mut second = message("m2", "two");
    second["contextId"] = done["contextId"].clone();
    let other = peer.result("message/send", json!({ "message": second })).await;
    let run = done["id"].as_str().unwrap().parse().unwrap();
    let session = from.adjourn().session_of(run).await.unwrap().unwrap();
    host.stop().await;
    let imported = to.adjourn().import(session.export().await.unwrap().record).await.unwrap();
    let peer = Peer::new(&to, script);
    let state = imported.load().await.unwrap();
    assert_eq!(state.last_run.as_ref().map(|last| last.id), Some(run));
    let listed = peer.result("tasks/list", json!({})).await;
    let [parked] = listed["tasks"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!(parked["id"], other["id"]);
    assert!(parked["generation"].as_u64() > other["generation"].as_u64(), "it is counted on");
    let shown = peer.get(parked["id"].as_str().unwrap()).await;
    assert_eq!(shown["generation"], parked["generation"]);
    let gone = peer.refused("tasks/get", json!({ "id": done["id"] })).await;
    assert_eq!(gone.1, "TASK_NOT_FOUND", "it is a task of where the session came from");
    // It has what was said in its own run, and the context that its peer knows.
    let shown = peer.get(other["id"].as_str().unwrap()).await;
    let history = shown["history"].as_array().unwrap();
    assert_eq!(history.len(), 1, "{shown}");
    assert_eq!(history[0]["parts"][0]["text"], "two");
    assert_eq!(shown["contextId"], done["contextId"]);
    let mut third = message("m3", "three");
    third["contextId"] = done["contextId"].clone();
    peer.result("tasks/cancel", json!({ "id": other["id"] })).await;
    let params = json!({ "message": third, "configuration": { "blocking": false } });
    let next = peer.result("message/send", params).await;
    assert_eq!(next["contextId"], done["contextId"]);
    let run = next["id"].as_str().unwrap().parse().unwrap();
    let goes_on = to.adjourn().session_of(run).await.unwrap().unwrap();
    assert_eq!(goes_on.id(), imported.id(), "the conversation goes on");
}

/// A session may be taken in again by the store that it was exported from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_comes_back_to_its_store_is_there_once() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"runs": [[{"say": "Done."}], [{"await": {"reason": "ci"}}, {"say": "On."}]]}"#;
    let peer = Peer::new(&fixture, script);
    let done = peer.result("message/send", json!({ "message": message("m1", "one") })).await;
    let mut second = message("m2", "two");
    second["contextId"] = done["contextId"].clone();
    let other = peer.result("message/send", json!({ "message": second })).await;
    let (first, task) = (done["id"].as_str().unwrap(), other["id"].as_str().unwrap());
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    // Both have been read before it moves.
    let working = peer.get(task).await;
    host.stop().await;
    let record = session.export().await.unwrap().record;
    assert_eq!(peer.get(task).await["status"]["state"], "canceled", "it is over here");
    let imported = fixture.adjourn().import(record).await.unwrap();
    for adjourn in [fixture.adjourn(), fixture.another_adjourn()] {
        let found = adjourn.session_of(task.parse().unwrap()).await.unwrap().unwrap();
        assert_eq!(found.id(), imported.id());
    }
    let another = Peer::on(fixture.another_adjourn(), script);
    for peer in [&peer, &another] {
        let shown = peer.get(task).await;
        assert_eq!(shown["status"]["state"], working["status"]["state"]);
        assert_eq!(shown["contextId"], done["contextId"]);
        assert_eq!(peer.get(first).await["status"]["state"], "completed");
        for params in [json!({}), json!({ "contextId": done["contextId"] })] {
            let listed = peer.result("tasks/list", params).await;
            let mut listed: Vec<_> =
                listed["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
            listed.sort_by_key(|id| id != task);
            assert_eq!(listed, [json!(task), json!(first)], "each is there once");
        }
    }
    let host = fixture.host().await;
    peer.result("tasks/resume", json!({ "taskId": task })).await;
    fixture.until_state(imported.id(), "idle").await;
    assert_eq!(peer.get(task).await["status"]["state"], "completed");
    fixture.adjourn().verify(adjourn_testkit::store::keys().ring(), None).await.unwrap().unwrap();
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_by_a_message_and_the_task_has_what_was_made() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::new(&fixture, ASKS);
    let asking = peer.result("message/send", json!({ "message": message("m1", "fix it") })).await;
    assert_eq!(asking["status"]["state"], "input-required");
    let task = asking["id"].as_str().unwrap();
    expect![[r#"
        {
          "kind": "message",
          "messageId": "run-1-question-1",
          "contextId": "sess-2",
          "taskId": "run-1",
          "role": "agent",
          "parts": [
            {
              "kind": "text",
              "text": "Mend it?\n\nIt is slow.\n\n[yes | no]"
            },
            {
              "kind": "data",
              "data": {
                "question": "Mend it?",
                "context": "It is slow.",
                "choices": [
                  "yes",
                  "no"
                ]
              }
            }
          ]
        }
    "#]]
    .assert_eq(&told(&asking["status"]["message"]));
    // The two families of states do not compose.
    let params = json!({ "taskId": task });
    assert_eq!(peer.refused("tasks/pause", params.clone()).await.0, -32011);
    assert_eq!(peer.refused("tasks/resume", params).await.0, -32011);
    let blank = json!({ "message": with_task(message("m2", "  "), task) });
    assert_eq!(peer.refused("message/send", blank).await, (-32602, "EMPTY_REPLY".to_owned()));

    let mut answer = with_task(message("m3", "yes"), task);
    answer["parts"] = json!([{ "text": "yes" }]);
    answer["role"] = "ROLE_USER".into();
    let done = peer.result("SendMessage", json!({ "message": answer })).await;
    let mut done = done["task"].clone();
    // How often something was committed depends on how the commits fell together.
    done["generation"] = 0.into();
    expect![[r#"
        {
          "id": "run-1",
          "contextId": "sess-2",
          "status": {
            "state": "TASK_STATE_COMPLETED",
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
            },
            {
              "artifactId": "m6",
              "parts": [
                {
                  "text": "Done."
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
              "parts": [
                {
                  "text": "fix it"
                }
              ]
            },
            {
              "messageId": "run-1-question-1",
              "contextId": "sess-2",
              "taskId": "run-1",
              "role": "ROLE_AGENT",
              "parts": [
                {
                  "text": "Mend it?\n\nIt is slow.\n\n[yes | no]"
                },
                {
                  "data": {
                    "question": "Mend it?",
                    "context": "It is slow.",
                    "choices": [
                      "yes",
                      "no"
                    ]
                  }
                }
              ]
            },
            {
              "messageId": "m3",
              "contextId": "sess-2",
              "taskId": "run-1",
              "role": "ROLE_USER",
              "parts": [
                {
                  "text": "yes"
                }
              ]
            }
          ],
          "generation": 0
        }
    "#]]
    .assert_eq(&told(&done));
    // A retry is told what came of the first one; another message is refused.
    let retry = json!({ "message": with_task(message("m3", "yes"), task) });
    assert_eq!(peer.result("message/send", retry).await["status"]["state"], "completed");
    let late = json!({ "message": with_task(message("m4", "yes"), task) });
    assert_eq!(peer.refused("message/send", late).await.0, -32004, "the task is over");
    let short = peer.result("tasks/get", json!({ "id": task, "historyLength": 1 })).await;
    assert_eq!(short["history"].as_array().unwrap().len(), 1);
    assert_eq!(short["history"][0]["messageId"], "m3");
    let none = peer.result("tasks/get", json!({ "id": task, "historyLength": 0 })).await;
    assert_eq!(none.get("history"), None);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_a_long_task_is_shown_in_order() {
    // Two of them are more than is read of a transcript at once on the thread that asks.
    let words = ["a", "b", "c", "d", "e"].map(|word| word.repeat(10_000));
    let steps: Vec<_> = words.iter().map(|words| json!({ "say": words })).collect();
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::new(&fixture, &json!({ "steps": steps }).to_string());
    let done = peer.result("SendMessage", json!({ "message": message("m1", "go") })).await;
    let task = &done["task"];
    let made = task["artifacts"].as_array().unwrap();
    let said: Vec<_> = made.iter().map(|made| made["parts"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(said, words);
    let read = peer.result("GetTask", json!({ "id": task["id"] })).await;
    assert_eq!(&read, task);
    host.stop().await;
}

#[tokio::test]
async fn a_paused_task_works_for_those_who_know_no_pauses_and_is_paused_for_those_who_do() {
    let fixture = Fixture::new();
    let mut peer = Peer::new(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    peer.pause(&task).await;
    let shown = peer.get(&task).await;
    assert_eq!(shown["status"]["state"], "working");
    let words = shown.pointer("/status/message/parts/0/text").unwrap();
    assert_eq!(words, "paused by coordinator: operator review");
    let shown = peer.result("GetTask", json!({ "id": task })).await;
    assert_eq!(shown["status"]["state"], "TASK_STATE_WORKING");
    let listed = peer.result("ListTasks", json!({ "status": "TASK_STATE_WORKING" })).await;
    assert_eq!(listed["tasks"][0]["id"], task.as_str());

    peer.activated = STATES;
    assert_eq!(peer.get(&task).await["status"]["state"], "paused-by-client");
    let shown = peer.result("GetTask", json!({ "id": task })).await;
    assert_eq!(shown["status"]["state"], "TASK_STATE_PAUSED_BY_CLIENT");
    let listed = peer.result("ListTasks", json!({ "status": "TASK_STATE_WORKING" })).await;
    assert_eq!(listed["tasks"], json!([]));
    let before = shown["generation"].as_u64().unwrap();
    peer.result("tasks/resume", json!({ "taskId": task })).await;
    assert!(peer.get(&task).await["generation"].as_u64().unwrap() > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_is_a_clients_pause_and_what_follows_its_lift_is_answered() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer =
        Peer::knowing(&fixture, r#"{"steps": [{"await": {"reason": "ci"}}, {"say": "done"}]}"#);
    let parked = peer.result("message/send", json!({ "message": message("m1", "go") })).await;
    assert_eq!(parked["status"]["state"], "paused-by-agent", "a blocking send returns at the park");
    let task = parked["id"].as_str().unwrap();
    let inner = parked.pointer("/metadata/harn/pause/handle").unwrap().clone();
    let handle = peer.pause(task).await;
    assert_eq!(peer.get(task).await["status"]["state"], "paused-by-client");
    let held = peer.refused("tasks/resume", json!({ "taskId": task, "handle": inner })).await;
    assert_eq!(held, (-32011, "HELD".to_owned()));
    let lifted = peer.result("tasks/resume", json!({ "taskId": task, "handle": handle })).await;
    assert_eq!(
        (&lifted["state"], &lifted["previousState"]),
        (&"paused-by-agent".into(), &"paused-by-client".into())
    );
    let input =
        json!({ "taskId": task, "input": { "build": "green" }, "continueTranscript": false });
    let woken = peer.result("tasks/resume", input).await;
    assert_eq!(
        (&woken["state"], &woken["previousState"]),
        (&"working".into(), &"paused-by-agent".into())
    );
    assert_eq!(
        (&woken["hadResumeInput"], &woken["continueTranscript"]),
        (&json!(true), &json!(false))
    );
    host.stop().await;
}

/// Over ACP such a list may be a prompt; here it is what it is.
#[tokio::test]
async fn a_list_that_a_task_is_resumed_with_is_a_value() {
    let lists = [
        json!([]),
        json!([{ "type": "refund", "amount": 5 }]),
        json!([{ "type": "text", "text": "x", "_meta": { "adjourn/digest": true } }]),
    ];
    for input in lists {
        let fixture = Fixture::new();
        let peer = Peer::knowing(&fixture, r#"{"steps": [{"say": "done"}]}"#);
        let task = peer.begin().await;
        peer.pause(&task).await;
        let woken = peer.result("tasks/resume", json!({ "taskId": task, "input": input })).await;
        assert_eq!(woken["hadResumeInput"], true, "{input}");
        let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
        let (_, last) = session.transcript(0, 10).await.unwrap().pop().unwrap();
        assert_eq!((&last.structured, last.text()), (&Some(input.clone()), input.to_string()));
    }
}

#[tokio::test]
async fn a_message_with_a_pause_in_its_metadata_pauses_and_says_nothing() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let mut pause = with_task(message("m2", "(pause)"), &task);
    pause["metadata"] = json!({ "harn": { "pause": { "reason": "from afar" } } });
    let paused = peer.result("message/send", json!({ "message": pause })).await;
    assert_eq!(paused.pointer("/metadata/harn/pause/reason"), Some(&"from afar".into()));
    assert_eq!(paused["history"].as_array().unwrap().len(), 1, "{paused}");

    // Where tasks cannot be paused, a message is refused in the words of messages.
    let mut other = Peer::new(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    other.face.agent.pausable = false;
    let refused = other.refused("message/send", json!({ "message": pause })).await;
    assert_eq!(refused, (-32004, "TASK_NOT_PAUSABLE".to_owned()));
    assert_eq!(other.ask("tasks/pause", json!({ "taskId": task })).await["error"]["code"], -32601);
    // And one that names no pause is a message as any other.
    let mut plain = message("m3", "go on");
    plain["metadata"] = json!({ "harn": { "pause": null } });
    let params = json!({ "message": plain, "configuration": { "blocking": false } });
    assert_eq!(other.result("message/send", params).await["status"]["state"], "working");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_past_its_budget_is_paused_by_client_and_goes_on_with_more() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::knowing(&fixture, r#"{"steps": []}"#);
    let budget = Budget { tokens: Some(10), ..Budget::default() };
    let script = r#"{"steps": [{"say": {"text": "a", "spend": {"tokens": 20}}}, {"say": "b"}]}"#;
    let id = fixture.create_within(budget, script);
    fixture.prompt(id, "go");
    let parked = fixture.until_state(id, "suspended").await;
    let task = parked.run().unwrap().id.to_string();
    let shown = peer.get(&task).await;
    assert_eq!(shown["status"]["state"], "paused-by-client");
    let reason = shown.pointer("/metadata/harn/pause/reason").unwrap();
    assert_eq!(reason, "budget_exceeded");
    let refused = peer.refused("tasks/resume", json!({ "taskId": task })).await;
    assert_eq!(refused, (-32011, "BUDGET_NOT_RAISED".to_owned()));
    let more = json!({ "taskId": task, "addBudget": { "tokens": 100 } });
    assert_eq!(peer.result("tasks/resume", more).await["state"], "working");
    fixture.until_state(id, "idle").await;
    assert_eq!(peer.get(&task).await["status"]["state"], "completed");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_lost_its_host_wants_a_person_to_look() {
    let fixture = Fixture::new();
    let mut peer = Peer::new(
        &fixture,
        r#"{"steps": [{"tool": {"name": "deploy", "ms": 60000}}, {"say": "done"}]}"#,
    );
    let host = fixture.host().await;
    let task = peer.begin().await;
    let run = task.parse().unwrap();
    let session = fixture.adjourn().session_of(run).await.unwrap().unwrap().id();
    fixture.until_in_flight(session, "deploy").await;
    host.kill().await;
    let next = fixture.host().await;
    fixture.until_state(session, "suspended").await;
    let shown = peer.get(&task).await;
    assert_eq!(shown["status"]["state"], "input-required");
    let words = shown.pointer("/status/message/parts/0/text").unwrap().as_str().unwrap();
    assert!(words.contains("deploy"), "{words}");
    peer.activated = STATES;
    assert_eq!(peer.get(&task).await["status"]["state"], "paused-by-client");
    let refused = peer.refused("tasks/pause", json!({ "taskId": task })).await;
    assert_eq!(refused, (-32011, "TASK_NOT_PAUSABLE".to_owned()));
    let look = json!({ "message": with_task(message("m2", "it was deployed"), &task) });
    let done = peer.result("message/send", look).await;
    assert_eq!(done["status"]["state"], "completed");
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_over_one_face_is_the_same_over_the_other() {
    let fixture = Fixture::new();
    let peer = Peer::knowing(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let run = task.parse().unwrap();
    let session = fixture.adjourn().session_of(run).await.unwrap().unwrap();
    let suspend =
        Suspend { reason: Some("lunch".to_owned()), mode: Mode::FinishStep, ..Suspend::default() };
    let suspension = session.suspend_as(suspend).await.unwrap();
    let shown = peer.get(&task).await;
    let pause = shown.pointer("/metadata/harn/pause").unwrap();
    assert_eq!(pause["handle"], suspension.handle.to_string());
    assert_eq!(pause["reason"], "lunch");
    let params =
        json!({ "taskId": task, "handle": suspension.handle.to_string(), "input": "go on" });
    let woken = peer.result("tasks/resume", params).await;
    let after = session.load().await.unwrap();
    let status = serde_json::to_value(after.status()).unwrap();
    assert_eq!((&woken["cause"], &woken["resumedAt"]), (&status["cause"], &status["resumedAt"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_a_long_list_reads_the_journals_of_its_own_tasks_alone() {
    const TASKS: usize = 2000;
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, ASKS);
    let mut creating = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let create = fixture.adjourn().create_with(DriverSpec::script(ASKS)).prompt("fix it");
        creating.spawn(async move { create.await.unwrap().id() });
    }
    creating.join_all().await;
    let page = async || {
        let before = fixture.adjourn().metrics().reads;
        let listed = peer.result("ListTasks", json!({ "pageSize": 1 })).await;
        (listed, fixture.adjourn().metrics().reads - before)
    };
    let (listed, _) = page().await;
    assert_eq!(listed["totalSize"], TASKS);
    // Each of the tasks stands where it stood: what is left is to look at their sessions, many at a
    // time, and to show one.
    let (again, reads) = page().await;
    assert_eq!(again, listed);
    assert!(reads < 40, "{reads} reads");
    // One that changes is read again, and comes to the front; one that is removed is not counted.
    fixture.clock.advance(std::time::Duration::from_secs(1));
    let sent = json!({ "message": message("m1", "fix it"),
                       "configuration": { "returnImmediately": true } });
    let task = peer.result("SendMessage", sent).await["task"]["id"].clone();
    let (listed, reads) = page().await;
    assert_eq!((&listed["tasks"][0]["id"], &listed["totalSize"]), (&task, &json!(TASKS + 1)));
    assert!(reads < 40, "{reads} reads");
    let run = task.as_str().unwrap().parse().unwrap();
    fixture
        .adjourn()
        .session_of(run)
        .await
        .unwrap()
        .unwrap()
        .remove()
        .even_at_work()
        .await
        .unwrap();
    let (listed, _) = page().await;
    assert_eq!(listed["totalSize"], TASKS);
    assert_ne!(listed["tasks"][0]["id"], task);
}
