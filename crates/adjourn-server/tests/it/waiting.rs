//! Peers that wait for a task that rests or is slow to: their streams stay open, and one that hangs up
//! takes nothing back.

use std::time::Duration;

use adjourn::core::Session;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::Awaited;
use serde_json::{Value, json};

use crate::agent::{BOSS, DONE, JSON, STATES, Served, Setting, request, words};

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
