//! acp-cli: a client for scripts. The process of a session's first prompt stays, and takes the
//! prompts of later ones; its `cancel` ends that process.
//!
//! It now and then loses the last words of a turn by itself, so what a turn came to is read off the
//! store.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::{BUILDS, Client, DEPLOYS, PARKS, command, kill_owner};
use crate::acp::sdk::installed;
use crate::home::Home;

/// Names an agent for acp-cli that follows a script.
fn configure(home: &Home, script: &str) {
    let script = home.file("script.json", script);
    let adjourn = env!("CARGO_BIN_EXE_adjourn");
    let agent = json!({ "command": adjourn, "args": ["acp", "--script", script] });
    std::fs::create_dir_all(home.path(".acp-cli")).unwrap();
    let config = json!({ "agents": { "adjourn": agent } });
    home.file(".acp-cli/config.json", &config.to_string());
}

fn acp_cli(home: &Home, project: &str, arguments: &[&str]) -> Client {
    let program: PathBuf = installed().join("acp-cli/bin/acp-cli");
    let mut acp_cli: Command = command(home, project, program);
    acp_cli.args(arguments);
    Client::start(acp_cli)
}

/// Returns the only session that the store has.
fn session(home: &Home) -> String {
    let sessions = home.jsons(&["ls"]);
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    sessions[0]["sessionId"].as_str().unwrap().to_owned()
}

#[test]
fn a_park_ends_the_turn_and_an_event_wakes_the_session() {
    let home = Home::new();
    configure(&home, PARKS);
    let owner = acp_cli(&home, "project", &["adjourn", "go"]);
    owner.until("build started");
    let session = session(&home);
    home.until(&session, "state", "suspended");
    home.json(&["event", "ci.passed"]);
    home.until(&session, "state", "idle");
    let (code, said) = acp_cli(&home, "project", &["adjourn", "and now"]).end();
    assert_eq!(code, 0, "{said}");
    assert_eq!(home.json(&["show", &session])["outcome"], "completed");
    let transcript = home.told(&["log", &session, "--transcript"]).data;
    assert!(transcript.contains("second run"), "{transcript}");
}

#[test]
fn a_permission_is_given_and_refused() {
    for (flag, expected) in [("--approve-all", "deploy done"), ("--deny-all", "not run")] {
        let home = Home::new();
        configure(&home, DEPLOYS);
        let (_, said) = acp_cli(&home, "project", &[flag, "adjourn", "exec", "go"]).end();
        assert!(said.contains("First."), "{said}");
        let transcript = home.told(&["log", &session(&home), "--transcript"]).data;
        assert!(transcript.contains(expected), "{flag}: {transcript}");
    }
}

#[test]
fn a_cancel_ends_the_client_and_the_call_is_not_run_again() {
    let home = Home::new();
    configure(&home, BUILDS);
    // The agent outlives its client, and gives the call this long to end.
    std::fs::create_dir_all(home.path(".config/adjourn")).unwrap();
    home.file(".config/adjourn/config.toml", "[host]\ndrain = \"1s\"\n");
    let owner = acp_cli(&home, "project", &["adjourn", "go"]);
    home.until_in_flight("build");
    let session = session(&home);
    let (code, said) = acp_cli(&home, "project", &["adjourn", "cancel"]).end();
    assert_eq!(code, 0, "{said}");
    drop(owner);
    is_interrupted(&home, &session);
}

#[test]
fn a_killed_agent_leaves_a_session_that_goes_on_with_a_prompt_from_elsewhere() {
    let home = Home::new();
    configure(&home, BUILDS);
    let owner = acp_cli(&home, "project", &["adjourn", "go"]);
    home.until_in_flight("build");
    let session = session(&home);
    kill_owner(&home);
    drop(owner);
    is_interrupted(&home, &session);
    // This client begins a new session after that; the old one is there for others.
    let told = home.told(&["prompt", &session, "go on"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.contains("built"), "{told:?}");
}

/// Waits until a host has found out that the one before it is gone.
fn is_interrupted(home: &Home, session: &str) {
    let host = home.serve();
    home.until(session, "reason", "host_interrupted");
    assert_eq!(host.terminate(), 0);
    let log = home.told(&["log", session]).data;
    assert_eq!(log.matches("calls_dispatched").count(), 1, "{log}");
}

#[test]
fn two_at_once_each_run_what_they_were_asked() {
    let home = Home::new();
    configure(&home, DEPLOYS);
    let turns = ["one", "two"]
        .map(|project| acp_cli(&home, project, &["--approve-all", "adjourn", "exec", "go"]));
    for turn in turns {
        let (code, said) = turn.end();
        assert!(code == 0 && said.contains("First."), "{code}: {said}");
    }
    let sessions = home.jsons(&["ls"]);
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    for status in sessions {
        assert_eq!(status["outcome"], "completed", "{status}");
    }
}
