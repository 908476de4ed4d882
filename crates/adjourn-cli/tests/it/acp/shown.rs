//! What a client of today is shown: parks as calls, titles, lists, questions, messages apart.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

const PARKS: &str = r#"{"runs": [[
  {"say": "building"},
  {"await": {"reason": "waiting on ci", "summary": "paused on CI",
             "conditions": {"onEvent": "ci.passed", "timeout": {"durationMinutes": 30, "onTimeout": "fail"}}}},
  {"say": "done"}
]]}"#;

const ASKS: &str = r#"{"runs": [[
  {"ask": {"question": "which table?", "choices": ["raw", "monthly"]}},
  {"say": "done"}
]]}"#;

fn updates<'a>(editor: &'a Editor, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let updates = editor.heard().map(|message| &message["params"]["update"]);
    updates.filter(move |update| update["sessionUpdate"] == kind)
}

/// Returns the words of a call's content.
fn content(call: &Value) -> &str {
    call["content"][0]["content"]["text"].as_str().unwrap_or_default()
}

/// Returns where the first message is that fits.
fn place(editor: &Editor, wanted: impl Fn(&Value) -> bool) -> usize {
    editor.heard().position(wanted).unwrap_or_else(|| panic!("not in {}", editor.dialog()))
}

/// No client of today is sent an update that says nothing which it knows.
fn is_told_nothing_strange(editor: &Editor) {
    for news in updates(editor, "session_info_update") {
        assert!(news["title"].is_string() && news.get("_meta").is_none(), "{news}");
    }
}

#[test]
fn a_park_is_a_call_with_the_reason_the_summary_and_what_wakes_it() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    let handle = editor.answer(prompt).unwrap()["_meta"]["adjourn/suspend"]["handle"].clone();
    let call = updates(&editor, "tool_call").next().unwrap();
    assert_eq!((&call["toolCallId"], &call["status"]), (&handle, &json!("completed")));
    assert_eq!(call["title"], "waiting on ci");
    let words = content(call);
    assert!(words.starts_with("paused on CI\n\nWakes on ci.passed or on a message."), "{words}");
    assert!(words.contains("Fails at 20"), "{words}");
    // Clients that drop what comes outside of a prompt have seen it.
    let shown = place(&editor, |message| message["params"]["update"]["title"] == "waiting on ci");
    assert!(shown < place(&editor, |message| message["id"] == prompt));
    home.told(&["event", "ci.passed"]);
    let woken = editor.update("tool_call_update");
    assert_eq!((&woken["toolCallId"], &woken["status"]), (&handle, &json!("completed")));
    assert_eq!(content(&woken), "paused on CI\n\nWoken by ci.passed.");
    editor.until("done", |message| message.to_string().contains("done"));
    editor.overheard();
    is_told_nothing_strange(&editor);
}

#[test]
fn a_pause_made_elsewhere_is_a_call_and_so_is_its_end() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    home.told(&["suspend", &session, "--reason", "lunch"]);
    let hold = editor.update("tool_call");
    assert_eq!(hold["title"], "lunch");
    assert!(content(&hold).ends_with("Wakes on a resume."), "{hold}");
    home.told(&["resume", &session]);
    let lifted = editor.update("tool_call_update");
    assert_eq!(lifted["toolCallId"], hold["toolCallId"]);
    assert!(content(&lifted).contains("Resumed by "), "{lifted}");
    // A suspension that ends without a resume is told by its call.
    home.told(&["cancel", &session]);
    let ended = editor.update("tool_call_update");
    assert_ne!(ended["toolCallId"], hold["toolCallId"]);
    assert_eq!(ended["status"], "failed");
    assert!(content(&ended).contains("Canceled by "), "{ended}");
    is_told_nothing_strange(&editor);
}

