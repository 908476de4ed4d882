//! Streams: all watchers are told the same, and one who comes back goes on where it was.

use std::sync::Arc;
use std::time::Duration;

use adjourn::core::Session;
use adjourn::core::command::Mode;
use adjourn_testkit::host::Fixture;
use serde_json::{Value, json};

use crate::peer::{Peer, STATES, message};

fn state(event: &Value) -> &Value {
    let update = event.get("result").unwrap_or(event);
    update.pointer("/status/state").unwrap_or(&Value::Null)
}

#[tokio::test]
async fn all_watchers_are_told_the_same_and_any_of_them_can_go_on_behind_any_event() {
    let fixture = Fixture::new();
    let peer = Peer::knowing(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let subscribe = json!({ "id": task });
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(peer.watch("tasks/resubscribe", subscribe.clone(), None).await);
    }
    for _ in 0..2 {
        let handle = peer.pause(&task).await;
        peer.result("tasks/resume", json!({ "taskId": task, "handle": handle })).await;
    }
    // A stream is open on a task that is paused, and from another process.
    peer.pause(&task).await;
    let other = Peer { activated: STATES, ..Peer::new(&fixture, "{}") };
    let mut late = other.watch("tasks/resubscribe", subscribe.clone(), None).await;
    assert_eq!(state(&late.next().await.unwrap().1), "paused-by-client");
    peer.result("tasks/cancel", json!({ "id": task })).await;
    assert_eq!(state(&late.next().await.unwrap().1), "canceled");
    assert_eq!(late.next().await, None);

    let mut all = Vec::new();
    for watch in &mut watches {
        all.push(watch.rest().await);
    }
    let first = all[0].clone();
    assert!(all.iter().all(|told| *told == first));
    let states: Vec<_> =
        first.iter().map(|(_, event)| state(event)).filter(|state| !state.is_null()).collect();
    let expected = [
        "working",
        "paused-by-client",
        "working",
        "paused-by-client",
        "working",
        "paused-by-client",
        "canceled",
    ];
    assert_eq!(states, expected);
    let last = &first.last().unwrap().1["result"];
    assert_eq!((&last["kind"], &last["final"]), (&"status-update".into(), &json!(true)));
    // Each event is behind the one before it, and the task is over when the last one is told.
    for (index, (id, _)) in first.iter().enumerate() {
        let mut again = peer.watch("tasks/resubscribe", subscribe.clone(), Some(id)).await;
        assert_eq!(again.rest().await, first[index + 1..], "behind {id}");
    }
}

