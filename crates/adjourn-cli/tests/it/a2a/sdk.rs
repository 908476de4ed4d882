//! The official SDKs as clients, in the versions that `tests/sdk/a2a` pins: a task is paused, held and
//! woken while they watch, a receiver is told of another, and none of them fails to read what it is told.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::Server;

const SCRIPT: &str = r#"{"steps": [
    {"say": "I start the build."},
    {"await": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}},
    {"ask": {"question": "Merge?", "choices": ["yes", "no"]}},
    {"say": "merged"}]}"#;

/// The language that an SDK is for.
#[derive(Debug, Clone, Copy)]
enum Sdk {
    Python,
    JavaScript,
}

/// Runs a client's program, and returns what it says.
fn told(sdk: Sdk, version: &str, binding: &str) -> Value {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let installed = target.join("sdk-clients");
    let clients = installed.join("a2a");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/a2a");
    let pin = match sdk {
        Sdk::Python => format!("requirements-{version}.txt"),
        Sdk::JavaScript => "node/package-lock.json".to_owned(),
    };
    let pinned = std::fs::read_to_string(programs.join(&pin)).unwrap();
    let found = std::fs::read_to_string(clients.join(&pin)).unwrap_or_default();
    assert!(found == pinned, "the clients are not as pinned in {clients:?}: make sdk-clients");
    let server = Server::new(SCRIPT, &["--insecure-open", "--push", "loopback"]);
    let name = format!("v{}", version.replace('.', ""));
    let mut client = match sdk {
        Sdk::Python => {
            let mut client = Command::new(clients.join(version).join("bin/python"));
            // Nothing is written beside the programs.
            client.arg("-B").arg(programs.join(format!("{name}.py")));
            client
        }
        Sdk::JavaScript => {
            let mut client = Command::new("node");
            client.arg(programs.join(format!("node/{name}.mjs"))).env("SDK_CLIENTS", &installed);
            client
        }
    };
    let output = client.arg(format!("http://{}", server.address)).arg(binding).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Returns what a client is told that watches a task which waits by itself, is paused, resumed and
/// canceled meanwhile: each event with its kind, the state, and the pause in its metadata.
fn watched(update: &str, [working, canceled]: [&str; 2]) -> Value {
    json!([
        ["task", working, "paused-by-agent"],
        [update, working, "paused-by-client"],
        [update, working, null],
        [update, working, "paused-by-agent"],
        [update, canceled, null],
    ])
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
            "watched": watched("status_update", ["TASK_STATE_WORKING", "TASK_STATE_CANCELED"]),
            "pushed": ["Bearer s3cret", "t0ken"],
            "receivers": 0,
            "listed": [1, true],
            "unknown": "TaskNotFoundError",
        });
        assert_eq!(told(Sdk::Python, "1.0", binding), expected, "{binding}");
    }
}

#[test]
fn the_python_sdk_of_0_3_is_told_of_pauses_over_both_bindings() {
    for (binding, transport, unknown) in
        [("JSONRPC", "JsonRpcTransport", -32001), ("HTTP+JSON", "RestTransport", 404)]
    {
        let expected = json!({
            "card": "agent",
            "transport": transport,
            "paused": ["paused-by-agent", "paused-by-client"],
            "asked": "input-required",
            "done": "completed",
            "said": "merged",
            "canceled": "canceled",
            "watched": watched("status-update", ["working", "canceled"]),
            "pushed": ["Bearer s3cret", "t0ken"],
            "unknown": unknown,
        });
        assert_eq!(told(Sdk::Python, "0.3", binding), expected, "{binding}");
    }
}

#[test]
fn the_javascript_sdk_of_1_0_is_told_of_pauses_over_both_bindings() {
    for (binding, unknown) in
        [("JSONRPC", "JsonRpcTaskNotFoundError"), ("HTTP+JSON", "RestTaskNotFoundError")]
    {
        let expected = json!({
            "card": "agent",
            "transport": binding,
            "paused": ["paused-by-agent", "paused-by-client"],
            "asked": "TASK_STATE_INPUT_REQUIRED",
            "done": "TASK_STATE_COMPLETED",
            "said": "merged",
            "canceled": "TASK_STATE_CANCELED",
            "watched": watched("statusUpdate", ["TASK_STATE_WORKING", "TASK_STATE_CANCELED"]),
            "pushed": ["Bearer s3cret", "t0ken"],
            "receivers": ["hook", 0],
            "listed": [1, true],
            "unknown": unknown,
        });
        assert_eq!(told(Sdk::JavaScript, "1.0", binding), expected, "{binding}");
    }
}

#[test]
fn the_javascript_sdk_of_0_3_is_told_of_pauses_over_both_bindings() {
    for (binding, transport, unknown) in [
        ("JSONRPC", "_JsonRpcTransport", "TaskNotFoundJSONRPCError"),
        ("HTTP+JSON", "_RestTransport", "TaskNotFoundError"),
    ] {
        let expected = json!({
            "card": "agent",
            "transport": transport,
            "paused": ["paused-by-agent", "paused-by-client"],
            "asked": "input-required",
            "done": "completed",
            "said": "merged",
            "canceled": "canceled",
            "watched": watched("status-update", ["working", "canceled"]),
            "pushed": ["Bearer s3cret", "t0ken"],
            "receivers": ["hook", 0],
            "unknown": unknown,
        });
        assert_eq!(told(Sdk::JavaScript, "0.3", binding), expected, "{binding}");
    }
}
