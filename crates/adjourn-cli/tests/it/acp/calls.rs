//! Whatever ends a call, a client that was shown it is told, once: live, and in every replay.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::{Home, Serving};

/// One call is in flight for longer than any test, and one waits behind it.
const TWO_CALLS: &str = r#"{"runs": [[
  {"sequence": [{"name": "first", "ms": 600000}, {"name": "second"}]},
  {"say": "over"}
]]}"#;

/// A session that another process runs, and an editor that looks on.
struct Scene {
    home: Home,
    host: Option<Serving>,
    session: String,
    editor: Editor,
}

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        let script = home.file("calls.json", TWO_CALLS);
        let made = home.json(&["new", "--script", &script]);
        let session = made["sessionId"].as_str().unwrap().to_owned();
        let (host, _) = home.serve_with(&["--drain", "50ms"]);
        home.told(&["prompt", &session, "go", "--detach"]);
        home.until_in_flight("first");
        let mut editor = Editor::greeted(&home, TWO_CALLS, &[], &json!({ "protocolVersion": 2 }));
        let replay = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
        editor.call("session/resume", replay).unwrap();
        Self { home, host: Some(host), session, editor }
    }

    fn cancel(&mut self) {
        self.editor.notify("session/cancel", json!({ "sessionId": self.session }));
    }

    fn until(&self, state: &str) {
        self.home.until(&self.session, "state", state);
    }

    /// Returns how each call ended, as it was told live; a replay must tell the same.
    fn endings(&mut self) -> [String; 2] {
        self.editor.overheard();
        let live = endings(&self.editor);
        for version in [2, 1] {
            let greeting = json!({ "protocolVersion": version });
            let mut later = Editor::greeted(&self.home, TWO_CALLS, &[], &greeting);
            let replay = json!({ "sessionId": self.session, "replayFrom": { "type": "start" } });
            later.call("session/resume", replay).unwrap();
            // The first version has no word for what did not run.
            let expected = live.clone().map(|ending| match version {
                1 => ending.replace("cancelled", "failed"),
                _ => ending,
            });
            assert_eq!(endings(&later), expected, "{}", later.dialog());
        }
        live
    }
}

/// Returns the call that a message is about, and how it stands.
fn ended(message: &Value) -> (&str, &str) {
    let update = &message["params"]["update"];
    let text = |field: &str| update[field].as_str().unwrap_or_default();
    (text("toolCallId"), text("status"))
}

/// Returns everything final that was told of the first call and of the second.
fn endings(editor: &Editor) -> [String; 2] {
    let mut calls: Vec<(&str, Vec<&str>)> = Vec::new();
    // A suspension is shown as a call, and is none.
    let is_call = |(id, _): &(&str, &str)| !id.is_empty() && !id.starts_with("suspend-");
    for (id, status) in editor.heard().map(ended).filter(is_call) {
        if !calls.iter().any(|(known, _)| *known == id) {
            calls.push((id, Vec::new()));
        }
        let last = calls.iter_mut().find(|(known, _)| *known == id);
        if let (Some((_, told)), "completed" | "failed" | "cancelled") = (last, status) {
            told.push(status);
        }
    }
    let [(_, first), (_, second)] = calls.as_slice() else { panic!("{}", editor.dialog()) };
    [first.join(" "), second.join(" ")]
}

/// Returns how the messages stand that end calls, and those that answer requests.
fn ends_and_answers(editor: &Editor) -> Vec<String> {
    let told = editor.heard().filter_map(|message| match ended(message) {
        (_, "failed" | "cancelled") => Some("a call".to_owned()),
        _ => Some(format!("answer {}", message.get("result").and(message["id"].as_u64())?)),
    });
    told.collect()
}

#[test]
fn a_stop_is_prompt_and_every_call_is_over_before_the_prompt_is_answered() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, TWO_CALLS);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.call_is("in_progress");
    let pressed = std::time::Instant::now();
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "cancelled");
    let waited = pressed.elapsed().as_millis();
    assert!((2_000..10_000).contains(&waited), "the call had two seconds: {waited}");
    let told = ends_and_answers(&editor);
    let last = format!("answer {prompt}");
    assert_eq!(told[told.len() - 3..], ["a call", "a call", &last], "{}", editor.dialog());
    let log = home.told(&["log", &session]).data;
    assert!(log.contains("calls_abandoned"), "{log}");
}

#[test]
fn a_call_that_returns_in_time_is_taken_and_the_stop_does_not_wait_longer() {
    let home = Home::new();
    home.config("[host]\ncancel_grace = \"10m\"");
    let script = r#"{"runs": [[{"tool": {"name": "short", "ms": 1000}}, {"say": "never"}]]}"#;
    let mut editor = Editor::v1(&home, script);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.call_is("in_progress");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.call_is("completed");
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "cancelled");
}

