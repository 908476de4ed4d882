//! Where two things happen at once, or in an order that nobody planned.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;
use crate::queries::keep_lists_behind;

const ASKS: &str =
    r#"{"runs": [[{"ask": {"question": "which?"}}, {"say": "done"}], [{"say": "again"}]]}"#;

const PARKS: &str = r#"{"runs": [[
  {"say": "one"},
  {"await": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}},
  {"say": "two"}
]]}"#;

const BUILDS: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 700}}, {"say": "built"}]}"#;

/// Brings a session to its first park, and goes away.
fn left_parked(home: &Home, script: &str) -> String {
    let mut editor = Editor::v1(home, script);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    assert_eq!(editor.close(), 0);
    session
}

fn kinds(editor: &Editor) -> Vec<String> {
    editor
        .heard()
        .map(|message| match message["params"]["update"]["sessionUpdate"].as_str() {
            Some(kind) => kind.to_owned(),
            None => format!("answer {}", message["id"]),
        })
        .collect()
}

#[test]
fn a_question_that_was_answered_before_is_not_answered_again() {
    let home = Home::new();
    let session = left_parked(&home, ASKS);
    home.told(&["prompt", &session, "this"]);
    let mut editor = Editor::v1(&home, ASKS);
    let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
    editor.call("session/load", load).unwrap();
    let prompt = editor.prompt(&session, "once more");
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn", "{}", editor.dialog());
}

#[test]
fn whoever_has_not_seen_the_question_is_shown_it_first() {
    let home = Home::new();
    let session = left_parked(&home, ASKS);
    let mut editor = Editor::v1(&home, ASKS);
    let prompt = editor.prompt(&session, "this");
    let refused = editor.answer(prompt).unwrap_err();
    assert_eq!(refused["data"]["reason"], "HANDLE_REQUIRED");
    for told in [&refused["message"], &refused["data"]["details"]] {
        let words = told.as_str().unwrap();
        assert!(words.starts_with("The agent has asked: which?"), "{words}");
        assert!(words.ends_with(" Your message was not taken; send your answer."), "{words}");
    }
    editor.until("which?", |message| message.to_string().contains("which?"));
    let prompt = editor.prompt(&session, "this");
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
}

#[test]
fn a_key_that_only_attached_wakes_nothing_when_it_is_repeated() {
    let home = Home::new();
    let session = left_parked(&home, PARKS);
    let mut editor = Editor::v1(&home, PARKS);
    let attach = json!({ "sessionId": session, "idempotencyKey": "once" });
    let first = editor.call("session/resume", attach.clone()).unwrap();
    assert_eq!(editor.call("session/resume", attach).unwrap(), first, "{}", editor.dialog());
    assert_eq!(home.json(&["show", &session])["state"], "suspended");
    // Another key is another wish.
    let wake = json!({ "sessionId": session, "idempotencyKey": "twice" });
    let woken = editor.call("session/resume", wake).unwrap();
    assert_eq!(woken["_meta"]["adjourn/suspend"]["resumed"]["cause"], "explicit_resume");
}

#[test]
fn a_directory_is_listed_however_it_is_spelled() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    let made = editor.call("session/new", json!({ "cwd": "/var/", "mcpServers": [] })).unwrap();
    for session in [&session, made["sessionId"].as_str().unwrap()] {
        let prompt = editor.prompt(session, "go");
        editor.answer(prompt).unwrap();
    }
    for (cwd, wanted) in [
        ("/tmp", json!(session)),
        ("/tmp/", json!(session)),
        ("/var", made["sessionId"].clone()),
        ("/var//", made["sessionId"].clone()),
    ] {
        let listed = editor.call("session/list", json!({ "cwd": cwd })).unwrap();
        let ids: Vec<_> = listed["sessions"].as_array().unwrap().iter().collect();
        assert_eq!(ids.len(), 1, "{cwd}: {listed}");
        assert_eq!(ids[0]["sessionId"], wanted, "{cwd}");
    }
}

/// A list that cannot be brought up to the journal says how far it is behind, to those who asked for
/// such things.
#[test]
fn a_list_says_how_current_it_is() {
    let home = Home::new();
    let capabilities = json!({ "_meta": { "adjourn/suspend": true } });
    let greeting = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    let mut editor = Editor::greeted(&home, PARKS, &[], &greeting);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    let list = editor.call("session/list", json!({})).unwrap();
    assert_eq!(list["_meta"], Value::Null, "{list}");
    keep_lists_behind(&home);
    let list = editor.call("session/list", json!({})).unwrap();
    let behind = &list["_meta"]["adjourn/suspend"]["behind"];
    assert!(behind.as_u64().is_some_and(|behind| behind > 100_000), "{list}");
}

