//! A server that stops: streams end behind an event, and go on elsewhere.

use adjourn_testkit::host::Fixture;
use serde_json::json;

use crate::agent::{BOSS, DONE, JSON, STATES, Setting, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_in_order_and_goes_on_at_another_server_without_a_gap() {
    let fixture = Fixture::new();
    let first = Setting::new(DONE).on(&fixture).await;
    let task = first.begin("m1");
    let mut watch = first.watch(&task, &[STATES], None);
    let mut seen = vec![watch.next().unwrap()];
    let handle = first.result("tasks/pause", &json!({ "taskId": task }))["handle"].clone();
    seen.extend(watch.by_ref().take(2));
    let address = first.address;
    first.stop().await;
    assert_eq!(watch.next(), None);
    assert!(watch.is_whole, "the stream was cut off");
    assert!(std::net::TcpStream::connect(address).is_err(), "it still listens");

    let second = Setting::new(DONE).on(&fixture).await;
    second.result("tasks/resume", &json!({ "taskId": task, "handle": handle }));
    second.result("tasks/cancel", &json!({ "id": task }));
    let whole: Vec<_> = second.watch(&task, &[STATES], Some(&seen[0].0)).collect();
    assert_eq!(whole[..2], seen[1..], "what was told is told again in the same words");
    for (index, (id, _)) in seen.iter().enumerate() {
        let rest: Vec<_> = second.watch(&task, &[STATES], Some(id)).collect();
        assert_eq!(rest, whole[index..], "behind {id}");
    }
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_under_way_is_answered() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    // No host runs it, so that a send which waits for it waits until the task is canceled.
    let address = served.address;
    let (sender, sent) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || {
        let mut connection = adjourn_testkit::http::Connection::open(address);
        // The first answer says that the connection is one of the server's.
        let get = connection.send("GET /healthz", &[], "");
        sender.send(get.status).unwrap();
        let message = crate::agent::words("m1");
        let body = request("message/send", &json!({ "message": message }));
        connection.send("POST /a2a", &[JSON, BOSS], &body).json()
    });
    assert_eq!(sent.recv().unwrap(), 200);
    served.result("tasks/cancel", &json!({ "id": task }));
    let answer = waiting.join().unwrap();
    assert_eq!(answer.pointer("/result/status/state"), Some(&"canceled".into()), "{answer}");
    served.stop().await;
}
