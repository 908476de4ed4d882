//! How often the store is read for what a client asks.

use serde_json::json;

use crate::process::{Client, Process};

const PARKS: &str =
    r#"{"steps": [{"say": "hello"}, {"await": {"reason": "waiting"}}, {"say": "good bye"}]}"#;

/// One run: a prompt, a park, a resume, the end.
async fn run(client: &mut Client, session: &str) {
    client.prompt(session).await;
    client.until_state("idle").await;
    client.call("session/resume", json!({ "sessionId": session, "cwd": "/tmp" })).await;
    client.until_state("idle").await;
}

/// Returns how often the store is read for a run, beside sessions that the same client sees.
async fn reads_beside(attached: usize) -> u64 {
    let process = Process::start(PARKS).await;
    let mut client = process.connect().await;
    let session = client.new_session().await;
    for other in process.create_many(attached).await {
        client.call("session/resume", json!({ "sessionId": other })).await;
    }
    // What is made once is there by then.
    run(&mut client, &session).await;
    let before = process.reads();
    run(&mut client, &session).await;
    let reads = process.reads() - before;
    client.leave().await;
    reads
}

#[tokio::test]
async fn a_run_is_read_as_often_beside_ten_attached_sessions_as_beside_a_thousand() {
    let (few, many) = (reads_beside(10).await, reads_beside(1000).await);
    // What this process has committed is not read again. The host and the feed look by themselves a
    // few times a second, however long this takes.
    assert!(few < 60, "{few} reads");
    assert!(many < few + 60, "{few} reads beside ten, {many} beside a thousand");
}
