//! A host hangs with a session in its hands: somebody takes it, and another host goes on.

use std::time::{Duration, Instant};

use adjourn_testkit::http;
use expect_test::expect;

use crate::home::{Home, Serving};
use crate::transcript::Transcript;

/// Longer than any test: what is in flight then stays there.
const FOR_EVER_MS: u64 = 600_000;

/// A session whose tool is in flight on the only host there is, which then stands still.
fn hung(home: &Home, idempotent: bool) -> (Serving, String) {
    let script = format!(
        r#"{{"runs": [[{{"await": {{"reason": "x", "conditions": {{"onEvent": "go"}}}}}},
                      {{"tool": {{"name": "deploy", "ms": {FOR_EVER_MS}, "idempotent": {idempotent}}}}},
                      {{"tool": {{"name": "check", "ms": 20}}}},
                      {{"say": "done"}}]]}}"#
    );
    let script = home.file("script.json", &script);
    assert_eq!(home.told(&["run", "--script", &script, "--detach"]).code, 0);
    let id = home.json(&["ls"])["sessionId"].as_str().unwrap().to_owned();
    let serving = home.serve();
    home.json(&["event", "go"]);
    let start = Instant::now();
    while home.json(&["show", &id])["inFlight"][0] != "deploy" {
        assert!(start.elapsed() < Duration::from_secs(20), "the tool never started");
        std::thread::sleep(Duration::from_millis(10));
    }
    serving.stop();
    (serving, id)
}

#[test]
fn a_session_is_taken_from_a_host_that_hangs_and_its_call_is_not_run_twice() {
    let home = Home::new();
    let (hangs, id) = hung(&home, false);
    // Another host leaves it alone: who hangs is not dead.
    let other = home.serve();
    assert_eq!(home.json(&["show", &id])["state"], "running");

    let taken = home.json(&["takeover", &id]);
    assert_eq!(
        (&taken["state"], &taken["reason"]),
        (&"suspended".into(), &"host_interrupted".into())
    );
    assert_eq!(taken["unknownCalls"][0], "deploy");
    assert_eq!(taken["takenFrom"]["pid"], u64::from(hangs.pid()));
    assert_eq!(taken["takenFrom"]["alive"], true);

    home.json(&["resume", &id, "--detach"]);
    assert_eq!(home.until(&id, "state", "idle")["outcome"], "completed");
    let before = home.told(&["log", &id]).data;
    assert_eq!(
        before.matches("calls_dispatched").count(),
        2,
        "deploy and check once each: {before}"
    );

    // The one that hung goes on, and has nothing to say about the session any more.
    hangs.go_on();
    let start = Instant::now();
    assert_eq!(hangs.terminate(), 0);
    assert!(start.elapsed() < Duration::from_secs(15), "it let go of the call");
    assert_eq!(home.told(&["log", &id]).data, before, "its commits were refused");
    assert_eq!(other.terminate(), 0);
}

/// Takes sessions from hosts that hang, and returns what is said; `PID` is the host.
fn taken(json: &[&str]) -> String {
    let mut all = String::new();
    for idempotent in [false, true] {
        let home = Home::new();
        let (hangs, id) = hung(&home, idempotent);
        let mut transcript = Transcript::new(&home);
        transcript.type_in(&[&["takeover", &id], json].concat());
        all += &transcript.text().replace(&hangs.pid().to_string(), "PID");
        hangs.kill();
    }
    all
}

