//! What one commit does is told as a whole: nobody is told a state that never was, and nobody who
//! comes back misses a part of it.

use serde_json::{Value, json};

use super::editor::{Editor, is_title};
use crate::home::Home;

const PARKS: &str = r#"{"runs": [[
  {"await": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}},
  {"say": "done"}
]]}"#;

/// Gives up after a third of a second.
const FAILS: &str = r#"{"runs": [[
  {"await": {"reason": "waiting on ci",
             "conditions": {"timeout": {"durationMinutes": 0.005, "onTimeout": "fail"}}}}
]]}"#;

const BUILDS: &str = r#"{"runs": [
  [{"tool": {"name": "build", "ms": 300}}, {"say": "built"}],
  [{"say": "again"}]
]}"#;

/// Asks after a call that takes a while.
const ASKS: &str = r#"{"runs": [[
  {"tool": {"name": "look", "ms": 300}},
  {"ask": {"question": "which?", "choices": ["a", "b"]}},
  {"say": "done"}
]]}"#;

/// What a client says that knows the extension, or nothing.
fn greeting(version: u64, opted_in: bool) -> Value {
    let meta = match opted_in {
        true => json!({ "_meta": { "adjourn/suspend": {} } }),
        false => json!({}),
    };
    json!({ "protocolVersion": version, "clientCapabilities": meta, "capabilities": meta })
}

