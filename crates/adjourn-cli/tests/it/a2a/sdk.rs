//! The official SDKs as clients, in the versions that `tests/sdk/a2a` pins: a task is paused, held and
//! woken while they watch, and none of them fails to read what it is told.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::Server;

const SCRIPT: &str = r#"{"steps": [
    {"say": "I start the build."},
    {"await": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}},
    {"ask": {"question": "Merge?", "choices": ["yes", "no"]}},
    {"say": "merged"}]}"#;

/// Runs a client's program, and returns what it says.
fn told(version: &str, arguments: &[&str]) -> Value {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let clients = target.join("sdk-clients/a2a");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/a2a");
    let pin = format!("requirements-{version}.txt");
    let pinned = std::fs::read_to_string(programs.join(&pin)).unwrap();
    let found = std::fs::read_to_string(clients.join(&pin)).unwrap_or_default();
    assert!(found == pinned, "the clients are not as pinned in {clients:?}: make sdk-clients");
    let server = Server::new(SCRIPT, &["--insecure-open"]);
    let program = programs.join(format!("v{}.py", version.replace('.', "")));
    let mut client = Command::new(clients.join(version).join("bin/python"));
    // Nothing is written beside the programs.
    client.arg("-B").arg(program).arg(format!("http://{}", server.address)).args(arguments);
    let output = client.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn the_python_sdk_of_1_0_is_told_of_pauses_over_both_bindings() {
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let expected = json!({
            "card": "agent",
            "paused": ["paused-by-agent", "paused-by-client"],
            "asked": "TASK_STATE_INPUT_REQUIRED",
            "done": "TASK_STATE_COMPLETED",
            "said": "merged",
            "canceled": "TASK_STATE_CANCELED",
            "watched": ["task", "status_update"],
            "listed": [1, true],
            "unknown": "TaskNotFoundError",
        });
        assert_eq!(told("1.0", &[binding]), expected, "{binding}");
    }
}

#[test]
fn the_python_sdk_of_0_3_is_told_of_pauses() {
    let expected = json!({
        "card": "agent",
        "paused": ["paused-by-agent", "paused-by-client"],
        "asked": "input-required",
        "done": "completed",
        "said": "merged",
        "canceled": "canceled",
        "watched": ["task", "status-update"],
        "unknown": -32001,
    });
    assert_eq!(told("0.3", &[]), expected);
}
