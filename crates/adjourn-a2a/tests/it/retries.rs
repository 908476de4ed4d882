//! Messages that are sent twice: one id of one sender is taken once.

use std::sync::Arc;

use adjourn::core::Session;
use adjourn::core::command::Mode;
use adjourn::core::session::Phase;
use adjourn_a2a::{Caller, Scope};
use adjourn_testkit::host::Fixture;
use adjourn_testkit::store::TENANT;
use serde_json::{Value, json};

use crate::peer::{Peer, STATES, message};
use crate::refusals::with_task;

const PARKS: &str = r#"{"steps": [{"await": {"reason": "ci"}}, {"say": "done"}]}"#;

/// Sends a message, perhaps to a context, and returns the task that it is answered with.
async fn send(peer: &Peer, id: &str, context: Option<&str>) -> Value {
    let mut message = message(id, "deploy");
    if let Some(context) = context {
        message["contextId"] = context.into();
    }
    let params = json!({ "message": message, "configuration": { "blocking": false } });
    peer.result("message/send", params).await
}

async fn tasks(peer: &Peer) -> usize {
    let listed = peer.result("ListTasks", json!({ "pageSize": 100 })).await;
    listed["tasks"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_first_message_that_is_sent_twice_begins_one_task_also_behind_a_restart() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, PARKS);
    let alone = send(&peer, "a", None).await;
    let named = send(&peer, "b", Some("conversation")).await;
    let own = alone["contextId"].as_str().unwrap();
    // Another server on the same store, which knows nothing but the store.
    let other = Peer::on(fixture.another_adjourn(), PARKS);
    for peer in [&peer, &other] {
        assert_eq!(send(peer, "a", None).await["id"], alone["id"]);
        assert_eq!(send(peer, "b", Some("conversation")).await["id"], named["id"]);
        // The session that the first one began, as its context: one message of one conversation.
        assert_eq!(send(peer, "a", Some(own)).await["id"], alone["id"]);
    }
    assert_eq!(tasks(&peer).await, 2);
    // Also when the first one is over, and its session would take another message.
    for task in [&alone, &named] {
        peer.result("tasks/cancel", json!({ "id": task["id"] })).await;
    }
    for peer in [&peer, &other] {
        let again = send(peer, "a", None).await;
        assert_eq!((&again["id"], &again["status"]["state"]), (&alone["id"], &"canceled".into()));
        assert_eq!(send(peer, "b", Some("conversation")).await["id"], named["id"]);
        assert_eq!(send(peer, "a", Some(own)).await["id"], alone["id"]);
    }
    assert_eq!(tasks(&peer).await, 2);
}

#[tokio::test]
async fn a_message_to_a_busy_context_is_taken_once_also_when_that_is_idle_again() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, PARKS);
    let first = send(&peer, "a", Some("conversation")).await;
    let beside = send(&peer, "b", Some("conversation")).await;
    assert_ne!(beside["id"], first["id"]);
    assert_eq!(send(&peer, "b", Some("conversation")).await["id"], beside["id"]);
    peer.result("tasks/cancel", json!({ "id": first["id"] })).await;
    assert_eq!(send(&peer, "b", Some("conversation")).await["id"], beside["id"]);
    // What the first session took when it was idle is not taken beside it while it is busy.
    let third = send(&peer, "c", Some("conversation")).await;
    assert_eq!(send(&peer, "c", Some("conversation")).await["id"], third["id"]);
    assert_eq!(tasks(&peer).await, 3);
}

#[tokio::test]
async fn a_message_whose_task_was_removed_is_told_as_one_that_was_taken_before() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, PARKS);
    for context in [None, Some("conversation")] {
        let first = send(&peer, "a", context).await;
        let run = first["id"].as_str().unwrap().parse().unwrap();
        let session = fixture.adjourn().session_of(run).await.unwrap().unwrap();
        session.close().await.unwrap();
        session.remove().await.unwrap();
        let mut again = message("a", "deploy");
        if let Some(context) = context {
            again["contextId"] = context.into();
        }
        for server in [&peer, &Peer::on(fixture.another_adjourn(), PARKS)] {
            let answer = server.ask("message/send", json!({ "message": again })).await;
            let error = &answer["error"];
            let info = &error["data"][0];
            assert_eq!(
                (&error["code"], &info["reason"]),
                (&json!(-32004), &json!("DUPLICATE_MESSAGE")),
                "{answer}"
            );
            let words = error["message"].as_str().unwrap();
            assert!(words.ends_with("and the task that it began was removed"), "{words}");
            assert_eq!(info["metadata"].get("taskId"), None, "{answer}");
        }
    }
    assert_eq!(tasks(&peer).await, 0);
}