#[test]
fn closing_ends_what_was_shown() {
    for version in [1, 2] {
        let home = Home::new();
        let greeting = json!({ "protocolVersion": version });
        let mut editor = Editor::greeted(&home, TWO_CALLS, &[], &greeting);
        let session = editor.new_session();
        let prompt = editor.prompt(&session, "go");
        editor.call_is("in_progress");
        let close = editor.request("session/close", json!({ "sessionId": session }));
        editor.answer(close).unwrap();
        let told = ends_and_answers(&editor);
        let last = format!("answer {close}");
        let expected = match version {
            1 => vec!["a call".to_owned(), "a call".to_owned(), format!("answer {prompt}"), last],
            // The prompt was answered when it was in.
            _ => vec!["a call".to_owned(), "a call".to_owned(), last],
        };
        assert_eq!(told[told.len() - expected.len()..], expected, "{}", editor.dialog());
        assert_eq!(home.json(&["show", &session])["state"], "idle");
    }
}

#[test]
fn closing_ends_what_was_shown_also_if_it_is_parked_or_its_host_hangs() {
    let mut scene = Scene::new();
    let suspend =
        json!({ "sessionId": scene.session, "mode": "interrupt_immediate", "graceMs": 50 });
    scene.editor.call("session/suspend", suspend).unwrap();
    scene.editor.call("session/close", json!({ "sessionId": scene.session })).unwrap();
    assert_eq!(endings(&scene.editor), ["failed", "cancelled"]);
    scene.until("suspended");

    let mut scene = Scene::new();
    let hangs = scene.host.take().unwrap();
    hangs.stop();
    scene.editor.call("session/close", json!({ "sessionId": scene.session })).unwrap();
    assert_eq!(endings(&scene.editor), ["failed", "cancelled"]);
    hangs.go_on();
}

#[test]
fn a_session_that_is_closed() {
    let mut scene = Scene::new();
    scene.home.told(&["close", &scene.session]);
    scene.until("ended");
    assert_eq!(scene.endings(), ["failed", "cancelled"]);
}

#[test]
fn a_session_that_is_deleted() {
    let mut scene = Scene::new();
    let mut other = Editor::v1(&scene.home, TWO_CALLS);
    let replay = json!({ "sessionId": scene.session, "replayFrom": { "type": "start" } });
    other.call("session/resume", replay).unwrap();
    let suspend = other.request("session/suspend", json!({ "sessionId": scene.session }));
    other.update("session_info_update");
    let delete = json!({ "sessionId": scene.session });
    scene.editor.call("session/delete", delete.clone()).unwrap();
    assert_eq!(endings(&scene.editor), ["failed", "cancelled"]);
    // Whoever else sees it is told, too, though what led to it is gone.
    assert_eq!(other.answer(suspend).unwrap_err()["code"], 4001);
    assert_eq!(endings(&other), ["failed", "failed"]);

    let unknown = json!({ "sessionId": scene.session, "cwd": "/tmp", "mcpServers": [] });
    assert_eq!(other.call("session/load", unknown).unwrap_err()["code"], -32002);
    assert_eq!(other.call("session/status", delete.clone()).unwrap()["status"], "not_found");
    assert_eq!(other.call("session/delete", delete).unwrap(), json!({}), "as if it were there");
    let log = scene.home.told(&["log", &scene.session, "--transcript"]).data;
    assert!(!log.contains("go"), "{log}");
    assert_eq!(scene.home.told(&["ls"]).code, 0);
}

#[test]
fn a_run_that_is_canceled_and_loses_its_host() {
    let mut scene = Scene::new();
    scene.cancel();
    scene.home.until_log(&scene.session, "cancel_requested");
    scene.host.take().unwrap().kill();
    scene.until("idle");
    assert_eq!(scene.endings(), ["failed", "cancelled"]);
}

#[test]
fn a_grace_that_is_over_and_a_cancel_of_what_is_parked() {
    let mut scene = Scene::new();
    let suspend =
        json!({ "sessionId": scene.session, "mode": "interrupt_immediate", "graceMs": 50 });
    scene.editor.call("session/suspend", suspend).unwrap();
    scene.editor.overheard();
    assert_eq!(endings(&scene.editor), ["failed", ""], "the second waits for the resume");
    scene.cancel();
    scene.until("idle");
    assert_eq!(scene.endings(), ["failed", "cancelled"]);
}

#[test]
fn a_grace_that_is_over_and_a_resume_with_words() {
    let mut scene = Scene::new();
    let suspend =
        json!({ "sessionId": scene.session, "mode": "interrupt_immediate", "graceMs": 50 });
    scene.editor.call("session/suspend", suspend).unwrap();
    let resume = json!({ "sessionId": scene.session, "input": "leave it" });
    scene.editor.call("session/resume", resume).unwrap();
    scene.until("idle");
    assert_eq!(scene.endings(), ["failed", "cancelled"]);
}

