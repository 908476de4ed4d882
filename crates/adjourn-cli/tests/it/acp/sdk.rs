//! The official SDKs as clients, in the versions that `tests/sdk` pins.
//!
//! Each scenario is a program in the SDK's own language that drives `adjourn acp` and says what was
//! written to the pipe and what the SDK handed on. Between the two nothing may be missing or
//! changed, and the SDK may have nothing to complain about.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::home::Home;

/// A step with a call that takes long enough to be suspended in.
const BUILD: &str = r#"{"steps": [
  {"say": "building"},
  {"tool": {"name": "build", "ms": 1000}},
  {"say": "built"}
]}"#;

const PARKS: &str = r#"{"runs": [[
  {"say": "building"},
  {"await": {"reason": "waiting on ci", "summary": "paused on CI",
             "conditions": {"onEvent": "ci.passed", "timeout": {"durationMinutes": 30, "onTimeout": "fail"}}}},
  {"say": "done"}
]]}"#;

/// All that an agent can say and show, and a message that takes longer than a segment waits.
const EVERYTHING: &str = r#"{"steps": [
  {"say": {"think": "let me see ", "text": "I look around. ", "ms": 1400}},
  {"plan": [{"content": "look", "priority": "high", "status": "in_progress"}, "write"]},
  {"spend": {"usd": 0.25, "tokens": 1000}},
  {"context": {"used": 1000, "size": 200000}},
  {"mode": "ask"},
  {"commands": [{"name": "test", "description": "runs the tests"}]},
  {"tool": {"name": "build", "title": "Build it", "kind": "execute", "locations": ["/src"],
            "args": {"target": "all"}, "result": {"status": 0}}},
  {"say": {"text": "built", "ms": 50}}
]}"#;

const ASKS: &str = r#"{"runs": [[
  {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}},
  {"say": "done"}
]]}"#;

const ASKS_AND_PARKS: &str = r#"{"runs": [[
  {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}},
  {"await": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}},
  {"say": "done"}
]]}"#;

const DEPLOYS: &str = r#"{"steps": [
  {"tool": {"name": "deploy", "permission": true}},
  {"say": "over"}
]}"#;

#[derive(Debug, Clone, Copy)]
enum Sdk {
    TypeScriptV1,
    TypeScriptV2,
    Python,
}

const ALL: [Sdk; 3] = [Sdk::TypeScriptV1, Sdk::TypeScriptV2, Sdk::Python];

/// Returns where `make sdk-clients` has put the clients.
pub fn installed() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let clients = target.join("sdk-clients");
    let pins = [
        ("node/package-lock.json", include_str!("../../sdk/node/package-lock.json")),
        ("python/requirements.txt", include_str!("../../sdk/python/requirements.txt")),
        ("python/examples.sha256", include_str!("../../sdk/python/examples.sha256")),
    ];
    for (pin, pinned) in pins {
        let found = std::fs::read_to_string(clients.join(pin)).unwrap_or_default();
        assert!(found == pinned, "the clients are not as pinned in {clients:?}: make sdk-clients");
    }
    clients
}

/// Lets an SDK drive an agent through a scenario, and returns what passed.
fn drive(sdk: Sdk, scenario: &str, script: &str) -> Value {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
    let clients = installed();
    let (runs, program) = match sdk {
        Sdk::TypeScriptV1 => ("node".into(), "node/v1.mjs"),
        Sdk::TypeScriptV2 => ("node".into(), "node/v2.mjs"),
        Sdk::Python => (clients.join("python/bin/python"), "python/client.py"),
    };
    let home = Home::new();
    // Nothing of the machine's own settings, but for where its programs are.
    let mut command = Command::new(runs);
    command.arg(programs.join(program)).arg(scenario).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).envs(home.environment());
    command.env("ADJOURN", env!("CARGO_BIN_EXE_adjourn"));
    command.env("SCRIPT", home.file("script.json", script)).env("SDK_CLIENTS", clients);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let talk = String::from_utf8(stderr).unwrap();
    assert!(status.success() && talk.is_empty(), "{sdk:?} {scenario}: {status}\n{talk}");
    let report: Value = serde_json::from_slice(&stdout).unwrap();
    let connections = report["connections"].as_array().unwrap();
    assert!(!connections.is_empty(), "{sdk:?} {scenario}");
    for connection in connections {
        assert_eq!(connection["code"], 0, "{sdk:?} {scenario}: {connection:#}");
    }
    report
}

/// Returns the updates that were written to a connection.
fn written(connection: &Value) -> Vec<&Value> {
    let wire = connection["wire"].as_array().unwrap();
    let updates = wire.iter().filter(|message| message["method"] == "session/update");
    updates.map(|message| &message["params"]).collect()
}