#[test]
fn a_session_is_found_by_its_name_and_by_the_id_of_one_of_its_runs() {
    let home = Home::new();
    let script = home.file("named.json", PARKS);
    let new = home.json(&["new", "--script", &script, "--name", "nightly"]);
    let id = new["sessionId"].clone();
    home.json(&["prompt", "nightly", "go", "--detach"]);
    let run = home.json(&["show", "nightly"])["runId"].as_str().unwrap().to_owned();
    let mut editor = Editor::v1(&home, PARKS);
    for name in [&run, "nightly"] {
        let status = editor.call("session/status", json!({ "sessionId": name })).unwrap();
        assert_eq!(status["_meta"]["adjourn/suspend"]["sessionId"], id, "{name}: {status}");
        let load = json!({ "sessionId": name, "cwd": "/tmp", "mcpServers": [] });
        for method in ["session/load", "session/resume"] {
            let attached = editor.call(method, load.clone()).unwrap();
            assert_eq!(attached["_meta"]["adjourn/suspend"]["sessionId"], id, "{method} {name}");
        }
    }
    let load = json!({ "sessionId": "weekly", "cwd": "/tmp", "mcpServers": [] });
    assert_eq!(editor.call("session/load", load).unwrap_err()["code"], -32002);
}

#[test]
fn a_replay_that_also_wakes_goes_over_into_the_turn() {
    let home = Home::new();
    let session = left_parked(&home, PARKS);
    let mut editor = Editor::v1(&home, PARKS);
    let both = json!({
        "sessionId": session, "continueTranscript": true, "replayFrom": { "type": "start" },
    });
    editor.call("session/resume", both).unwrap();
    editor.until("two", |message| message.to_string().contains("two"));
    editor.overheard();
    let expected = [
        "answer 1",
        "user_message_chunk",
        "agent_message_chunk",
        "suspended",
        "answer 2",
        "resumed",
        // What it is called, and a blank line before the next message.
        "session_info_update",
        "agent_message_chunk",
        "agent_message_chunk",
        "session_info_update",
    ];
    assert_eq!(kinds(&editor), expected, "{}", editor.dialog());

    // One that is refused shows nothing of a session that it does not attach to.
    let mut other = Editor::v1(&home, PARKS);
    let refused = json!({
        "sessionId": session, "handle": "suspend-nobody", "replayFrom": { "type": "start" },
    });
    assert_eq!(other.call("session/resume", refused).unwrap_err()["code"], 4002);
    assert_eq!(kinds(&other), ["answer 1", "answer 2"]);
}

#[test]
fn what_has_come_to_an_end_when_the_editor_leaves_is_still_answered() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, BUILDS);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.call_is("in_progress");
    let suspend = editor.request("session/suspend", json!({ "sessionId": session }));
    editor.hang_up();
    let answer = editor.answer(prompt).unwrap();
    assert_eq!(answer["stopReason"], "end_turn", "its call came back, and nothing was cut off");
    assert_eq!(answer["_meta"]["adjourn/suspend"]["state"], "suspended");
    assert!(editor.answer(suspend).unwrap()["handle"].is_string());
    assert_eq!(editor.close(), 0);
    assert_eq!(home.json(&["show", &session])["state"], "suspended");
}

#[test]
fn a_signal_is_an_editor_that_goes_away() {
    let home = Home::new();
    let greeting = json!({ "protocolVersion": 1 });
    let mut editor = Editor::greeted(&home, BUILDS, &["--on-disconnect", "suspend"], &greeting);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    assert_eq!(editor.terminate(), 0);
    assert_eq!(home.json(&["show", &session])["state"], "suspended");
}

#[test]
fn of_two_who_suspend_one_takes_it_back() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, BUILDS);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    let first = editor.request("session/suspend", json!({ "sessionId": session }));
    let second = editor.request("session/suspend", json!({ "sessionId": session }));
    editor.notify("$/cancel_request", json!({ "requestId": first }));
    assert_eq!(editor.answer(first).unwrap_err()["code"], -32800);
    assert!(editor.answer(second).unwrap()["handle"].is_string(), "the other still wants it");
}

#[test]
fn words_for_a_session_that_is_not_suspended_are_refused_alike() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, BUILDS);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    for (suspended, reason) in [(false, "TASK_NOT_PAUSED"), (true, "TASK_BUSY")] {
        if suspended {
            // It takes effect when the call has come back.
            editor.request("session/suspend", json!({ "sessionId": session }));
        }
        let resume = json!({ "sessionId": session, "input": "hurry" });
        let error = editor.call("session/resume", resume).unwrap_err();
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(4003), &json!(reason)));
    }
}

#[test]
fn a_hold_is_told_in_version_2() {
    let home = Home::new();
    let mut editor = Editor::greeted(&home, PARKS, &[], &json!({ "protocolVersion": 2 }));
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.until("parked", |message| message["params"]["update"]["stopReason"] == "_suspended");
    home.told(&["suspend", &session, "--reason", "lunch"]);
    assert_eq!(editor.update("notice")["title"], "Paused: lunch");
}