#[test]
fn a_host_that_stops() {
    let mut scene = Scene::new();
    assert_eq!(scene.host.take().unwrap().terminate(), 0);
    scene.until("suspended");
    scene.home.told(&["resume", &scene.session, "--detach"]);
    scene.until("idle");
    assert_eq!(scene.endings(), ["failed", "failed"], "the second does not run behind it");
}

#[test]
fn a_host_that_hangs_and_is_taken_over() {
    let mut scene = Scene::new();
    let hangs = scene.host.take().unwrap();
    hangs.stop();
    scene.home.json(&["takeover", &scene.session]);
    scene.until("suspended");
    scene.cancel();
    scene.until("idle");
    assert_eq!(scene.endings(), ["failed", "cancelled"]);
    hangs.go_on();
}

#[test]
fn a_stop_is_answered_though_the_host_hangs_and_its_return_tells_nothing_twice() {
    let mut scene = Scene::new();
    let greeting = json!({ "protocolVersion": 1 });
    let mut editor = Editor::logging(&scene.home, TWO_CALLS, "acp.log", &greeting);
    let load = json!({ "sessionId": scene.session });
    editor.call("session/load", load).unwrap();
    let hangs = scene.host.take().unwrap();
    hangs.stop();
    let held = editor.prompt(&scene.session, "and then?");
    // It is heard before the cancel.
    editor.call("session/status", json!({ "sessionId": scene.session })).unwrap();
    editor.notify("session/cancel", json!({ "sessionId": scene.session }));
    assert_eq!(editor.answer(held).unwrap()["stopReason"], "cancelled");
    let told = ends_and_answers(&editor);
    assert_eq!(told[told.len() - 3..], ["a call", "a call", &format!("answer {held}")]);
    assert_eq!(endings(&editor), ["failed", "failed"]);
    let dialog = editor.dialog();
    assert!(dialog.contains("does not answer") && !dialog.contains("cut off"), "{dialog}");
    let silent = || {
        let log = std::fs::read_to_string(scene.home.path("acp.log")).unwrap();
        log.lines().find(|line| line.contains("does not follow a cancel")).map(str::to_owned)
    };
    // It is written by a thread of its own.
    scene.home.until_first(|_| silent().is_some());
    let (line, session) = (silent().unwrap(), format!("session={} run=run-", scene.session));
    assert!(line.contains(&session) && line.contains(" host=host-"), "{line}");

    // What is said next waits until the host is back, and answers are in order.
    let next = editor.prompt(&scene.session, "again");
    editor.call("session/status", json!({ "sessionId": scene.session })).unwrap();
    hangs.go_on();
    editor.answer(next).unwrap();
    assert_eq!(endings(&editor), ["failed", "failed"], "{}", editor.dialog());
}

#[test]
fn a_close_answers_prompts_in_their_order_and_says_what_is_known_of_a_hung_host() {
    let mut scene = Scene::new();
    let mut editor = Editor::v1(&scene.home, TWO_CALLS);
    let load = json!({ "sessionId": scene.session });
    editor.call("session/load", load).unwrap();
    let hangs = scene.host.take().unwrap();
    hangs.stop();
    let first = editor.prompt(&scene.session, "one");
    editor.call("session/status", json!({ "sessionId": scene.session })).unwrap();
    editor.notify("session/cancel", json!({ "sessionId": scene.session }));
    let second = editor.prompt(&scene.session, "two");
    let close = editor.request("session/close", json!({ "sessionId": scene.session }));
    editor.answer(close).unwrap();
    let told = ends_and_answers(&editor);
    let answers = [first, second, close].map(|id| format!("answer {id}"));
    assert_eq!(told[told.len() - 3..], answers, "{}", editor.dialog());
    let dialog = editor.dialog();
    assert!(dialog.contains("does not answer") && !dialog.contains("cut off"), "{dialog}");
    hangs.go_on();
}

#[test]
fn a_call_is_introduced_to_a_client_that_attaches_without_a_replay() {
    for version in [1, 2] {
        let mut scene = Scene::new();
        let greeting = json!({ "protocolVersion": version });
        let mut editor = Editor::greeted(&scene.home, TWO_CALLS, &[], &greeting);
        let resume = json!({ "sessionId": scene.session });
        editor.call("session/resume", resume).unwrap();
        scene.cancel();
        editor.call_is("failed");
        let calls: Vec<_> = editor.heard().map(ended).filter(|(id, _)| !id.is_empty()).collect();
        let (first, last) = (calls[0].0, calls.last().unwrap().0);
        assert_eq!((calls[0].1, calls[1]), ("pending", (first, "in_progress")), "v{version}");
        assert!(calls.contains(&(last, "pending")), "{}", editor.dialog());
    }
}
