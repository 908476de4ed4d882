//! A prompt that comes while the session does something that it was not prompted for.

use std::time::{Duration, SystemTime};

use serde_json::json;

use super::editor::Editor;
use crate::home::Home;

const ASKS: &str = "session/request_permission";

/// Parks, and does something when it is woken.
fn woken(does: &str) -> String {
    format!(
        r#"{{"runs": [[
          {{"await": {{"reason": "the build", "conditions": {{"onEvent": "go"}}}}}},
          {does}, {{"say": "the first is over"}}], [{{"say": "the second is over"}}]]}}"#
    )
}

const BUILDS: &str = r#"{"tool": {"name": "build", "ms": 1000}}"#;

/// Starts an agent whose session an event has woken, without a prompt.
fn runs_by_itself(home: &Home, version: u64, does: &str) -> (Editor, String) {
    let mut editor =
        Editor::greeted(home, &woken(does), &[], &json!({ "protocolVersion": version }));
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "one");
    editor.answer(prompt).unwrap();
    home.until(&session, "state", "suspended");
    home.json(&["event", "go"]);
    (editor, session)
}

fn until_said(editor: &mut Editor, words: &str) {
    editor.until(words, |message| message["params"]["update"].to_string().contains(words));
}

fn said(home: &Home, session: &str) -> String {
    home.told(&["log", session, "--transcript"]).data
}

#[test]
fn it_waits_is_shown_the_run_and_has_the_next_turn() {
    for version in [1, 2] {
        let home = Home::new();
        let (mut editor, session) = runs_by_itself(&home, version, BUILDS);
        editor.call_is("in_progress");
        let prompt = editor.prompt(&session, "two");
        let another = editor.prompt(&session, "three");
        let refused = editor.answer(another).unwrap_err();
        assert_eq!(
            (&refused["code"], &refused["data"]["reason"]),
            (&json!(4012), &json!("TASK_BUSY"))
        );
        let words = refused["message"].as_str().unwrap();
        assert!(words.contains("Another message of yours is waiting"), "{words}");
        editor.call_is("completed");
        until_said(&mut editor, "the first is over");
        if version == 1 {
            until_said(&mut editor, "the second is over");
            assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
        } else {
            assert!(editor.answer(prompt).unwrap()["messageId"].is_string());
            until_said(&mut editor, "the second is over");
        }
        assert!(said(&home, &session).contains("two") && !said(&home, &session).contains("three"));
    }
}

#[test]
fn it_does_not_wait_behind_a_prompt_of_its_own() {
    for version in [1, 2] {
        let home = Home::new();
        let script = r#"{"steps": [{"tool": {"name": "build", "ms": 500}}, {"say": "over"}]}"#;
        let mut editor =
            Editor::greeted(&home, script, &[], &json!({ "protocolVersion": version }));
        let session = editor.new_session();
        editor.prompt(&session, "one");
        editor.call_is("in_progress");
        let prompt = editor.prompt(&session, "two");
        let refused = editor.answer(prompt).unwrap_err();
        assert_eq!(refused["code"], 4012, "v{version}");
        let words = refused["message"].as_str().unwrap();
        assert!(words.contains("at work on your last message"), "{words}");
    }
}

#[test]
fn it_waits_behind_a_prompt_of_its_own_that_is_being_canceled() {
    for version in [1, 2] {
        let home = Home::new();
        let script = r#"{"runs": [[{"tool": {"name": "build", "ms": 500}}], [{"say": "over"}]]}"#;
        let mut editor =
            Editor::greeted(&home, script, &[], &json!({ "protocolVersion": version }));
        let session = editor.new_session();
        let first = editor.prompt(&session, "one");
        editor.call_is("in_progress");
        editor.notify("session/cancel", json!({ "sessionId": session }));
        let second = editor.prompt(&session, "two");
        if version == 1 {
            // In this order: what comes earlier is passed over, and not found afterwards.
            assert_eq!(editor.answer(first).unwrap()["stopReason"], "cancelled");
            until_said(&mut editor, "over");
            assert_eq!(editor.answer(second).unwrap()["stopReason"], "end_turn");
        } else {
            editor.until("cancelled", |message| {
                message["params"]["update"]["stopReason"] == "cancelled"
            });
            assert!(editor.answer(second).unwrap()["messageId"].is_string());
            until_said(&mut editor, "over");
        }
    }
}

