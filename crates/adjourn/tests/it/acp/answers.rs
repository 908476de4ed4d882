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