/// A message in few words.
fn brief(message: &Value) -> String {
    let update = &message["params"]["update"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let status = &update["_meta"]["adjourn/suspend"];
    let words = match update["sessionUpdate"].as_str() {
        None => "answer".to_owned(),
        Some("session_info_update") => {
            format!("info {} {}", word(&status["state"]), word(&status["outcome"]))
        }
        Some("state_update") => {
            format!("state {} {}", word(&update["state"]), word(&update["stopReason"]))
        }
        Some("tool_call_update") => format!("call {}", word(&update["status"])),
        Some("user_message" | "user_message_chunk") => "user".to_owned(),
        Some("agent_message" | "agent_message_chunk") => "agent".to_owned(),
        Some(kind) => kind.to_owned(),
    };
    words.trim_end().to_owned()
}

/// Returns the updates and answers after the first `count` messages; what the agent asks and takes
/// back, and what the session is called, is another matter.
fn heard_after(editor: &Editor, count: usize) -> Vec<String> {
    let ours =
        |message: &&Value| message["method"].is_null() || message["method"] == "session/update";
    let ours = editor.heard().skip(count).filter(ours);
    ours.filter(|message| !is_title(&message["params"]["update"])).map(brief).collect()
}

/// Starts a session, and waits until it is parked and everybody knows.
fn parked(home: &Home, script: &str, greeting: &Value) -> (Editor, String) {
    let mut editor = Editor::greeted(home, script, &[], greeting);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.until("at rest", |message| {
        let places = [&message["params"]["update"], &message["result"]];
        places.iter().any(|at| at["_meta"]["adjourn/suspend"]["state"] == "suspended")
    });
    (editor, session)
}

#[test]
fn a_wait_that_ends_without_a_resume_never_ran() {
    for (version, opted_in, expected) in [
        (1, false, vec!["call failed"]),
        (1, true, vec!["call failed", "info idle canceled"]),
        (2, false, vec!["call cancelled", "state idle cancelled"]),
        (2, true, vec!["call cancelled", "info idle canceled", "state idle cancelled"]),
    ] {
        let home = Home::new();
        let (mut editor, session) = parked(&home, PARKS, &greeting(version, opted_in));
        editor.overheard();
        let before = editor.heard().count();
        editor.notify("session/cancel", json!({ "sessionId": session }));
        editor.update("tool_call_update");
        editor.overheard();
        assert_eq!(heard_after(&editor, before), expected, "{}", editor.dialog());

        // Whoever opted in is told the past in the same words.
        let mut later = Editor::greeted(&home, PARKS, &[], &greeting(version, opted_in));
        let replay = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
        later.call("session/resume", replay).unwrap();
        let told = heard_after(&later, 0);
        let infos = told.iter().filter(|words| words.starts_with("info idle")).count();
        assert_eq!(infos, usize::from(opted_in), "{}", later.dialog());
        assert!(!told.iter().any(|words| words.contains("ready")), "{}", later.dialog());
    }
}

#[test]
fn a_wait_that_fails_never_ran() {
    for (version, expected) in [
        (1, vec!["call failed", "info idle failed"]),
        (2, vec!["call cancelled", "info idle failed", "state idle error"]),
    ] {
        let home = Home::new();
        let (mut editor, _) = parked(&home, FAILS, &greeting(version, true));
        editor.until("failed", |message| message.to_string().contains("timed out"));
        editor.overheard();
        let told = heard_after(&editor, 0);
        let last = &told[told.len() - expected.len()..];
        assert_eq!(last, expected, "{}", editor.dialog());
        assert!(!told.iter().any(|words| words.contains("ready")), "{}", editor.dialog());
    }
}

#[test]
fn a_session_that_is_closed_while_it_waits_is_over_at_once() {
    let home = Home::new();
    let (mut editor, session) = parked(&home, PARKS, &greeting(2, true));
    editor.overheard();
    let before = editor.heard().count();
    home.told(&["close", &session]);
    editor.update("session_info_update");
    editor.overheard();
    let expected = ["call cancelled", "info ended canceled", "state idle cancelled"];
    assert_eq!(heard_after(&editor, before), expected, "{}", editor.dialog());
}

#[test]
fn a_run_that_was_over_before_its_resume_does_not_run_again() {
    for (version, expected) in [
        (1, vec!["call completed", "answer", "info idle completed"]),
        (2, vec!["state idle end_turn", "answer", "info idle completed"]),
    ] {
        let home = Home::new();
        let mut editor = Editor::greeted(&home, BUILDS, &[], &greeting(version, true));
        let session = editor.new_session();
        editor.prompt(&session, "go");
        editor.call_is("in_progress");
        let suspend = json!({ "sessionId": session, "mode": "wait_for_completion" });
        editor.call("_session/suspend", suspend).unwrap();
        editor.overheard();
        let before = editor.heard().count();
        editor.call("session/resume", json!({ "sessionId": session })).unwrap();
        editor.overheard();
        assert_eq!(heard_after(&editor, before), expected, "{}", editor.dialog());
    }
}

#[test]
fn an_idle_session_that_is_fed_goes_straight_to_work() {
    for (version, expected) in [
        (1, vec!["call completed", "answer", "info ready", "user", "agent", "info idle completed"]),
        (2, vec!["state running", "answer", "info ready", "user", "agent", "state idle end_turn"]),
    ] {
        let home = Home::new();
        let mut editor = Editor::greeted(&home, r#"{"steps": [{"say": "x"}]}"#, &[], &{
            greeting(version, true)
        });
        let session = editor.new_session();
        editor.call("_session/suspend", json!({ "sessionId": session })).unwrap();
        editor.overheard();
        let before = editor.heard().count();
        let fed = json!({ "adjourn/suspend": { "input": "go on" } });
        editor.call("session/resume", json!({ "sessionId": session, "_meta": fed })).unwrap();
        editor.until("the end", |message| brief(message).contains(" idle"));
        editor.overheard();
        assert_eq!(heard_after(&editor, before), expected, "{}", editor.dialog());
    }
}

