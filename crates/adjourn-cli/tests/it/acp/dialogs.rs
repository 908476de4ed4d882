//! Whole conversations, message by message, against files.
//!
//! `make update-expected` writes them anew. Whoever changes one changes the wire: `spec/acp.md`
//! must say the same.

use expect_test::expect_file;
use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

/// A step with a call that takes a while, between words.
const BUILD: &str = r#"{"steps": [
  {"say": "building"},
  {"tool": {"name": "build", "ms": 500}},
  {"say": "built"}
]}"#;

/// An agent that parks itself.
const PARKS: &str = r#"{"runs": [[
  {"say": "building"},
  {"await": {"reason": "waiting on ci", "summary": "paused on CI",
             "conditions": {"onEvent": "ci.passed", "timeout": {"durationMinutes": 30, "onTimeout": "fail"}}}},
  {"say": "done"}
]]}"#;

/// An agent that asks.
const ASKS: &str = r#"{"runs": [[
  {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}},
  {"say": "done"}
]]}"#;

/// What an editor says that knows the extension.
fn knows_extension(version: u64) -> Value {
    match version {
        1 => json!({
            "protocolVersion": 1,
            "clientCapabilities": { "_meta": { "adjourn/suspend": {} } },
            "clientInfo": { "name": "editor", "version": "1.0" },
        }),
        _ => json!({
            "protocolVersion": 2,
            "capabilities": { "_meta": { "adjourn/suspend": {} } },
            "info": { "name": "editor", "version": "1.0" },
        }),
    }
}

fn today(version: u64) -> Value {
    let info = if version == 1 { "clientInfo" } else { "info" };
    json!({ "protocolVersion": version, info: { "name": "editor", "version": "1.0" } })
}

/// Suspends a session in the middle of a call, asks after it, and wakes it with a value.
fn suspend_in_the_middle(editor: &mut Editor, method: &str, resume: impl Fn(&str) -> Value) {
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.call_is("in_progress");
    let suspended = editor
        .call(
            method,
            json!({
                "sessionId": session, "reason": "review", "mode": "finish_step",
                "resumeWhen": {
                    "onEvent": "review.done:main",
                    "timeout": { "durationMinutes": 90.5, "onTimeout": "resume_with_summary" },
                },
                "_meta": { "ticket": { "z": 1, "a": 2 } },
            }),
        )
        .unwrap();
    assert!(editor.heard().any(|message| message["id"] == prompt), "the prompt was answered first");
    editor.call("session/status", json!({ "sessionId": session })).unwrap();
    assert_eq!(editor.overheard(), Vec::<Value>::new(), "nothing is said while it is suspended");
    let handle = suspended["handle"].as_str().unwrap();
    let mut request = resume(handle);
    request["sessionId"] = json!(session);
    editor.call("session/resume", request).unwrap();
    editor.until("built", |message| message["params"]["update"].to_string().contains("built"));
    editor.overheard();
    let again = editor.call("session/resume", json!({ "sessionId": session, "handle": handle }));
    assert_eq!(again.unwrap_err()["code"], 4003);
}

fn as_proposed(handle: &str) -> Value {
    json!({ "handle": handle, "input": { "verdict": "fine" }, "continueTranscript": false })
}

fn as_extension(handle: &str) -> Value {
    json!({ "_meta": { "adjourn/suspend": {
        "handle": handle, "input": { "verdict": "fine" }, "continueTranscript": false,
    } } })
}

