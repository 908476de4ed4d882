//! Words as they come, over a pipe: live, in other processes, after a kill, and told again.

use expect_test::expect_file;
use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

/// All that an agent can say and show, in less than a second, so that no segment is committed.
const EVERYTHING: &str = r#"{"steps": [
  {"say": {"think": "let me see ", "text": "I look around.", "ms": 400}},
  {"plan": [{"content": "look", "priority": "high", "status": "in_progress"}, "write"]},
  {"spend": {"usd": 0.25, "tokens": 1000}},
  {"context": {"used": 1000, "size": 200000}},
  {"mode": "ask"},
  {"commands": [{"name": "test", "description": "runs the tests"}]},
  {"tool": {"name": "read_file", "title": "Read a.rs", "kind": "read", "locations": ["/src/a.rs"],
            "args": {"path": "/src/a.rs"}, "result": {"lines": 3}}},
  {"tool": {"name": "write_file", "kind": "edit", "fails": true, "result": "disk full", "ms": 1000,
            "updates": [{"title": "Write a.rs", "text": "half of it", "locations": ["/src/a.rs"]}]}},
  {"say": "done"}
]}"#;

/// A message of about three seconds.
const LONG: &str = r#"{"steps": [{"say": {"text": "a b c d e f g h i j k l", "ms": 3000}}]}"#;
const WORDS: &str = "a b c d e f g h i j k l";

fn greeting(version: u64) -> Value {
    let info = if version == 1 { "clientInfo" } else { "info" };
    json!({ "protocolVersion": version, info: { "name": "editor", "version": "1.0" } })
}

fn open(home: &Home, script: &str, version: u64) -> Editor {
    Editor::greeted(home, script, &[], &greeting(version))
}

/// Asks for all of a session.
fn load(editor: &mut Editor, version: u64, session: &str) {
    let (method, params) = match version {
        1 => ("session/load", json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] })),
        _ => (
            "session/resume",
            json!({ "sessionId": session, "cwd": "/tmp", "replayFrom": { "type": "start" } }),
        ),
    };
    editor.call(method, params).unwrap();
}

/// Runs a session to its end, and has it told again.
fn run_and_load(home: &Home, version: u64) -> Editor {
    let mut editor = open(home, EVERYTHING, version);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    if version == 2 {
        editor.state_is("idle");
    }
    load(&mut editor, version, &session);
    editor
}

