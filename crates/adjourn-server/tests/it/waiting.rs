//! Peers that wait for a task that rests or is slow to: their streams stay open, and one that hangs up
//! takes nothing back.

use std::time::Duration;

use adjourn::core::Session;
use adjourn::core::session::Phase;
use adjourn_a2a::rpc;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::Awaited;
use serde_json::{Value, json};

use crate::agent::{BOSS, DONE, JSON, STATES, Served, Setting, request, words};

/// Less than any request waits.
const SOON: Duration = Duration::from_secs(10);

/// The agent works at something that takes a minute, on a clock that is moved by hand.
const BUILDS: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 60000}}, {"say": "merged"}]}"#;

/// Sends a request without waiting for its answer. The runtime of these tests has one thread, which
/// the server needs too.
async fn ask(served: &Served, method: &str, params: &Value) -> Awaited {
    let mut connection = Awaited::open(served.address).await;
    let headers = [JSON, BOSS, STATES, ("connection", "close")];
    connection.begin("POST /a2a", &headers, &request(method, params)).await;
    connection
}

/// Asks for something that is granted.
async fn result(served: &Served, method: &str, params: &Value) -> Value {
    let answer = ask(served, method, params).await.answer().await.unwrap().json();
    assert!(answer.get("result").is_some(), "{method}: {answer}");
    answer["result"].clone()
}

/// Makes a body as long as one may be, by what JSON leaves out of account.
fn padded(body: &str) -> String {
    format!("{body}{}", " ".repeat(rpc::BODY_BYTES - body.len()))
}

async fn begin(served: &Served) -> String {
    let params = json!({ "message": words("m1"), "configuration": { "blocking": false } });
    result(served, "message/send", &params).await["id"].as_str().unwrap().to_owned()
}

/// Returns the next line of a stream that has some words in it.
async fn line(stream: &mut Awaited, with: &str) -> String {
    loop {
        let line = stream.line().await.unwrap().unwrap();
        if line.contains(with) {
            return line;
        }
    }
}

#[tokio::test]
async fn a_stream_stays_open_while_its_task_is_paused_and_tells_of_the_wake() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = begin(&served).await;
    let mut stream = ask(&served, "tasks/resubscribe", &json!({ "id": task })).await;
    line(&mut stream, "data: ").await;
    let paused = result(&served, "tasks/pause", &json!({ "taskId": task })).await;
    line(&mut stream, "tasks/statusUpdate").await;
    // This clock goes on by itself when there is nothing else to do.
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(line(&mut stream, ": ").await, ": still here\n");
    }
    let waited = start.elapsed();
    tokio::time::resume();
    let range = Duration::from_secs(19 * 15)..Duration::from_secs(40 * 15);
    assert!(range.contains(&waited), "20 comments came in {waited:?}");
    let resume = json!({ "taskId": task, "handle": paused["handle"] });
    assert_eq!(result(&served, "tasks/resume", &resume).await["state"], "working");
    let told = line(&mut stream, "data: ").await;
    assert!(told.contains(r#""state":"working""#), "{told}");
    served.stop().await;
}

#[tokio::test]
async fn a_peer_that_hangs_up_takes_no_pause_back() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let served = Setting::new(BUILDS).on(&fixture).await;
    let task = begin(&served).await;
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    let params = json!({ "taskId": task, "reason": "operator review" });
    let asking = ask(&served, "tasks/pause", &params).await;
    let is_asked = |session: &Session| session.pause_reason() == Some("operator review");
    fixture.until(session.id(), "asked to pause", is_asked).await;
    drop(asking);
    // A server that has stopped has seen that, too.
    served.stop().await;
    fixture.pass_until(session.id(), "suspended").await;
    let served = Setting::new(BUILDS).on(&fixture).await;
    let shown = result(&served, "tasks/get", &json!({ "id": task })).await;
    assert_eq!(shown["status"]["state"], "paused-by-client");
    served.stop().await;
    host.stop().await;
}

