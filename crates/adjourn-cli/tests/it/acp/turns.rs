//! Two editors on one store, each with an agent of its own: who takes a prompt runs it.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

const METHOD: &str = "session/request_permission";
const TURNS: usize = 30;

/// Deploys in every turn, if it is allowed to.
const DEPLOYS: &str = r#"{"steps": [
  {"say": "built"}, {"tool": {"name": "deploy", "permission": true}}, {"say": "over"}]}"#;
const SAYS: &str = r#"{"steps": [{"say": "over"}]}"#;
const WAITS: &str = r#"{"steps": [
  {"await": {"reason": "the build", "conditions": {"onEvent": "go"}}}, {"say": "over"}]}"#;

fn allowed() -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": "allow" } })
}

/// Returns the hosts that have claimed a session, in order.
fn claims(home: &Home, session: &str) -> Vec<String> {
    let entries = home.jsons(&["log", session]);
    let claimed = entries.iter().filter(|entry| entry["event"] == "claimed");
    claimed.map(|entry| entry["host"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_turn_runs_in_the_process_that_took_its_prompt() {
    let home = Home::new();
    let mut editors = [(); 2].map(|()| Editor::v1(&home, SAYS));
    let sessions = editors.each_mut().map(Editor::new_session);
    for _ in 0..TURNS {
        let prompts: Vec<_> = editors
            .iter_mut()
            .zip(&sessions)
            .map(|(editor, session)| editor.prompt(session, "go"))
            .collect();
        for (editor, prompt) in editors.iter_mut().zip(prompts) {
            assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
        }
    }
    let hosts = sessions.map(|session| {
        let claims = claims(&home, &session);
        assert_eq!(claims.len(), TURNS);
        claims.into_iter().collect::<HashSet<_>>()
    });
    assert_eq!(hosts.each_ref().map(HashSet::len), [1, 1], "{hosts:?}");
    assert_ne!(hosts[0], hosts[1]);
}

#[test]
fn permissions_are_asked_in_the_window_that_sent_the_prompt() {
    let home = Home::new();
    let mut first = Editor::v1(&home, DEPLOYS);
    let mut second = Editor::v1(&home, DEPLOYS);
    let session = first.new_session();
    let mut own = first.new_session();
    // Both windows show the session; each turn is one's alone.
    second.call("session/resume", json!({ "sessionId": session })).unwrap();
    for turn in 0..TURNS {
        let editor = if turn % 2 == 0 { &mut first } else { &mut second };
        let prompt = editor.prompt(&session, "go");
        let asked = editor.asked(METHOD);
        editor.reply(&asked["id"], allowed());
        assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
    }
    let asked = |editor: &Editor| editor.heard().filter(|heard| heard["method"] == METHOD).count();
    assert_eq!((asked(&first), asked(&second)), (TURNS / 2, TURNS / 2));

    // One of them dies in the middle of a turn: the other goes on, also with what that one had.
    first.prompt(&own, "go");
    first.asked(METHOD);
    first.kill();
    let prompt = second.prompt(&session, "go");
    let asked = second.asked(METHOD);
    second.reply(&asked["id"], allowed());
    assert_eq!(second.answer(prompt).unwrap()["stopReason"], "end_turn");
    second.call("session/resume", json!({ "sessionId": own })).unwrap();
    let asked = second.asked(METHOD);
    second.reply(&asked["id"], allowed());
    second.until("over", |message| message["params"]["update"].to_string().contains("over"));
    own = home.json(&["show", &own])["state"].to_string();
    assert_eq!(own, "\"idle\"");
}

#[test]
fn what_an_event_wakes_runs_where_it_is_shown() {
    let home = Home::new();
    let mut others = [(); 2].map(|()| Editor::v1(&home, WAITS));
    let mut shows = Editor::v1(&home, WAITS);
    let session = shows.new_session();
    for _ in 0..10 {
        let prompt = shows.prompt(&session, "go");
        assert_eq!(shows.answer(prompt).unwrap()["stopReason"], "end_turn");
        home.json(&["event", "go"]);
        shows.until("over", |message| message["params"]["update"].to_string().contains("over"));
        home.until(&session, "state", "idle");
    }
    let hosts: HashSet<_> = claims(&home, &session).into_iter().collect();
    assert_eq!(hosts.len(), 1, "{hosts:?}");

    // Where the window is gone, another process goes on.
    let prompt = shows.prompt(&session, "go");
    shows.answer(prompt).unwrap();
    shows.kill();
    home.json(&["event", "go"]);
    home.until(&session, "state", "idle");
    let last = claims(&home, &session).pop().unwrap();
    assert!(!hosts.contains(&last), "its host is dead");
    for other in &mut others {
        other.call("session/list", json!({})).unwrap();
    }
}