#[tokio::test]
async fn a_wake_is_told_to_those_who_activated_the_extension_and_others_see_that_it_works() {
    let fixture = Fixture::new();
    let mut peer = Peer::new(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let subscribe = json!({ "id": task });
    let mut plain = peer.watch("SubscribeToTask", subscribe.clone(), None).await;
    peer.activated.pause = true;
    let mut knowing = peer.watch("SubscribeToTask", subscribe, None).await;
    let handle = peer.pause(&task).await;
    peer.result("tasks/resume", json!({ "taskId": task, "handle": handle, "input": "go" })).await;
    for watch in [&mut plain, &mut knowing] {
        assert_eq!(
            watch.update().await.pointer("/task/status/state"),
            Some(&"TASK_STATE_WORKING".into())
        );
        let paused = watch.update().await;
        let metadata = paused.pointer("/statusUpdate/metadata/harn/pause/state").unwrap();
        assert_eq!(metadata, "paused-by-client");
        assert_eq!(
            paused.pointer("/statusUpdate/status/state"),
            Some(&"TASK_STATE_WORKING".into())
        );
    }
    let woken = plain.update().await;
    assert_eq!(woken.pointer("/statusUpdate/metadata"), None);
    let mut woken = knowing.update().await;
    let metadata = woken.pointer_mut("/statusUpdate/metadata/urn:adjourn:a2a:pause:v1").unwrap();
    metadata["resumedAt"] = Value::Null;
    assert_eq!(
        *metadata,
        json!({ "previousState": "paused-by-client", "cause": "explicit_resume",
                "hadResumeInput": true, "continueTranscript": true, "resumedAt": null })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_gone_on_with_behind_the_end_of_its_task_ends() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::new(&fixture, r#"{"steps": [{"say": "Done."}]}"#);
    let first = peer.result("message/send", json!({ "message": message("m1", "one") })).await;
    let mut again = message("m2", "two");
    again["contextId"] = first["contextId"].clone();
    let second = peer.result("message/send", json!({ "message": again })).await;
    let last = second["generation"].as_u64().unwrap();
    for seen in first["generation"].as_u64().unwrap()..=last {
        let id = json!({ "id": first["id"] });
        let told = peer.watch("tasks/resubscribe", id, Some(&seen.to_string())).await.rest().await;
        assert!(told.is_empty(), "behind {seen}: {told:?}");
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_stays_open_where_somebody_has_to_authenticate() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"steps": [{"fail": {"kind": "auth_required", "why": "who are you?"}},
                               {"say": "Done."}]}"#;
    let peer = Peer::new(&fixture, script);
    let params = json!({ "message": message("m1", "fix it") });
    let mut watch = peer.watch("message/stream", params, None).await;
    let mut told = watch.next().await.unwrap().1;
    let task = told["result"]["id"].as_str().unwrap().to_owned();
    while state(&told) != "auth-required" {
        told = watch.next().await.unwrap().1;
    }
    assert_ne!(told["result"]["final"], true);
    let answer = crate::refusals::with_task(message("m2", "I am"), &task);
    peer.result("message/send", json!({ "message": answer })).await;
    let told = watch.rest().await;
    assert_eq!(state(&told.last().unwrap().1), "completed");
    host.stop().await;
}

#[tokio::test]
async fn a_pause_that_is_to_fail_at_its_deadline_is_told_as_failed_and_nothing_between() {
    let fixture = Fixture::new();
    let peer = Peer::knowing(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    let task = peer.begin().await;
    let timeout = json!({ "durationMinutes": 1, "onTimeout": "fail" });
    let params = json!({ "taskId": task, "conditions": { "timeout": timeout } });
    peer.result("tasks/pause", params).await;
    let mut watch = peer.watch("tasks/resubscribe", json!({ "id": task }), None).await;
    assert_eq!(state(&watch.next().await.unwrap().1), "paused-by-client");
    let host = fixture.host().await;
    fixture.clock.advance(Duration::from_secs(61));
    let told = watch.rest().await;
    let [(_, last)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((state(last), &last["result"]["final"]), (&json!("failed"), &json!(true)));
    assert_eq!(peer.get(&task).await["status"]["state"], "failed");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_is_lifted_from_a_question_is_told_as_work_and_then_as_the_question() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"steps": [{"tool": {"name": "deploy", "ms": 1000}},
        {"ask": {"question": "Sure?"}}, {"say": "done"}]}"#;
    let peer = Peer::knowing(&fixture, script);
    let task = peer.begin().await;
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    // A pause that is pending when the agent asks lies over the question.
    fixture.pass_until_in_flight(session.id(), "deploy").await;
    session.suspend().mode(Mode::WaitForCompletion).accepted().await.unwrap();
    fixture.pass_until(session.id(), "suspended").await;
    let mut watch = peer.watch("tasks/resubscribe", json!({ "id": task }), None).await;
    let resumed = peer.result("tasks/resume", json!({ "taskId": task })).await;
    assert_eq!(resumed["state"], "input-required");
    for expected in ["paused-by-client", "working", "input-required"] {
        assert_eq!(*state(&watch.update().await), expected);
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_where_the_agent_asks_and_has_what_it_made() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script =
        r#"{"steps": [{"say": "I look."}, {"ask": {"question": "Mend it?"}}, {"say": "Done."}]}"#;
    let peer = Peer::new(&fixture, script);
    let params = json!({ "message": message("m1", "fix it") });
    let told = peer.watch("message/stream", params, None).await.rest().await;
    let (_, first) = told.first().unwrap();
    assert_eq!(first["result"]["kind"], "task");
    let task = first["result"]["id"].as_str().unwrap();
    let (_, last) = told.last().unwrap();
    assert_eq!((state(last), &last["result"]["final"]), (&"input-required".into(), &json!(true)));
    // What is made is in the events, or in the task with which they begin.
    let text = json!(told.iter().map(|(_, event)| event).collect::<Vec<_>>()).to_string();
    assert!(text.contains("I look."), "{text}");

    // One who subscribes to the question stays, and is told how it goes on.
    let mut watch = peer.watch("tasks/resubscribe", json!({ "id": task }), None).await;
    assert_eq!(state(&watch.next().await.unwrap().1), "input-required");
    let answer = crate::refusals::with_task(message("m2", "yes"), task);
    peer.result("message/send", json!({ "message": answer })).await;
    let told = watch.rest().await;
    let made: Vec<_> =
        told.iter().filter(|(_, event)| event["result"]["kind"] == "artifact-update").collect();
    assert_eq!(made.len(), 1, "{told:?}");
    let made = &made[0].1["result"];
    assert_eq!(made.pointer("/artifact/parts/0/text"), Some(&"Done.".into()));
    assert_eq!((&made["append"], &made["lastChunk"]), (&json!(false), &json!(true)));
    assert_eq!(state(&told.last().unwrap().1), "completed");
    host.stop().await;
}

/// Returns how many reads it takes that many watchers come back at once to a parked task of so many
/// steps, through a server that knows nothing of it.
async fn reads_of_those_who_come_back(steps: usize) -> u64 {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let mut all = vec![json!({ "say": "on" }); steps];
    all.push(json!({ "await": { "reason": "ci" } }));
    let script = json!({ "steps": all }).to_string();
    let peer = Peer::knowing(&fixture, &script);
    let parked = peer.result("message/send", json!({ "message": message("m1", "go") })).await;
    let (task, last) = (parked["id"].clone(), parked["generation"].as_u64().unwrap());
    assert!(last > 2 * steps as u64, "{parked}");
    let server = Arc::new(Peer::on(fixture.another_adjourn(), &script));
    let before = server.face.adjourn.metrics().reads;
    let mut coming = tokio::task::JoinSet::new();
    for number in 0..32 {
        // Not all of them have seen the same.
        let seen = (last - 1 - number % 8).to_string();
        let (server, id) = (Arc::clone(&server), json!({ "id": task }));
        coming.spawn(async move {
            let mut watch = server.watch("tasks/resubscribe", id, Some(&seen)).await;
            let (_, told) = watch.next().await.unwrap();
            assert_ne!(told["result"]["kind"], "task", "it goes on: {told}");
        });
    }
    while let Some(came) = coming.join_next().await {
        came.unwrap();
    }
    let taken = server.face.adjourn.metrics().reads - before;
    host.stop().await;
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_journal_is_folded_once_for_all_who_come_back() {
    let (short, long) =
        (reads_of_those_who_come_back(40).await, reads_of_those_who_come_back(600).await);
    assert!(long < short + 32, "{short} and {long} reads");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_was_told_before_a_task_moved_hides_nothing_behind_the_move() {
    let fixture = Fixture::new();
    let mut host = fixture.host().await;
    let mut steps = vec![json!({ "say": "on" }), json!({ "await": { "reason": "ci" } })];
    for _ in 0..2 {
        steps.extend(vec![json!({ "say": "on" }); 10]);
        steps.push(json!({ "await": { "reason": "review" } }));
    }
    let script = json!({ "steps": steps }).to_string();
    let peer = Peer::knowing(&fixture, &script);
    let begun = peer.result("message/send", json!({ "message": message("m1", "go") })).await;
    let task = json!({ "id": begun["id"] });
    let run = begun["id"].as_str().unwrap().parse().unwrap();
    let mut generation = begun["generation"].as_u64().unwrap();
    let mut seen = vec![generation.to_string()];
    for _ in 0..2 {
        let session = fixture.adjourn().session_of(run).await.unwrap().unwrap();
        host.stop().await;
        let record = session.export().await.unwrap().record;
        let over = peer.result("tasks/get", task.clone()).await["generation"].as_u64().unwrap();
        assert!(over > generation);
        let imported = fixture.adjourn().import(record).await.unwrap();
        host = fixture.host().await;
        let shown = peer.result("tasks/get", task.clone()).await["generation"].as_u64().unwrap();
        assert!(shown > over, "it is counted on");
        peer.result("tasks/resume", json!({ "taskId": begun["id"] })).await;
        // Its journal has grown past what was told of the first one.
        let rests = |session: &Session| session.revision > 20 && session.suspended().is_some();
        fixture.until(imported.id(), "rests", rests).await;
        for id in &seen {
            let mut watch = peer.watch("tasks/resubscribe", task.clone(), Some(id)).await;
            let (snapshot, told) = watch.next().await.unwrap();
            assert_eq!(told["result"]["kind"], "task", "behind {id}");
            assert_eq!(state(&told), "paused-by-agent");
            // From there on it goes on as everywhere.
            let mut again = peer.watch("tasks/resubscribe", task.clone(), Some(&snapshot)).await;
            peer.pause(begun["id"].as_str().unwrap()).await;
            assert_eq!(again.next().await, watch.next().await);
            let resume = json!({ "taskId": begun["id"] });
            peer.result("tasks/resume", resume).await;
            let (id, told) = again.next().await.unwrap();
            assert!(told["method"] == "tasks/statusUpdate" && id.contains('@'), "{id} {told}");
        }
        let last = peer.result("tasks/get", task.clone()).await["generation"].as_u64().unwrap();
        seen.push(last.to_string());
        let mut watch = peer.watch("tasks/resubscribe", task.clone(), None).await;
        seen.push(watch.next().await.unwrap().0);
        generation = last;
    }
    host.stop().await;
}
