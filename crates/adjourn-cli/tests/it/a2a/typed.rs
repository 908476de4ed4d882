//! What is typed at `adjourn a2a` reaches the agent as it was meant, and no command waits for ever.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;

use adjourn_testkit::process::Signal;
use serde_json::{Value, json};

use super::client::{failed, object, plain_card, result, task};
use super::fake_peer::{FakePeer, Heard};
use super::{PARKS, Server};
use crate::home::{Home, signal};

/// An agent that can pause its tasks, and takes everything.
fn takes_all() -> FakePeer {
    FakePeer::start(|heard: &Heard, url: &str| match heard.method() {
        "" => {
            let mut card = plain_card(url);
            card["capabilities"]["supportsPause"] = json!(true);
            card["capabilities"]["resumeCauses"] = json!(["condition_fired", "timeout"]);
            object(&card)
        }
        "tasks/pause" => result(&json!({ "taskId": "t", "state": "paused-by-client" })),
        "tasks/resume" => result(&json!({ "taskId": "t", "state": "working" })),
        _ => result(&task("completed")),
    })
}

/// Types a command that is granted, and returns the parameters of what the agent heard last.
fn heard(home: &Home, peer: &FakePeer, verb: &str, rest: &[&str]) -> Value {
    let told = home.told(&[&["a2a", verb, &peer.url], rest].concat());
    assert_eq!(told.code, 0, "{told:?}");
    peer.heard().last().unwrap().body["params"].clone()
}

