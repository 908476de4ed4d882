//! Agents whose process is killed go on in another, and nothing runs twice.

use rustix::process::Signal;

use super::{model, said};
use crate::home::{Home, signal};

/// A model that takes long for its second answer.
const SLOW: &str = r#"
{"text": "I look.", "calls": [{"tool": "await_resumption", "arguments": {"reason": "a look"}}]}
{"text": "one two three four five six seven eight", "ms": 6000}
"#;
const ASKS: &str = r#"
{"text": "Two match.", "calls": [{"tool": "ask_user", "arguments": {"question": "Which?"}}]}
{"text": "Loaded."}
"#;

fn texts(home: &Home, session: &str) -> Vec<String> {
    said(home, session).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn in_a_model_call() {
    let home = Home::new();
    let model = model(&home, SLOW);
    let arguments = ["run", "count", "--model", &model, "--name", "counter", "--detach"];
    assert_eq!(home.told(&arguments).code, 0);
    let resuming = home.command(&["resume", "counter"]).spawn().unwrap();
    home.until("counter", "state", "running");
    signal(&resuming, Signal::KILL);
    resuming.wait_with_output().unwrap();
    let shown = home.json(&["show", "counter"]);
    assert_eq!(shown["notice"], "its host died; start `adjourn serve`", "{shown}");
    let serving = home.serve();
    home.until("counter", "outcome", "completed");
    let texts: Vec<_> = texts(&home, "counter");
    assert_eq!((texts[0].as_str(), texts[1].as_str()), ("count", "I look."));
    // The words that were heard until the kill may be there, too: as an answer that was broken off.
    let answer = texts[2..].concat();
    assert!(answer.ends_with("one two three four five six seven eight"), "{texts:?}");
    assert_eq!(answer.matches("eight").count(), 1, "{texts:?}");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn while_it_asks_and_while_it_is_parked() {
    let home = Home::new();
    let model = model(&home, ASKS);
    // A terminal that is closed in the hard way, while the question is open.
    let arguments = ["run", "load", "--model", &model, "--name", "loader"];
    let running = home.command(&arguments).spawn().unwrap();
    home.until_first(|session| session["wait"] == "question");
    signal(&running, Signal::KILL);
    running.wait_with_output().unwrap();
    assert_eq!(home.json(&["show", "loader"])["question"], "Which?");
    let told = home.told(&["prompt", "loader", "raw"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(texts(&home, "loader"), ["load", "Two match.", "raw", "Loaded."]);

    let parks = r#"{"text": "I wait.", "calls": [{"tool": "await_resumption", "arguments": {"reason": "ci", "conditions": {"onEvent": "ci.passed"}}}]}
{"text": "Passed."}"#;
    let model = super::model(&home, parks);
    let serving = home.serve();
    let arguments = ["run", "wait", "--model", &model, "--name", "waiter", "--detach"];
    assert_eq!(home.told(&arguments).code, 0);
    home.until("waiter", "state", "suspended");
    serving.kill();
    assert_eq!(home.told(&["event", "ci.passed"]).code, 0);
    let serving = home.serve();
    home.until("waiter", "outcome", "completed");
    assert_eq!(texts(&home, "waiter"), ["wait", "I wait.", "Passed."]);
    assert_eq!(serving.terminate(), 0);
}
