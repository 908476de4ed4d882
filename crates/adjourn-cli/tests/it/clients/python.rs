//! The example clients of the Python SDK: a chat in a terminal that shows everything it is sent.
//!
//! `gemini.py` is the one that knows permissions. It has no command for `session/load`;
//! `sdk/load.py` gives that to the other one, `client.py`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{BUILDS, Client, DEPLOYS, PARKS, SAYS, claimed_by, command, kill_owner};
use crate::acp::sdk::installed;
use crate::home::Home;

/// Starts the chat in a project of its own.
fn chat(home: &Home, project: &str, script: &str, arguments: &[&str]) -> Client {
    let mut chat = python(home, project);
    chat.arg(examples().join("gemini.py")).arg("--gemini").arg(agent(home, project, script));
    chat.args(arguments);
    Client::start(chat)
}

/// Loads a session into the chat of the plain example.
fn load(home: &Home, project: &str, script: &str, session: &str) -> Client {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/load.py");
    let mut load = python(home, project);
    load.env("PYTHONPATH", examples()).arg(program);
    load.arg(agent(home, project, script)).arg(session);
    Client::start(load)
}

fn python(home: &Home, project: &str) -> Command {
    let mut python = command(home, project, installed().join("python/bin/python"));
    python.env("PYTHONUNBUFFERED", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

fn examples() -> PathBuf {
    installed().join("python/examples")
}

/// Writes a program that is an agent, whatever arguments it is given.
fn agent(home: &Home, project: &str, script: &str) -> String {
    let script = home.file(&format!("{project}.json"), script);
    let adjourn = env!("CARGO_BIN_EXE_adjourn");
    let text = format!("#!/bin/sh\nexec '{adjourn}' acp --script '{script}'\n");
    let agent = home.file(&format!("{project}.sh"), &text);
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o700)).unwrap();
    agent
}

/// Returns the id of the session that the chat has begun.
fn session(chat: &Client) -> String {
    chat.until("Commands: ");
    let said = chat.said();
    let id = said.split("Created session: ").nth(1).unwrap();
    id.lines().next().unwrap().to_owned()
}

#[test]
fn a_park_and_the_wake_by_an_event_are_seen_and_the_next_message_is_taken() {
    let home = Home::new();
    let mut chat = chat(&home, "project", PARKS, &[]);
    let session = session(&chat);
    chat.types("go");
    chat.until("waiting on ci");
    home.until(&session, "state", "suspended");
    home.json(&["event", "ci.passed"]);
    chat.until("ci passed");
    home.until(&session, "state", "idle");
    chat.types("and now");
    chat.until("second run");
    chat.types(":exit");
    let (code, said) = chat.end();
    assert!(code == 0 && !said.to_lowercase().contains("error"), "{code}: {said}");
}

#[test]
fn a_permission_is_given_and_refused() {
    let home = Home::new();
    for (answer, expected) in [("1", "completed"), ("3", "failed")] {
        let mut chat = chat(&home, "project", DEPLOYS, &[]);
        chat.until("Commands: ");
        chat.types("go");
        chat.until("Permission requested: deploy");
        chat.types(answer);
        chat.until("over");
        assert!(chat.said().contains(expected), "{}", chat.said());
        chat.types(":exit");
        assert_eq!(chat.end().0, 0);
    }
}

#[test]
fn a_cancel_ends_the_call_and_a_message_typed_at_once_is_taken() {
    let home = Home::new();
    // The example cancels what takes longer than this, and lets its user type at once.
    let mut chat = chat(&home, "project", BUILDS, &["--prompt-timeout", "3"]);
    chat.until("Commands: ");
    chat.types("go");
    home.until_in_flight("build");
    chat.until("prompt timed out");
    chat.types("and now");
    chat.until("second run");
    chat.types(":exit");
    let (code, said) = chat.end();
    let call = said.find("failed").unwrap();
    assert!(code == 0 && call < said.find("second run").unwrap(), "{code}: {said}");
    assert!(!said.contains("prompt error"), "{said}");
}

#[test]
fn what_a_killed_agent_left_is_loaded_and_goes_on() {
    let home = Home::new();
    let mut first = chat(&home, "project", BUILDS, &[]);
    let session = session(&first);
    first.types("go");
    home.until_in_flight("build");
    kill_owner(&home);
    first.until("Prompt failed");
    drop(first);
    let mut second = load(&home, "project", BUILDS, &session);
    second.until("| Agent: First.");
    second.until("loaded");
    second.types("go on");
    second.until("| Agent: built");
    let (code, said) = second.end();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn two_at_once_each_run_what_they_were_asked_and_are_asked_for_their_own() {
    for (script, asks) in [(SAYS, false), (DEPLOYS, true)] {
        let home = Home::new();
        let mut chats = ["one", "two"].map(|project| chat(&home, project, script, &[]));
        let sessions = chats.each_ref().map(session);
        for turn in 1..=3 {
            for chat in &mut chats {
                chat.types("go");
            }
            for chat in chats.iter_mut().filter(|_| asks) {
                until_times(chat, "Permission requested: deploy", turn);
                chat.types("1");
            }
            for chat in &chats {
                until_times(chat, "\nover", turn);
            }
        }
        let hosts = sessions.each_ref().map(|session| claimed_by(&home, session));
        assert!(hosts.iter().all(|hosts| hosts.len() == 1), "each in one process: {hosts:?}");
        assert_ne!(hosts[0], hosts[1]);
        for mut chat in chats {
            chat.types(":exit");
            assert_eq!(chat.end().0, 0);
        }
    }
}

/// Waits until a chat has said something so many times.
fn until_times(chat: &Client, text: &str, times: usize) {
    let start = std::time::Instant::now();
    while chat.said().matches(text).count() < times {
        assert!(start.elapsed() < super::PATIENCE, "not {times} times {text:?}: {}", chat.said());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
