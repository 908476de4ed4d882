//! What one would do in two terminals.

use adjourn_testkit::http;
use adjourn_testkit::process::{Process, Signal};
use serde_json::Value;

use crate::home::Home;

const SCRIPT: &str = r#"{"runs": [[
  {"say": "building"},
  {"tool": {"name": "build", "ms": 50, "idempotent": false}},
  {"await": {"reason": "waiting on ci", "summary": "paused on CI",
             "conditions": {"onEvent": "ci.passed:main", "timeout": {"durationMinutes": 30, "onTimeout": "fail"}}}},
  {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}},
  {"say": "done"}
]]}"#;

#[test]
fn the_tour_parks_wakes_and_reads_its_journal_back() {
    let told = Home::new().told(&["demo"]);
    assert_eq!(told.code, 0, "{told:?}");
    let said: Vec<_> = told.data.lines().filter(|line| line.starts_with("agent: ")).collect();
    assert_eq!(
        said,
        [
            "agent: I start the build; it takes a while.",
            "agent: CI passed, and I still know which build it was.",
            "agent: Deployed. Done."
        ]
    );
    let dispatched = told.data.lines().find(|line| line.contains("calls_dispatched")).unwrap();
    assert!(dispatched.ends_with("build"), "{dispatched}");
    for happened in ["condition_fired", "timeout", "explicit_resume", "run_ended"] {
        assert!(told.data.contains(happened), "no {happened} in {}", told.data);
    }
    let asked = "Deploy to which region? [north | south]; wakes on an answer]";
    assert!(told.data.contains(asked), "{}", told.data);
}

#[test]
fn the_tour_is_objects_for_programs() {
    let objects = Home::new().jsons(&["demo"]);
    let said = objects.iter().filter(|object| object["said"]["role"] == "agent").count();
    assert_eq!(said, 3, "{objects:?}");
    assert_eq!(objects.iter().filter(|object| object["state"].is_string()).count(), 3);
}

#[test]
fn an_agent_parks_survives_and_is_woken_by_an_event_and_an_answer() {
    let home = Home::new();
    let script = home.file("script.json", SCRIPT);
    let told = home.told(&["run", "--script", &script, "--detach"]);
    assert_eq!((told.code, told.data.as_str()), (0, "building\n"), "{told:?}");
    let parked = home.json(&["ls"]);
    assert_eq!(parked["state"], "suspended");
    assert_eq!(parked["initiator"], "agent");
    assert_eq!(parked["reason"], "waiting on ci");
    assert_eq!(parked["summary"], "paused on CI");
    assert_eq!(parked["resumeWhen"]["onEvent"], "ci.passed:main");
    let id = parked["sessionId"].as_str().unwrap();

    // Nobody is there; the event waits, and is taken once.
    assert_eq!(home.json(&["event", "ci.passed:other", "--id", "e0"])["seq"], 1);
    assert_eq!(home.json(&["event", "ci.passed:main", "--id", "e1"])["fresh"], true);
    assert_eq!(home.json(&["event", "ci.passed:main", "--id", "e1"])["fresh"], false);
    let serving = home.serve();
    let asking = home.until(id, "wait", "question");
    assert_eq!(asking["cause"], "condition_fired");
    assert_eq!(asking["question"], "which table?");
    assert_eq!(asking["choices"][1], "monthly");
    assert_eq!(asking["hadResumeInput"], false);

    let told = home.told(&["prompt", id, "monthly"]);
    assert_eq!(told.code, 0, "{told:?}");
    let idle = home.until(id, "state", "idle");
    assert_eq!(idle["outcome"], "completed");
    assert_eq!(serving.terminate(), 0);
    let log = home.told(&["log", id]).data;
    assert_eq!(log.matches("resumed").count(), 2, "{log}");
}

