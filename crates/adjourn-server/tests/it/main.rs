//! Event intake over real HTTP, on loopback.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::sync::Arc;

use adjourn_core::time::Timestamp;
use adjourn_host::clock::Machine;
use adjourn_host::doorbell::Hosts;
use adjourn_record::keys::{Key, Keys};
use adjourn_server::{Intake, serve};
use adjourn_store::sqlite::Options;
use adjourn_store::{Sqlite, Store as _};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

struct Fixture {
    _directory: TempDir,
    store: Sqlite,
    address: std::net::SocketAddr,
}

async fn fixture(token: Option<&str>) -> Fixture {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.db");
    let key = Key::from_secrets(Timestamp::from_millis(0), &[7; 32], &[8; 32]);
    let options = Options::new(&path, Arc::new(Machine), Keys::only(key));
    let store = Sqlite::open(options).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let intake = Intake {
        store: store.clone(),
        hosts: Hosts::beside(&path),
        tenant: "acme".to_owned(),
        token: token.map(Arc::from),
    };
    tokio::spawn(serve(listener, intake, std::future::pending()));
    Fixture { _directory: directory, store, address }
}

impl Fixture {
    /// Posts, and returns the status and the body.
    async fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let mut request = format!(
            "POST /v1/events HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        // A server that has heard enough may hang up before the end.
        let _ = stream.write_all(body.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
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
        format!(r#"{{"specversion":"1.0","id":"1","source":"ci","type":"{}"}}"#, "x".repeat(300));
    let half = r#"[{"specversion":"1.0","id":"1","source":"ci","type":"a"},
                   {"specversion":"1.0","id":"2","source":"ci"}]"#;
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
    ];
    for (headers, body, expected, path) in cases {
        let (status, problem) = fixture.post(headers, body).await;
        assert_eq!(status, *expected, "{body}: {problem}");
        assert_eq!(problem["path"].as_str().unwrap_or_default(), *path, "{body}: {problem}");
        assert!(problem["detail"].is_string());
    }
    let huge = format!(r#"{{"data":"{}"}}"#, "x".repeat(5 * 1024 * 1024));
    let (status, _) = fixture.post(&[ONE], &huge).await;
    assert_eq!(status, 413);
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
    assert_eq!(fixture.post(&[ONE], event).await.0, 401);
    assert_eq!(fixture.post(&[ONE, ("authorization", "Bearer secret")], event).await.0, 200);
}