#[test]
fn whoever_attaches_to_a_park_is_shown_it_after_the_answer() {
    for version in [1, 2] {
        let home = Home::new();
        let mut first = Editor::v1(&home, PARKS);
        let session = first.new_session();
        let prompt = first.prompt(&session, "fix it");
        first.answer(prompt).unwrap();
        let greeting = json!({ "protocolVersion": version, "info": { "name": "e" } });
        let mut second = Editor::greeted(&home, PARKS, &[], &greeting);
        let request = second.request("session/resume", json!({ "sessionId": session }));
        second.answer(request).unwrap();
        let kind = if version == 1 { "tool_call" } else { "tool_call_update" };
        let call = second.update(kind);
        assert_eq!(call["title"], "waiting on ci");
        assert!(content(&call).contains("Wakes on ci.passed"), "{call}");
        second.overheard();
        let answered = place(&second, |message| message["id"] == request);
        let before: Vec<_> = second.heard().take(answered).skip(1).collect();
        // Version 2 wants the current state before the answer, and nothing else comes before it.
        let states = before.iter().all(|message| {
            version == 2 && message["params"]["update"]["sessionUpdate"] == "state_update"
        });
        assert!(states, "{before:?}");
        let titled = updates(&second, "session_info_update").next().unwrap();
        assert_eq!(titled["title"], "fix it");
        is_told_nothing_strange(&second);
    }
}

#[test]
fn a_session_is_called_by_its_first_prompt_until_the_agent_names_it() {
    let script =
        r#"{"runs": [[{"say": "hello"}], [{"title": "The long way home"}, {"say": "on"}]]}"#;
    let home = Home::new();
    let mut editor = Editor::v1(&home, script);
    let session = editor.new_session();
    let words = format!("Fix the\n  tests{}", ", please".repeat(40));
    let prompt = editor.prompt(&session, &words);
    editor.answer(prompt).unwrap();
    let first = updates(&editor, "session_info_update").next().unwrap()["title"].clone();
    let title = first.as_str().unwrap();
    assert!(title.starts_with("Fix the tests, please"), "{title}");
    assert!(title.ends_with('…') && title.chars().count() <= 72, "{title}");
    let listed = editor.call("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"][0]["title"], first);
    let prompt = editor.prompt(&session, "and now?");
    editor.answer(prompt).unwrap();
    let told: Vec<_> = updates(&editor, "session_info_update").map(|told| &told["title"]).collect();
    assert_eq!(told, [&first, &json!("The long way home")]);
    let listed = editor.call("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"][0]["title"], "The long way home");
}

#[test]
fn sessions_are_listed_the_newest_first_by_directory_once_they_were_prompted() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, r#"{"steps": [{"say": "hello"}]}"#);
    let mut made = Vec::new();
    for number in 0..53 {
        let cwd = if number % 25 == 0 { "/elsewhere/" } else { "/tmp" };
        let new = editor.call("session/new", json!({ "cwd": cwd, "mcpServers": [] })).unwrap();
        let session = new["sessionId"].as_str().unwrap().to_owned();
        let prompt = editor.prompt(&session, &format!("prompt {number}"));
        editor.answer(prompt).unwrap();
        made.push(session);
    }
    editor.new_session();
    made.reverse();
    let ids = |page: &Value| -> Vec<String> {
        let sessions = page["sessions"].as_array().unwrap();
        sessions.iter().map(|info| info["sessionId"].as_str().unwrap().to_owned()).collect()
    };
    let first = editor.call("session/list", json!({})).unwrap();
    assert_eq!(first["sessions"][0]["title"], "prompt 52");
    let rest = editor.call("session/list", json!({ "cursor": first["nextCursor"] })).unwrap();
    assert_eq!((ids(&first), ids(&rest)), (made[..50].to_vec(), made[50..].to_vec()));
    assert!(rest.get("nextCursor").is_none(), "{rest}");
    let foreign = json!({ "cwd": "/elsewhere", "cursor": first["nextCursor"] });
    assert_eq!(editor.call("session/list", foreign).unwrap_err()["code"], -32602);
    let elsewhere = editor.call("session/list", json!({ "cwd": "/elsewhere" })).unwrap();
    assert_eq!(ids(&elsewhere), [&*made[2], &made[27], &made[52]]);
}

