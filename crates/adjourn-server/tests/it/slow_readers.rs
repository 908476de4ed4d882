//! Peers that do not take what they have asked for keep no other from being answered.

use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::Awaited;
use serde_json::{Value, json};

use crate::agent::{BOSS, DONE, JSON, Setting, request, words};

/// More than the system keeps of what a peer has yet to take.
const LONG: usize = 8 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_had_an_answer_for_longest_makes_room_for_others() {
    let fixture = Fixture::new();
    let served = Setting { answer_bytes: 3 * LONG, ..Setting::new(DONE) }.on(&fixture).await;
    let mut message = words("m1");
    message["parts"][0]["text"] = "x".repeat(LONG).into();
    let params = json!({ "message": message, "configuration": { "blocking": false } });
    let begun = served.result("message/send", &params);
    let task = begun["id"].as_str().unwrap();
    let whole = |answer: &Value| answer.to_string().len() > LONG;
    assert!(whole(&begun));
    let get = |method| request(method, &json!({ "id": task }));
    let mut slow = Vec::new();
    // Two answers, of which one is a stream, and a third that there is no room for beside them.
    for method in ["tasks/get", "tasks/resubscribe", "tasks/get"] {
        let mut connection = Awaited::open(served.address).await;
        let headers = [JSON, BOSS, ("connection", "close")];
        connection.begin("POST /a2a", &headers, &get(method)).await;
        // It has come to the answer.
        let head = connection.line().await.unwrap().unwrap();
        assert!(head.contains("200"), "{head}");
        slow.push(connection);
    }
    // What was done is answered whatever there is.
    let canceled = served.result("tasks/cancel", &json!({ "id": task }));
    assert!(whole(&canceled) && canceled["status"]["state"] == "canceled");
    let mut ends = Vec::new();
    for mut connection in slow {
        let mut rest = Vec::new();
        let broken = connection.rest(&mut rest).await.is_err();
        ends.push(broken || rest.len() < LONG);
    }
    assert_eq!(ends, [true, true, false], "who came first was hung up on");
    served.stop().await;
}