#[test]
fn everything_is_told_live_and_again_v1() {
    let home = Home::new();
    let editor = run_and_load(&home, 1);
    expect_file!["golden/v1-live.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}

#[test]
fn everything_is_told_live_and_again_v2() {
    let home = Home::new();
    let editor = run_and_load(&home, 2);
    expect_file!["golden/v2-live.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}

/// Returns the updates of one message since a place in what was heard, and its words put together.
fn message(editor: &Editor, since: usize, id: &str) -> (Vec<Value>, String) {
    let updates = editor.heard().skip(since).map(|message| &message["params"]["update"]);
    let updates: Vec<_> = updates.filter(|update| update["messageId"] == id).cloned().collect();
    let mut words = String::new();
    for update in &updates {
        match update["sessionUpdate"].as_str().unwrap() {
            "agent_message_chunk" => words += update["content"]["text"].as_str().unwrap(),
            "agent_message" => match update["content"][0]["text"].as_str() {
                Some(text) => text.clone_into(&mut words),
                None => assert_eq!(update.get("content"), None, "only its end is news"),
            },
            other => panic!("{other}"),
        }
    }
    let words = words.trim_end_matches("\n\n").to_owned();
    (updates, words)
}

fn is_aborted(update: &Value) -> bool {
    update["_meta"]["adjourn/suspend"]["aborted"] == true
}

/// Returns what is committed of a message.
fn committed(home: &Home, session: &str, id: &str) -> String {
    let said = home.jsons(&["log", "--transcript", session]);
    let own = said.iter().filter(|entry| entry["id"] == id);
    own.map(|entry| entry["text"].as_str().unwrap()).collect()
}

#[test]
fn after_a_kill_in_the_middle_of_a_message_every_watcher_sees_it_end_and_nothing_twice() {
    for version in [1, 2] {
        let home = Home::new();
        let mut killed = open(&home, LONG, version);
        let session = killed.new_session();
        let mut watcher = open(&home, LONG, version);
        load(&mut watcher, version, &session);
        killed.prompt(&session, "go");
        // The first segment is committed after a second; then the host dies.
        watcher.until("words", |message| message["params"]["update"]["messageId"] == "s4.1");
        let (_, live) = message(&killed, 0, "s4.1");
        killed.kill();
        let ends = |message: &Value| {
            let update = &message["params"]["update"];
            update["messageId"] == "s4.1" && is_aborted(update)
        };
        watcher.until("the end of the message", ends);
        let committed = committed(&home, &session, "s4.1");
        assert!(!committed.is_empty() && WORDS.starts_with(&committed), "{committed}");
        assert!(WORDS.starts_with(&live), "{live}");
        // A word of two bytes comes each quarter of a second. What was said in the last second is
        // missing at most, and what was said while the kill came.
        let missing = live.len().saturating_sub(committed.len());
        assert!(missing <= 2 * 6, "version {version}: {committed:?} of {live:?}");
        let (updates, words) = message(&watcher, 0, "s4.1");
        assert_eq!(words, committed, "version {version}: {updates:#?}");
        let marks = updates.iter().filter(|update| is_aborted(update)).count();
        assert_eq!(marks, 1, "version {version}: {updates:#?}");
        // The step is taken anew, and its words are another message.
        let mut late = open(&home, LONG, version);
        load(&mut late, version, &session);
        let (updates, words) = message(&late, 0, "s4.1");
        assert_eq!(words, committed, "version {version}: {updates:#?}");
        assert!(updates.iter().any(is_aborted), "version {version}: {updates:#?}");
    }
}

#[test]
fn a_message_that_a_cancel_breaks_off_is_told_as_far_as_it_came() {
    for version in [1, 2] {
        let home = Home::new();
        let mut editor = open(&home, LONG, version);
        let session = editor.new_session();
        editor.prompt(&session, "go");
        let said = |message: &Value| message["params"]["update"].to_string().contains("\"c \"");
        editor.until("some words", said);
        editor.notify("session/cancel", json!({ "sessionId": session }));
        editor.until("the end of the message", |message| is_aborted(&message["params"]["update"]));
        let (updates, words) = message(&editor, 0, "s4.1");
        assert_eq!(words, committed(&home, &session, "s4.1"), "{updates:#?}");
        assert!(words.starts_with("a b c "), "{words}");
        let heard = editor.heard().count();
        load(&mut editor, version, &session);
        let (updates, again) = message(&editor, heard, "s4.1");
        assert_eq!(again, words, "{updates:#?}");
        assert!(updates.iter().any(is_aborted), "{updates:#?}");
    }
}

/// The turn is over behind its last words, and the session is told as suspended behind the turn.
#[test]
fn a_message_that_a_suspend_breaks_off_is_told_to_end_before_its_turn_and_the_suspension() {
    for version in [1, 2] {
        let home = Home::new();
        let opted_in = json!({ "_meta": { "adjourn/suspend": {} } });
        let mut greeting = greeting(version);
        let capabilities = if version == 1 { "clientCapabilities" } else { "capabilities" };
        greeting[capabilities] = opted_in;
        let mut editor = Editor::greeted(&home, LONG, &[], &greeting);
        let session = editor.new_session();
        let prompt = editor.prompt(&session, "go");
        let said = |message: &Value| message["params"]["update"].to_string().contains("\"c \"");
        editor.until("some words", said);
        let suspend = json!({ "sessionId": session, "mode": "interrupt_immediate" });
        editor.call("session/suspend", suspend).unwrap();
        editor.overheard();

        let place = |is: &dyn Fn(&Value) -> bool| editor.heard().position(is);
        let aborted = place(&|message| is_aborted(&message["params"]["update"]));
        let is_suspended = |message: &Value| {
            let update = &message["params"]["update"];
            update["sessionUpdate"] == "suspended" || update["stopReason"] == "_suspended"
        };
        let suspended = place(&is_suspended);
        // In version 2 a prompt is answered when it was taken, and the state says that its turn is
        // over.
        let over = place(&|message| match version {
            1 => message["id"] == prompt && message.get("method").is_none(),
            _ => is_suspended(message),
        });
        let places = [aborted, over, suspended];
        assert!(places.iter().all(Option::is_some), "{places:?}: {}", editor.dialog());
        assert!(places.is_sorted(), "version {version}: {places:?}: {}", editor.dialog());

        let (updates, words) = message(&editor, 0, "s4.1");
        assert_eq!(words, committed(&home, &session, "s4.1"), "{updates:#?}");
        assert!(words.starts_with("a b c ") && words.len() < WORDS.len(), "{words}");
        let heard = editor.heard().count();
        load(&mut editor, version, &session);
        let (updates, again) = message(&editor, heard, "s4.1");
        assert_eq!(again, words, "{updates:#?}");
        assert_eq!(updates.iter().filter(|update| is_aborted(update)).count(), 1, "{updates:#?}");
    }
}

/// Begins to say a message in a process that has so long to stop, and tells it to stop when some
/// words were said; returns how the process ended.
fn stopped_in_mid_message(home: &Home, version: u64, drain: &str) -> (String, i32) {
    home.config(&format!("[host]\ndrain = \"{drain}\""));
    let mut editor = open(home, LONG, version);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    let said = |message: &Value| message["params"]["update"].to_string().contains("\"c \"");
    editor.until("some words", said);
    (session, editor.terminate())
}

#[test]
fn a_process_that_is_told_to_stop_in_mid_message_says_it_to_its_end_if_it_may() {
    for version in [1, 2] {
        let home = Home::new();
        let (session, code) = stopped_in_mid_message(&home, version, "30s");
        assert_eq!(code, 0);
        assert_eq!(committed(&home, &session, "s4.1"), WORDS, "version {version}");
        let mut late = open(&home, LONG, version);
        load(&mut late, version, &session);
        let (updates, words) = message(&late, 0, "s4.1");
        assert_eq!(words, WORDS, "version {version}: {updates:#?}");
        assert!(!updates.iter().any(is_aborted), "version {version}: {updates:#?}");
        assert_eq!(late.close(), 0);
    }
}

/// The words so far are committed before the process ends. They read as broken off, and each client
/// that attaches is sent exactly them.
#[test]
fn a_client_that_attaches_behind_a_drain_in_mid_message_is_sent_exactly_what_was_committed() {
    for version in [1, 2] {
        let home = Home::new();
        let (session, code) = stopped_in_mid_message(&home, version, "300ms");
        assert_eq!(code, 0);
        let committed = committed(&home, &session, "s4.1");
        assert!(committed.starts_with("a b c ") && committed.len() < WORDS.len(), "{committed}");
        assert!(WORDS.starts_with(&committed), "{committed}");
        for _ in 0..2 {
            let mut late = open(&home, LONG, version);
            load(&mut late, version, &session);
            let (updates, words) = message(&late, 0, "s4.1");
            assert_eq!(words, committed, "version {version}: {updates:#?}");
            let marks = updates.iter().filter(|update| is_aborted(update)).count();
            assert_eq!(marks, 1, "version {version}: {updates:#?}");
            late.kill();
        }
    }
}