#[test]
fn every_flag_is_said_to_the_agent_and_what_was_not_typed_is_not() {
    let (home, peer) = (Home::new(), takes_all());
    assert_eq!(heard(&home, &peer, "pause", &["t"]), json!({ "taskId": "t" }));
    for mode in ["finish_step", "interrupt_immediate", "wait_for_completion"] {
        let said = heard(&home, &peer, "pause", &["t", "--mode", mode]);
        assert_eq!(said, json!({ "taskId": "t", "mode": mode }));
    }
    let when = r#"{"onEvent": "ci.passed", "timeout": {"durationMinutes": 5}}"#;
    let said = heard(&home, &peer, "pause", &["t", "--reason", "lunch", "--resume-when", when]);
    let conditions = json!({ "onEvent": "ci.passed", "timeout": { "durationMinutes": 5 } });
    assert_eq!(said, json!({ "taskId": "t", "reason": "lunch", "conditions": conditions }));

    assert_eq!(heard(&home, &peer, "resume", &["t"]), json!({ "taskId": "t" }));
    let typed = ["t", "--handle", "suspend-1", "--input", r#"{"go": 1}"#, "--fresh"];
    let key = ["--idempotency-key", "k", "--add-budget", "usd=1.5,tokens=20000,steps=50"];
    let said = heard(&home, &peer, "resume", &[&typed[..], &key].concat());
    let expected = json!({
        "taskId": "t", "handle": "suspend-1", "input": { "go": 1 }, "continueTranscript": false,
        "idempotencyKey": "k", "addBudget": { "usd": 1.5, "tokens": 20000, "steps": 50 },
    });
    assert_eq!(said, expected);
    let said = heard(&home, &peer, "resume", &["t", "--add-budget", "steps=3"]);
    assert_eq!(said, json!({ "taskId": "t", "addBudget": { "steps": 3 } }));

    let typed = ["go on", "--message-id", "m7", "--task", "t", "--context", "c", "--detach"];
    let said = heard(&home, &peer, "send", &typed);
    let message = json!({
        "kind": "message", "role": "user", "messageId": "m7", "taskId": "t", "contextId": "c",
        "parts": [{ "kind": "text", "text": "go on" }],
    });
    assert_eq!(said, json!({ "message": message, "configuration": { "blocking": false } }));
    // Each message has an id of its own, unless one is typed.
    let id = || heard(&home, &peer, "send", &["go", "--detach"])["message"]["messageId"].clone();
    assert_ne!(id(), id());

    let asked = peer.heard().len();
    for typed in [
        ["pause", &peer.url, "t", "--mode", "soon"],
        ["pause", &peer.url, "t", "--resume-when", "{"],
        ["resume", &peer.url, "t", "--add-budget", "lots"],
    ] {
        let told = home.told(&[&["a2a"], &typed[..]].concat());
        assert_eq!(told.code, 2, "{told:?}");
    }
    assert_eq!(peer.heard().len(), asked, "nothing is asked that is typed wrong");
}

#[test]
fn a_retry_under_the_same_message_id_is_the_same_task_and_one_under_the_same_key_the_same_wake() {
    let server = Server::new(PARKS, &["--insecure-open"]);
    let send = || server.typed_json("send", &["merge it", "--message-id", "m1", "--detach"]);
    let sent = send();
    assert_eq!(send()["taskId"], sent["taskId"]);
    let task = sent["taskId"].as_str().unwrap();
    let parked = server.until(task, "paused-by-agent");
    let handle = parked["pause"]["handle"].as_str().unwrap();
    let typed = [task, "--handle", handle, "--fresh", "--idempotency-key", "k"];
    let woken = server.typed_json("resume", &typed);
    assert_eq!((&woken["state"], &woken["continueTranscript"]), (&json!("working"), &json!(false)));
    assert_eq!(server.typed_json("resume", &typed), woken);
    let (code, error) = failed(&server.typed("resume", &[task, "--handle", handle, "--json"]));
    assert_eq!((code, &error["reason"]), (3, &json!("ALREADY_RESUMED")), "{error}");
}

#[test]
fn an_agent_that_never_answers_is_not_waited_for_longer_than_was_said() {
    let home = Home::new();
    // The system takes the connections, and they are not answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("http://{}", silent.local_addr().unwrap());
    let card = plain_card(&nowhere);
    let peer = FakePeer::start(move |_: &Heard, _: &str| object(&card));
    for (url, late) in [(&nowhere, nowhere.as_str()), (&peer.url, "plain")] {
        for typed in [&["get", url, "t"][..], &["send", url, "go"], &["watch", url, "t"]] {
            let told = home.told(&[&["a2a"], typed, &["--timeout", "200ms"]].concat());
            assert_eq!(told.code, 6, "{typed:?}: {told:?}");
            assert!(told.talk.contains(late), "{told:?}");
            assert!(told.talk.contains("has not answered in time"), "{told:?}");
            assert!(told.talk.contains("--timeout says how long to wait"), "{told:?}");
        }
    }
}

#[test]
fn ctrl_c_leaves_a_task_that_is_watched_alone() {
    let server = Server::new(PARKS, &["--insecure-open"]);
    let sent = server.typed_json("send", &["merge it", "--detach"]);
    let task = sent["taskId"].as_str().unwrap();
    server.until(task, "paused-by-agent");
    let url = server.url();
    let mut watching = server.home.command(&["a2a", "watch", &url, task]).spawn().unwrap();
    let mut talk = BufReader::new(watching.stderr.take().unwrap());
    let mut said = String::new();
    // It has been told where the task stands, and stays.
    while !said.contains("Ctrl-C leaves it") {
        assert!(talk.read_line(&mut said).unwrap() > 0, "{said}");
    }
    signal(&watching, Signal::INT);
    talk.read_to_string(&mut said).unwrap();
    assert_eq!(watching.wait().unwrap().code(), Some(130), "{said}");
    let expected = format!("left; the task stays paused\nhint: adjourn a2a watch {url} {task}\n");
    assert!(said.ends_with(&expected), "{said}");
    let waits = format!(
        "[paused-by-agent: ci; waits for ci.passed; wake it with `adjourn a2a resume {url} {task}`; "
    );
    assert!(said.contains(&waits), "{said}");
    let shown = server.typed_json("get", &[task]);
    assert_eq!(shown["state"], "paused-by-agent", "{shown}");
    server.home.json(&["event", "ci.passed"]);
    server.until(task, "completed");
}

#[test]
fn a_pause_is_told_once_though_the_stream_says_it_twice() {
    let server = Server::new(PARKS, &["--insecure-open"]);
    let sent = server.typed_json("send", &["merge it", "--detach"]);
    let task = sent["taskId"].as_str().unwrap();
    server.until(task, "paused-by-agent");
    let watch = ["a2a", "watch", &server.url(), task, "--json"];
    let mut watching = server.home.command(&watch).spawn().unwrap();
    let mut told = BufReader::new(watching.stdout.take().unwrap());
    let mut lines = String::new();
    assert!(told.read_line(&mut lines).unwrap() > 0);
    server.typed_json("pause", &[task]);
    server.typed_json("resume", &[task]);
    server.home.json(&["event", "ci.passed"]);
    told.read_to_string(&mut lines).unwrap();
    assert!(watching.wait().unwrap().success(), "{lines}");
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let states: Vec<_> =
        events.filter_map(|event| event["state"].as_str().map(str::to_owned)).collect();
    let (waits, held, works) = ("paused-by-agent", "paused-by-client", "working");
    let expected = [waits, held, works, waits, works, "completed"];
    assert_eq!(states, expected, "{lines}");
}