#[test]
fn a_form_that_is_dismissed_leaves_the_question_and_comes_again_with_the_next_attach() {
    let home = Home::new();
    let greeting = json!({
        "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } },
    });
    let mut editor = Editor::greeted(&home, ASKS, &[], &greeting);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    let message = updates(&editor, "agent_message_chunk").next().unwrap();
    assert_eq!(message["content"]["text"], "which table?\n- raw\n- monthly");
    let form = editor.asked("elicitation/create");
    editor.reply(&form["id"], json!({ "action": "cancel" }));
    assert_eq!(editor.overheard(), Vec::<Value>::new(), "it is dismissed");
    assert_eq!(home.json(&["show", &session])["wait"], "question");
    editor.call("session/load", json!({ "sessionId": session, "cwd": "/tmp" })).unwrap();
    let again = editor.asked("elicitation/create");
    assert_ne!(again["id"], form["id"]);
    editor.reply(&again["id"], json!({ "action": "decline" }));
    // It is answered by words as well.
    let answer = editor.prompt(&session, "monthly");
    assert_eq!(editor.answer(answer).unwrap()["stopReason"], "end_turn");
    editor.overheard();
    let said = updates(&editor, "agent_message_chunk").last().unwrap();
    assert_eq!(said["content"]["text"], "done");
}

#[test]
fn messages_stay_apart_in_clients_that_take_no_notice_of_their_ids() {
    let script = r#"{"steps": [
      {"say": "First."}, {"say": "Second."}, {"tool": {"name": "build"}}, {"say": "Third."}
    ]}"#;
    let home = Home::new();
    let mut editor = Editor::v1(&home, script);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    let chunks = |editor: &Editor| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let chunks = updates(editor, "agent_message_chunk");
        chunks.map(|chunk| (text(&chunk["messageId"]), text(&chunk["content"]["text"]))).collect()
    };
    let told = chunks(&editor);
    let glued: String = told.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(glued, "First.\n\nSecond.Third.", "a call lies between the last two");
    // Who knows ids finds each message as it was said.
    let second: String =
        told.iter().filter(|(id, _)| *id == told[2].0).map(|(_, text)| text.as_str()).collect();
    assert_eq!(second, "Second.");
    let transcript = home.told(&["log", &session, "--transcript", "--json"]).data;
    assert!(transcript.contains(r#""First.""#) && transcript.contains(r#""Second.""#));
    let mut other = Editor::v1(&home, script);
    other.call("session/load", json!({ "sessionId": session, "cwd": "/tmp" })).unwrap();
    assert_eq!(chunks(&other), told, "a replay tells the same");
}

#[test]
fn a_prompt_may_have_images_of_twelve_mebibytes() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, r#"{"steps": [{"say": "seen"}]}"#);
    let session = editor.new_session();
    let image = |bytes: usize| {
        let block = json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(bytes) });
        json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "look" }, block] })
    };
    let mebibyte = 1024 * 1024;
    editor.call("session/prompt", image(12 * mebibyte - 4096)).unwrap();
    let peak = editor.peak_memory();
    assert!(peak < 160 * 1024 * 1024, "{peak}");
    let refused = editor.call("session/prompt", image(12 * mebibyte)).unwrap_err();
    assert_eq!(refused["code"], -32602);
    assert!(refused["message"].as_str().unwrap().contains("12 MiB (12582912 bytes)"), "{refused}");
    // Of a line that is too long the request is known all the same.
    let refused = editor.call("session/prompt", image(20 * mebibyte)).unwrap_err();
    assert_eq!(refused["code"], -32600);
    assert_eq!(refused["data"]["reason"], "INVALID");
    for limit in ["16 MiB", "12 MiB"] {
        assert!(refused["data"]["details"].as_str().unwrap().contains(limit), "{refused}");
    }
    let mut other = Editor::v1(&home, r#"{"steps": []}"#);
    other.call("session/load", json!({ "sessionId": session, "cwd": "/tmp" })).unwrap();
    let replayed = updates(&other, "user_message_chunk").find(|chunk| {
        chunk["content"]["data"].as_str().is_some_and(|data| data.len() == 12 * mebibyte - 4096)
    });
    assert!(replayed.is_some(), "the image is not in the replay");
}

#[test]
fn a_relative_directory_begins_where_the_agent_works() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, r#"{"steps": [{"say": "hello"}]}"#);
    let new = editor.call("session/new", json!({ "cwd": ".", "mcpServers": [] })).unwrap();
    let session = new["sessionId"].as_str().unwrap().to_owned();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    let here = std::env::current_dir().unwrap();
    let listed = editor.call("session/list", json!({ "cwd": "." })).unwrap();
    assert_eq!(listed["sessions"][0]["cwd"], here.to_str().unwrap());
    editor.call("session/load", json!({ "sessionId": session, "cwd": "." })).unwrap();
    let refused = editor.call("session/new", json!({ "cwd": "", "mcpServers": [] })).unwrap_err();
    assert_eq!(refused["data"]["path"], "cwd");
    let session = editor.new_session();
    for (cwd, found) in [("/tmp/.", true), ("//tmp/x/../", true), ("/tmp/x", false)] {
        let load = json!({ "sessionId": session, "cwd": cwd });
        assert_eq!(editor.call("session/load", load).is_ok(), found, "{cwd}");
    }
}