#[test]
fn a_question_under_a_hold_is_shown_once_when_the_hold_is_lifted() {
    for version in [1, 2] {
        let home = Home::new();
        let mut first = Editor::greeted(&home, ASKS, &[], &greeting(version, true));
        let session = first.new_session();
        first.prompt(&session, "go");
        first.call_is("in_progress");
        let suspend = json!({ "sessionId": session, "mode": "wait_for_completion" });
        let held = first.call("_session/suspend", suspend).unwrap();
        let replay = json!({ "sessionId": session, "replayFrom": { "type": "start" } });

        let mut second = Editor::greeted(&home, ASKS, &[], &greeting(version, true));
        second.call("session/resume", replay.clone()).unwrap();
        assert_eq!(questions(&second), 0, "{}", second.dialog());
        let lift = json!({ "adjourn/suspend": { "handle": held["handle"] } });
        first.call("session/resume", json!({ "sessionId": session, "_meta": lift })).unwrap();
        for editor in [&mut first, &mut second] {
            editor.until("asked", |message| message["params"]["update"]["messageId"].is_string());
            editor.overheard();
            assert_eq!(questions(editor), 1, "{}", editor.dialog());
        }

        // In the past it stands where it was shown: after the hold.
        let mut third = Editor::greeted(&home, ASKS, &[], &greeting(version, true));
        third.call("session/resume", replay).unwrap();
        assert_eq!(questions(&third), 1, "{}", third.dialog());
        let prompt = third.prompt(&session, "b");
        third.answer(prompt).unwrap();
        for editor in [&mut second, &mut third] {
            let heard: Vec<_> = editor.heard().map(Value::to_string).collect();
            let place = |words: &str| heard.iter().position(|message| message.contains(words));
            let lifted = place("\"phase\":\"asking\"");
            assert!(lifted.is_some() && place("question-") > lifted, "{}", editor.dialog());
        }
    }
}

#[test]
fn a_question_under_a_hold_that_is_canceled_was_never_asked() {
    let home = Home::new();
    let mut editor = Editor::greeted(&home, ASKS, &[], &greeting(1, false));
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    let suspend = json!({ "sessionId": session, "mode": "wait_for_completion" });
    editor.call("session/suspend", suspend).unwrap();
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.update("session_info_update");
    let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
    editor.call("session/load", load).unwrap();
    assert_eq!(questions(&editor), 0, "{}", editor.dialog());
}

/// Returns how often a question was shown.
fn questions(editor: &Editor) -> usize {
    let ids = editor.heard().map(|message| &message["params"]["update"]["messageId"]);
    ids.filter(|id| id.as_str().is_some_and(|id| id.starts_with("question-"))).count()
}

#[test]
fn whoever_comes_back_with_the_last_seq_misses_nothing() {
    for version in [1, 2] {
        let home = Home::new();
        let (mut editor, session) = parked(&home, PARKS, &greeting(version, true));
        editor.overheard();
        let resume = json!({ "sessionId": session, "input": "my words" });
        let answer = editor.call("session/resume", resume).unwrap();
        let before = editor.heard().count();
        editor.until("done", |message| message.to_string().contains("\"done\""));
        editor.overheard();

        // The answer, and every update: what was told after it is told again.
        let mut places = vec![(before, answer["_meta"]["adjourn/suspend"]["seq"].as_u64())];
        for (index, message) in editor.heard().enumerate().skip(before) {
            let seq = &message["params"]["update"]["_meta"]["adjourn/suspend"]["seq"];
            places.extend(seq.as_u64().map(|seq| (index + 1, Some(seq))));
        }
        assert!(places.len() > 1 || version == 2, "{}", editor.dialog());
        for (after, seq) in places {
            let mut later = Editor::greeted(&home, PARKS, &[], &greeting(version, true));
            let from = json!({ "type": "_adjourn_from", "seq": seq.unwrap() + 1 });
            later
                .call("session/resume", json!({ "sessionId": session, "replayFrom": from }))
                .unwrap();
            let missed = messages(&editor, after);
            let replayed = messages(&later, 0);
            assert!(replayed.ends_with(&missed), "{seq:?}: {missed:?}\n{}", later.dialog());
        }
        // The words that the resume brought come after its answer.
        let mut later = Editor::greeted(&home, PARKS, &[], &greeting(version, true));
        let seq = answer["_meta"]["adjourn/suspend"]["seq"].as_u64().unwrap() + 1;
        let from = json!({ "type": "_adjourn_from", "seq": seq });
        later.call("session/resume", json!({ "sessionId": session, "replayFrom": from })).unwrap();
        let heard: Vec<_> = later.heard().map(Value::to_string).collect();
        assert!(heard.iter().any(|line| line.contains("my words")), "{}", later.dialog());
        assert!(heard.iter().any(|line| line.contains("explicit_resume")), "{}", later.dialog());
    }
}