#[test]
fn it_never_answers_a_question_that_was_asked_after_it() {
    for version in [1, 2] {
        let home = Home::new();
        let does =
            r#"{"tool": {"name": "build", "ms": 500}}, {"ask": {"question": "which table?"}}"#;
        let (mut editor, session) = runs_by_itself(&home, version, does);
        editor.call_is("in_progress");
        let prompt = editor.prompt(&session, "two");
        let refused = editor.answer(prompt).unwrap_err();
        assert_eq!(
            (&refused["code"], &refused["data"]["reason"]),
            (&json!(4012), &json!("TASK_BUSY"))
        );
        for words in [&refused["message"], &refused["data"]["details"]] {
            assert!(words.as_str().unwrap().contains("which table?"), "{refused}");
        }
        assert!(
            editor.heard().any(|message| {
                message["params"]["update"].to_string().contains("which table?")
            })
        );
        // The next one was written with the question in sight.
        editor.prompt(&session, "raw");
        until_said(&mut editor, "the first is over");
        let words = said(&home, &session);
        assert!(words.contains("raw") && !words.contains("two"), "{words}");
    }
}

#[test]
fn a_cancel_takes_it_back_and_ends_the_run_that_is_shown() {
    for version in [1, 2] {
        let home = Home::new();
        let (mut editor, session) = runs_by_itself(&home, version, BUILDS);
        editor.call_is("in_progress");
        let prompt = editor.prompt(&session, "two");
        // It is heard before the cancel.
        editor.call("session/status", json!({ "sessionId": session })).unwrap();
        editor.notify("session/cancel", json!({ "sessionId": session }));
        match version {
            1 => {
                assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "cancelled");
                // What was shown has ended by then.
                let calls = editor.heard().filter(|message| {
                    message["params"]["update"]["sessionUpdate"] == "tool_call_update"
                });
                let last = calls.last().unwrap();
                assert_ne!(last["params"]["update"]["status"], "in_progress");
            }
            _ => assert_eq!(editor.answer(prompt).unwrap_err()["code"], -32800),
        }
        let status = home.until(&session, "state", "idle");
        assert_eq!(status["outcome"], "canceled");
        assert!(!said(&home, &session).contains("two"));
    }
}

#[test]
fn a_request_that_is_taken_back_leaves_the_run_alone() {
    let home = Home::new();
    let (mut editor, session) = runs_by_itself(&home, 1, BUILDS);
    editor.call_is("in_progress");
    let prompt = editor.prompt(&session, "two");
    editor.call("session/status", json!({ "sessionId": session })).unwrap();
    editor.notify("$/cancel_request", json!({ "requestId": prompt }));
    assert_eq!(editor.answer(prompt).unwrap_err()["code"], -32800);
    until_said(&mut editor, "the first is over");
    let status = home.until(&session, "state", "idle");
    assert_eq!(status["outcome"], "completed");
    assert!(!said(&home, &session).contains("two"));
}

#[test]
fn permissions_that_are_open_are_asked_again() {
    let home = Home::new();
    let does = r#"{"tool": {"name": "deploy", "permission": true}}"#;
    let (mut editor, session) = runs_by_itself(&home, 1, does);
    // Asked outside of a prompt, where some clients never answer.
    let first = editor.asked(ASKS);
    let prompt = editor.prompt(&session, "two");
    let second = editor.asked(ASKS);
    assert_ne!(first["id"], second["id"]);
    assert_eq!(first["params"], second["params"]);
    let allow = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
    editor.reply(&second["id"], allow);
    let taken_back = editor.asked("$/cancel_request");
    assert_eq!(taken_back["params"]["requestId"], first["id"]);
    // As clients answer what is taken back; it does nothing.
    editor.reply(&first["id"], json!({ "outcome": { "outcome": "cancelled" } }));
    editor.call_is("completed");
    until_said(&mut editor, "the second is over");
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
}