#[test]
fn a_killed_host_loses_nothing_and_repeats_nothing() {
    let home = Home::new();
    let script = r#"{"runs": [[{"tool": {"name": "deploy", "ms": 60000}}]]}"#;
    let script = home.file("script.json", script);
    let serving = home.serve();
    let mut running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let start = std::time::Instant::now();
    let id = loop {
        let told = home.told(&["ls", "--json"]);
        let first = told.data.lines().next().unwrap_or("{}");
        let status: serde_json::Value = serde_json::from_str(first).unwrap();
        if status["inFlight"][0] == "deploy" {
            break status["sessionId"].as_str().unwrap().to_owned();
        }
        assert!(start.elapsed().as_secs() < 20, "the tool never started: {status}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    // Whichever of the two drives it, both die.
    running.kill().unwrap();
    running.wait().unwrap();
    serving.kill();

    let serving = home.serve();
    let parked = home.until(&id, "state", "suspended");
    assert_eq!(parked["reason"], "host_interrupted");
    assert_eq!(parked["unknownCalls"][0], "deploy");
    let log = home.told(&["log", &id]).data;
    assert_eq!(log.matches("calls_dispatched").count(), 1, "{log}");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn a_session_is_suspended_held_and_lifted_from_another_terminal() {
    let home = Home::new();
    let script = home.file("script.json", SCRIPT);
    home.told(&["run", "--script", &script, "--detach"]);
    let id = home.json(&["ls"])["sessionId"].as_str().unwrap().to_owned();
    let part = &id[id.len() - 6..];
    let held = home.json(&["suspend", part, "--reason", "review", "--timeout", "2h"]);
    assert_eq!(held["initiator"], "client");
    assert!(held["held"].is_string());
    assert_eq!(held["heldWait"]["handle"], held["held"]);
    assert_eq!(held["heldWait"]["resumeWhen"]["onEvent"], "ci.passed:main");
    assert_eq!(held["heldWait"]["fired"], Value::Null);
    let shown = home.told(&["show", part]).data;
    assert!(shown.contains(": review, by cli:ann; wakes in 2h\n  under it, for "), "{shown}");
    assert!(shown.contains("; wakes on ci.passed:main"), "{shown}");
    // What it waits for may happen meanwhile; nothing moves before the hold is lifted.
    let serving = home.serve();
    home.json(&["event", "ci.passed:main"]);
    home.until_log(&id, "fired_under_hold");
    assert_eq!(serving.terminate(), 0);
    let shown = home.told(&["show", part]).data;
    assert!(shown.contains("; that is over, and acts when the hold is lifted\n"), "{shown}");
    let fired = &home.json(&["show", part])["heldWait"]["fired"];
    assert_eq!((&fired["by"], &fired["name"]), (&"event".into(), &"ci.passed".into()), "{fired}");
    assert_eq!((&fired["subject"], &fired["seq"]), (&"main".into(), &1.into()), "{fired}");
    assert!(fired["at"].as_str().unwrap().ends_with('Z'), "{fired}");
    let lifted = home.json(&["resume", part, "--detach"]);
    assert_eq!((&lifted["state"], &lifted["heldWait"]), (&"ready".into(), &Value::Null));
    assert_eq!(home.json(&["cancel", part])["outcome"], "canceled");
    assert_eq!(home.json(&["close", part])["state"], "ended");
    assert_eq!(home.told(&["ls"]).data, "");
    // What is over is listed for whoever asks, and counted for everybody else.
    let open = home.told(&["new", "--script", &script]).data.trim().to_owned();
    let told = home.told(&["ls"]);
    assert!(told.data.starts_with(&open) && told.data.lines().count() == 1, "{told:?}");
    assert_eq!(told.talk, "1 more ended; `adjourn ls --all` has them\n");
    let told = home.told(&["ls", "--all"]);
    assert!(told.data.starts_with(&id) && told.data.lines().count() == 2, "{told:?}");
    assert_eq!(told.talk, "");
}

#[test]
fn a_session_is_made_paused_woken_and_read_without_a_host() {
    let home = Home::new();
    let script = home.file("script.json", r#"{"runs": [[{"say": "two\nlines"}]]}"#);
    let id = home.told(&["new", "--script", &script]).data.trim().to_owned();
    assert_eq!(home.json(&["show", &id])["state"], "idle");
    let conditions = r#"{"timeout": {"durationMinutes": 60, "onTimeout": "fail"}}"#;
    let parked = home.json(&["suspend", &id, "--resume-when", conditions]);
    assert_eq!(parked["resumeWhen"]["timeout"]["onTimeout"], "fail");

    // Whoever repeats a resume is told of the first.
    let resume = ["resume", &id, "--input", "go", "--idempotency-key", "k", "--detach"];
    let first = home.jsons(&resume);
    assert_eq!(first[0]["resumed"]["handle"], parked["handle"]);
    assert_eq!(first[0]["resumed"]["cause"], "explicit_resume");
    assert_eq!(first[1]["state"], "ready");
    assert_eq!(home.jsons(&resume)[0], first[0]);

    let serving = home.serve();
    home.until(&id, "state", "idle");
    assert_eq!(serving.terminate(), 0);
    let said = home.jsons(&["log", &id, "--transcript"]);
    let said: Vec<_> = said.iter().map(|said| (&said["index"], &said["role"])).collect();
    assert_eq!(said, [(&0.into(), &"user".into()), (&1.into(), &"agent".into())]);
    let shown = home.told(&["log", &id, "--transcript"]).data;
    let shown: Vec<_> =
        shown.lines().map(|line| &line["2026-11-15T14:16:35.958Z".len()..]).collect();
    assert_eq!(shown, ["  user   go", "  agent  two", "         lines"]);
}

#[test]
fn a_host_says_where_it_serves_and_that_it_has_stopped_for_programs() {
    let home = Home::new();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--insecure-open", "--json"];
    let serving = Process::start(&mut home.command(&arguments));
    let next = || serde_json::from_str::<Value>(&serving.line().unwrap()).unwrap();
    let begun = next()["serving"].clone();
    assert_eq!(begun["pid"], serving.id());
    assert_eq!(begun["store"], home.path(".local/share/adjourn/store.db").to_str().unwrap());
    let url = begun["listening"].as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/v1/events").unwrap();
    std::net::TcpStream::connect(address).unwrap();
    serving.signal(Signal::TERM);
    assert_eq!(next()["stopped"]["pid"], serving.id());
    assert_eq!(serving.line(), None);
    assert_eq!(serving.end(), 0);
}

#[test]
fn an_event_over_http_wakes_an_agent() {
    let home = Home::new();
    let script = home.file("script.json", SCRIPT);
    home.told(&["run", "--script", &script, "--detach"]);
    let id = home.json(&["ls"])["sessionId"].as_str().unwrap().to_owned();
    let (serving, said) =
        home.serve_with(&["--listen", "127.0.0.1:0", "--token", "only for this test"]);
    let address = said.split("http://").nth(1).unwrap().split('/').next().unwrap();
    let event =
        r#"{"specversion":"1.0","id":"1","source":"ci","type":"ci.passed","subject":"main"}"#;
    let post = |token: &str| {
        let token = format!("Bearer {token}");
        let headers =
            [("authorization", &*token), ("content-type", "application/cloudevents+json")];
        http::send(address, "POST /v1/events", &headers, event).status
    };
    assert_eq!(post("wrong"), 401);
    assert_eq!(home.json(&["show", &id])["state"], "suspended");
    assert_eq!(post("only for this test"), 200);
    home.until(&id, "wait", "question");
    assert_eq!(serving.terminate(), 0);
}