/// Two peers that are not told apart may both number their messages from 1: the second one's words
/// would be lost.
#[tokio::test]
async fn other_words_under_an_id_that_was_taken_are_refused_and_not_lost() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, r#"{"steps": [{"ask": {"question": "which?"}}]}"#);
    let host = fixture.host().await;
    let first = send(&peer, "1", None).await;
    let (task, own) = (first["id"].as_str().unwrap(), first["contextId"].as_str().unwrap());
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.pass_until(session.id(), "suspended").await;
    let answer = with_task(message("2", "that one"), task);
    peer.result("message/send", json!({ "message": answer })).await;
    let mut others = vec![message("1", "something else"), message("1", "something else")];
    others[1]["contextId"] = own.into();
    others.push(with_task(message("2", "another one"), task));
    for server in [&peer, &Peer::on(fixture.another_adjourn(), PARKS)] {
        for other in &others {
            let refused = server.ask("message/send", json!({ "message": other })).await;
            let error = &refused["error"];
            assert_eq!(error["data"][0]["reason"], "DUPLICATE_MESSAGE", "{refused}");
            let words = error["message"].as_str().unwrap();
            assert!(words.ends_with("give this one its own id"), "{words}");
        }
        assert_eq!(send(server, "1", None).await["id"], first["id"]);
    }
    assert_eq!(tasks(&peer).await, 1);
    host.stop().await;
}

