//! Hosts that cannot go on, and hosts that are kept from stopping.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::home::{Home, signal};

const WAITS: &str = r#"{"steps": [{"await": {"reason": "x"}}, {"say": "woken"}]}"#;

/// Has a newer program change the store's tables.
fn migrate(home: &Home) {
    let store = rusqlite::Connection::open(home.path(".local/share/adjourn/store.db")).unwrap();
    store.pragma_update(None, "user_version", 1000).unwrap();
}

/// Limits how long the files may be that a process writes.
fn limit_files(pid: u32, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(pid, Resource::Fsize, limit).unwrap();
}

#[test]
fn serve_ends_with_its_host() {
    let home = Home::new();
    let id = home.parked(
        r#"{"steps": [{"await": {"reason": "x"}}, {"tool": {"name": "slow", "ms": 3000}}]}"#,
    );
    let serving = home.serve();
    assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
    home.until_in_flight("slow");
    migrate(&home);
    let (code, talk) = serving.ends();
    assert_eq!(code, 5, "{talk}");
    assert!(talk.contains("error: the store has version 1000"), "{talk}");
}

#[test]
fn whoever_stays_ends_with_its_own_host() {
    let home = Home::new();
    let script = home.file("s.json", r#"{"steps": [{"tool": {"name": "slow", "ms": 2000}}]}"#);
    let running = home.command(&["run", "--script", &script]).spawn().unwrap();
    home.until_in_flight("slow");
    migrate(&home);
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.contains("error: the store has version 1000"), "{talk}");
}

#[test]
fn a_host_waits_until_there_is_room() {
    let home = Home::new();
    let id = home.parked(WAITS);
    let serving = home.serve_ignoring("XFSZ");
    limit_files(serving.pid(), Some(1));
    assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
    // Longer than it takes to look by itself.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2500) {
        assert_eq!(home.json(&["show", &id])["state"], "ready");
    }
    limit_files(serving.pid(), None);
    home.until(&id, "state", "idle");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn half_a_request_keeps_no_host_from_stopping() {
    let home = Home::new();
    let (serving, said) = home.serve_with(&["--listen", "127.0.0.1:0", "--insecure-open"]);
    let address = said.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(b"POST /v1/events HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{").unwrap();
    // The next one is answered after the first was taken up.
    let mut whole = TcpStream::connect(address).unwrap();
    whole.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    whole.read_to_end(&mut Vec::new()).unwrap();
    serving.signal(Signal::TERM);
    let (code, talk) = serving.ends();
    assert_eq!(code, 0, "{talk}");
}

#[test]
fn a_suspend_that_somebody_takes_back_is_no_success() {
    let home = Home::new();
    let script = home.file("s.json", r#"{"steps": [{"tool": {"name": "slow", "ms": 60000}}]}"#);
    let running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let id = home.until_in_flight("slow");
    let suspending = home.command(&["suspend", &id, "--json"]).spawn().unwrap();
    home.until(&id, "state", "quiescing");
    assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
    let output = suspending.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["error"]["reason"], "WITHDRAWN");
    assert_eq!(told["error"]["message"], "not suspended: cli:ann took it back");
    signal(&running, Signal::KILL);
    running.wait_with_output().unwrap();
}

#[test]
fn a_suspend_does_not_wait_for_a_dead_host() {
    let home = Home::new();
    let script = home.file("s.json", r#"{"steps": [{"tool": {"name": "slow", "ms": 60000}}]}"#);
    let running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let id = home.until_in_flight("slow");
    signal(&running, Signal::KILL);
    running.wait_with_output().unwrap();
    let parked = home.json(&["suspend", &id]);
    assert_eq!(
        (&parked["state"], &parked["unknownCalls"][0]),
        (&"suspended".into(), &"slow".into())
    );
}

#[test]
fn a_home_that_cannot_be_made_is_a_failure_of_the_store() {
    let home = Home::new();
    std::fs::create_dir_all(home.path(".config/adjourn")).unwrap();
    home.file(".config/adjourn/keys", "in the way");
    let told = home.told(&["event", "a"]);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.talk.contains("Not a directory") || told.talk.contains("exists"), "{told:?}");
}

#[test]
fn it_is_said_what_wakes_a_session_that_is_left() {
    let home = Home::new();
    for (step, says) in [
        (r#"{"ask": {"question": "which?"}}"#, "answer it with `adjourn prompt sess"),
        (r#"{"await": {"reason": "x"}}"#, "wake it with `adjourn resume sess"),
        (r#"{"await": {"reason": "x", "conditions": {"onEvent": "a"}}}"#, "start `adjourn serve`"),
    ] {
        let script = home.file("s.json", &format!(r#"{{"steps": [{step}]}}"#));
        let told = home.told(&["run", "--script", &script, "--detach"]);
        assert!(told.talk.contains(says), "{told:?}");
    }
}