#[test]
fn a_pause_that_it_cannot_lift_refuses_it_when_its_turn_comes() {
    let home = Home::new();
    let (mut editor, session) = runs_by_itself(&home, 1, BUILDS);
    editor.call_is("in_progress");
    let mut suspending = home.command(&["suspend", &session, "--reason", "lunch"]).spawn().unwrap();
    home.until(&session, "state", "quiescing");
    let prompt = editor.prompt(&session, "two");
    let refused = editor.answer(prompt).unwrap_err();
    assert_eq!(
        (&refused["code"], &refused["data"]["reason"]),
        (&json!(4008), &json!("TASK_PAUSED"))
    );
    assert_eq!(home.json(&["show", &session])["state"], "suspended");
    assert!(suspending.wait().unwrap().success());
}

#[test]
fn it_waits_behind_a_prompt_of_another_window() {
    let home = Home::new();
    let script = r#"{"runs": [[{"tool": {"name": "build", "ms": 1000}}], [{"say": "over"}]]}"#;
    let (mut first, mut second) = (Editor::v1(&home, script), Editor::v1(&home, script));
    let session = first.new_session();
    let one = first.prompt(&session, "one");
    first.call_is("in_progress");
    let two = second.prompt(&session, "two");
    assert_eq!(first.answer(one).unwrap()["stopReason"], "end_turn");
    assert_eq!(second.answer(two).unwrap()["stopReason"], "end_turn");
    // It was told of the call that ran when it came, and of its end.
    let calls: Vec<_> = second
        .heard()
        .map(|message| &message["params"]["update"])
        .filter(|update| update["toolCallId"].is_string())
        .map(|update| (update["sessionUpdate"].as_str(), update["status"].as_str()))
        .collect();
    let updated = Some("tool_call_update");
    assert_eq!(
        calls,
        [
            (Some("tool_call"), Some("pending")),
            (updated, Some("in_progress")),
            (updated, Some("completed"))
        ]
    );
    let claims: Vec<_> = home
        .jsons(&["log", &session])
        .into_iter()
        .filter(|entry| entry["event"] == "claimed")
        .map(|entry| entry["host"].clone())
        .collect();
    assert_eq!(claims.len(), 2);
    assert_ne!(claims[0], claims[1], "each runs what it took");
}

#[test]
fn a_close_answers_it() {
    let home = Home::new();
    let (mut editor, session) = runs_by_itself(&home, 1, BUILDS);
    editor.call_is("in_progress");
    let prompt = editor.prompt(&session, "two");
    let close = editor.request("session/close", json!({ "sessionId": session }));
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "cancelled");
    editor.answer(close).unwrap();
}

/// Lets all hosts of a store look as if they had given their last sign of life a minute ago.
fn fall_silent(home: &Home) {
    let hosts = std::fs::read_dir(home.path(".local/share/adjourn/store.db.hosts")).unwrap();
    let minute_ago = SystemTime::now() - Duration::from_secs(60);
    for path in hosts.map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "lock") {
            let lock = std::fs::File::options().write(true).open(path).unwrap();
            lock.set_modified(minute_ago).unwrap();
        }
    }
}

#[test]
fn it_is_told_that_the_host_of_the_run_before_it_hangs_and_how_to_get_out() {
    for version in [1, 2] {
        let home = Home::new();
        home.config("[host]\ncancel_grace = \"100ms\"");
        let script = woken(r#"{"tool": {"name": "build", "ms": 600000}}"#);
        let session = home.parked(&script);
        let serving = home.serve();
        home.json(&["event", "go"]);
        home.until_in_flight("build");
        serving.stop();
        fall_silent(&home);
        let greeting = json!({ "protocolVersion": version });
        let mut editor = Editor::greeted(&home, &script, &[], &greeting);
        editor.call("session/resume", json!({ "sessionId": session })).unwrap();
        let prompt = editor.prompt(&session, "two");
        let told = editor.until("told", |message| message.to_string().contains("no sign of life"));
        let words = told["params"]["update"].to_string();
        let process = format!("whose host (process {}) has given", serving.pid());
        let takeover = format!("`adjourn takeover {}`", &session[session.len() - 12..]);
        assert!(words.contains(&process) && words.contains(&takeover), "{words}");
        // It is said once.
        assert_eq!(editor.overheard(), Vec::<serde_json::Value>::new());
        editor.notify("session/cancel", json!({ "sessionId": session }));
        match editor.answer(prompt) {
            Ok(answer) => assert_eq!((version, &answer["stopReason"]), (1, &json!("cancelled"))),
            Err(error) => assert_eq!((version, &error["code"]), (2, &json!(-32800))),
        }
        serving.go_on();
    }
}
