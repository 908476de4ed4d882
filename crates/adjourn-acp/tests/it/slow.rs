//! Clients that read slowly, or not at all: they are heard, and cost little.

use serde_json::{Value, json};

use crate::process::{Client, Process};

/// How often somebody says something, and how much: each time about the most that may be said, so
/// that with what is around it on the wire it fills all the room between the agent and a client
/// that does not read.
const WORDS: usize = 8;
const LENGTH: usize = (1 << 20) - 100;

const ASKS: &str = "session/request_permission";

/// An agent that is told much, and then wants to do something.
fn hears_much() -> String {
    let mut runs = vec![json!([{ "say": "go on" }]); WORDS];
    runs.push(json!([{ "tool": { "name": "deploy", "permission": true } }]));
    json!({ "runs": runs }).to_string()
}

/// Makes a session in which much has been said.
async fn told_much(client: &mut Client) -> String {
    let session = client.new_session().await;
    let blocks = json!([{ "type": "text", "text": "x".repeat(LENGTH) }]);
    for _ in 0..WORDS {
        let prompt = json!({ "sessionId": session, "prompt": blocks });
        client.call("session/prompt", prompt).await;
        client.until_state("idle").await;
    }
    session
}

/// Asks for all of a session, and reads no more than the beginning.
async fn half_told(process: &Process, session: &str) -> (Client, u64) {
    let mut client = process.connect_narrowly().await;
    let replay = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
    let request = client.request("session/resume", replay).await;
    client.told("session/update").await;
    (client, request)
}

