//! Sessions outlive the editors that began them.

use std::sync::Barrier;

use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

const PARKS: &str = r#"{"runs": [[
  {"say": "one"},
  {"await": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}},
  {"say": "two"}
], [{"say": "three"}]]}"#;

/// Every kind of call, in every place a suspend can find it.
const CALLS: &str = r#"{"runs": [[
  {"say": "one"},
  {"sequence": [{"name": "first", "ms": 600}, {"name": "second", "ms": 100}]},
  {"say": "two"}
]]}"#;

fn texts(editor: &Editor) -> Vec<String> {
    let updates = editor.heard().map(|message| &message["params"]["update"]);
    let words = updates.filter_map(|update| match update["sessionUpdate"].as_str()? {
        "agent_message_chunk" => Some(&update["content"]["text"]),
        "agent_message" => Some(&update["content"][0]["text"]),
        _ => None,
    });
    // Blank lines keep messages apart, and are none.
    let words = words.filter_map(Value::as_str).filter(|text| !text.trim().is_empty());
    words.map(str::to_owned).collect()
}

fn statuses(editor: &Editor) -> Vec<String> {
    let updates = editor.heard().map(|message| &message["params"]["update"]);
    let calls = updates.filter(|update| update["toolCallId"].is_string());
    calls
        .map(|call| {
            format!("{} {}", call["title"].as_str().unwrap_or(""), call["status"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn each_mode_in_the_middle_of_a_call() {
    for (mode, stop, before, after) in [
        ("finish_step", "end_turn", vec!["one"], vec!["one", "two"]),
        ("interrupt_immediate", "cancelled", vec!["one"], vec!["one", "two"]),
        ("wait_for_completion", "end_turn", vec!["one", "two"], vec!["one", "two"]),
    ] {
        let home = Home::new();
        let mut editor = Editor::v1(&home, CALLS);
        let session = editor.new_session();
        let prompt = editor.prompt(&session, "go");
        editor.call_is("in_progress");
        let suspend = json!({ "sessionId": session, "mode": mode });
        let suspend = editor.request("session/suspend", suspend);
        assert_eq!(editor.answer(prompt).unwrap()["stopReason"], stop, "{mode}");
        let handle = editor.answer(suspend).unwrap()["handle"].clone();
        assert_eq!(texts(&editor), before, "{mode}");
        let second_ran = statuses(&editor).iter().filter(|status| *status == " completed").count();
        // What the step asked for belongs to the step, unless it is interrupted.
        assert_eq!(second_ran, if mode == "interrupt_immediate" { 1 } else { 2 }, "{mode}");
        assert_eq!(editor.overheard(), Vec::<Value>::new(), "{mode}");
        let resume = json!({ "sessionId": session, "handle": handle });
        editor.call("session/resume", resume).unwrap();
        editor.until("idle", |message| {
            message["params"]["update"]["_meta"]["adjourn/suspend"]["state"] == "idle"
        });
        assert_eq!(texts(&editor), after, "{mode}");
        let completed = statuses(&editor).iter().filter(|status| *status == " completed").count();
        assert_eq!(completed, 2, "{mode}: a deferred call runs when it goes on");
    }
}

#[test]
fn a_killed_editor_loses_nothing_and_wakes_nothing() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    let answer = editor.answer(prompt).unwrap();
    let handle = answer["_meta"]["adjourn/suspend"]["handle"].as_str().unwrap().to_owned();
    editor.kill();

    let mut editor = Editor::v1(&home, PARKS);
    let status = editor.call("session/status", json!({ "sessionId": session })).unwrap();
    assert_eq!(status["status"], "not_found", "nobody has it yet");
    assert_eq!(status["_meta"]["adjourn/suspend"]["state"], "suspended");
    // A reopened tab resumes its session; that must not wake an agent that waits for its build.
    let attach = json!({ "sessionId": session, "cwd": "/tmp" });
    let attached = editor.call("session/resume", attach).unwrap();
    assert_eq!(attached["_meta"]["adjourn/suspend"]["handle"], handle.as_str());
    let status = editor.call("session/status", json!({ "sessionId": session })).unwrap();
    assert_eq!(status["status"], "live");
    editor.overheard();
    assert_eq!(texts(&editor), Vec::<String>::new());
    assert_eq!(home.json(&["show", &session])["state"], "suspended");
    let wake = json!({ "sessionId": session, "handle": handle });
    editor.call("session/resume", wake).unwrap();
    editor.until("idle", |message| {
        message["params"]["update"]["_meta"]["adjourn/suspend"]["state"] == "idle"
    });
    assert_eq!(texts(&editor), ["two"]);

    let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
    editor.call("session/load", load).unwrap();
    assert_eq!(texts(&editor), ["two", "one", "two"], "no gap, no duplicate");
    let prompt = editor.prompt(&session, "and?");
    editor.answer(prompt).unwrap();
    assert_eq!(texts(&editor), ["two", "one", "two", "three"]);
}

#[test]
fn an_editor_that_is_killed_while_the_agent_works_finds_it_again() {
    let script = r#"{"steps": [
      {"say": "one"}, {"tool": {"name": "build", "ms": 60000}}, {"say": "two"}
    ]}"#;
    let home = Home::new();
    let mut editor = Editor::v1(&home, script);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    editor.kill();

    let mut editor = Editor::v1(&home, script);
    let parked = home.until(&session, "state", "suspended");
    assert_eq!(parked["reason"], "host_interrupted");
    let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
    let loaded = editor.call("session/load", load).unwrap();
    assert_eq!(loaded["_meta"]["adjourn/suspend"]["unknownCalls"][0], "build");
    assert_eq!(texts(&editor), ["one"]);
    let unknown = editor.heard().any(|message| message.to_string().contains("outcome is unknown"));
    assert!(unknown, "{}", editor.dialog());
    let shown = editor.heard().map(|message| &message["params"]["update"]);
    let shown = shown.filter(|update| update["title"] == "its host stopped").last().unwrap();
    let words = shown["content"][0]["content"]["text"].as_str().unwrap();
    assert!(words.contains("did their work is unknown: build."), "{words}");
    assert!(!words.contains("host_interrupted"), "{words}");
    let wake = json!({ "sessionId": session, "continueTranscript": true });
    editor.call("session/resume", wake).unwrap();
    editor.until("idle", |message| {
        message["params"]["update"]["_meta"]["adjourn/suspend"]["state"] == "idle"
    });
    assert_eq!(texts(&editor), ["one", "two"], "the call is not run again");
}

#[test]
fn two_editors_resume_at_once_and_one_of_them_does() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    let answer = editor.answer(prompt).unwrap();
    let handle = answer["_meta"]["adjourn/suspend"]["handle"].clone();
    let mut editors = [editor, Editor::v1(&home, PARKS)];
    let start = Barrier::new(editors.len());
    let answers: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = editors
            .iter_mut()
            .map(|editor| {
                let resume = json!({ "sessionId": session, "handle": handle });
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    editor.call("session/resume", resume)
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let won: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    let lost: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    assert_eq!((won.len(), lost.len()), (1, 1), "{answers:?}");
    assert_eq!(lost[0]["code"], 4003);
    let first = &won[0]["_meta"]["adjourn/suspend"];
    assert_eq!(lost[0]["data"]["at"], first["resumedAt"], "it is told the first outcome");
    assert_eq!(lost[0]["data"]["cause"], "explicit_resume");
}

#[test]
fn what_a_person_does_at_a_terminal_is_seen_in_the_editor() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    home.told(&["suspend", &session, "--reason", "lunch"]);
    assert_eq!(editor.update("tool_call")["title"], "lunch");
    let refused = editor.prompt(&session, "go on");
    let refused = editor.answer(refused).unwrap_err();
    assert_eq!((&refused["code"], &refused["data"]["by"]), (&json!(4008), &json!("cli:ann")));
    home.told(&["event", "ci.passed"]);
    assert_eq!(editor.overheard(), Vec::<Value>::new(), "it fires under the hold");
    home.told(&["resume", &session, "--detach"]);
    editor.until("two", |message| message.to_string().contains("two"));

    // Several editors see one session, and each hears the other's prompts.
    let mut second = Editor::v1(&home, PARKS);
    second.call("session/resume", json!({ "sessionId": session })).unwrap();
    let prompt = editor.prompt(&session, "and?");
    editor.answer(prompt).unwrap();
    let other = second.update("user_message_chunk");
    assert_eq!(other["content"]["text"], "and?");
    second.until("three", |message| message.to_string().contains("three"));
    let own = editor.heard().any(|message| message.to_string().contains("user_message_chunk"));
    assert!(!own, "whoever said it knows");
}

#[test]
fn an_editor_that_goes_away_leaves_as_it_was_told() {
    let script = r#"{"steps": [{"tool": {"name": "build", "ms": 300}}, {"say": "two"}]}"#;
    for (how, state, outcome) in [
        ("continue", "ready", Value::Null),
        ("suspend", "suspended", Value::Null),
        ("cancel", "idle", json!("canceled")),
    ] {
        let home = Home::new();
        let arguments = ["--on-disconnect", how];
        let greeting = json!({ "protocolVersion": 1 });
        let mut editor = Editor::greeted(&home, script, &arguments, &greeting);
        let session = editor.new_session();
        editor.prompt(&session, "go");
        editor.call_is("in_progress");
        assert_eq!(editor.close(), 0, "{how}");
        let status = home.json(&["show", &session]);
        assert_eq!((&status["state"], &status["outcome"]), (&json!(state), &outcome), "{how}");
        let log = home.told(&["log", &session]).data;
        assert_eq!(log.matches("calls_returned").count(), 1, "{how}: the call came back first");
    }
}

#[test]
fn many_sessions_run_on_one_connection() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, CALLS);
    let sessions: Vec<_> = (0..8).map(|_| editor.new_session()).collect();
    let prompts: Vec<_> = sessions.iter().map(|session| editor.prompt(session, "go")).collect();
    let start = std::time::Instant::now();
    let mut answered = 0;
    while answered < prompts.len() {
        let answer = editor.until("an answer", |message| message.get("method").is_none());
        assert!(prompts.iter().any(|prompt| answer["id"] == *prompt));
        assert_eq!(answer["result"]["stopReason"], "end_turn");
        answered += 1;
    }
    assert!(start.elapsed().as_secs() < 5, "one after the other would take longer");
    assert_eq!(texts(&editor).iter().filter(|text| *text == "two").count(), 8);
}
