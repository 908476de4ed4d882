//! Contexts: which session a message goes to, and lists of tasks.

use std::sync::Arc;

use adjourn::SessionRef;
use adjourn_testkit::host::Fixture;
use serde_json::{Value, json};

use crate::peer::{Peer, message};

const PARKS: &str = r#"{"steps": [{"await": {"reason": "ci"}}, {"say": "done"}]}"#;

async fn send(peer: &Peer, id: &str, context: Option<&Value>) -> Value {
    let mut message = message(id, &format!("do {id}"));
    if let Some(context) = context {
        message["contextId"] = context.clone();
    }
    let params = json!({ "message": message, "configuration": { "blocking": false } });
    peer.result("message/send", params).await
}

#[tokio::test]
async fn a_context_whose_first_session_is_gone_goes_on_under_its_name() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, PARKS);
    let gone = json!("sess-00000000-0000-7000-8000-00000000beef");
    let first = send(&peer, "a", Some(&gone)).await;
    assert_eq!(first["contextId"], gone);
    peer.result("tasks/cancel", json!({ "id": first["id"] })).await;
    let second = send(&peer, "b", Some(&gone)).await;
    assert_eq!(second["contextId"], gone);
    let mut sessions = Vec::new();
    for task in [&first, &second] {
        let run = task["id"].as_str().unwrap().parse().unwrap();
        sessions.push(fixture.adjourn().session_of(run).await.unwrap().unwrap().id());
    }
    assert_eq!(sessions[0], sessions[1], "it remembers what was said");
}

#[tokio::test]
async fn a_message_goes_to_the_session_of_its_context_if_that_is_idle() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, PARKS);
    let first = send(&peer, "a", None).await;
    let session = |task: &Value| {
        let run = task["id"].as_str().unwrap().parse().unwrap();
        let adjourn = fixture.adjourn();
        async move { adjourn.session_of(run).await.unwrap().unwrap() }
    };
    let own = session(&first).await;
    assert_eq!(first["contextId"], own.id().to_string());

    // It is busy: another session begins, with the first as its parent and the same context.
    let second = send(&peer, "b", Some(&first["contextId"])).await;
    let other = session(&second).await;
    assert_eq!(second["contextId"], first["contextId"]);
    assert_ne!(other.id(), own.id());
    let state = other.load().await.unwrap();
    assert_eq!(state.parent, Some(own.id()));
    let said = other.transcript(0, 1).await.unwrap().remove(0).1.text();
    assert!(said.contains("first prompt: do a") && said.ends_with("do b"), "{said}");
    assert_eq!(second["history"][0]["parts"], json!([{ "kind": "text", "text": "do b" }]));

    // It is idle again: it goes on.
    peer.result("tasks/cancel", json!({ "id": first["id"] })).await;
    let third = send(&peer, "c", Some(&first["contextId"])).await;
    assert_eq!(session(&third).await.id(), own.id());
    assert_ne!(third["id"], first["id"]);

    // The same message again is the same task.
    let retried = send(&peer, "c", Some(&first["contextId"])).await;
    assert_eq!(retried["id"], third["id"]);
    let listed = peer.result("ListTasks", json!({ "contextId": first["contextId"] })).await;
    let listed: Vec<_> =
        listed["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
    for task in [&first, &second, &third] {
        assert!(listed.contains(&&task["id"]), "{listed:?}");
    }
}

#[tokio::test]
async fn a_context_may_have_the_name_that_the_peer_gives_it() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, PARKS);
    let name = json!("conversation-7");
    let first = send(&peer, "a", Some(&name)).await;
    assert_eq!(first["contextId"], name);
    peer.result("tasks/cancel", json!({ "id": first["id"] })).await;
    let second = send(&peer, "b", Some(&name)).await;
    assert_eq!(second["contextId"], name);
    let listed = peer.result("ListTasks", json!({ "contextId": name })).await;
    assert_eq!(listed["totalSize"], 2);
    assert_eq!(peer.get(first["id"].as_str().unwrap()).await["status"]["state"], "canceled");
    let long = "x".repeat(300);
    let params =
        json!({ "message": { "messageId": "c", "contextId": long, "parts": [{ "text": "x" }] } });
    assert_eq!(peer.refused("message/send", params).await.0, -32602);
    // The task of one context is not one of another.
    let mut wrong = message("d", "x");
    wrong["taskId"] = second["id"].clone();
    wrong["contextId"] = "another".into();
    assert_eq!(peer.refused("message/send", json!({ "message": wrong })).await.0, -32602);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_messages_that_come_first_to_a_context_at_once_one_founds_it_and_the_others_know_of_it()
{
    let fixture = Fixture::new();
    let servers = [
        Arc::new(Peer::new(&fixture, PARKS)),
        Arc::new(Peer::on(fixture.another_adjourn(), PARKS)),
    ];
    for round in 0..5 {
        let name = json!(format!("conversation-{round}"));
        let mut sending = tokio::task::JoinSet::new();
        for number in 0..8 {
            let (server, name) = (Arc::clone(&servers[number % 2]), name.clone());
            let id = format!("m{round}-{number}");
            sending.spawn(async move { send(&server, &id, Some(&name)).await });
        }
        let (mut first, mut parents) = (Vec::new(), Vec::new());
        while let Some(task) = sending.join_next().await {
            let task = task.unwrap();
            assert_eq!(task["contextId"], name);
            let session = session_of(&fixture, &task).await;
            match session.load().await.unwrap().parent {
                Some(parent) => parents.push(parent),
                None => first.push(session.id()),
            }
        }
        assert_eq!((first.len(), parents.len()), (1, 7), "{first:?}, {parents:?}");
        assert!(parents.iter().all(|parent| *parent == first[0]), "{first:?}, {parents:?}");
    }
}