fn told_of(client: &Client) -> usize {
    let heard = client.heard().iter();
    heard.filter(|m| m["params"]["update"]["sessionUpdate"] == "user_message").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_is_heard_before_a_replay_is_read() {
    let process = Process::start(&hears_much()).await;
    let mut first = process.connect().await;
    let session = told_much(&mut first).await;
    first.prompt(&session).await;
    first.told(ASKS).await;
    let (mut second, request) = half_told(&process, &session).await;
    second.notify("session/cancel", json!({ "sessionId": session })).await;
    first.until_state("idle").await;
    assert_eq!(told_of(&second), 1, "it has read nothing more");
    // The replay goes on to where it was to end, and what came later follows.
    second.answer(request).await;
    second.until_state("idle").await;
    assert_eq!(told_of(&second), WORDS + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_is_heard_before_answers_of_the_connection_are_read() {
    let process = Process::start(&hears_much()).await;
    let mut first = process.connect().await;
    let session = told_much(&mut first).await;
    first.prompt(&session).await;
    first.told(ASKS).await;
    let (mut second, replay) = half_told(&process, &session).await;
    let named = json!({ "sessionId": session });
    let mut asked = vec![replay];
    for _ in 0..3 {
        asked.push(second.request("session/status", named.clone()).await);
    }
    let forgotten = second.request("session/close", named.clone()).await;
    second.notify("$/cancel_request", json!({ "requestId": forgotten })).await;
    second.notify("session/cancel", named).await;
    first.until_state("idle").await;
    assert_eq!(told_of(&second), 1, "it has read nothing more");
    asked.push(forgotten);
    while !asked.is_empty() {
        let answer = second.any_answer().await;
        asked.retain(|id| answer["id"] != *id);
        let taken_back = answer["error"]["code"] == -32800;
        assert_eq!(taken_back, answer["id"] == forgotten, "{answer}");
    }
    // It still sees the session: nothing was closed.
    second.until_state("idle").await;
    assert_eq!(told_of(&second), WORDS + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_is_taken_back_and_so_is_what_waits_behind_it() {
    let process = Process::start(&hears_much()).await;
    let session = told_much(&mut process.connect().await).await;
    let (mut second, request) = half_told(&process, &session).await;
    let blocks = json!([{ "type": "text", "text": "and?" }]);
    let prompt = json!({ "sessionId": session, "prompt": blocks });
    let prompt = second.request("session/prompt", prompt).await;
    for id in [prompt, request] {
        second.notify("$/cancel_request", json!({ "requestId": id })).await;
    }
    let answers = [second.any_answer().await, second.any_answer().await];
    let mut ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [request, prompt]);
    for answer in answers {
        assert_eq!(answer["error"]["code"], -32800, "{answer}");
    }
    assert!(told_of(&second) < WORDS, "it has stopped on the way");
    let attached = second.call("session/resume", json!({ "sessionId": session })).await;
    assert_eq!(attached["_meta"]["adjourn/suspend"]["state"], "idle");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_goes_for_what_was_asked_before_it_too() {
    let process = Process::start(&hears_much()).await;
    let session = told_much(&mut process.connect().await).await;
    let (mut second, _) = half_told(&process, &session).await;
    let blocks = json!([{ "type": "text", "text": "and?" }]);
    second.request("session/prompt", json!({ "sessionId": session, "prompt": blocks })).await;
    second.notify("session/cancel", json!({ "sessionId": session })).await;
    let canceled = |message: &Value| message["params"]["update"]["stopReason"] == "cancelled";
    second.until("canceled", canceled).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_behind_a_close_happens_behind_it() {
    let process = Process::start(&hears_much()).await;
    let session = told_much(&mut process.connect().await).await;
    let (mut second, replay) = half_told(&process, &session).await;
    let close = second.request("session/close", json!({ "sessionId": session })).await;
    let blocks = json!([{ "type": "text", "text": "and?" }]);
    let prompt = json!({ "sessionId": session, "prompt": blocks });
    let prompt = second.request("session/prompt", prompt).await;
    // Its only call waits for this permission: the close has not canceled it.
    let asks = second.told(ASKS).await;
    let order: Vec<_> = second.heard().iter().filter_map(|m| m["id"].as_u64()).collect();
    let asked = asks["id"].as_u64().unwrap();
    assert_eq!(order[1..], [replay, close, prompt, asked], "and initialize");
    let behind = second.heard().iter().position(|m| m["id"] == close).unwrap();
    let own = second.heard().iter().position(|m| m.to_string().contains("and?")).unwrap();
    assert!(own > behind, "nothing began before the close was answered");
    second
        .reply(&asks["id"], json!({ "outcome": { "outcome": "selected", "optionId": "allow" } }))
        .await;
    second.until_state("idle").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_is_taken_back_although_a_close_waits_behind_it() {
    let process = Process::start(&hears_much()).await;
    let session = told_much(&mut process.connect().await).await;
    let (mut second, replay) = half_told(&process, &session).await;
    let close = second.request("session/close", json!({ "sessionId": session })).await;
    second.notify("$/cancel_request", json!({ "requestId": replay })).await;
    assert_eq!(second.answer(replay).await["error"]["code"], -32800);
    assert!(second.answer(close).await["result"].is_object());
    assert!(told_of(&second) < WORDS, "it has stopped on the way");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_were_closed_cost_nothing() {
    let process = Process::start(&hears_much()).await;
    let mut client = process.connect().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..50 {
        let session = client.new_session().await;
        client.call("session/close", json!({ "sessionId": session })).await;
    }
    assert!(tasks() < before + 10, "{} more", tasks() - before);
}

/// Questions that were answered long ago are not asked again by a replay that ends on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_a_replay_back_can_say_something_new() {
    let mut runs = vec![json!([{ "ask": { "question": "which?" } }, { "say": "so be it" }])];
    runs.extend(vec![json!([{ "say": "go on" }]); WORDS + 1]);
    let process = Process::start(&json!({ "runs": runs }).to_string()).await;
    let mut first = process.connect().await;
    let session = first.new_session().await;
    let prompt = |words: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": words }] });
    first.call("session/prompt", prompt("go")).await;
    first.until_state("requires_action").await;
    first.call("session/prompt", prompt("this one")).await;
    first.until_state("idle").await;
    for _ in 0..WORDS {
        first.call("session/prompt", prompt(&"x".repeat(LENGTH))).await;
        first.until_state("idle").await;
    }
    let (mut second, request) = half_told(&process, &session).await;
    second.notify("$/cancel_request", json!({ "requestId": request })).await;
    assert_eq!(second.answer(request).await["error"]["code"], -32800);
    let id = second.request("session/prompt", prompt("and now?")).await;
    let answer = second.answer(id).await;
    assert!(answer["result"]["messageId"].is_string(), "{answer}");
}

/// What is asked while answers wait is answered with them, and nothing stays behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_status_that_is_asked_for_behind_a_replay_is_answered() {
    let process = Process::start(&hears_much()).await;
    let session = told_much(&mut process.connect().await).await;
    let (mut second, replay) = half_told(&process, &session).await;
    let mut asked = vec![replay];
    for _ in 0..20 {
        asked.push(second.request("session/status", json!({ "sessionId": session })).await);
    }
    while !asked.is_empty() {
        let answer = second.any_answer().await;
        let before = asked.len();
        asked.retain(|id| answer["id"] != *id);
        assert_eq!(asked.len() + 1, before, "once: {answer}");
    }
}