#[test]
fn every_error_has_details_for_clients_that_show_only_those() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, r#"{"steps": [{"fail": "out of tea"}]}"#);
    let session = editor.new_session();
    let failed = editor.prompt(&session, "go");
    let failed = editor.answer(failed).unwrap_err();
    assert!(failed["message"].as_str().unwrap().contains("out of tea"), "{failed}");
    let mut told = vec![failed];
    for (method, params) in [
        ("session/load", json!({ "sessionId": "s-none" })),
        ("session/prompt", json!({ "sessionId": session })),
        ("session/sing", json!({})),
        ("initialize", json!({ "protocolVersion": 1 })),
    ] {
        told.push(editor.call(method, params).unwrap_err());
    }
    editor.line(b"{nonsense");
    told.push(editor.until("an error", |message| message["id"].is_null())["error"].clone());
    for error in told {
        assert_eq!(error["data"]["details"], error["message"], "{error}");
    }
}

#[test]
fn a_script_that_is_wrong_is_told_to_the_editor() {
    let home = Home::new();
    let mut editor = Editor::open(&home, r#"{"steps": [{"sing": "la"}]}"#, &[]);
    let refused = editor.call("initialize", json!({ "protocolVersion": 1 })).unwrap_err();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("script.json: steps[0]"), "{message}");
    assert_eq!(refused["data"]["details"], message);
    let refused = editor.call("session/new", json!({ "cwd": "/tmp" })).unwrap_err();
    assert_eq!(refused["message"], message);
    assert_eq!(editor.close(), 2);
}

#[test]
fn whatever_else_keeps_the_agent_from_starting_is_told_to_the_editor() {
    for (config, store, words) in [
        ("", "no store, but a text of some length that somebody keeps there", "junk.db"),
        ("[host]\ndrain = \"soon\"", "", "host.drain"),
    ] {
        let home = Home::new();
        home.config(config);
        let store = home.file("junk.db", store);
        let mut editor = Editor::open(&home, r#"{"steps": []}"#, &["--store", &store]);
        let refused = editor.call("initialize", json!({ "protocolVersion": 1 })).unwrap_err();
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
        assert_eq!(refused["data"]["details"], message);
        assert_eq!(refused["data"]["reason"], "UNAVAILABLE");
        assert_ne!(editor.close(), 0);
    }
}

#[test]
fn a_client_of_today_is_told_standard_words_for_a_stored_session_v2() {
    let home = Home::new();
    let mut first = Editor::v1(&home, PARKS);
    let session = first.new_session();
    let prompt = first.prompt(&session, "go");
    first.answer(prompt).unwrap();
    assert_eq!(first.close(), 0);
    let extension = json!({ "_meta": { "adjourn/suspend": {} } });
    for (capabilities, arguments, status) in [
        (json!({}), &[][..], "saved"),
        (extension, &[], "_suspended"),
        (json!({}), &["--status-words", "open"], "_suspended"),
    ] {
        let greeting = json!({ "protocolVersion": 2, "capabilities": capabilities });
        let mut editor = Editor::greeted(&home, PARKS, arguments, &greeting);
        let found = editor.call("session/status", json!({ "sessionId": session })).unwrap();
        assert_eq!(found["status"], status);
    }
}

#[test]
fn a_session_that_began_with_a_picture_has_a_title() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, r#"{"steps": [{"say": "a cat"}]}"#);
    let session = editor.new_session();
    let image = json!([{ "type": "image", "data": "AAAA", "mimeType": "image/png" }]);
    let prompt = json!({ "sessionId": session, "prompt": image });
    editor.call("session/prompt", prompt).unwrap();
    let titled = updates(&editor, "session_info_update").next().unwrap();
    assert_eq!(titled["title"], "[image]");
    let list = editor.call("session/list", json!({})).unwrap();
    assert_eq!(list["sessions"][0]["title"], "[image]", "{list}");
}
