//! The intake of events.

use std::sync::Arc;
use std::time::Duration;

use adjourn::clock::Machine;
use adjourn_server::{Access, Site, Token, serve};
use adjourn_store::{Sqlite, Store as _};
use adjourn_testkit::host::embed;
use adjourn_testkit::http::Awaited;
use adjourn_testkit::log::Log;
use adjourn_testkit::store;
use adjourn_testkit::store::TENANT;
use serde_json::Value;
use tokio::net::TcpListener;
use tracing::Level;

struct Fixture {
    _directory: store::Fixture<Machine>,
    store: Sqlite,
    address: std::net::SocketAddr,
}

async fn fixture(token: Option<&str>) -> Fixture {
    bounded(token, adjourn_server::CONNECTIONS).await
}

/// An intake that has few connections.
async fn bounded(token: Option<&str>, connections: usize) -> Fixture {
    let directory = store::Fixture::with(Machine);
    let store = directory.open();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let adjourn = embed(store.clone(), Arc::new(Machine)).unwrap();
    let access = match token {
        Some(token) => Access::with([Token::for_events(token, TENANT)]),
        None => Access::default().open_to_all(TENANT),
    };
    let site = Site { access, connections, ..Site::open(adjourn) };
    tokio::spawn(serve(listener, site, std::future::pending()));
    Fixture { _directory: directory, store, address }
}

impl Fixture {
    /// Posts, and returns the status and the body.
    async fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let (status, _, body) = self.send("POST /v1/events", headers, body).await;
        (status, body)
    }

    /// Sends a request, and returns the status, the head of the answer in lower case, and the body.
    async fn send(&self, what: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, Value) {
        let answer = Awaited::open(self.address).await.send(what, headers, body).await;
        (answer.status, answer.head.clone(), answer.json())
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_never_ends_the_head_of_a_request_is_hung_up_on() {
    let fixture = fixture(None).await;
    for begun in ["", "POST /v1/events HTTP/1.1\r\nhost: te"] {
        let mut connection = Awaited::open(fixture.address).await;
        connection.write(begun).await.unwrap();
        let start = tokio::time::Instant::now();
        // The clock of this test goes on by itself when there is nothing else to do.
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(60), connection.rest(&mut rest));
        ended.await.expect("the connection is closed").unwrap();
        assert!(start.elapsed() >= Duration::from_secs(29), "{begun:?}: {:?}", start.elapsed());
    }
}

