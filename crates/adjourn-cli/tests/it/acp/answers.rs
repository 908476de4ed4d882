//! Everybody who asks is answered, about what they asked for and in the order of the journal.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

const BUILDS: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 300}}, {"say": "built"}]}"#;

const PARKS: &str = r#"{"runs": [[
  {"await": {"reason": "first", "conditions": {"onEvent": "first.done"}}},
  {"await": {"reason": "second", "conditions": {"onEvent": "second.done"}}},
  {"say": "done"}
]]}"#;

/// An editor that knows the proposal.
fn knowing(home: &Home, script: &str) -> Editor {
    let knows = json!({ "supportsSuspend": true });
    let greeting = json!({ "protocolVersion": 1, "clientCapabilities": knows });
    Editor::greeted(home, script, &[], &greeting)
}

/// Suspends with a look back to an event that is there, and returns the answer.
fn suspend_since(editor: &mut Editor, session: &str) -> (u64, Value) {
    let conditions = json!({ "onEvent": "old.news", "since": 0 });
    let request = json!({ "sessionId": session, "reason": "review", "resumeWhen": conditions });
    let id = editor.request("session/suspend", request);
    (id, editor.answer(id).unwrap())
}

/// Returns what was said of suspensions and to `request`, by what each names.
fn story(editor: &Editor, request: u64) -> Vec<(String, Value)> {
    let told = editor.heard().filter_map(|message| {
        let update = &message["params"]["update"];
        match update["sessionUpdate"].as_str() {
            Some(kind @ ("suspended" | "resumed")) => {
                Some((kind.to_owned(), update["handle"].clone()))
            }
            _ if message["id"] == request && message.get("method").is_none() => {
                Some(("answer".to_owned(), message["result"]["handle"].clone()))
            }
            _ => None,
        }
    });
    told.collect()
}

#[test]
fn a_suspend_that_is_over_as_soon_as_it_begins_is_answered() {
    for (script, first) in [(BUILDS, false), (BUILDS, true), (PARKS, true)] {
        let home = Home::new();
        home.told(&["event", "old.news"]);
        let mut editor = knowing(&home, script);
        let session = editor.new_session();
        if first {
            editor.prompt(&session, "go");
            match script {
                PARKS => drop(editor.asked("session/await_resumption")),
                _ => editor.call_is("in_progress"),
            }
        }
        let before = story(&editor, 0).len();
        let (request, answer) = suspend_since(&mut editor, &session);
        editor.update("resumed");
        assert_eq!(answer["reason"], "review", "its own suspension, not the agent's");
        assert_eq!(answer["resumeWhen"], json!({ "onEvent": "old.news", "since": 0 }));
        assert!(answer["suspendedAt"].is_string());
        let named = |word: &str| (word.to_owned(), answer["handle"].clone());
        let expected = [named("suspended"), named("answer"), named("resumed")];
        assert_eq!(story(&editor, request)[before..], expected, "{}", editor.dialog());
    }
}

#[test]
fn a_request_about_a_wait_is_taken_back_when_the_wait_is_over() {
    let home = Home::new();
    let mut editor = knowing(&home, PARKS);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    let first = editor.asked("session/await_resumption");
    home.told(&["event", "first.done"]);
    let back = editor.asked("$/cancel_request");
    assert_eq!(back["params"]["requestId"], first["id"]);
    let second = editor.asked("session/await_resumption");
    let named = |alias: &str| json!({ "handle": alias, "suspendedAt": "2026-01-01T00:00:00Z" });
    editor.reply(&second["id"], named("b"));
    // It may have been under way when it was not wanted any more.
    editor.reply(&first["id"], named("a"));
    let wake = |alias: &str| json!({ "sessionId": session, "handle": alias });
    assert_eq!(editor.call("session/resume", wake("a")).unwrap_err()["code"], 4002);
    editor.call("session/resume", wake("b")).unwrap();
    assert_eq!(editor.call("session/resume", wake("b")).unwrap_err()["code"], 4003);
    let back = editor.heard().filter(|message| message["method"] == "$/cancel_request");
    assert_eq!(back.count(), 1, "what was answered is not taken back: {}", editor.dialog());
}

#[test]
fn names_of_suspensions_that_are_over_still_name_them() {
    let home = Home::new();
    let mut editor = knowing(&home, PARKS);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    let wake = |alias: &str| json!({ "sessionId": session, "handle": alias });
    for alias in ["a", "b"] {
        let asked = editor.asked("session/await_resumption");
        let named = json!({ "handle": alias, "suspendedAt": "2026-01-01T00:00:00Z" });
        editor.reply(&asked["id"], named);
        if alias == "a" {
            editor.call("session/resume", wake("a")).unwrap();
        }
    }
    assert_eq!(editor.call("session/resume", wake("a")).unwrap_err()["code"], 4003);
    editor.call("session/resume", wake("b")).unwrap();
}
