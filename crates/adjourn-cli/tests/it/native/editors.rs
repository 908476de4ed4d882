//! Agents in editors: what they say, ask and use is told over ACP, and MCP servers of a client are
//! connected.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::tools::{CALLS, SERVER, results};
use super::{model, said};
use crate::acp::editor::Editor;
use crate::home::Home;

const ASKS: &str = r#"
{"thought": "hm", "text": "I look.", "calls": [{"tool": "read_file", "arguments": {"path": "notes.txt"}}], "usage": {"prompt_tokens": 50, "completion_tokens": 10, "cost_usd": 0.01}}
{"text": "Two match.", "calls": [{"tool": "ask_user", "arguments": {"question": "Which?", "choices": ["raw", "monthly"]}}]}
{"text": "Loaded."}
"#;

fn greeting(version: u64) -> Value {
    match version {
        1 => json!({ "protocolVersion": 1 }),
        _ => {
            json!({ "protocolVersion": 2, "info": { "name": "ed", "version": "1" }, "capabilities": {} })
        }
    }
}

fn updates(editor: &Editor, kind: &str) -> Vec<Value> {
    let updates = editor.heard().map(|message| message["params"]["update"].clone());
    updates.filter(|update| update["sessionUpdate"] == kind).collect()
}

#[test]
fn an_editor_sees_words_thoughts_calls_and_a_question() {
    let home = Home::new();
    home.file("notes.txt", "some notes");
    let model = model(&home, ASKS);
    let arguments = ["--model", &model, "--tools", "read"];
    let mut editor = Editor::of_agent(&home, &arguments, &greeting(1));
    let cwd = home.path("");
    let made = editor.call("session/new", json!({ "cwd": cwd, "mcpServers": [] })).unwrap();
    let session = made["sessionId"].as_str().unwrap().to_owned();
    let prompt = editor.prompt(&session, "load it");
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
    let text = |kind: &str| -> String {
        let chunks = updates(&editor, kind);
        chunks.iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    };
    assert!(text("agent_thought_chunk").contains("hm"), "{}", editor.dialog());
    let words = text("agent_message_chunk");
    assert!(words.contains("I look.") && words.contains("Two match."), "{words}");
    assert!(words.contains("Which?"), "a question is asked in words: {words}");
    let calls = [updates(&editor, "tool_call"), updates(&editor, "tool_call_update")].concat();
    let about = |call: &&Value| call["title"] == "Read notes.txt";
    assert_eq!(calls.iter().find(about).unwrap()["kind"], "read");
    assert!(json!(calls).to_string().contains("some notes"), "{calls:?}");
    let prompt = editor.prompt(&session, "raw");
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
    assert!(json!(updates(&editor, "agent_message_chunk")).to_string().contains("Loaded."));
    assert_eq!(editor.close(), 0);
}

/// The size of a context is told where the settings have it, and is 0 where they do not.
#[test]
fn an_editor_is_told_after_each_answer_what_was_used() {
    let answers = r#"
{"text": "I look.", "calls": [{"tool": "read_file", "arguments": {"path": "notes.txt"}}], "usage": {"prompt_tokens": 50, "completion_tokens": 10, "cost_usd": 0.01}}
{"text": "It has some.", "usage": {"prompt_tokens": 80, "completion_tokens": 5, "cost_usd": 0.02}}
"#;
    for (settings, size) in [
        ("", 0),
        ("[prices.scripted]\nprompt = 1.0\ncompletion = 2.0\ncontext_tokens = 1000\n", 1000),
    ] {
        for version in [1, 2] {
            let home = Home::new();
            home.file("notes.txt", "some notes");
            home.config(settings);
            let model = model(&home, answers);
            let arguments = ["--model", &model, "--tools", "read"];
            let mut editor = Editor::of_agent(&home, &arguments, &greeting(version));
            let new = json!({ "cwd": home.path(""), "mcpServers": [] });
            let made = editor.call("session/new", new).unwrap();
            let session = made["sessionId"].as_str().unwrap().to_owned();
            let prompt = editor.prompt(&session, "look");
            editor.answer(prompt).unwrap();
            home.until(&session, "outcome", "completed");
            let used = |tokens: u64, dollars: f64| {
                json!({ "sessionUpdate": "usage_update", "used": tokens, "size": size,
                        "cost": { "amount": dollars, "currency": "USD" } })
            };
            // The editor is told all that was said before it gets this answer.
            editor.call("session/list", json!({})).unwrap();
            let told = updates(&editor, "usage_update");
            assert_eq!(told, [used(60, 0.01), used(85, 0.03)], "{}", editor.dialog());
            let said = said(&home, &session);
            assert_eq!(said[1].1, "I look.", "an answer and its calls stay one message: {said:?}");
            assert_eq!(editor.close(), 0);
        }
    }
}