#[test]
fn a_takeover_for_people() {
    expect![[r#"
        $ adjourn takeover sess:0
        sess:0  suspended for 0s: its host stopped during: deploy (outcome unknown); wakes on a message or a resume
        2> process PID had it; what it still does for the session is refused. If it hangs for good, end it: kill -9 PID
        $ adjourn takeover sess:0
        sess:0  ready for 0s: waits for a host: host PID is stopped; `adjourn hosts` says more
        2> process PID had it; what it still does for the session is refused. If it hangs for good, end it: kill -9 PID
        2> no other host runs; start one: `adjourn serve`
    "#]].assert_eq(&taken(&[]));
}

#[test]
fn a_takeover_for_programs() {
    expect![[r#"
        $ adjourn takeover sess:0 --json
        {"sessionId":"sess:0","runId":"run:0","state":"suspended","handle":"suspend:0","initiator":"client","wait":"open","reason":"host_interrupted","suspendedAt":"TIME","summary":"host_interrupted; outcome unknown: deploy","cause":"condition_fired","hadResumeInput":false,"continueTranscript":true,"resumedAt":"TIME","unknownCalls":["deploy"],"totals":{},"agent":"script","takenFrom":{"host":"host:0","pid":PID,"alive":true}}
        $ adjourn takeover sess:0 --json
        {"sessionId":"sess:0","runId":"run:0","state":"ready","cause":"condition_fired","hadResumeInput":false,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script","notice":"waits for a host: host PID is stopped; `adjourn hosts` says more","takenFrom":{"host":"host:0","pid":PID,"alive":true}}
    "#]].assert_eq(&taken(&["--json"]));
}

#[test]
fn a_host_that_went_on_works_again() {
    let home = Home::new();
    let (hangs, id) = hung(&home, false);
    home.json(&["takeover", &id]);
    hangs.go_on();
    // It is the only host: what it lost it may have again, under a claim of its own.
    home.json(&["resume", &id, "--detach"]);
    assert_eq!(home.until(&id, "state", "idle")["outcome"], "completed");
    let log = home.told(&["log", &id]).data;
    assert_eq!(log.matches("calls_dispatched").count(), 2, "{log}");
    let said = home.told(&["log", &id, "--transcript"]).data;
    assert!(said.contains("It had waited because its host stopped."), "{said}");
    assert_eq!(hangs.terminate(), 0);
}

#[test]
fn a_call_that_may_be_run_twice_is() {
    let home = Home::new();
    let (hangs, id) = hung(&home, true);
    let told = home.told(&["takeover", &id]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.contains("ready for"), "{told:?}");
    assert!(told.talk.contains(&format!("kill -9 {}", hangs.pid())), "{told:?}");
    assert!(told.talk.contains("no other host runs; start one"), "{told:?}");
    let other = home.serve();
    let start = Instant::now();
    while home.json(&["show", &id])["inFlight"][0] != "deploy" {
        assert!(start.elapsed() < Duration::from_secs(20), "nobody goes on with it");
        std::thread::sleep(Duration::from_millis(10));
    }
    hangs.go_on();
    assert_eq!(hangs.terminate(), 0);
    assert_eq!(home.json(&["show", &id])["inFlight"][0], "deploy", "the other one still has it");
    other.kill();
}

#[test]
fn a_command_goes_on_itself_where_every_other_host_stands_still() {
    let home = Home::new();
    let script =
        home.file("script.json", r#"{"steps": [{"await": {"reason": "x"}}, {"say": "done"}]}"#);
    for name in ["woken", "ready"] {
        assert_eq!(home.told(&["run", "--script", &script, "--name", name, "--detach"]).code, 0);
    }
    let hangs = home.serve();
    hangs.stop();
    let woken = home.told(&["resume", "woken"]);
    assert!(woken.code == 0 && woken.data.contains("done"), "{woken:?}");
    // One that is ready already is not left to the host either.
    assert_eq!(home.json(&["resume", "ready", "--detach"])["state"], "ready");
    let ready = home.told(&["resume", "ready"]);
    assert!(ready.code == 0 && ready.data.contains("done"), "{ready:?}");
    hangs.go_on();
    assert_eq!(hangs.terminate(), 0);
}

#[test]
fn a_suspend_waits_for_a_host_that_hangs_until_it_is_taken_over() {
    let home = Home::new();
    let (hangs, id) = hung(&home, false);
    let suspending = home.command(&["suspend", &id, "--grace", "10ms", "--json"]).spawn().unwrap();
    let pending = home.until(&id, "phase", "requested");
    assert_eq!(pending["inFlight"][0], "deploy");
    // Only its host could end the call when the grace is over, and it stands still.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(home.json(&["show", &id])["phase"], "requested");
    home.json(&["takeover", &id]);
    let told = suspending.wait_with_output().unwrap();
    assert!(told.status.success());
    let parked = home.json(&["show", &id]);
    assert_eq!(parked["state"], "suspended");
    assert_eq!(parked["unknownCalls"][0], "deploy");
    assert_eq!(
        parked["reason"],
        serde_json::Value::Null,
        "the suspend that was asked for, no other"
    );
    hangs.kill();
}

#[test]
fn there_must_be_somebody_to_take_it_from() {
    let home = Home::new();
    let script = home.file("script.json", r#"{"steps": [{"await": {"reason": "x"}}]}"#);
    home.told(&["run", "--script", &script, "--detach"]);
    let id = home.json(&["ls"])["sessionId"].as_str().unwrap().to_owned();
    let told = home.told(&["takeover", &id]);
    assert_eq!(told.code, 3, "{told:?}");
    assert_eq!(
        told.talk,
        format!(
            "error: no host runs the session: it is suspended\nhint: wake it: `adjourn resume {id}`\n"
        )
    );
    let told = home.told(&["takeover", &id, "--json"]);
    let object: serde_json::Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!((told.code, &object["error"]["reason"]), (3, &"NOT_RUNNING".into()));
    home.json(&["resume", &id, "--detach"]);
    assert!(home.told(&["takeover", &id]).talk.contains("hint: start a host"));
    assert_eq!(home.told(&["takeover", "sess-01a1df44-c97b-7076-bba7-8d66d49eebf9"]).code, 4);
}

/// Idle connections take neither the descriptors that a host needs to see that another died, nor
/// the place of somebody who has something to say.
#[test]
fn a_thousand_idle_connections_stop_neither_events_nor_a_takeover() {
    let home = Home::new();
    let script = format!(
        r#"{{"runs": [[{{"await": {{"reason": "x", "conditions": {{"onEvent": "go"}}}}}},
                      {{"tool": {{"name": "deploy", "ms": {FOR_EVER_MS}}}}}]]}}"#
    );
    let id = home.parked(&script);
    let first = home.serve();
    home.json(&["event", "go"]);
    assert_eq!(home.until_in_flight("deploy"), id);
    let (second, said) = home.serve_with_limit(64, &["--listen", "127.0.0.1:0", "--insecure-open"]);
    let url = said.lines().find_map(|line| line.strip_prefix("listening on http://")).unwrap();
    let address = url.split('/').next().unwrap();
    let idle: Vec<_> =
        (0..1000).filter_map(|_| std::net::TcpStream::connect(address).ok()).collect();
    assert!(idle.len() > 900, "{}", idle.len());
    first.kill();
    let event = r#"{"specversion":"1.0","id":"1","source":"t","type":"other"}"#;
    let headers = [("content-type", "application/cloudevents+json")];
    let answer = http::send(address, "POST /v1/events", &headers, event);
    assert_eq!(answer.status, 200, "{answer:?}");
    let taken = home.until(&id, "state", "suspended");
    assert_eq!(
        (&taken["reason"], &taken["unknownCalls"][0]),
        (&"host_interrupted".into(), &"deploy".into())
    );
    drop(idle);
    assert_eq!(second.terminate(), 0);
}