#[test]
fn suspend_status_and_resume_as_proposed_v1() {
    let home = Home::new();
    let mut editor = Editor::greeted(&home, BUILD, &[], &today(1));
    suspend_in_the_middle(&mut editor, "session/suspend", as_proposed);
    expect_file!["golden/v1-suspend-as-proposed.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}

#[test]
fn suspend_status_and_resume_as_proposed_v2() {
    let home = Home::new();
    let mut editor = Editor::greeted(&home, BUILD, &[], &today(2));
    suspend_in_the_middle(&mut editor, "session/suspend", as_proposed);
    expect_file!["golden/v2-suspend-as-proposed.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}

#[test]
fn suspend_status_and_resume_by_extension_v1() {
    let home = Home::new();
    let mut editor = Editor::greeted(&home, BUILD, &[], &knows_extension(1));
    suspend_in_the_middle(&mut editor, "_session/suspend", as_extension);
    expect_file!["golden/v1-suspend-by-extension.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}

#[test]
fn suspend_status_and_resume_by_extension_v2() {
    let home = Home::new();
    let mut editor = Editor::greeted(&home, BUILD, &[], &knows_extension(2));
    suspend_in_the_middle(&mut editor, "_session/suspend", as_extension);
    expect_file!["golden/v2-suspend-by-extension.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}

#[test]
fn an_old_tunnel_is_read_and_mirrored() {
    let home = Home::new();
    let mut editor = Editor::greeted(&home, BUILD, &[], &today(1));
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    let tunnel = json!({
        "reason": "review", "mode": "finish_step",
        "resume_when": { "on_event": "review.done", "timeout": { "duration_minutes": 5 } },
    });
    let meta = json!({ "harn": { "suspend": tunnel } });
    let request = json!({ "sessionId": session, "_meta": meta });
    let suspended = editor.call("_session/suspend", request).unwrap();
    let envelope = &suspended["_meta"]["harn"]["suspend"];
    assert_eq!(envelope["handle"], suspended["handle"]);
    let resume = json!({ "handle": envelope["handle"], "input": "go on" });
    let resume = json!({ "sessionId": session, "_meta": { "harn": { "suspend": resume } } });
    editor.call("session/resume", resume).unwrap();
    editor.until("built", |message| message["params"]["update"].to_string().contains("built"));
    editor.overheard();
    expect_file!["golden/v1-old-tunnel.jsonl"].assert_eq(&editor.dialog());
}

/// An agent parks itself; the client names the suspension, and wakes it by its own name.
fn parks_itself(greeting: &Value, arguments: &[&str]) -> Editor {
    let home = Home::new();
    let mut editor = Editor::greeted(&home, PARKS, arguments, greeting);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.until("at rest", |message| {
        let places = [&message["params"]["update"], &message["result"]];
        let parked = |at: &&Value| at["_meta"]["adjourn/suspend"]["state"] == "suspended";
        places.iter().any(parked) || places[0]["sessionUpdate"] == "suspended"
    });
    let overheard = editor.overheard();
    let asked = overheard.iter().find(|message| {
        message["method"].as_str().is_some_and(|method| method.ends_with("await_resumption"))
    });
    match asked {
        Some(asked) => {
            let mine = json!({ "handle": "mine", "suspendedAt": "2026-11-15T10:00:00Z" });
            editor.reply(&asked["id"], mine);
            let resume = json!({ "sessionId": session, "handle": "mine" });
            editor.call("session/resume", resume).unwrap();
        }
        None => {
            editor.call("session/resume", json!({ "sessionId": session })).unwrap();
        }
    }
    editor.until("done", |message| message["params"]["update"].to_string().contains("done"));
    editor.overheard();
    assert!(editor.heard().any(|message| message["id"] == prompt));
    editor
}

#[test]
fn an_agent_parks_itself_before_an_editor_of_today_v1() {
    let editor = parks_itself(&today(1), &[]);
    expect_file!["golden/v1-parks-today.jsonl"].assert_eq(&editor.dialog());
}

#[test]
fn an_agent_parks_itself_before_an_editor_of_today_v2() {
    let editor = parks_itself(&today(2), &[]);
    expect_file!["golden/v2-parks-today.jsonl"].assert_eq(&editor.dialog());
}

#[test]
fn an_agent_parks_itself_by_extension_v1() {
    let editor = parks_itself(&knows_extension(1), &[]);
    expect_file!["golden/v1-parks-by-extension.jsonl"].assert_eq(&editor.dialog());
}

#[test]
fn an_agent_parks_itself_by_extension_v2() {
    let editor = parks_itself(&knows_extension(2), &[]);
    expect_file!["golden/v2-parks-by-extension.jsonl"].assert_eq(&editor.dialog());
}

#[test]
fn an_agent_parks_itself_as_proposed() {
    let editor = parks_itself(&today(1), &["--profile", "rfc"]);
    expect_file!["golden/v1-parks-as-proposed.jsonl"].assert_eq(&editor.dialog());
}

#[test]
fn a_question_is_asked_in_words() {
    for (version, file) in [
        (1, expect_file!["golden/v1-question.jsonl"]),
        (2, expect_file!["golden/v2-question.jsonl"]),
    ] {
        let home = Home::new();
        let mut editor = Editor::greeted(&home, ASKS, &[], &today(version));
        let session = editor.new_session();
        editor.prompt(&session, "go");
        editor.until("asked", |message| message.to_string().contains("which table?"));
        editor.overheard();
        let refused = editor.call("session/suspend", json!({ "sessionId": session }));
        assert_eq!(refused.unwrap_err()["code"], 4001);
        let blank = editor.prompt(&session, " ");
        assert_eq!(editor.answer(blank).unwrap_err()["code"], 4006);
        editor.prompt(&session, "monthly");
        editor.until("done", |message| message["params"]["update"].to_string().contains("done"));
        editor.overheard();
        file.assert_eq(&editor.dialog());
    }
}

#[test]
fn a_question_is_asked_by_a_form() {
    let home = Home::new();
    let greeting = json!({
        "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } },
        "clientInfo": { "name": "editor", "version": "1.0" },
    });
    let mut editor = Editor::greeted(&home, ASKS, &[], &greeting);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    let form = editor.asked("elicitation/create");
    editor.reply(&form["id"], json!({ "action": "accept", "content": { "answer": "raw" } }));
    editor.until("done", |message| message["params"]["update"].to_string().contains("done"));
    editor.overheard();
    expect_file!["golden/v1-question-form.jsonl"].assert_eq(&editor.dialog());

    // Answered elsewhere, the form is taken back.
    let other = Home::new();
    let mut editor = Editor::greeted(&other, ASKS, &[], &greeting);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    let form = editor.asked("elicitation/create");
    other.told(&["prompt", &session, "monthly", "--detach"]);
    let back = editor.until("taken back", |message| message["method"] == "$/cancel_request");
    assert_eq!(back["params"]["requestId"], form["id"]);
}

#[test]
fn a_conversation_is_loaded_again() {
    for (version, opted, file) in [
        (1, false, expect_file!["golden/v1-replay-today.jsonl"]),
        (1, true, expect_file!["golden/v1-replay-by-extension.jsonl"]),
        (2, false, expect_file!["golden/v2-replay-today.jsonl"]),
        (2, true, expect_file!["golden/v2-replay-by-extension.jsonl"]),
    ] {
        let home = Home::new();
        let mut first = Editor::v1(&home, PARKS);
        let session = first.new_session();
        let prompt = first.prompt(&session, "go");
        first.answer(prompt).unwrap();
        assert_eq!(first.close(), 0);

        let greeting = if opted { knows_extension(version) } else { today(version) };
        let mut editor = Editor::greeted(&home, PARKS, &[], &greeting);
        let (method, mut params) = match version {
            1 => ("session/load", json!({ "cwd": "/tmp", "mcpServers": [] })),
            _ => ("session/resume", json!({ "cwd": "/tmp", "replayFrom": { "type": "start" } })),
        };
        params["sessionId"] = json!(session);
        editor.call(method, params).unwrap();
        assert_eq!(home.json(&["show", &session])["state"], "suspended", "loading does not wake");
        let from =
            json!({ "sessionId": session, "replayFrom": { "type": "_adjourn_from", "seq": 3 } });
        editor.call("session/resume", from).unwrap();
        editor.call("session/resume", json!({ "sessionId": session })).unwrap();
        editor.until("done", |message| message["params"]["update"].to_string().contains("done"));
        editor.overheard();
        file.assert_eq(&editor.dialog());
    }
}

#[test]
fn the_rest_of_the_surface() {
    let home = Home::new();
    // The call never returns by itself, so that however slow the machine is, a cancel ends it.
    home.config("[host]\ncancel_grace = \"100ms\"");
    let script = BUILD.replace("500", "600000");
    let mut editor = Editor::open(&home, &script, &[]);
    let early = editor.call("session/list", json!({}));
    assert_eq!(early.unwrap_err()["code"], -32600);
    editor.call("initialize", json!({ "protocolVersion": 0 })).unwrap_err();
    editor.call("initialize", json!({ "protocolVersion": 1 })).unwrap();
    editor.call("authenticate", json!({ "methodId": "none" })).unwrap();
    editor.call("session/new", json!({ "cwd": "", "mcpServers": [] })).unwrap_err();
    let servers = json!([{
        "name": "files", "command": "/bin/files", "args": [],
        "env": [{ "name": "TOKEN", "value": "not to be stored" }],
    }]);
    let made = editor.call("session/new", json!({ "cwd": "/tmp", "mcpServers": servers })).unwrap();
    let session = made["sessionId"].as_str().unwrap().to_owned();
    let prompt = editor.prompt(&session, "go");
    editor.call_is("in_progress");
    editor.prompt(&session, "too early");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "cancelled");
    editor.call("session/list", json!({ "cwd": "/tmp" })).unwrap();
    editor.call("session/list", json!({ "cwd": "/elsewhere" })).unwrap();
    editor.call("session/list", json!({ "cursor": "?" })).unwrap_err();
    editor.call("session/set_mode", json!({ "sessionId": session, "modeId": "x" })).unwrap_err();
    let option = json!({ "sessionId": session, "configId": "x", "value": "y" });
    editor.call("session/set_config_option", option).unwrap_err();
    let elsewhere = json!({ "sessionId": session, "cwd": "/elsewhere" });
    editor.call("session/resume", elsewhere).unwrap_err();
    editor.call("session/close", json!({ "sessionId": session })).unwrap();
    editor.call("session/status", json!({ "sessionId": session })).unwrap();
    let journal = home.told(&["log", &session, "--json"]).data;
    assert!(journal.contains("TOKEN") && !journal.contains("not to be stored"), "{journal}");
    editor.call("session/delete", json!({ "sessionId": session })).unwrap();
    let ended = editor.prompt(&session, "still there?");
    assert_eq!(editor.answer(ended).unwrap_err()["code"], -32002);
    editor.call("session/list", json!({})).unwrap();
    editor.call("session/status", json!({ "sessionId": "sess-nobody" })).unwrap();
    editor.call("session/prompt", json!({ "sessionId": "nobody", "prompt": [] })).unwrap_err();
    editor.call("session/fork", json!({ "sessionId": session })).unwrap_err();
    expect_file!["golden/v1-surface.jsonl"].assert_eq(&editor.dialog());
}

#[test]
fn the_rest_of_the_surface_v2() {
    let script = r#"{"runs": [
      [{"ask": {"question": "which table?", "choices": ["raw", "monthly"]}}],
      [{"fail": "the disk is full"}],
      [{"tool": {"name": "build", "ms": 600000}}]
    ]}"#;
    let home = Home::new();
    // The call never returns by itself, so that however slow the machine is, a cancel ends it.
    home.config("[host]\ncancel_grace = \"100ms\"");
    let greeting = json!({
        "protocolVersion": 2, "capabilities": { "elicitation": { "form": {} } },
        "info": { "name": "editor", "version": "1.0" },
    });
    let mut editor = Editor::greeted(&home, script, &[], &greeting);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.asked("elicitation/create");
    home.told(&["prompt", &session, "monthly", "--detach"]);
    editor.until("taken back", |message| message["method"] == "$/cancel_request");
    editor.state_is("idle");
    editor.prompt(&session, "go on");
    editor.state_is("idle");
    editor.prompt(&session, "and now?");
    editor.call_is("in_progress");
    editor.call("session/status", json!({ "sessionId": session })).unwrap();
    let call = json!({ "sessionId": session, "toolCallId": "whichever" });
    assert_eq!(editor.call("tool_call/cancel", call).unwrap_err()["code"], -32602);
    let terminal = json!({ "sessionId": session, "terminalId": "none" });
    assert_eq!(editor.call("terminal/cancel", terminal).unwrap_err()["code"], -32602);
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.state_is("idle");
    editor.call("session/list", json!({})).unwrap();
    let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
    assert_eq!(editor.call("session/load", load).unwrap_err()["code"], -32601);
    editor.call("session/close", json!({ "sessionId": session })).unwrap();
    let status = editor.call("session/status", json!({ "sessionId": session })).unwrap();
    assert_eq!(status["status"], "saved");
    editor.call("session/delete", json!({ "sessionId": session })).unwrap();
    let unknown = editor.call("session/status", json!({ "sessionId": "sess-nobody" }));
    assert_eq!(unknown.unwrap_err()["code"], -32002);
    expect_file!["golden/v2-surface.jsonl"].assert_eq(&editor.dialog());
}

#[test]
fn a_suspend_is_taken_back() {
    let home = Home::new();
    let mut editor = Editor::greeted(&home, BUILD, &[], &today(1));
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    let suspend = editor.request("session/suspend", json!({ "sessionId": session }));
    let moving = |message: &Value| message["params"]["update"].to_string().contains("requested");
    editor.until("requested", moving);
    editor.notify("$/cancel_request", json!({ "requestId": suspend }));
    assert_eq!(editor.answer(suspend).unwrap_err()["code"], -32800);
    editor.until("built", |message| message["params"]["update"].to_string().contains("built"));
    editor.overheard();
    expect_file!["golden/v1-suspend-taken-back.jsonl"].assert_eq(&editor.dialog());
}

/// An agent that has modes, and parks itself.
const MODES: &str = r#"{
  "modes": [{"id": "code", "name": "Code"}, {"id": "ask", "name": "Ask", "description": "Asks first"}],
  "steps": [{"await": {"reason": "waiting on ci"}}, {"say": "done"}]
}"#;

/// Chooses a mode before a turn and in a park, then one that there is not.
fn chooses_modes(home: &Home, version: u64) -> Editor {
    let mut editor = Editor::greeted(home, MODES, &[], &today(version));
    let session = editor.new_session();
    let options = json!({ "sessionId": session, "configId": "mode", "type": "id", "value": "ask" });
    editor.call("session/set_config_option", options).unwrap();
    let told = if version == 1 { "current_mode_update" } else { "config_option_update" };
    editor.update(told);
    if version == 2 {
        editor.state_is("idle");
    }
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    if version == 2 {
        editor.state_is("running");
        editor.state_is("idle");
    }
    let (method, field) = match version {
        1 => ("session/set_mode", "modeId"),
        _ => ("session/set_config_option", "value"),
    };
    let choose = |editor: &mut Editor, mode: &str| {
        let mut params = json!({ "sessionId": session, field: mode });
        if version == 2 {
            (params["configId"], params["type"]) = (json!("mode"), json!("id"));
        }
        editor.call(method, params)
    };
    choose(&mut editor, "code").unwrap();
    editor.update(told);
    choose(&mut editor, "fly").unwrap_err();
    editor.call("session/close", json!({ "sessionId": session })).unwrap();
    editor
}

#[test]
fn a_mode_is_chosen_v1() {
    let home = Home::new();
    let editor = chooses_modes(&home, 1);
    expect_file!["golden/v1-options.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}

#[test]
fn a_mode_is_chosen_v2() {
    let home = Home::new();
    let editor = chooses_modes(&home, 2);
    expect_file!["golden/v2-options.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}