/// Finds that others are heard, whose requests have bodies: soon, and not when what waits is answered.
async fn others_are_heard(served: &Served, task: &str) {
    let get = request("tasks/get", &json!({ "id": task }));
    let event = r#"{"specversion":"1.0","id":"1","source":"ci","type":"a"}"#;
    let mut other = Awaited::open(served.address).await;
    let heard = async {
        for (what, kind, body) in [
            ("POST /a2a", "application/json", get.as_str()),
            ("POST /v1/events", "application/cloudevents+json", event),
        ] {
            let headers = [("content-type", kind), BOSS];
            while other.send(what, &headers, body).await.status != 200 {}
        }
    };
    assert!(tokio::time::timeout(SOON, heard).await.is_ok(), "others are kept out");
}

/// As much as there is room for is sent by four who then wait.
#[tokio::test]
async fn sends_that_wait_take_no_room_from_others() {
    let fixture = Fixture::new();
    let served = Setting::new(BUILDS).on(&fixture).await;
    let task = begin(&served).await;
    let mut waiting = Vec::new();
    for number in 0..4 {
        let send = json!({ "message": words(&format!("long-{number}")) });
        let mut connection = Awaited::open(served.address).await;
        let body = padded(&request("message/send", &send));
        connection.begin("POST /a2a", &[JSON, BOSS], &body).await;
        waiting.push(connection);
    }
    // They wait when their tasks have begun. To list these needs no body.
    let mut listing = Awaited::open(served.address).await;
    let taken = async {
        while listing.send("GET /a2a/tasks", &[BOSS], "").await.json()["totalSize"] != 5 {}
    };
    tokio::time::timeout(SOON, taken).await.unwrap();
    others_are_heard(&served, &task).await;
    drop(waiting);
    served.stop().await;
}

/// Ways to wait but for a send of words.
#[derive(Clone, Copy)]
enum Way {
    Pause,
    PauseByPath,
    PauseByMessage,
    Cancel,
}

impl Way {
    /// Returns where a task is asked for it, and with which body.
    fn of(self, task: &str) -> (String, String) {
        let rpc = |method, params| ("POST /a2a".to_owned(), request(method, &params));
        let pause = json!({ "reason": "review" });
        match self {
            Self::Pause => rpc("tasks/pause", json!({ "taskId": task, "reason": "review" })),
            Self::PauseByPath => (format!("POST /a2a/tasks/{task}:pause"), pause.to_string()),
            Self::PauseByMessage => {
                let mut message = words("pause");
                message["taskId"] = task.into();
                message["metadata"] = json!({ "harn": { "pause": pause } });
                rpc("message/send", json!({ "message": message }))
            }
            Self::Cancel => rpc("tasks/cancel", json!({ "id": task })),
        }
    }

    /// Returns whether the session was asked for it.
    fn is_asked(self, session: &Session) -> bool {
        match self {
            Self::Cancel => session.phase() == Phase::Canceling,
            _ => session.pause_reason() == Some("review"),
        }
    }
}

/// The same, by every other way to wait.
#[tokio::test]
async fn pauses_and_cancels_that_wait_take_no_room_from_others() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let served = Setting::new(BUILDS).on(&fixture).await;
    let (mut waiting, mut last) = (Vec::new(), String::new());
    for way in [Way::Pause, Way::PauseByPath, Way::PauseByMessage, Way::Cancel] {
        let id = format!("m{}", waiting.len());
        let params = json!({ "message": words(&id), "configuration": { "blocking": false } });
        let task = result(&served, "message/send", &params).await;
        last = task["id"].as_str().unwrap().to_owned();
        let session = fixture.adjourn().session_of(last.parse().unwrap()).await.unwrap().unwrap();
        fixture.until_in_flight(session.id(), "build").await;
        let (path, body) = way.of(&last);
        let mut connection = Awaited::open(served.address).await;
        connection.begin(&path, &[JSON, BOSS], &padded(&body)).await;
        fixture.until(session.id(), "asked", |session| way.is_asked(session)).await;
        waiting.push(connection);
    }
    others_are_heard(&served, &last).await;
    drop(waiting);
    served.stop().await;
    // What is in flight takes a minute of a clock that stands still.
    host.kill().await;
}