const ONE: (&str, &str) = ("content-type", "application/cloudevents+json; charset=utf-8");
const MANY: (&str, &str) = ("content-type", "application/cloudevents-batch+json");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_taken_in_every_form_and_once() {
    let fixture = fixture(None).await;
    let one = r#"{"specversion":"1.0","id":"1","source":"ci","type":"ci.passed","subject":"main",
                  "time":"2026-11-16T09:00:00Z","data":{"sha":"abc"}}"#;
    let (status, body) = fixture.post(&[ONE], one).await;
    assert_eq!((status, &body["acknowledged"][0]["seq"]), (200, &1.into()));
    assert_eq!(body["acknowledged"][0]["fresh"], true);
    assert_eq!(
        fixture.store.event_data(adjourn_core::id::Seq(1)).unwrap().unwrap(),
        r#"{"sha":"abc"}"#
    );
    let (_, again) = fixture.post(&[ONE], one).await;
    assert_eq!(again["acknowledged"][0]["fresh"], false);

    let many = r#"[{"specversion":"1.0","id":"2","source":"ci","type":"a"},
                   {"specversion":"1.0","id":"3","source":"ci","type":"b"}]"#;
    let (status, body) = fixture.post(&[MANY], many).await;
    assert_eq!((status, &body["acknowledged"][1]["seq"]), (200, &3.into()));

    let binary = [
        ("ce-specversion", "1.0"),
        ("ce-id", "4"),
        ("ce-source", "ci"),
        ("ce-type", "c"),
        ("content-type", "application/json"),
    ];
    let (status, body) = fixture.post(&binary, r#"{"x":1}"#).await;
    assert_eq!((status, &body["acknowledged"][0]["seq"]), (200, &4.into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_named_and_nothing_of_it_is_stored() {
    let fixture = fixture(None).await;
    let long =
        format!(r#"{{"specversion":"1.0","id":"1","source":"ci","type":"{}"}}"#, "x".repeat(301));
    let half = r#"[{"specversion":"1.0","id":"1","source":"ci","type":"a"},
                   {"specversion":"1.0","id":"2","source":"ci"}]"#;
    let long_second = format!(r#"[{}, {long}]"#, long.replace("xx", ""));
    let large = format!(
        r#"{{"specversion":"1.0","id":"1","source":"ci","type":"a","data":"{}"}}"#,
        "x".repeat(256 * 1024)
    );
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let cases: &[(Headers<'_>, &str, u16, &str)] = &[
        (&[], "{}", 415, ""),
        (&[("content-type", "text/plain")], "hello", 415, ""),
        (&[ONE], "{", 400, ""),
        (&[ONE], "[]", 400, ""),
        (&[ONE], "{}", 400, "specversion"),
        (&[ONE], r#"{"specversion":"0.3","id":"1","source":"s","type":"t"}"#, 400, "specversion"),
        (&[ONE], r#"{"specversion":"1.0","id":7,"source":"s","type":"t"}"#, 400, "id"),
        (
            &[ONE],
            r#"{"specversion":"1.0","id":"1","source":"s","type":"t","time":"x"}"#,
            400,
            "time",
        ),
        (
            &[ONE],
            r#"{"specversion":"1.0","id":"1","source":"s","type":"t","adjournsession":"me"}"#,
            400,
            "adjournsession",
        ),
        (&[ONE], &long, 400, "type"),
        (&[MANY], half, 400, "[1].type"),
        (&[MANY], &long_second, 400, "[1].type"),
        (&[ONE], &large, 413, "data"),
    ];
    for (headers, body, expected, path) in cases {
        let (status, problem) = fixture.post(headers, body).await;
        assert_eq!(status, *expected, "{body}: {problem}");
        let expected = (!path.is_empty()).then_some(*path);
        assert_eq!(problem.get("path").and_then(Value::as_str), expected, "{body}: {problem}");
        assert!(problem["detail"].is_string());
    }
    let huge = format!(r#"{{"data":"{}"}}"#, "x".repeat(5 * 1024 * 1024));
    let (status, problem) = fixture.post(&[ONE], &huge).await;
    assert_eq!((status, &problem["detail"]), (413, &"a request may have 4194304 bytes".into()));
    assert_eq!(fixture.store.size().unwrap().events, 0, "nothing was stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_show_the_token_is_refused() {
    let fixture = fixture(Some("secret")).await;
    let event = r#"{"specversion":"1.0","id":"1","source":"ci","type":"a"}"#;
    for header in ["Bearer wrong", "Bearer secre", "Bearer secret2", "secret", "Basic secret"] {
        let (status, _) = fixture.post(&[ONE, ("authorization", header)], event).await;
        assert_eq!(status, 401, "{header}");
    }
    let (status, head, _) = fixture.send("POST /v1/events", &[ONE], event).await;
    assert_eq!(status, 401);
    assert!(head.contains("\r\nwww-authenticate: bearer"), "{head}");
    for header in ["Bearer secret", "bearer secret", "BEARER  secret"] {
        let (status, _) = fixture.post(&[ONE, ("authorization", header)], event).await;
        assert_eq!(status, 200, "{header}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_in_headers_are_decoded() {
    let fixture = fixture(None).await;
    let sent = |id: &'static str| {
        [("ce-specversion", "1.0"), ("ce-id", id), ("ce-source", "ci"), ("ce-type", "a")]
    };
    // The same event again is known by its id, however that was written.
    for (written, meant) in [
        ("a%20b", "a b"),
        ("caf%C3%A9%e2%82%ac", "café€"),
        ("café", "café"),
        (r#""to \"be\"""#, r#"to "be""#),
        ("100%25", "100%"),
    ] {
        let (status, body) = fixture.post(&sent(written), "").await;
        assert_eq!((status, &body["acknowledged"][0]["fresh"]), (200, &true.into()), "{written}");
        let event = serde_json::json!({
            "specversion": "1.0", "id": meant, "source": "ci", "type": "a",
        });
        let (_, body) = fixture.post(&[ONE], &event.to_string()).await;
        assert_eq!(body["acknowledged"][0]["fresh"], false, "{written}");
    }
    let stored = fixture.store.size().unwrap().events;
    for wrong in ["%", "%2", "%zz", "%+1", "%FF", "%C3"] {
        let (status, problem) = fixture.post(&sent(wrong), "").await;
        assert_eq!((status, &problem["path"]), (400, &"ce-id".into()), "{wrong}: {problem}");
    }
    assert_eq!(fixture.store.size().unwrap().events, stored);
}

/// Which of two is meant is not known, and what stands in between may have read the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_comes_twice_is_refused() {
    let fixture = fixture(None).await;
    let sent = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "ci"), ("ce-type", "a")];
    for twice in ["ce-specversion", "ce-id", "ce-source", "ce-type", "ce-time", "content-type"] {
        let mut headers = sent.to_vec();
        headers.extend([(twice, "1.0"), (twice, "1.0")]);
        let (status, problem) = fixture.post(&headers, "").await;
        assert_eq!((status, &problem["path"]), (400, &twice.into()), "{problem}");
    }
    assert_eq!(fixture.store.size().unwrap().events, 0);
    assert_eq!(fixture.post(&sent, "").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_for_a_session_that_is_not_there_is_not_stored() {
    let fixture = fixture(None).await;
    let id = adjourn_core::id::SessionId::new(fixture.store.environment().uuid());
    let event = format!(
        r#"{{"specversion":"1.0","id":"1","source":"ci","type":"a","adjournsession":"{id}"}}"#
    );
    let (status, problem) = fixture.post(&[ONE], &event).await;
    assert_eq!(status, 404, "{problem}");
    assert_eq!(problem["detail"], format!("there is no session {id}"));
    let many = format!(r#"[{{"specversion":"1.0","id":"2","source":"ci","type":"a"}}, {event}]"#);
    let (status, problem) = fixture.post(&[MANY], &many).await;
    assert_eq!((status, &problem["path"]), (404, &"[1]".into()), "{problem}");
    assert_eq!(fixture.store.size().unwrap().events, 0, "nothing was stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_told_as_a_problem() {
    let fixture = fixture(None).await;
    for (what, expected) in [
        ("GET /v1/events", 405),
        ("DELETE /v1/events", 405),
        ("POST /v1/event", 404),
        ("GET /", 404),
    ] {
        let (status, head, problem) = fixture.send(what, &[ONE], "").await;
        assert_eq!((status, &problem["status"]), (expected, &expected.into()), "{what}");
        assert!(head.contains("application/problem+json"), "{head}");
        assert_eq!(head.contains("\r\nallow: post"), expected == 405, "{head}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_this_machine_is_heard_on_a_listener_of_its_own() {
    let fixture = fixture(None).await;
    let event =
        |id: usize| format!(r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"a"}}"#);
    let own = format!("127.0.0.1:{}", fixture.address.port());
    for (number, (host, origin, expected)) in [
        (own.as_str(), None, 200),
        ("localhost:1", None, 200),
        ("[::1]", None, 200),
        ("localhost:3000", Some("http://localhost:3000"), 200),
        // A page that made its own name mean this machine.
        ("evil.example:8787", None, 421),
        ("evil.example", Some("http://evil.example"), 421),
        ("localhost.evil.example", None, 421),
        ("", None, 421),
        // A page of another machine.
        ("localhost", Some("https://evil.example"), 403),
        // A page of another server on this machine.
        ("localhost", Some("http://localhost:3000"), 403),
        ("localhost", Some("null"), 403),
    ]
    .into_iter()
    .enumerate()
    {
        let mut headers = vec![ONE, ("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let (status, problem) = fixture.post(&headers, &event(number)).await;
        assert_eq!(status, expected, "{host} {origin:?}: {problem}");
        assert_eq!(problem["detail"].is_string(), expected != 200, "{problem}");
    }
    assert_eq!(fixture.store.size().unwrap().events, 4);
    let (status, _, _) = fixture.send("GET /", &[("host", "evil.example")], "").await;
    assert_eq!(status, 421);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_only_wait_make_room_for_others() {
    let fixture = bounded(None, 8).await;
    // Nothing, half a head, and half a body.
    let begun = [
        "",
        "POST /v1/events HTTP/1.1\r\nhost: local",
        "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{",
    ];
    let mut waiting = Vec::new();
    for begun in begun.into_iter().cycle().take(60) {
        let mut connection = Awaited::open(fixture.address).await;
        let _ = connection.write(begun).await;
        waiting.push(connection);
    }
    for id in 0..20 {
        let event = format!(r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"a"}}"#);
        let (status, body) = fixture.post(&[ONE], &event).await;
        assert_eq!(status, 200, "{body}");
    }
    // Those that waited longest were hung up on.
    let mut said = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(20), waiting[0].rest(&mut said));
    let _ = ended.await.expect("it was hung up on");
    assert_eq!(said, b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_in_flight_have_a_bound_that_slow_ones_do_not_use_up() {
    let fixture = fixture(None).await;
    let head = "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4000000\r\n\
                content-type: application/cloudevents+json\r\n\r\n";
    let mut senders = Vec::new();
    let piece = vec![b' '; 64 * 1024];
    let mut refused = 0;
    for _ in 0..20 {
        let mut sender = Awaited::open(fixture.address).await;
        sender.write(head).await.unwrap();
        senders.push(sender);
    }
    let event = |id: u32| format!(r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"a"}}"#);
    // What was announced and has not come takes nothing from anybody.
    assert_eq!(fixture.post(&[ONE], &event(1)).await.0, 200);
    for sender in &mut senders {
        // All but the end.
        for _ in 0..60 {
            if sender.write(&piece).await.is_err() {
                break;
            }
        }
        // Its first line is enough: the server hangs up on what is still to come.
        let answer = tokio::time::timeout(Duration::from_millis(300), sender.line());
        if let Ok(Ok(Some(line))) = answer.await {
            assert!(line.starts_with("HTTP/1.1 503"), "{line}");
            refused += 1;
        }
    }
    assert!((1..10).contains(&refused), "{refused}");
    drop(senders);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_depth_is_taken_or_refused_with_its_place() {
    let fixture = fixture(None).await;
    for depth in 1..=200 {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let one = format!(
            r#"{{"specversion":"1.0","id":"{depth}","source":"s","type":"a","data":{open}{close}}}"#
        );
        let (status, body) = fixture.post(&[ONE], &one).await;
        assert_eq!(status, if depth < 64 { 200 } else { 400 }, "{depth}: {body}");
        let (status, body) = fixture.post(&[MANY], &format!("[{one}]")).await;
        assert_eq!(status, if depth < 63 { 200 } else { 400 }, "{depth}: {body}");
        if depth >= 63 {
            assert_eq!(body["path"], "[0].data[0][0][0]…");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_told_without_a_token_and_to_this_machine_alone() {
    let fixture = fixture(Some("secret")).await;
    for (what, status) in [("/healthz", "alive"), ("/readyz", "ready")] {
        let (code, head, body) = fixture.send(&format!("GET {what}"), &[], "").await;
        assert_eq!((code, &body["status"]), (200, &status.into()), "{what}");
        assert!(head.contains("content-type: application/json"), "{head}");
        let page = [("host", "evil.example")];
        assert_eq!(fixture.send(&format!("GET {what}"), &page, "").await.0, 421, "{what}");
        let (code, _, body) = fixture.send(&format!("POST {what}"), &[], "").await;
        assert_eq!(code, 405, "{what}");
        assert!(body["detail"].as_str().unwrap().contains("read by GET"), "{body}");
    }
}

#[tokio::test]
async fn a_process_whose_store_is_gone_is_alive_and_not_ready_and_its_log_alone_says_where_it_was()
{
    let log = Log::of(Level::WARN);
    let fixture = fixture(None).await;
    std::fs::remove_file(fixture.store.path()).unwrap();
    let path = fixture.store.path().display().to_string();
    assert_eq!(fixture.send("GET /healthz", &[], "").await.0, 200);
    for _ in 0..2 {
        let (code, head, body) = fixture.send("GET /readyz", &[], "").await;
        assert_eq!((code, &body["detail"]), (503, &"the store cannot be used".into()));
        assert!(head.contains("retry-after: "), "{head}");
        assert!(!body.to_string().contains(&path), "{body}");
    }
    let logged = |what: &str| {
        let lines = log.lines();
        lines.iter().filter(|line| line.contains(what) && line.contains(&path)).count()
    };
    assert_eq!(logged("not ready: the store cannot be used"), 1, "{:?}", log.lines());
    let event = r#"{"specversion":"1.0","id":"1","source":"ci","type":"ci.passed"}"#;
    let (code, body) = fixture.post(&[ONE], event).await;
    assert_eq!((code, body.to_string().contains(&path)), (503, false), "{body}");
    assert_eq!(logged("a request failed"), 1, "{:?}", log.lines());
}