#[test]
fn mcp_is_advertised_where_it_works() {
    let home = Home::new();
    let model = model(&home, ASKS);
    let advertised = |arguments: &[&str], version| {
        let mut editor = Editor::of_agent(&home, arguments, &greeting(version));
        let told = editor.heard().find_map(|message| message.get("result").cloned()).unwrap();
        editor.hang_up();
        match version {
            1 => told["agentCapabilities"]["mcpCapabilities"].clone(),
            _ => told["capabilities"]["session"]["mcp"].clone(),
        }
    };
    let script = home.file("script.json", r#"{"steps": [{"say": "x"}]}"#);
    let (native, scripted) = (["--model", &model], ["--script", &script]);
    let conformance = ["--agent", "conformance"];
    assert_eq!(advertised(&native, 1), json!({ "http": true, "sse": false }));
    assert_eq!(advertised(&native, 2), json!({ "stdio": {}, "http": {} }));
    for without in [&scripted, &conformance] {
        assert_eq!(advertised(without, 1), json!({ "http": false, "sse": false }));
        assert_eq!(advertised(without, 2), Value::Null);
    }
}

/// What a client names when it comes back holds, whatever the session was made with.
#[test]
fn servers_that_a_client_names_when_it_comes_back_take_the_place_of_the_stored_ones() {
    let home = Home::new();
    let (server, model) = (home.file("server.sh", SERVER), model(&home, CALLS));
    let described = |word: &str| {
        json!([{ "name": "words", "command": "/bin/sh", "args": [server, word],
                 "env": [{ "name": "WORD", "value": word }] }])
    };
    let arguments = ["--model", &model];
    for (version, method) in [(1, "session/load"), (1, "session/resume"), (2, "session/resume")] {
        let mut editor = Editor::of_agent(&home, &arguments, &greeting(version));
        let new = json!({ "cwd": home.path(""), "mcpServers": described("four") });
        let made = editor.call("session/new", new).unwrap();
        let session = made["sessionId"].as_str().unwrap().to_owned();
        let prompt = editor.prompt(&session, "go");
        editor.answer(prompt).unwrap();
        home.until(&session, "reason", "more");
        assert_eq!(results(&home, &session), ["the word has 4 letters"], "{}", editor.dialog());
        let attach = json!({ "sessionId": session, "cwd": home.path(""), "mcpServers": described("another") });
        editor.call(method, attach).unwrap();
        let prompt = editor.prompt(&session, "go on");
        editor.answer(prompt).unwrap();
        home.until(&session, "outcome", "completed");
        assert_eq!(results(&home, &session)[1], "the word has 7 letters", "{version} {method}");
        assert_eq!(editor.close(), 0);
    }
}

/// Where a program lies is meant from the session's directory, whichever the agent was started in; and
/// a session whose directory is gone can still be looked at.
#[test]
fn a_server_beside_the_files_of_a_session_is_found_when_a_client_comes_back() {
    let home = Home::new();
    let model = model(&home, CALLS);
    let work = home.path("work");
    std::fs::create_dir(&work).unwrap();
    let server = home.file("work/server.sh", &format!("#!/bin/sh\n{SERVER}"));
    std::fs::set_permissions(server, std::fs::Permissions::from_mode(0o755)).unwrap();
    let servers = json!([{ "name": "words", "command": "./server.sh", "args": [],
                           "env": [{ "name": "WORD", "value": "four" }] }]);
    for (version, method) in [(1, "session/load"), (1, "session/resume"), (2, "session/resume")] {
        let mut editor = Editor::of_agent(&home, &["--model", &model], &greeting(version));
        let new = json!({ "cwd": work, "mcpServers": servers });
        let made = editor.call("session/new", new).unwrap();
        let session = made["sessionId"].as_str().unwrap().to_owned();
        editor.prompt(&session, "go");
        home.until(&session, "reason", "more");
        let attach = json!({ "sessionId": session, "cwd": work, "mcpServers": servers });
        editor.call(method, attach.clone()).unwrap();
        editor.prompt(&session, "go on");
        home.until(&session, "outcome", "completed");
        assert_eq!(results(&home, &session), ["the word has 4 letters"; 2], "{version} {method}");
        std::fs::rename(&work, home.path("elsewhere")).unwrap();
        editor.call(method, attach).unwrap();
        std::fs::rename(home.path("elsewhere"), &work).unwrap();
        assert_eq!(editor.close(), 0);
    }
}

/// What can be known at once is refused at once: later, no request would be there to refuse.
#[test]
fn a_session_that_could_never_run_is_refused_with_what_is_wrong() {
    let home = Home::new();
    let model = model(&home, ASKS);
    let cwd = home.path("").display().to_string();
    let file = home.file("notes.txt", "some notes");
    let server = |fields: Value| {
        let mut server = json!({ "name": "a" });
        server.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        server
    };
    let starts = |command: &str| server(json!({ "command": command, "args": [], "env": [] }));
    for (cwd, servers, field, problem) in [
        ("/nope", json!([]), "cwd", "/nope is no directory"),
        ("not-there", json!([]), "cwd", "/not-there is no directory"),
        (&file, json!([]), "cwd", "notes.txt is no directory"),
        (
            &cwd,
            json!([starts("sh"), { "name": "b", "type": "sse", "url": "http://127.0.0.1:1" }]),
            "mcpServers[1].type",
            "streamable HTTP is",
        ),
        (&cwd, json!([server(json!({}))]), "mcpServers[0]", "expected a command, or an url"),
        (
            &cwd,
            json!([starts("sh"), starts("sh")]),
            "mcpServers[1]",
            "another server is called \"a\"",
        ),
        (
            &cwd,
            json!([starts("no-such-program")]),
            "mcpServers[0].command",
            "there is no program \"no-such-program\"",
        ),
        (&cwd, json!([starts("./notes.txt")]), "mcpServers[0].command", "there is no program"),
    ] {
        for version in [1, 2] {
            let mut editor = Editor::of_agent(&home, &["--model", &model], &greeting(version));
            let new = json!({ "cwd": cwd, "mcpServers": servers });
            let refused = editor.call("session/new", new).unwrap_err();
            assert_eq!(refused["code"], -32602, "{refused}");
            assert_eq!(refused["data"]["path"], field, "{refused}");
            assert!(refused["message"].as_str().unwrap().contains(problem), "{refused}");
            assert_eq!(editor.close(), 0);
        }
    }
    assert_eq!(home.told(&["ls", "--all", "--json"]).data, "", "there is no session that waits");
    // A client that comes back with such servers is refused, and the session is as it was.
    let mut editor = Editor::of_agent(&home, &["--model", &model], &greeting(1));
    let made = editor.call("session/new", json!({ "cwd": cwd, "mcpServers": [] })).unwrap();
    let session = made["sessionId"].as_str().unwrap().to_owned();
    let load =
        json!({ "sessionId": session, "cwd": cwd, "mcpServers": [starts("no-such-program")] });
    let refused = editor.call("session/load", load).unwrap_err();
    assert_eq!(refused["data"]["path"], "mcpServers[0].command", "{refused}");
    assert_eq!(editor.close(), 0);
}

/// Clients of today send a relative path: it begins where the agent was started.
#[test]
fn a_relative_directory_that_is_there_is_taken() {
    let home = Home::new();
    let model = model(&home, ASKS);
    let mut editor = Editor::of_agent(&home, &["--model", &model], &greeting(1));
    editor.call("session/new", json!({ "cwd": ".", "mcpServers": [] })).unwrap();
    assert_eq!(editor.close(), 0);
}

#[test]
fn a_server_that_fails_later_is_told_and_the_run_goes_on_without_it() {
    for version in [1, 2] {
        let home = Home::new();
        let model = model(&home, r#"{"text": "I do without."}"#);
        let mut editor = Editor::of_agent(&home, &["--model", &model], &greeting(version));
        let ends =
            json!([{ "name": "late", "command": "sh", "args": ["-c", "exit 3"], "env": [] }]);
        let new = json!({ "cwd": home.path(""), "mcpServers": ends });
        let made = editor.call("session/new", new).unwrap();
        let session = made["sessionId"].as_str().unwrap().to_owned();
        let prompt = editor.prompt(&session, "go");
        editor.answer(prompt).unwrap();
        home.until(&session, "outcome", "completed");
        editor.call("session/list", json!({})).unwrap();
        let told = match version {
            1 => json!(updates(&editor, "agent_message_chunk")).to_string(),
            _ => json!(updates(&editor, "notice")).to_string(),
        };
        assert!(told.contains("MCP server \\\"late\\\" cannot be used"), "{}", editor.dialog());
        let log = home.told(&["log", &session, "--transcript"]);
        assert!(log.data.contains("MCP server \"late\" cannot be used"), "{log:?}");
        assert_eq!(editor.close(), 0);
    }
}

#[test]
fn a_prompt_that_no_host_can_run_says_what_is_missing_and_can_be_cancelled() {
    for version in [1, 2] {
        let home = Home::new();
        let model = model(&home, ASKS);
        let arguments = ["--model", &model, "--tools", "read"];
        let mut editor = Editor::of_agent(&home, &arguments, &greeting(version));
        let cwd = home.path("work");
        std::fs::create_dir(&cwd).unwrap();
        let made = editor.call("session/new", json!({ "cwd": cwd, "mcpServers": [] })).unwrap();
        let session = made["sessionId"].as_str().unwrap().to_owned();
        std::fs::remove_dir(&cwd).unwrap();
        let prompt = editor.prompt(&session, "go");
        let why = "Your message waits, because its agent cannot be run here: its directory";
        let told = editor.until(why, |message| message.to_string().contains(why));
        assert!(told.to_string().contains("work cannot be used"), "{told}");
        editor.notify("session/cancel", json!({ "sessionId": session }));
        if version == 1 {
            assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "cancelled");
        }
        home.until(&session, "outcome", "canceled");
        assert_eq!(editor.close(), 0);
    }
}
