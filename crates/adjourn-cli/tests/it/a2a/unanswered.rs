//! `adjourn a2a send` and agents that answer late, in part, or not at all.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::client::{failed, object, plain_card, result, task};
use super::fake_peer::{FakePeer, Heard};
use crate::home::Home;

/// It is given the work without waiting for it, since a connection may not last as long.
#[test]
fn an_agent_that_does_not_stream_is_asked_until_its_task_is_over() {
    let home = Home::new();
    let asked = AtomicUsize::new(0);
    let peer = FakePeer::start(move |heard: &Heard, url: &str| match heard.method() {
        "" => {
            let mut card = plain_card(url);
            card["capabilities"]["streaming"] = json!(false);
            object(&card)
        }
        "message/send" => result(&task("working")),
        "tasks/get" => match asked.fetch_add(1, Ordering::SeqCst) {
            0 => result(&task("working")),
            // An answer that breaks off, as of an agent that is started anew.
            1 => (200, "application/json\r\ncontent-length: 99", "{".to_owned()),
            _ => {
                let mut over = task("completed");
                over["artifacts"] = json!([
                    { "artifactId": "a", "parts": [{ "kind": "text", "text": "merged" }] }
                ]);
                result(&over)
            }
        },
        _ => (500, "text/plain", "unexpected".to_owned()),
    });
    let told = home.told(&["a2a", "send", &peer.url, "go"]);
    assert_eq!((told.code, told.data.as_str()), (0, "merged\n"), "{told:?}");
    let sent = peer.heard().into_iter().find(|heard| heard.method() == "message/send").unwrap();
    assert_eq!(sent.body["params"]["configuration"]["blocking"], false);
}

#[test]
fn a_message_that_may_have_been_taken_is_told_with_how_to_send_it_again() {
    let home = Home::new();
    // The system takes the connections, and they are not answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("http://{}", silent.local_addr().unwrap());
    for streams in [true, false] {
        let mut card = plain_card(&nowhere);
        card["capabilities"]["streaming"] = json!(streams);
        let peer = FakePeer::start(move |_: &Heard, _: &str| object(&card));
        let rest = ["go", "--message-id", "m7", "--timeout", "1s", "--json"];
        let arguments = [&["a2a", "send", &peer.url], &rest[..]].concat();
        let (code, error) = failed(&home.told(&arguments));
        assert_eq!(code, 6, "{error}");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("--message-id m7 makes a retry harmless"), "{error}");
    }
}

/// Says the head of a stream behind every message, and nothing more.
fn silent_stream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let card = plain_card(&url).to_string();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap();
            let (kind, body) = match head[..length].starts_with(b"GET ") {
                true => ("application/json\r\nconnection: close", card.as_str()),
                false => ("text/event-stream", ": hello\n\n"),
            };
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n{body}").unwrap();
            if kind == "text/event-stream" {
                held.push(stream);
            }
        }
    });
    url
}

#[test]
fn a_stream_that_tells_nothing_is_not_waited_for_longer_than_was_said() {
    let (home, url) = (Home::new(), silent_stream());
    let typed = ["a2a", "send", &url, "go", "--message-id", "m7", "--timeout", "1s", "--json"];
    let (code, error) = failed(&home.told(&typed));
    assert_eq!(code, 6, "{error}");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("--message-id m7 makes a retry harmless"), "{error}");
    let (code, error) =
        failed(&home.told(&["a2a", "watch", &url, "t", "--timeout", "1s", "--json"]));
    assert_eq!(code, 6, "{error}");
}

#[test]
fn what_is_no_answer_of_an_agents_says_nothing_of_what_became_of_a_message() {
    let home = Home::new();
    for answer in [
        (500, "text/html", "<h1>oops</h1>"),
        (200, "text/html", "<h1>hello</h1>"),
        (200, "text/event-stream", ""),
    ] {
        let peer = FakePeer::start(move |heard: &Heard, url: &str| match heard.method() {
            "" => object(&plain_card(url)),
            _ => (answer.0, answer.1, answer.2.to_owned()),
        });
        let typed = ["a2a", "send", &peer.url, "go", "--message-id", "m7", "--json"];
        let (_, error) = failed(&home.told(&typed));
        let hint = error["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("--message-id m7 makes a retry harmless"), "{answer:?}: {error}");
    }
}
