//! Lines of the proposals that neither a scenario nor a golden conversation holds by itself; each
//! test names those that it would find broken.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

const PARKS: &str = r#"{"runs": [[
  {"say": "one"},
  {"await": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}},
  {"say": "two"}
]]}"#;

/// Brings a session to its wait, and goes away.
fn left_parked(home: &Home) -> String {
    let mut editor = Editor::v1(home, PARKS);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    assert_eq!(editor.close(), 0);
    session
}

fn named(session: &str) -> Value {
    json!({ "sessionId": session })
}

/// Returns what was said on a connection after its first messages, a word each.
fn words(editor: &Editor, after: usize) -> Vec<String> {
    let updates = editor.heard().skip(after).map(|message| &message["params"]["update"]);
    let said = updates.filter_map(|update| match update["sessionUpdate"].as_str()? {
        "user_message_chunk" | "agent_message_chunk" => update["content"]["text"].as_str(),
        "user_message" | "agent_message" => update["content"][0]["text"].as_str(),
        _ => None,
    });
    said.map(str::to_owned).collect()
}

fn refused(answer: Result<Value, Value>, path: &str) {
    let error = answer.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["path"]), (&json!(-32602), &json!(path)));
}

/// STA-02, STA-04, STA-06, STA-07, STA-09, STA-10, STA-11, STA-12.
#[test]
fn a_status_changes_nothing_and_says_what_to_do_next() {
    let home = Home::new();
    let session = left_parked(&home);
    let before = home.told(&["log", &session, "--json"]).data;
    let mut editor = Editor::v1(&home, PARKS);
    for _ in 0..200 {
        editor.request("session/status", named(&session));
    }
    // However often it is asked, it is not what makes the session live.
    for _ in 0..200 {
        let answer = editor.until("a status", |message| message.get("result").is_some());
        assert_eq!(answer["result"]["status"], "not_found");
        assert_eq!(answer["result"]["_meta"]["adjourn/suspend"]["state"], "suspended");
    }
    assert_eq!(editor.overheard(), Vec::<Value>::new(), "it is not attached");
    assert_eq!(home.told(&["log", &session, "--json"]).data, before);
    refused(editor.call("session/status", json!({})), "sessionId");
    let unknown = editor.call("session/status", named("sess-nobody")).unwrap();
    assert_eq!(unknown, json!({ "status": "not_found" }), "a result, not an error");

    let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
    editor.call("session/load", load).unwrap();
    assert_eq!(editor.call("session/status", named(&session)).unwrap()["status"], "live");
    let prompt = editor.prompt(&session, "go on");
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
}

/// REP-05, REP-06, REP-07, REP-08, REP-13, REP-15, SUS-03.
#[test]
fn a_cursor_is_an_object_and_nothing_else_replays() {
    let home = Home::new();
    let session = left_parked(&home);
    for version in [1, 2] {
        let greeting = json!({ "protocolVersion": version });
        let mut editor = Editor::greeted(&home, PARKS, &[], &greeting);
        let mut resume = |fields: Value| {
            let mut params = named(&session);
            params.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let heard = editor.heard().count();
            let answer = editor.call("session/resume", params);
            (answer, words(&editor, heard))
        };
        refused(resume(json!({ "replayFrom": "start" })).0, "replayFrom");
        refused(resume(json!({ "replayFrom": ["start"] })).0, "replayFrom");
        refused(resume(json!({ "replayFrom": {} })).0, "replayFrom.type");
        refused(resume(json!({ "replayFrom": { "type": "message" } })).0, "replayFrom.type");
        let missing = json!({ "replayFrom": { "type": "_adjourn_from" } });
        refused(resume(missing).0, "replayFrom.seq");
        for (fields, expected) in
            [(json!({}), vec![]), (json!({ "replayFrom": { "type": "start" } }), vec!["go", "one"])]
        {
            let (answer, heard) = resume(fields.clone());
            let state = &answer.unwrap()["_meta"]["adjourn/suspend"]["state"];
            assert_eq!(state, "suspended", "{fields}");
            assert_eq!(heard, expected, "{fields}");
        }
        // Null is as good as nothing, also for whoever comes first.
        let mut first = Editor::greeted(&home, PARKS, &[], &greeting);
        let null = json!({ "sessionId": session, "replayFrom": null });
        first.call("session/resume", null).unwrap();
        assert_eq!(words(&first, 0), Vec::<String>::new());
    }
}

/// REP-04, REP-11, REP-12, REP-14.
#[test]
fn a_cursor_names_the_first_thing_that_is_replayed() {
    let home = Home::new();
    let session = left_parked(&home);
    let journal = home.told(&["log", &session, "--json"]).data;
    let place = |what: &str| journal.lines().position(|line| line.contains(what)).unwrap() + 1;
    let mut editor = Editor::greeted(&home, PARKS, &[], &json!({ "protocolVersion": 2 }));
    for (from, expected) in [
        (place("run_started"), vec!["go", "one"]),
        (place("run_started") + 1, vec!["one"]),
        (place("step_finished"), vec!["one"]),
        (place("step_finished") + 1, vec![]),
    ] {
        let heard = editor.heard().count();
        let cursor = json!({ "type": "_adjourn_from", "seq": from });
        // With whatever else says where a session works.
        let resume = json!({
            "sessionId": session, "cwd": "/tmp", "mcpServers": [], "additionalDirectories": ["/tmp"],
            "replayFrom": cursor,
        });
        editor.call("session/resume", resume).unwrap();
        assert_eq!(words(&editor, heard), expected, "{from}");
    }
}

