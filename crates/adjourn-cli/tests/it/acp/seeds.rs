//! What the proposals name and the other conversations do not have, message by message: every mode,
//! condition, cause and refusal, holds, and suspensions that end without a resume.
//!
//! The assertions are the proposal's; the files hold the rest, as in `dialogs.rs`.

use expect_test::{ExpectFile, expect_file};
use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

/// Waits for each kind of wake in turn.
const WAITS: &str = r#"{"runs": [
  [{"await": {"reason": "waiting on ci", "conditions": {"trigger": {"exact": {"name": "ci.passed", "subject": "main"}}}}},
   {"say": "passed"}],
  [{"await": {"reason": "waiting on nobody", "conditions": {
     "timeout": {"durationMinutes": 0.02, "onTimeout": "resume_with_input", "input": {"late": true}}}}},
   {"say": "late"}],
  [{"await": {"reason": "waiting to be called", "summary": "call me"}},
   {"say": "called"}]
]}"#;

const PARKS: &str = r#"{"runs": [[
  {"await": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}},
  {"say": "done"}
]]}"#;

/// One call that takes a while, and one behind it.
const TWO_CALLS: &str = r#"{"steps": [
  {"sequence": [{"name": "first", "ms": 500}, {"name": "second"}]},
  {"say": "built"}
]}"#;

/// Introduces an editor that knows the proposal.
fn knows_proposal(version: u64) -> Value {
    let named = json!({ "name": "editor", "version": "1.0" });
    let knows = json!({ "supportsSuspend": true });
    match version {
        1 => json!({ "protocolVersion": 1, "clientCapabilities": knows, "clientInfo": named }),
        _ => json!({ "protocolVersion": 2, "capabilities": knows, "info": named }),
    }
}

/// Plays a conversation in both versions, and compares each with its file.
fn in_both(script: &str, files: [ExpectFile; 2], play: impl Fn(&Home, &mut Editor, &str)) {
    for (version, file) in [1, 2].into_iter().zip(files) {
        let home = Home::new();
        let mut editor = Editor::greeted(&home, script, &[], &knows_proposal(version));
        let session = editor.new_session();
        play(&home, &mut editor, &session);
        editor.overheard();
        file.assert_eq(&editor.dialog());
        assert_eq!(editor.close(), 0);
    }
}

/// Lets the agent park itself, and takes note of it.
fn lets_it_park(editor: &mut Editor, session: &str) -> Value {
    editor.prompt(session, "go");
    let suspended = editor.update("suspended");
    assert_eq!(suspended["initiator"], "agent");
    let asked = editor.asked("session/await_resumption");
    let taken = json!({ "handle": suspended["handle"], "suspendedAt": "2026-11-15T10:00:00.000Z" });
    editor.reply(&asked["id"], taken);
    assert_eq!(asked["params"]["conditions"], suspended["resumeWhen"]);
    suspended["handle"].clone()
}

fn words(editor: &mut Editor, words: &str) {
    let quoted = json!(words).to_string();
    editor.until(words, |message| message["params"]["update"].to_string().contains(&quoted));
}

#[test]
fn every_cause_of_a_wake() {
    let files = [expect_file!["golden/v1-causes.jsonl"], expect_file!["golden/v2-causes.jsonl"]];
    in_both(WAITS, files, |home, editor, session| {
        let events: [&[&str]; 3] =
            [&["event", "ci.passed:main"], &[], &["event", "anything", "--session", session]];
        let expected = [("condition_fired", false), ("timeout", true), ("external_event", false)];
        for ((event, (cause, fed)), said) in
            events.into_iter().zip(expected).zip(["passed", "late", "called"])
        {
            let handle = lets_it_park(editor, session);
            if !event.is_empty() {
                home.told(event);
            }
            let resumed = editor.update("resumed");
            assert_eq!(resumed["handle"], handle);
            assert_eq!(
                (&resumed["cause"], &resumed["hadResumeInput"]),
                (&json!(cause), &json!(fed))
            );
            words(editor, said);
            editor.overheard();
        }
    });
}

#[test]
fn a_suspend_that_interrupts_and_one_that_waits() {
    let files = [expect_file!["golden/v1-modes.jsonl"], expect_file!["golden/v2-modes.jsonl"]];
    in_both(TWO_CALLS, files, |_, editor, session| {
        editor.prompt(session, "go");
        editor.call_is("in_progress");
        let suspend = json!({
            "sessionId": session, "mode": "interrupt_immediate", "reason": "stop",
        });
        let suspended = editor.call("session/suspend", suspend).unwrap();
        assert_eq!(suspended["reason"], "stop");
        editor.overheard();
        let told = editor.heard().map(Value::to_string);
        assert_eq!(told.filter(|line| line.contains("in_progress")).count(), 1, "one call ran");
        let handle = &suspended["handle"];
        editor.call("session/resume", json!({ "sessionId": session, "handle": handle })).unwrap();
        words(editor, "built");
        editor.overheard();

        editor.prompt(session, "once more");
        editor.call_is("in_progress");
        let conditions = json!({
            "trigger": { "any": [{ "prefix": { "name": "review." } }, { "at": "2126-01-01T00:00:00Z" }] },
            "timeout": {
                "durationMinutes": 60, "onTimeout": "resume_with_input", "input": "nobody came",
            },
        });
        let suspend = json!({
            "sessionId": session, "mode": "wait_for_completion", "resumeWhen": conditions,
        });
        let suspended = editor.call("session/suspend", suspend).unwrap();
        assert_eq!(suspended["resumeWhen"], conditions, "what is honoured is echoed");
        let told: Vec<_> = editor.heard().map(Value::to_string).collect();
        assert_eq!(told.iter().filter(|line| line.contains("\"built\"")).count(), 2, "it was over");
        let handle = &suspended["handle"];
        editor.call("session/resume", json!({ "sessionId": session, "handle": handle })).unwrap();
    });
}