/// Killed while it is parked, and back when it is over: nothing that began stays open, and nothing
/// that was not told is missing.
#[test]
fn whoever_was_told_of_a_wait_and_comes_back_is_told_of_its_end() {
    let home = Home::new();
    let (mut editor, session) = parked(&home, PARKS, &greeting(2, true));
    let told = editor.overheard();
    let wait = "tool_call_update";
    let paused = |message: &&Value| message["params"]["update"]["status"] == "paused";
    let paused = editor.heard().find(paused).unwrap()["params"]["update"].clone();
    assert_eq!(paused["sessionUpdate"], wait, "{told:?}");
    let seq =
        |message: &Value| message["params"]["update"]["_meta"]["adjourn/suspend"]["seq"].as_u64();
    let seq = editor.heard().filter_map(seq).max().unwrap();
    editor.kill();
    assert_eq!(home.told(&["event", "ci.passed"]).code, 0);
    let serving = home.serve();
    home.until(&session, "state", "idle");
    for from in [seq, seq + 1] {
        let mut later = Editor::greeted(&home, PARKS, &[], &greeting(2, true));
        let from = json!({ "type": "_adjourn_from", "seq": from });
        later.call("session/resume", json!({ "sessionId": session, "replayFrom": from })).unwrap();
        let over = later.heard().filter(|message| {
            let update = &message["params"]["update"];
            update["toolCallId"] == paused["toolCallId"] && update["status"] == "completed"
        });
        assert_eq!(over.count(), 1, "{}", later.dialog());
    }
    assert_eq!(serving.terminate(), 0);
}

/// An answer or a state that comes before `suspended` does not count it as told.
#[test]
fn whoever_has_not_heard_that_it_is_suspended_is_told_when_it_comes_back() {
    for version in [1, 2] {
        let home = Home::new();
        let capabilities = json!({ "supportsSuspend": true });
        let greeting = json!({ "protocolVersion": version, "clientCapabilities": capabilities,
                               "capabilities": capabilities });
        let is_suspended =
            |message: &Value| message["params"]["update"]["sessionUpdate"] == "suspended";
        let mut editor = Editor::greeted(&home, PARKS, &[], &greeting);
        let session = editor.new_session();
        editor.prompt(&session, "go");
        editor.until("suspended", is_suspended);
        let before = editor.heard().take_while(|message| !is_suspended(message));
        let told = |message: &Value| {
            let places = [&message["params"]["update"], &message["result"]];
            places.into_iter().find_map(|at| at["_meta"]["adjourn/suspend"]["seq"].as_u64())
        };
        let seq = before.filter_map(told).max().unwrap();
        let mut later = Editor::greeted(&home, PARKS, &[], &greeting);
        let from = json!({ "type": "_adjourn_from", "seq": seq + 1 });
        later.call("session/resume", json!({ "sessionId": session, "replayFrom": from })).unwrap();
        assert!(later.heard().any(is_suspended), "{version}: {}", later.dialog());
    }
}

/// Returns the messages of the conversation after the first `count` lines.
fn messages(editor: &Editor, count: usize) -> Vec<String> {
    let updates = editor.heard().skip(count).map(|message| &message["params"]["update"]);
    let said = updates.filter(|update| update["messageId"].is_string());
    said.map(|update| format!("{} {}", update["messageId"], update["content"])).collect()
}

#[test]
fn a_replay_tells_a_wake_in_the_order_in_which_it_happened() {
    let home = Home::new();
    let (mut editor, session) = parked(&home, PARKS, &greeting(2, true));
    editor.overheard();
    let before = editor.heard().count();
    let input = json!({ "adjourn/suspend": { "input": "my words" } });
    editor.call("session/resume", json!({ "sessionId": session, "_meta": input })).unwrap();
    editor.state_is("idle");
    // Answers and states belong to the connection that they were told on.
    let told = |editor: &Editor, from: usize| {
        let mut told = heard_after(editor, from);
        told.retain(|words| words != "answer" && !words.starts_with("state"));
        told
    };
    let live = told(&editor, before);
    assert_eq!(live, ["call completed", "info ready", "user", "agent"], "{}", editor.dialog());
    let mut later = Editor::greeted(&home, PARKS, &[], &greeting(2, true));
    let replay = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
    later.call("session/resume", replay).unwrap();
    assert!(told(&later, 0).ends_with(&live), "{}", later.dialog());
}