/// Lets SDKs drive an agent; all that was written must be handed on, and nothing logged.
fn drive_in_peace(sdks: &[Sdk], scenario: &str, script: &str) {
    for sdk in sdks {
        let report = drive(*sdk, scenario, script);
        assert_eq!(report["logged"], json!([]), "{sdk:?} {scenario}");
        for connection in report["connections"].as_array().unwrap() {
            let handled = connection["handled"].as_array().unwrap();
            assert!(!handled.is_empty(), "{sdk:?} {scenario}: nothing was told");
            assert_eq!(written(connection), handled.iter().collect::<Vec<_>>(), "{sdk:?}");
            let wire = connection["wire"].as_array().unwrap();
            let asked = wire
                .iter()
                .filter(|message| message.get("id").is_some() && message.get("method").is_some());
            let asked = asked
                .map(|message| json!({ "method": message["method"], "params": message["params"] }));
            assert_eq!(json!(asked.collect::<Vec<_>>()), connection["asked"], "{sdk:?}");
        }
    }
}

#[test]
fn a_session_is_suspended_asked_after_resumed_with_a_value_and_replayed() {
    drive_in_peace(&ALL, "suspends", BUILD);
}

#[test]
fn words_thoughts_plans_and_all_the_rest_are_handed_on() {
    drive_in_peace(&ALL, "streams", EVERYTHING);
}

#[test]
fn an_agent_that_parks_itself_is_woken_by_an_event_from_another_process() {
    drive_in_peace(&ALL, "parks", PARKS);
}

#[test]
fn a_question_is_answered_by_a_form() {
    drive_in_peace(&ALL, "asks", ASKS);
}

#[test]
fn a_client_of_today_sees_a_question_a_wait_and_the_wake_in_its_own_words() {
    drive_in_peace(&ALL, "today", ASKS_AND_PARKS);
}

#[test]
fn a_suspend_is_taken_back_by_its_signal() {
    drive_in_peace(&[Sdk::TypeScriptV1], "takesBack", BUILD);
}

/// The SDKs that know how a request is taken back.
const TAKE_BACK: [Sdk; 2] = [Sdk::TypeScriptV1, Sdk::TypeScriptV2];

#[test]
fn a_form_is_taken_back_when_somebody_else_answers() {
    drive_in_peace(&TAKE_BACK, "asksElsewhere", ASKS);
}

#[test]
fn a_permission_is_given_and_refused() {
    drive_in_peace(&ALL, "permits", DEPLOYS);
}

#[test]
fn a_permission_is_taken_back_by_a_suspend_and_asked_for_again() {
    drive_in_peace(&TAKE_BACK, "permitsLater", DEPLOYS);
}

/// The protocol says `$/cancel_request` for what is taken back. The Python SDK has no handler for
/// that: it logs an error, keeps the request, and goes on; a late answer does nothing.
#[test]
fn python_complains_about_what_is_taken_back_and_goes_on() {
    for (scenario, script) in [("asksElsewhere", ASKS), ("permitsLater", DEPLOYS)] {
        let report = drive(Sdk::Python, scenario, script);
        let logged = report["logged"].as_array().unwrap();
        let about = |line: &Value| line[0] == "ERROR" && line[1].to_string().contains("$/cancel");
        assert!(logged.len() == 1 && about(&logged[0]), "{scenario}: {logged:#?}");
        let connection = &report["connections"][0];
        let handled = connection["handled"].as_array().unwrap();
        assert_eq!(written(connection), handled.iter().collect::<Vec<_>>(), "{scenario}");
    }
}

#[test]
fn version_2_hands_on_the_words_of_the_proposal() {
    drive_in_peace(&[Sdk::TypeScriptV2], "bare", BUILD);
}

/// Why clients that are made with an SDK are served by extension: version 1 has a closed list of
/// updates. A client that calls `session/suspend`, and not `_session/suspend`, is told in the words
/// of the proposal; this SDK complains about each of them, drops it, and goes on.
#[test]
fn version_1_complains_about_the_words_of_the_proposal() {
    let report = drive(Sdk::TypeScriptV1, "bare", BUILD);
    let complaint = json!([
        "error", "Error handling notification",
        { "method": "session/update", "code": -32602, "message": "Invalid params" },
    ]);
    assert_eq!(report["logged"], json!([complaint, complaint]));
    let connection = &report["connections"][0];
    let (dropped, kept): (Vec<_>, Vec<_>) = written(connection).into_iter().partition(|params| {
        let kind = &params["update"]["sessionUpdate"];
        kind == "suspended" || kind == "resumed"
    });
    assert_eq!(dropped.len(), 2);
    assert_eq!(json!(kept), connection["handled"]);
}