#[test]
fn a_wait_is_introduced_after_the_answer_and_told_when_it_is_over() {
    let home = Home::new();
    let session = left_parked(&home, PARKS);
    let mut editor = Editor::greeted(&home, PARKS, &[], &json!({ "protocolVersion": 2 }));
    editor.call("session/resume", json!({ "sessionId": session, "cwd": "/tmp/" })).unwrap();
    editor.overheard();
    let expected =
        ["answer 1", "state_update", "answer 2", "session_info_update", "tool_call_update"];
    assert_eq!(kinds(&editor), expected);
    home.told(&["event", "ci.passed"]);
    let over = editor.update("tool_call_update");
    assert_eq!(over["status"], "completed");
}

#[test]
fn in_the_words_of_the_proposal_a_question_can_still_be_seen() {
    let home = Home::new();
    let session = left_parked(&home, ASKS);
    let greeting = json!({ "protocolVersion": 2 });
    let mut editor = Editor::greeted(&home, ASKS, &["--profile", "rfc"], &greeting);
    editor.call("session/resume", json!({ "sessionId": session, "cwd": "/tmp" })).unwrap();
    editor.until("which?", |message| message.to_string().contains("which?"));
    assert_eq!(home.json(&["show", &session])["wait"], "question");
}

#[test]
fn a_session_that_is_over_is_not_live() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    home.told(&["close", &session]);
    let status = editor.call("session/status", json!({ "sessionId": session })).unwrap();
    assert_eq!(status["status"], "not_found");
    let prompt = editor.prompt(&session, "still there?");
    assert_eq!(editor.answer(prompt).unwrap_err()["code"], 4010);
    let bare = editor.call("session/resume", json!({ "sessionId": session }));
    assert!(bare.is_ok(), "there is nothing to wake, and nobody asked for it: {bare:?}");
}

#[test]
fn one_is_introduced_once() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let again = editor.call("initialize", json!({ "protocolVersion": 2 }));
    assert_eq!(again.unwrap_err()["code"], -32600);
}

#[test]
fn a_form_without_an_answer_is_shown_again() {
    let home = Home::new();
    let greeting = json!({
        "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } },
    });
    let mut editor = Editor::greeted(&home, ASKS, &[], &greeting);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    let form = editor.asked("elicitation/create");
    let replay = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
    editor.call("session/resume", replay).unwrap();
    let asked = |message: &Value| message["method"] == "elicitation/create";
    assert!(!editor.overheard().iter().any(asked), "one form is enough");
    editor.reply(&form["id"], json!({ "action": "accept", "content": { "answer": " " } }));
    let again = editor.asked("elicitation/create");
    editor.reply(&again["id"], json!({ "action": "accept", "content": { "answer": "this" } }));
    editor.until("done", |message| message.to_string().contains("done"));
}

#[test]
fn the_last_line_needs_no_end() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    editor.half_line(br#"{"jsonrpc":"2.0","id":7,"method":"session/list","params":{}}"#);
    editor.hang_up();
    assert!(editor.answer(7).is_ok());
}

#[test]
fn whoever_only_watches_takes_nothing_away_when_it_leaves() {
    for what in ["cancel", "suspend"] {
        let home = Home::new();
        let mut editor = Editor::v1(&home, BUILDS);
        let session = editor.new_session();
        let prompt = editor.prompt(&session, "go");
        editor.call_is("in_progress");
        let greeting = json!({ "protocolVersion": 1 });
        let mut other = Editor::greeted(&home, BUILDS, &["--on-disconnect", what], &greeting);
        let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
        other.call("session/load", load).unwrap();
        assert_eq!(other.close(), 0);
        assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn", "{what}");
        let state = home.json(&["show", &session])["state"].clone();
        assert_eq!(state, "idle", "{what}");
    }
}

#[test]
fn whoever_has_woken_it_ends_it_also_on_its_way_to_rest() {
    let script = r#"{"steps": [
      {"await": {"reason": "ci"}}, {"tool": {"name": "build", "ms": 3000}}, {"say": "built"}
    ]}"#;
    let home = Home::new();
    let session = left_parked(&home, script);
    let greeting = json!({ "protocolVersion": 1 });
    let mut editor = Editor::greeted(&home, script, &["--on-disconnect", "cancel"], &greeting);
    let wake = json!({ "sessionId": session, "continueTranscript": true });
    editor.call("session/resume", wake).unwrap();
    editor.call_is("in_progress");
    editor.request("session/suspend", json!({ "sessionId": session }));
    let requested = |message: &Value| message.to_string().contains(r#""state":"quiescing""#);
    editor.until("quiescing", requested);
    assert_eq!(editor.close(), 0);
    assert_eq!(home.json(&["show", &session])["outcome"], "canceled");
}