#[tokio::test]
async fn the_same_id_of_another_sender_or_in_another_context_is_another_message() {
    let fixture = Fixture::new();
    let mut peer = Peer::new(&fixture, PARKS);
    let first = send(&peer, "1", Some("one")).await;
    assert_ne!(send(&peer, "1", Some("two")).await["id"], first["id"]);
    assert_ne!(send(&peer, "1", None).await["id"], first["id"]);
    let scopes = Scope::ALL.into_iter().collect();
    peer.caller = Caller { name: "another".into(), tenant: TENANT.into(), scopes };
    peer.result("tasks/cancel", json!({ "id": first["id"] })).await;
    // To the same session, which has taken the id of the other sender.
    let theirs = send(&peer, "1", Some("one")).await;
    assert_ne!(theirs["id"], first["id"]);
    assert_eq!(theirs["contextId"], first["contextId"]);
    assert_eq!(tasks(&peer).await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_send_one_message_at_once_through_two_servers_all_are_told_of_one_task() {
    let fixture = Fixture::new();
    let servers = [
        Arc::new(Peer::new(&fixture, PARKS)),
        Arc::new(Peer::on(fixture.another_adjourn(), PARKS)),
    ];
    // The context's session is idle for a while and busy for a while.
    let first = send(&servers[0], "first", Some("conversation")).await;
    for (round, context) in [None, Some("new"), Some("conversation")].into_iter().enumerate() {
        let mut sending = tokio::task::JoinSet::new();
        for number in 0..16 {
            let server = Arc::clone(&servers[number % 2]);
            sending.spawn(async move {
                send(&server, &format!("m{round}"), context).await["id"].clone()
            });
        }
        if round == 2 {
            servers[1].result("tasks/cancel", json!({ "id": first["id"] })).await;
        }
        let mut told = Vec::new();
        while let Some(id) = sending.join_next().await {
            told.push(id.unwrap());
        }
        assert!(told.iter().all(|id| *id == told[0]), "{context:?}: {told:?}");
    }
    assert_eq!(tasks(&servers[0]).await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_sent_twice_is_answered_as_the_first_time() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"steps": [{"ask": {"question": "Which?"}}, {"await": {"reason": "ci"}},
                               {"ask": {"question": "Sure?"}}, {"say": "done"}]}"#;
    let peer = Peer::new(&fixture, script);
    let asking = peer.result("message/send", json!({ "message": message("m1", "go") })).await;
    let task = asking["id"].as_str().unwrap();
    let answer = |id: &str| json!({ "message": with_task(message(id, "yes"), task) });
    let first = peer.result("message/send", answer("m2")).await;
    assert_eq!(first["status"]["state"], "working", "it waits for ci");
    assert_eq!(peer.result("message/send", answer("m2")).await, first);
    // A new message to a parked task is refused as before.
    let refused = peer.refused("message/send", answer("m3")).await;
    assert_eq!(refused, (-32004, "TASK_PAUSED".to_owned()));
    let other = Peer::on(fixture.another_adjourn(), script);
    assert_eq!(other.result("message/send", answer("m2")).await, first);
    // It does not answer the next question.
    peer.result("tasks/resume", json!({ "taskId": task })).await;
    let run = task.parse().unwrap();
    let session = fixture.adjourn().session_of(run).await.unwrap().unwrap().id();
    fixture.until_state(session, "suspended").await;
    let again = peer.result("message/send", answer("m2")).await;
    assert_eq!(again["status"]["state"], "input-required");
    assert_eq!(again["status"]["message"]["parts"][0]["text"], "Sure?");
    let done = peer.result("message/send", answer("m4")).await;
    assert_eq!(done["status"]["state"], "completed");
    assert_eq!(peer.result("message/send", answer("m4")).await, done);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_that_is_sent_twice_is_answered_as_the_first_time_wherever_the_task_is_by_then() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"steps": [{"await": {"reason": "ci"}}, {"await": {"reason": "review"}},
        {"tool": {"name": "deploy", "ms": 1000}},
        {"fail": {"kind": "auth_required", "why": "who are you?"}},
        {"tool": {"name": "deploy", "ms": 1000}},
        {"ask": {"question": "Sure?"}}, {"say": "done"}]}"#;
    let peer = Peer::knowing(&fixture, script);
    let begun = peer.result("message/send", json!({ "message": message("m1", "go") })).await;
    assert_eq!(begun["status"]["state"], "paused-by-agent");
    let task = begun["id"].as_str().unwrap();
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    let mut answers: Vec<(Value, Value)> = Vec::new();
    // One of the agent's park, one of a hold over the next and of what lies under it, and one of a
    // hold over each question.
    for (key, is_held, state) in [
        ("park", false, "working"),
        ("held", true, "paused-by-agent"),
        ("next", false, "working"),
        ("who", true, "auth-required"),
        ("sure", true, "input-required"),
    ] {
        if state.ends_with("required") {
            // A pause that is pending when the agent asks lies over the question.
            fixture.pass_until_in_flight(session.id(), "deploy").await;
            let pause = session.suspend().mode(Mode::WaitForCompletion);
            pause.accepted().await.unwrap();
        } else if is_held {
            fixture.until_state(session.id(), "suspended").await;
            peer.pause(task).await;
        }
        fixture.pass_until(session.id(), "suspended").await;
        let params = json!({ "taskId": task, "idempotencyKey": key });
        let first = peer.result("tasks/resume", params.clone()).await;
        assert_eq!(first["state"], state, "{key}");
        answers.push((params, first));
        if state.ends_with("required") {
            let message = with_task(message(key, "yes"), task);
            let configuration = json!({ "blocking": false });
            let params = json!({ "message": message, "configuration": configuration });
            peer.result("message/send", params).await;
        }
        for (params, first) in &answers {
            assert_eq!(peer.result("tasks/resume", params.clone()).await, *first, "after {key}");
        }
    }
    fixture.pass_until(session.id(), "idle").await;
    let mut again = message("m2", "again");
    again["contextId"] = begun["contextId"].clone();
    peer.result("message/send", json!({ "message": again })).await;
    let other = Peer { activated: STATES, ..Peer::on(fixture.another_adjourn(), script) };
    for (params, first) in &answers {
        for peer in [&peer, &other] {
            assert_eq!(peer.result("tasks/resume", params.clone()).await, *first);
        }
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_to_the_end_of_its_task_is_answered_with_that_end_also_the_second_time() {
    // An input that comes behind the end is for the next run of the session.
    for input in [Value::Null, json!("and also this")] {
        let fixture = Fixture::new();
        let host = fixture.host().await;
        let script = r#"{"runs": [[{"tool": {"name": "deploy", "ms": 1000}}, {"say": "done"}],
                                  [{"fail": "broken"}], [{"fail": "broken"}]]}"#;
        let peer = Peer::knowing(&fixture, script);
        let task = peer.begin().await;
        let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
        fixture.until_in_flight(session.id(), "deploy").await;
        let pause = json!({ "taskId": task, "mode": "wait_for_completion" });
        let paused = tokio::join!(
            peer.result("tasks/pause", pause),
            fixture.pass_until(session.id(), "suspended")
        );
        assert_eq!(paused.0["state"], "paused-by-client");
        let params = json!({ "taskId": task, "idempotencyKey": "k", "input": input });
        let first = peer.result("tasks/resume", params.clone()).await;
        assert_eq!(first["state"], "completed", "{input}");
        assert_eq!(peer.result("tasks/resume", params.clone()).await, first);
        assert_eq!(peer.get(&task).await["status"]["state"], "completed");
        // The session goes on to another end.
        fixture.pass_until(session.id(), "idle").await;
        let mut again = message("m2", "again");
        again["contextId"] = session.id().to_string().into();
        let next = peer.result("message/send", json!({ "message": again })).await;
        assert_eq!(next["status"]["state"], "failed");
        assert_eq!(peer.result("tasks/resume", params).await, first);
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_taken_and_answered_before_a_task_moved_is_not_done_again_behind_the_move() {
    let fixture = Fixture::new();
    let mut host = fixture.host().await;
    let script = r#"{"steps": [{"await": {"reason": "ci"}}, {"ask": {"question": "Which?"}},
        {"await": {"reason": "review"}}, {"ask": {"question": "Sure?"}}, {"say": "done"}]}"#;
    let peer = Peer::knowing(&fixture, script);
    let first = |context: Option<&str>| {
        let mut message = message("m1", "go");
        if let Some(context) = context {
            message["contextId"] = context.into();
        }
        json!({ "message": message, "configuration": { "blocking": false } })
    };
    let begun = peer.result("message/send", first(None)).await;
    let (task, context) = (begun["id"].as_str().unwrap(), begun["contextId"].as_str().unwrap());
    let mut session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_state(session.id(), "suspended").await;
    // A hold, so that what followed is not told by the wake alone.
    peer.pause(task).await;
    let lift = json!({ "taskId": task, "idempotencyKey": "lift" });
    let lifted = peer.result("tasks/resume", lift.clone()).await;
    assert_eq!(lifted["state"], "paused-by-agent");
    let wake = json!({ "taskId": task, "idempotencyKey": "wake" });
    let woken = peer.result("tasks/resume", wake.clone()).await;
    fixture.until_state(session.id(), "suspended").await;
    let answer = json!({ "message": with_task(message("m2", "yes"), task) });
    let answered = peer.result("message/send", answer.clone()).await;
    assert_eq!(answered["status"]["state"], "paused-by-agent");
    for _ in 0..2 {
        host.stop().await;
        let record = session.export().await.unwrap().record;
        session = fixture.adjourn().import(record).await.unwrap();
        host = fixture.host().await;
        let other = Peer { activated: STATES, ..Peer::on(fixture.another_adjourn(), script) };
        for peer in [&peer, &other] {
            let before = session.load().await.unwrap().revision;
            for context in [None, Some(context)] {
                let again = peer.result("message/send", first(context)).await;
                let (id, state) = (&again["id"], &again["status"]["state"]);
                assert_eq!((id, state), (&json!(task), &json!("paused-by-agent")));
            }
            let again = peer.result("message/send", answer.clone()).await;
            assert_eq!(again["status"]["state"], "paused-by-agent");
            assert_eq!(peer.result("tasks/resume", lift.clone()).await, lifted);
            assert_eq!(peer.result("tasks/resume", wake.clone()).await, woken);
            assert_eq!(session.load().await.unwrap().revision, before, "nothing was done again");
        }
    }
    // Nor is the next question answered by it.
    peer.result("tasks/resume", json!({ "taskId": task })).await;
    let asks = |session: &Session| session.phase() == Phase::Asking;
    fixture.until(session.id(), "asks", asks).await;
    let again = peer.result("message/send", answer).await;
    assert_eq!(again["status"]["message"]["parts"][0]["text"], "Sure?");
    assert_eq!(tasks(&peer).await, 1);
    fixture.adjourn().verify(adjourn_testkit::store::keys().ring(), None).await.unwrap().unwrap();
    host.stop().await;
}
