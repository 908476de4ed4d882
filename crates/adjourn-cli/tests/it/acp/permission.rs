//! Calls that a person has to allow, as editors are asked for them.

use expect_test::expect_file;
use serde_json::{Value, json};

use super::editor::{Editor, is_title};
use crate::home::Home;

const DEPLOYS: &str = r#"{"runs": [[
  {"say": "built"},
  {"tool": {"name": "deploy", "ms": 10, "permission": true}},
  {"say": "over"}
]]}"#;

const METHOD: &str = "session/request_permission";

fn greeted(home: &Home, version: u64) -> Editor {
    let info = json!({ "name": "editor", "version": "1.0" });
    let greeting = match version {
        1 => json!({ "protocolVersion": 1, "clientInfo": info }),
        _ => json!({ "protocolVersion": version, "info": info }),
    };
    Editor::greeted(home, DEPLOYS, &[], &greeting)
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

/// Waits until the run is over.
fn until_over(editor: &mut Editor) {
    editor.until("over", |message| message["params"]["update"].to_string().contains("over"));
    editor.overheard();
}

/// Returns what was heard, in short: the kind of each message about the session.
fn heard(editor: &Editor) -> Vec<String> {
    let short = editor.heard().map(|message| {
        let update = &message["params"]["update"];
        match (message["method"].as_str(), update["sessionUpdate"].as_str()) {
            (_, Some("tool_call" | "tool_call_update")) => update["status"].to_string(),
            (Some(method), None) => method.to_owned(),
            (_, Some(kind)) => kind.to_owned(),
            (None, None) => "answer".to_owned(),
        }
    });
    short.map(|kind| kind.trim_matches('"').to_owned()).collect()
}

/// Returns where a kind of message was heard.
fn place(editor: &Editor, kind: &str) -> usize {
    let heard = heard(editor);
    heard.iter().position(|heard| heard == kind).unwrap_or_else(|| panic!("no {kind}: {heard:?}"))
}

/// A call is allowed, and one is refused.
fn allow_and_refuse(editor: &mut Editor) {
    for answer in [selected("allow"), selected("reject")] {
        let session = editor.new_session();
        editor.prompt(&session, "go");
        let request = editor.asked(METHOD);
        editor.reply(&request["id"], answer);
        until_over(editor);
    }
}

/// A session is suspended while somebody is asked; whoever wakes it is asked again.
fn suspend_and_resume(editor: &mut Editor) {
    let session = editor.new_session();
    editor.prompt(&session, "go");
    let first = editor.asked(METHOD);
    let suspend = json!({ "sessionId": session, "reason": "lunch" });
    let handle = editor.call("session/suspend", suspend).unwrap()["handle"].clone();
    // As a client answers what is taken back; it is too late to count.
    editor.reply(&first["id"], json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(editor.overheard(), Vec::<Value>::new(), "nothing is said while it is suspended");
    let resume = json!({ "sessionId": session, "handle": handle });
    editor.call("session/resume", resume).unwrap();
    let second = editor.asked(METHOD);
    assert_ne!(first["id"], second["id"]);
    editor.reply(&second["id"], selected("allow"));
    until_over(editor);
}

#[test]
fn allowed_and_refused_v1() {
    let home = Home::new();
    let mut editor = greeted(&home, 1);
    allow_and_refuse(&mut editor);
    expect_file!["golden/v1-permission.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}

#[test]
fn allowed_and_refused_v2() {
    let home = Home::new();
    let mut editor = greeted(&home, 2);
    allow_and_refuse(&mut editor);
    expect_file!["golden/v2-permission.jsonl"].assert_eq(&editor.dialog());
    assert_eq!(editor.close(), 0);
}

#[test]
fn suspended_while_somebody_is_asked_v1() {
    let home = Home::new();
    let mut editor = greeted(&home, 1);
    suspend_and_resume(&mut editor);
    expect_file!["golden/v1-permission-suspended.jsonl"].assert_eq(&editor.dialog());
}

#[test]
fn suspended_while_somebody_is_asked_v2() {
    let home = Home::new();
    let mut editor = greeted(&home, 2);
    suspend_and_resume(&mut editor);
    expect_file!["golden/v2-permission-suspended.jsonl"].assert_eq(&editor.dialog());
}

#[test]
fn whatever_is_no_yes_is_a_no() {
    let home = Home::new();
    for (answer, told) in [
        (json!({ "result": { "outcome": { "outcome": "cancelled" } } }), "was dismissed"),
        (json!({ "result": selected("allow-everything") }), "was refused"),
        (
            json!({ "result": { "outcome": { "outcome": "_later", "optionId": "allow" } } }),
            "was dismissed",
        ),
        (json!({ "result": null }), "was dismissed"),
        (json!({ "error": { "code": -32601, "message": "what?" } }), "cannot be asked"),
    ] {
        let mut editor = greeted(&home, 1);
        let session = editor.new_session();
        let prompt = editor.prompt(&session, "go");
        let request = editor.asked(METHOD);
        let mut message = json!({ "jsonrpc": "2.0", "id": request["id"] });
        message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        editor.send(message);
        let failed = editor.update("tool_call_update");
        assert_eq!(failed["status"], "failed", "{answer}");
        assert!(failed["content"].to_string().contains(told), "{answer}: {failed}");
        assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn", "{answer}");
        assert!(!home.told(&["log", &session]).data.contains("calls_dispatched"), "{answer}");
    }
}

#[test]
fn each_mode_while_somebody_is_asked() {
    for (mode, stop) in [("finish_step", "end_turn"), ("interrupt_immediate", "cancelled")] {
        let home = Home::new();
        let mut editor = greeted(&home, 1);
        let session = editor.new_session();
        let prompt = editor.prompt(&session, "go");
        editor.asked(METHOD);
        let suspend = json!({ "sessionId": session, "mode": mode });
        let suspend = editor.request("session/suspend", suspend);
        editor.asked("$/cancel_request");
        assert_eq!(editor.answer(prompt).unwrap()["stopReason"], stop, "{mode}");
        editor.answer(suspend).unwrap();
    }

    let home = Home::new();
    let mut editor = greeted(&home, 1);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    let request = editor.asked(METHOD);
    let suspend = json!({ "sessionId": session, "mode": "wait_for_completion" });
    let suspend = editor.request("session/suspend", suspend);
    let news = editor.overheard();
    assert!(news.iter().all(|message| message["method"] == "session/update"), "{news:?}");
    editor.reply(&request["id"], selected("allow"));
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
    editor.answer(suspend).unwrap();
    assert!(heard(&editor).contains(&"completed".to_owned()), "{}", editor.dialog());
}

#[test]
fn a_cancel_takes_it_back_before_the_turn_is_over() {
    let home = Home::new();
    let mut editor = greeted(&home, 1);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    let request = editor.asked(METHOD);
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.reply(&request["id"], json!({ "outcome": { "outcome": "cancelled" } }));
    let taken_back = editor.asked("$/cancel_request");
    assert_eq!(taken_back["params"]["requestId"], request["id"]);
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "cancelled");
}

#[test]
fn what_an_editor_leaves_open_is_asked_of_the_next_that_shows_the_session() {
    for killed in [true, false] {
        let home = Home::new();
        let mut editor = greeted(&home, 1);
        let session = editor.new_session();
        editor.prompt(&session, "go");
        editor.asked(METHOD);
        match killed {
            true => editor.kill(),
            false => assert_eq!(editor.close(), 0),
        }

        let mut editor = greeted(&home, 2);
        home.until(&session, "state", "ready");
        assert_eq!(editor.overheard(), Vec::<Value>::new(), "it does not show it yet");
        let notice = home.json(&["show", &session])["notice"].to_string();
        assert!(notice.contains("no editor of this host shows it"), "{notice}");
        let replay = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
        let attach = editor.request("session/resume", replay);
        let request = editor.asked(METHOD);
        let attached = editor.heard().any(|message| message["id"] == attach);
        assert!(attached, "it is asked after it was told: {}", editor.dialog());
        editor.reply(&request["id"], selected("allow"));
        until_over(&mut editor);
        let log = home.told(&["log", &session]).data;
        assert_eq!(log.matches("calls_dispatched").count(), 1, "{log}");
    }
}

#[test]
fn of_two_editors_the_one_that_runs_it_is_asked_and_the_other_when_it_takes_over() {
    let home = Home::new();
    let mut first = greeted(&home, 1);
    let session = first.new_session();
    first.prompt(&session, "go");
    let request = first.asked(METHOD);
    let mut second = greeted(&home, 1);
    second.call("session/resume", json!({ "sessionId": session })).unwrap();
    let told = second.overheard();
    // It is told of the call, and not asked.
    let call = |update: &Value| update["title"] == "deploy" && update["status"] == "pending";
    let shown = |message: &Value| {
        let update = &message["params"]["update"];
        is_title(update) || call(update)
    };
    assert!(told.iter().all(shown), "{told:?}");
    assert!(told.iter().any(|message| call(&message["params"]["update"])), "{told:?}");

    // Wherever it is suspended from, who was asked need not answer, and the other sees no more.
    home.told(&["suspend", &session]);
    let taken_back = first.asked("$/cancel_request");
    assert_eq!(taken_back["params"]["requestId"], request["id"]);
    second.update("tool_call");
    first.call("session/close", json!({ "sessionId": session })).unwrap();
    // Hosts whose editors do not show it leave it to the one whose editor does.
    let third = greeted(&home, 1);
    second.call("session/resume", json!({ "sessionId": session })).unwrap();
    let request = second.asked(METHOD);
    assert_eq!(first.overheard(), Vec::<Value>::new(), "it has closed the session");
    second.reply(&request["id"], selected("reject"));
    until_over(&mut second);
    assert!(place(&second, METHOD) < place(&second, "failed"));
    for editor in [first, second, third] {
        assert_eq!(editor.close(), 0);
    }
}

#[test]
fn a_host_without_editors_leaves_it_alone_and_says_why() {
    let home = Home::new();
    let script = home.file("script.json", DEPLOYS);
    let told = home.told(&["run", "--script", &script]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.talk.contains("asks for permissions, which needs an editor\nhint: "), "{told:?}");
    assert_eq!(home.told(&["ls"]).code, 5, "not even a store is left");
    let why = "it asks for permissions, and no editor is connected to this host";
    let made = home.json(&["new", "--script", &script]);
    let session = made["sessionId"].as_str().unwrap();
    let serving = home.serve();
    home.told(&["prompt", session, "go", "--detach"]);
    let why = format!("host {} cannot run it: {why}", serving.pid());
    assert_eq!(home.until(session, "notice", &why)["state"], "ready");
    assert!(home.told(&["ls"]).data.contains(&why));

    // It goes on where somebody can answer.
    let mut editor = greeted(&home, 1);
    editor.call("session/resume", json!({ "sessionId": session })).unwrap();
    let request = editor.asked(METHOD);
    editor.reply(&request["id"], selected("allow"));
    until_over(&mut editor);
    assert_eq!(serving.terminate(), 0);
}

/// The ids of a client's requests and of ours are the same numbers, so an error to an answer would
/// be taken for the end of the client's own prompt.
#[test]
fn an_answer_that_cannot_be_read_refuses_the_call_and_is_not_answered() {
    let deep = "[".repeat(70) + &"]".repeat(70);
    let long = json!("x".repeat(17 * 1024 * 1024)).to_string();
    let private = r#"{"$serde_json::private::RawValue":"1"}"#;
    for (version, result) in [
        ("2.0", format!(r#","result":{private}"#)),
        ("2.0", format!(r#","result":{deep}"#)),
        ("2.0", format!(r#","result":{long}"#)),
        ("1.0", r#","result":{"outcome":{"outcome":"selected","optionId":"allow"}}"#.to_owned()),
        ("2.0", String::new()),
    ] {
        let home = Home::new();
        let mut editor = greeted(&home, 1);
        let session = editor.new_session();
        let prompt = editor.prompt(&session, "go");
        let asked = editor.until("asked", |message| message["method"] == METHOD);
        let id = &asked["id"];
        editor.line(format!(r#"{{"jsonrpc":"{version}","id":{id}{result}}}"#).as_bytes());
        assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
        let refused = editor
            .heard()
            .any(|message| message["params"]["update"].to_string().contains("not run: "));
        assert!(refused, "{version} {}", result.get(..40).unwrap_or(&result));
        assert!(!editor.heard().any(|message| message.get("error").is_some()));
    }
}
