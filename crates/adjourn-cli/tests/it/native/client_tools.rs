//! Tools of an agent in an editor that has files and terminals: they go through it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::model;
use super::tools::results;
use crate::acp::editor::Editor;
use crate::home::Home;

const CHANGES: &str = r#"
{"text": "I edit.", "calls": [{"tool": "edit_file", "arguments": {"path": "notes.txt", "old_text": "alpha", "new_text": "beta"}}]}
{"text": "I write.", "calls": [{"tool": "write_file", "arguments": {"path": "new.txt", "content": "fresh"}}]}
{"text": "I run.", "calls": [{"tool": "run_command", "arguments": {"command": "echo on disk > ran.txt"}}]}
{"text": "Over."}
"#;

/// What a person has open in an editor, and what the agent has done there.
#[derive(Default)]
struct Workbench {
    /// Texts by their paths, which are not saved.
    files: BTreeMap<String, String>,
    /// The kinds of calls that were allowed.
    allowed: Vec<Value>,
    /// What was asked of terminals.
    terminals: Vec<(String, Value)>,
}

impl Workbench {
    /// Does what the agent asks for, and returns the result, or the error.
    fn does(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let text = |name: &str| params[name].as_str().unwrap().to_owned();
        match method {
            "session/request_permission" => {
                self.allowed.push(params["toolCall"]["kind"].clone());
                let options = params["options"].as_array().unwrap();
                let once = options.iter().find(|option| option["kind"] == "allow_once").unwrap();
                Ok(json!({ "outcome": { "outcome": "selected", "optionId": once["optionId"] } }))
            }
            "fs/read_text_file" => match self.files.get(&text("path")) {
                Some(content) => Ok(json!({ "content": content })),
                None => Err(json!({ "code": -32002, "message": "there is no such file" })),
            },
            "fs/write_text_file" => {
                self.files.insert(text("path"), text("content"));
                Ok(json!({}))
            }
            _ => {
                self.terminals.push((method.to_owned(), params.clone()));
                Ok(match method {
                    "terminal/create" => json!({ "terminalId": "term-1" }),
                    "terminal/wait_for_exit" => json!({ "exitCode": 3, "signal": null }),
                    "terminal/output" => {
                        json!({ "output": "seen in the editor\n", "truncated": false })
                    }
                    _ => json!({}),
                })
            }
        }
    }

    /// Does what the agent asks for until a prompt is answered, and returns that answer.
    fn attend(&mut self, editor: &mut Editor, prompt: u64) -> Value {
        loop {
            let message = editor.until("a request or the answer", |said| said.get("id").is_some());
            let Some(method) = message["method"].as_str() else {
                assert_eq!(message["id"], prompt, "{message}");
                return message["result"].clone();
            };
            match self.does(method, &message["params"]) {
                Ok(result) => editor.reply(&message["id"], result),
                Err(error) => {
                    editor.send(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
                }
            }
        }
    }
}

#[test]
fn files_and_commands_go_through_an_editor_that_has_them() {
    let home = Home::new();
    home.file("notes.txt", "saved long ago");
    let model = model(&home, CHANGES);
    let greeting = json!({ "protocolVersion": 1, "clientCapabilities": {
        "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true } });
    let arguments = ["--model", &model, "--tools", "write,edit,run"];
    let mut editor = Editor::of_agent(&home, &arguments, &greeting);
    let cwd = home.path("").canonicalize().unwrap();
    let made = editor.call("session/new", json!({ "cwd": cwd, "mcpServers": [] })).unwrap();
    let session = made["sessionId"].as_str().unwrap().to_owned();
    let path = |name: &str| cwd.join(name).to_str().unwrap().to_owned();
    let mut bench = Workbench::default();
    // The person has changed it, and not saved it.
    bench.files.insert(path("notes.txt"), "alpha, unsaved".to_owned());
    let prompt = editor.prompt(&session, "go");
    assert_eq!(bench.attend(&mut editor, prompt)["stopReason"], "end_turn");

    assert_eq!(bench.allowed, ["edit", "edit", "execute"], "{}", editor.dialog());
    assert_eq!(bench.files[&path("notes.txt")], "beta, unsaved");
    assert_eq!(bench.files[&path("new.txt")], "fresh");
    // Nothing was done behind the editor's back.
    assert_eq!(std::fs::read_to_string(path("notes.txt")).unwrap(), "saved long ago");
    assert!(!home.path("new.txt").exists() && !home.path("ran.txt").exists());

    let methods: Vec<_> = bench.terminals.iter().map(|(method, _)| method.as_str()).collect();
    let whole = ["create", "wait_for_exit", "output", "release"];
    assert_eq!(methods, whole.map(|verb| format!("terminal/{verb}")), "{}", editor.dialog());
    let (_, created) = &bench.terminals[0];
    assert_eq!(created["sessionId"], session.as_str());
    assert_eq!(created["args"][1], "echo on disk > ran.txt");
    assert_eq!(created["cwd"].as_str().map(str::to_owned), cwd.to_str().map(str::to_owned));
    for (method, params) in &bench.terminals[1..] {
        assert_eq!(params["terminalId"], "term-1", "{method} names it as the editor does");
    }
    let results = results(&home, &session);
    assert!(results[0].contains("notes.txt was changed in 1 places"), "{results:?}");
    assert!(results[1].contains("new.txt has 5 bytes"), "{results:?}");
    assert!(results[2].contains("seen in the editor") && results[2].contains('3'), "{results:?}");
    // The editor shows what changes, as a diff of what the person has open.
    let dialog = editor.dialog();
    assert!(dialog.contains(r#""oldText":"alpha, unsaved""#), "{dialog}");
    assert_eq!(editor.close(), 0);
}
