//! The player, tried with a face that is made up.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

mod answers;
mod given;

use std::time::Duration;

use adjourn_conformance::play::{self, SLOW};
use adjourn_conformance::scenario::{Event, Restart, Resume, Scenario, Suspend, Why};
use adjourn_conformance::{Ending, Face, Refusal, Reply};
use adjourn_core::time::Timestamp;
use serde_json::{Value, json};

/// A session that never does anything; how it looks is up to the test.
struct Puppet {
    status: Value,
    takes: Duration,
    /// What keeps a suspend unanswered until the end.
    waiting: Vec<std::sync::mpsc::Sender<adjourn_conformance::Answer>>,
}

fn puppet(status: Value) -> Puppet {
    Puppet { status, takes: Duration::ZERO, waiting: Vec::new() }
}

fn taken() -> Reply {
    Reply::now(Ok(Value::Null))
}

impl Face for Puppet {
    fn prompt(&mut self, _: &str) -> Reply {
        taken()
    }

    fn suspend(&mut self, _: &Suspend) -> Reply {
        let (sender, reply) = Reply::pair();
        self.waiting.push(sender);
        reply.at_the_end()
    }

    fn resume(&mut self, resume: &Resume) -> Reply {
        let handle = resume.handle.clone();
        Reply::later(move || match handle.as_deref() {
            Some("suspend-1") => Ok(json!({ "handle": "suspend-1" })),
            other => Err(Refusal::broken(format!("{other:?}"))),
        })
    }

    fn event(&mut self, _: &Event) -> Reply {
        taken()
    }

    fn cancel(&mut self, _: &Why) -> Reply {
        taken()
    }

    fn close(&mut self, _: &Why) -> Reply {
        let message = "it is over".to_owned();
        Reply::now(Err(Refusal { reason: "ENDED".to_owned(), path: None, message }))
    }

    fn restart(&mut self, _: &Restart) -> Reply {
        taken()
    }

    fn status(&mut self) -> Result<Value, String> {
        std::thread::sleep(self.takes);
        Ok(self.status.clone())
    }

    fn ending(&mut self) -> Result<Ending, String> {
        for suspend in self.waiting.drain(..) {
            suspend.send(Ok(Value::Null)).map_err(|error| error.to_string())?;
        }
        Ok(Ending::default())
    }
}

fn with(steps: &str) -> String {
    format!(
        r#"{{"name": "n", "serves": ["SUS-01"], "script": {{"runs": []}}, "steps": [{steps}]}}"#
    )
}

#[test]
fn a_failure_says_where_and_what() {
    let open = |_: &Scenario| Ok(puppet(json!({ "state": "working" })));
    let text = with(r#"{"at": "0s", "expect": {"state": "idle"}}"#);
    let (failures, _) = play::at_pace(2, &text, &open);
    let first = failures.first().map(String::as_str);
    assert_eq!(first, Some("step 1 (at 0s): state: expected \"idle\", found \"working\""));
}

#[test]
fn a_failure_of_a_slow_machine_is_looked_at_again_slowly() {
    let open = |scenario: &Scenario| {
        let slow = scenario.script["runs"][0][0]["tool"]["ms"] == 100;
        let mut puppet = puppet(json!({ "state": if slow { "working" } else { "idle" } }));
        puppet.takes = if slow { SLOW * 2 } else { Duration::ZERO };
        Ok(puppet)
    };
    let text = with(r#"{"at": "0s", "expect": {"state": "idle"}}"#)
        .replace("[]", r#"[[{"tool": {"name": "t", "ms": 100}}]]"#);
    let played = play::scenario(&text, &open);
    assert_eq!(played.failures, Vec::<String>::new());
    assert_eq!(played.pace, 2);
}

#[test]
fn a_suspend_is_not_waited_for_and_handles_are_known_by_name() {
    let open = |_: &Scenario| Ok(puppet(json!({ "state": "quiescing", "handle": "suspend-1" })));
    let steps = r#"
        {"at": "0s", "suspend": {}, "expect": {"state": "quiescing", "handle": "h1"}},
        {"at": "0.1s", "resume": {"handle": "h1"}, "answer": {"handle": "h1"}},
        {"at": "0.1s", "close": {}, "refused": {"reason": "ENDED"}},
        {"at": "0.1s", "race": [{"close": {}}, {"cancel": {}}], "refused": {"reason": "ENDED"}}"#;
    let played = play::scenario(&with(steps), &open);
    assert_eq!(played.failures, Vec::<String>::new());
    // Two closes are both refused, so nobody won.
    let steps =
        r#"{"at": "0s", "race": [{"close": {}}, {"close": {}}], "refused": {"reason": "ENDED"}}"#;
    let (failures, _) = play::at_pace(1, &with(steps), &open);
    let first = failures.first().map(String::as_str);
    assert_eq!(first, Some("step 1 (at 0s): refused ENDED: it is over"));
}

#[test]
fn every_time_is_stretched() {
    let text = r#"{
        "name": "n", "serves": ["SUS-01"],
        "script": {"runs": [[{"tool": {"name": "t", "ms": 300}}, {"await": {"reason": "2s", "conditions":
            {"trigger": {"at": "{start+1s}"}, "timeout": {"durationMinutes": 0.05}}}}]]},
        "steps": [
            {"at": "0.25s", "suspend": {"graceMs": 100}, "expect": {"dueAt": "1.5s", "reason": "2s"}},
            {"at": "1s", "restart": {"how": "kill", "away": "2s"}}
        ],
        "turns": [{"told": ["3s", "for 3s"]}]
    }"#;
    let start = Timestamp::parse("2026-11-16T09:00:00Z").unwrap();
    let scenario = Scenario::read(text, start, 4).unwrap();
    let items = &scenario.script["runs"][0];
    assert_eq!(items[0]["tool"]["ms"], 1200);
    let conditions = &items[1]["await"]["conditions"];
    assert_eq!(conditions["trigger"]["at"], "2026-11-16T09:00:04.000Z");
    assert_eq!(conditions["timeout"]["durationMinutes"], 0.2);
    // Words are no times, even if they look like one.
    assert_eq!(items[1]["await"]["reason"], "2s");
    let shown = format!("{:?}", scenario.steps);
    let expected = json!({ "dueAt": "6s", "reason": "2s" });
    assert_eq!(scenario.steps.first().unwrap().expect.clone().map(Value::Object), Some(expected));
    for part in ["Moment(1s)", "grace_ms: Some(400)", "Moment(4s)", "away: Some(Moment(8s))"] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    let told = scenario.turns.unwrap().first().unwrap()["told"].clone();
    assert_eq!(told, json!(["12s", "for 3s"]));
}