#[test]
fn a_hold_over_the_agents_own_wait() {
    let files = [expect_file!["golden/v1-hold.jsonl"], expect_file!["golden/v2-hold.jsonl"]];
    in_both(PARKS, files, |home, editor, session| {
        let agents = lets_it_park(editor, session);
        let suspend = |conditions: Value| json!({ "sessionId": session, "reason": "review", "resumeWhen": conditions });
        let held = editor.call("session/suspend", suspend(json!({ "onEvent": "ok" }))).unwrap();
        assert_ne!(held["handle"], agents, "it has a handle of its own");
        let other = editor.call("session/suspend", suspend(json!({ "onEvent": "no" })));
        assert_eq!(other.unwrap_err()["code"], 4011);
        let resume = |handle: &Value| json!({ "sessionId": session, "handle": handle });
        let under = editor.call("session/resume", resume(&agents));
        assert_eq!(under.unwrap_err()["code"], 4008);
        let unknown = editor.call("session/resume", resume(&json!("suspend-nobody")));
        assert_eq!(unknown.unwrap_err()["code"], 4002);
        // What the agent waits for happens, and acts when the hold is lifted.
        home.told(&["event", "ci.passed"]);
        assert_eq!(editor.overheard(), Vec::<Value>::new());
        editor.call("session/resume", resume(&held["handle"])).unwrap();
        assert_eq!(editor.update("resumed")["handle"], held["handle"]);
        let resumed = editor.update("resumed");
        assert_eq!((&resumed["handle"], &resumed["cause"]), (&agents, &json!("condition_fired")));
        words(editor, "done");
    });
}

#[test]
fn a_wait_that_is_canceled_and_a_session_that_is_over() {
    let files = [expect_file!["golden/v1-ended.jsonl"], expect_file!["golden/v2-ended.jsonl"]];
    in_both(PARKS, files, |home, editor, session| {
        lets_it_park(editor, session);
        editor.notify("session/cancel", json!({ "sessionId": session }));
        let news = editor.update("session_info_update");
        assert_eq!(news["_meta"]["adjourn/suspend"]["outcome"], "canceled");
        assert!(!editor.heard().any(|message| message.to_string().contains("\"resumed\"")));
        editor.overheard();

        home.told(&["suspend", session, "--reason", "night"]);
        editor.update("suspended");
        let prompt = editor.prompt(session, "go on");
        assert_eq!(editor.answer(prompt).unwrap_err()["code"], 4008, "it was made elsewhere");
        home.told(&["close", session]);
        editor.update("session_info_update");
        editor.overheard();
        let prompt = editor.prompt(session, "still there?");
        assert_eq!(editor.answer(prompt).unwrap_err()["code"], 4010);
        let suspend = editor.call("session/suspend", json!({ "sessionId": session }));
        assert_eq!(suspend.unwrap_err()["code"], 4010);
    });
}

/// A client that shows notices, and one that attaches without a replay.
#[test]
fn a_notice_and_an_attach_that_replays_nothing() {
    for (version, file) in
        [(1, expect_file!["golden/v1-notice.jsonl"]), (2, expect_file!["golden/v2-attach.jsonl"])]
    {
        let named = json!({ "name": "editor", "version": "1.0" });
        let greeting = match version {
            1 => json!({
                "protocolVersion": 1, "clientInfo": named,
                "clientCapabilities": { "session": { "notices": {} } },
            }),
            _ => json!({ "protocolVersion": 2, "capabilities": {}, "info": named }),
        };
        let home = Home::new();
        let mut first = Editor::v1(&home, PARKS);
        let session = first.new_session();
        let prompt = first.prompt(&session, "go");
        first.answer(prompt).unwrap();
        assert_eq!(first.close(), 0);

        let mut editor = Editor::greeted(&home, PARKS, &[], &greeting);
        let attach = json!({ "sessionId": session, "cwd": "/tmp", "replayFrom": null });
        editor.call("session/resume", attach).unwrap();
        assert_eq!(home.json(&["show", &session])["state"], "suspended", "it does not wake");
        editor.call("session/resume", json!({ "sessionId": session })).unwrap();
        words(&mut editor, "done");
        editor.overheard();
        home.told(&["suspend", &session, "--reason", "night"]);
        editor.until("night", |message| message["params"]["update"].to_string().contains("night"));
        editor.overheard();
        file.assert_eq(&editor.dialog());
    }
}