/// SUS-10, SUS-50, SUS-51, SUS-55, SUS-58, SUS-59.
#[test]
fn an_agent_is_parked_before_anybody_answers_and_no_answer_wakes_it() {
    let home = Home::new();
    let greeting =
        json!({ "protocolVersion": 1, "clientCapabilities": { "supportsSuspend": true } });
    let mut editor = Editor::greeted(&home, PARKS, &[], &greeting);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    let parked = editor.asked("session/await_resumption");
    assert_eq!(parked["params"]["sessionId"], session.as_str());
    assert_eq!(home.json(&["show", &session])["state"], "suspended", "nobody has answered");
    let time = "2026-11-16T09:00:00.000Z";
    editor.reply(&parked["id"], json!({ "handle": "mine", "suspendedAt": time }));
    assert_eq!(editor.overheard(), Vec::<Value>::new());
    assert_eq!(home.json(&["show", &session])["state"], "suspended", "an answer is no resume");
    let resume = json!({ "sessionId": session, "handle": "mine" });
    editor.call("session/resume", resume).unwrap();
    editor.until("two", |message| message.to_string().contains("two"));
}

/// SUS-02, SUS-06, SUS-12.
#[test]
fn what_is_paused_can_be_read_and_stays_paused() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    let mut reviewer = Editor::v1(&home, PARKS);
    let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
    let loaded = reviewer.call("session/load", load).unwrap();
    assert_eq!(words(&reviewer, 0), ["go", "one"]);
    assert_eq!(loaded["_meta"]["adjourn/suspend"]["reason"], "waiting on ci");
    reviewer.call("session/close", named(&session)).unwrap();
    assert_eq!(home.json(&["show", &session])["state"], "suspended");
}

/// SUS-07, SUS-18, SUS-19, SUS-20, SUS-23, SUS-27, SUS-37, SUS-72.
#[test]
fn a_suspend_takes_a_session_echoes_what_it_is_given_and_says_nothing_to_the_agent() {
    let home = Home::new();
    let script = r#"{"steps": [{"tool": {"name": "build", "ms": 300}}, {"say": "built"}]}"#;
    let mut editor = Editor::v1(&home, script);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    refused(editor.call("session/suspend", json!({ "reason": "lunch" })), "sessionId");
    for (field, wrong) in [
        ("mode", json!("at_once")),
        ("reason", json!(7)),
        ("graceMs", json!("soon")),
        ("_meta", json!([])),
    ] {
        let mut suspend = named(&session);
        suspend[field] = wrong;
        refused(editor.call("session/suspend", suspend), field);
    }
    let ours = json!({ "example.com/why": { "ticket": 7 } });
    let suspend = json!({ "sessionId": session, "reason": "lunch", "_meta": ours });
    let answer = editor.call("session/suspend", suspend).unwrap();
    assert_eq!(answer["_meta"], ours);
    let told = editor.heard().map(|message| &message["params"]["update"]);
    let told = told.filter(|update| update["sessionUpdate"] == "suspended").last().unwrap();
    assert_eq!((&told["_meta"], &told["reason"]), (&ours, &json!("lunch")));

    let resume = json!({ "sessionId": session, "handle": answer["handle"] });
    editor.call("session/resume", resume).unwrap();
    editor.until("built", |message| message.to_string().contains("built"));
    let said = home.told(&["log", &session, "--transcript"]).data;
    let speakers: Vec<_> = said.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let spoke = ["user", "agent", "tool", "agent"];
    assert_eq!(speakers, spoke, "the pause left no words: {said}");
}

/// SUS-101.
#[test]
fn the_trace_that_a_suspend_belongs_to_is_kept_with_it() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let parent = json!({ "traceparent": format!("00-{trace}-{span}-01") });
    let suspend = json!({ "sessionId": session, "_meta": parent });
    assert_eq!(editor.call("session/suspend", suspend).unwrap()["_meta"], parent);
    let suspended = home.jsons(&["log", &session]).pop().unwrap();
    let link = &suspended["park"]["pipelineSpanLink"];
    assert_eq!(*link, json!({ "traceId": trace, "spanId": span }), "{suspended}");
}

/// SUS-60, SUS-64, SUS-65, SUS-90.
#[test]
fn a_caller_of_today_resumes_and_cancels_as_ever() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    // Nothing is suspended: it is attached again, and that is all.
    editor.call("session/resume", named(&session)).unwrap();
    let meta = json!({ "sessionId": session, "cwd": "/tmp", "_meta": { "example.com/tab": 3 } });
    editor.call("session/resume", meta).unwrap();
    refused(editor.call("session/resume", json!({})), "sessionId");
    let prompt = editor.prompt(&session, "go");
    let handle = editor.answer(prompt).unwrap()["_meta"]["adjourn/suspend"]["handle"].clone();
    editor.notify("session/cancel", named(&session));
    editor.call_is("failed");
    let unknown = ["suspended", "resumed"].map(Value::from);
    let proposed =
        |message: &Value| unknown.contains(&message["params"]["update"]["sessionUpdate"]);
    assert!(!editor.heard().any(proposed), "{}", editor.dialog());
    let late = json!({ "sessionId": session, "handle": handle });
    let error = editor.call("session/resume", late).unwrap_err();
    assert_eq!(error["code"], 4003, "a cancel leaves nothing to resume: {error}");
}

/// SUS-36, SUS-54.
#[test]
fn a_person_is_told_why_it_waits_where_an_editor_shows_such_things() {
    let home = Home::new();
    let script = r#"{"runs": [[
      {"await": {"reason": "waiting on ci", "summary": "paused on a long build"}}
    ]]}"#;
    let capabilities = json!({ "session": { "notices": {} } });
    let greeting = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    let mut editor = Editor::greeted(&home, script, &[], &greeting);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    let notice = editor.update("notice");
    assert_eq!(notice["title"], "Paused: waiting on ci");
    assert_eq!(notice["description"], "paused on a long build");
}