#[tokio::test]
async fn a_list_is_turned_page_by_page_and_shows_each_task_once() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, PARKS);
    let mut begun = Vec::new();
    for number in 0..5 {
        fixture.clock.advance(std::time::Duration::from_secs(1));
        begun.push(send(&peer, &format!("m{number}"), None).await["id"].clone());
    }
    begun.reverse();
    let (mut listed, mut token) = (Vec::new(), json!(""));
    loop {
        let page = peer.result("ListTasks", json!({ "pageSize": 2, "pageToken": token })).await;
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 2 && page["pageSize"] == 2 && page["totalSize"] == 5, "{page}");
        assert!(tasks.iter().all(|task| task.get("artifacts").is_none()));
        listed.extend(tasks.iter().map(|task| task["id"].clone()));
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(listed, begun);
    let since = json!({ "statusTimestampAfter": "2026-11-16T09:00:04Z" });
    assert_eq!(peer.result("ListTasks", since).await["tasks"].as_array().unwrap().len(), 2);
}

/// Returns the session of a task.
async fn session_of(fixture: &Fixture, task: &Value) -> SessionRef {
    let run = task["id"].as_str().unwrap().parse().unwrap();
    fixture.adjourn().session_of(run).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_context_whose_sessions_were_closed_goes_on_in_the_one_that_is_open() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, PARKS);
    for name in [json!("conversation-8"), Value::Null] {
        let first = send(&peer, &format!("a {name}"), Some(&name)).await;
        let mut closed = session_of(&fixture, &first).await;
        for round in 0..2 {
            closed.close().await.unwrap();
            let next = send(&peer, &format!("b{round} {name}"), Some(&first["contextId"])).await;
            let session = session_of(&fixture, &next).await;
            assert_eq!(next["contextId"], first["contextId"]);
            assert_eq!(session.load().await.unwrap().parent, Some(closed.id()), "it knows of it");
            peer.result("tasks/cancel", json!({ "id": next["id"] })).await;
            let again = send(&peer, &format!("c{round} {name}"), Some(&first["contextId"])).await;
            assert_eq!(session_of(&fixture, &again).await.id(), session.id(), "it goes on");
            closed = session;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_goes_on_in_the_session_that_took_it_in_however_often_it_moves() {
    let fixture = Fixture::new();
    let script = r#"{"runs": [[{"await": {"reason": "ci"}}, {"say": "done"}],
        [{"await": {"reason": "ci"}}, {"say": "done"}], [{"say": "done"}]]}"#;
    let peer = Peer::new(&fixture, script);
    let own = "sess-00000000-0000-7000-8000-00000000beef";
    for name in [json!("conversation-7"), json!(own), Value::Null] {
        let mut host = fixture.host().await;
        let mut task = send(&peer, &format!("a {name}"), Some(&name)).await;
        let context = task["contextId"].clone();
        for round in 0..2 {
            let session = session_of(&fixture, &task).await;
            fixture.until_state(session.id(), "suspended").await;
            // One that comes meanwhile begins beside it, and is no part of the conversation.
            send(&peer, &format!("beside {round} {name}"), Some(&context)).await;
            host.stop().await;
            let record = session.export().await.unwrap().record;
            let imported = fixture.adjourn().import(record).await.unwrap();
            host = fixture.host().await;
            peer.result("tasks/resume", json!({ "taskId": task["id"] })).await;
            fixture.until_state(imported.id(), "idle").await;
            task = send(&peer, &format!("next {round} {name}"), Some(&context)).await;
            assert_eq!(task["contextId"], context);
            let goes_on = session_of(&fixture, &task).await;
            assert_eq!(goes_on.id(), imported.id(), "{name}: the conversation goes on");
        }
        host.stop().await;
    }
}
