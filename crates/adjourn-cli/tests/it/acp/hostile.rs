//! Input that no editor should send. Each bad line gets an error, and the connection lives.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

const SCRIPT: &str = r#"{"steps": [
  {"say": "one"}, {"await": {"reason": "waiting", "conditions": {"onEvent": "never.comes"}}}
]}"#;

/// An editor with a session that is parked, and its handle.
fn parked(home: &Home) -> (Editor, String, String) {
    let mut editor = Editor::v1(home, SCRIPT);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    let answer = editor.answer(prompt).unwrap();
    let handle = answer["_meta"]["adjourn/suspend"]["handle"].as_str().unwrap().to_owned();
    (editor, session, handle)
}

/// Checks that the connection lives and the session is as it was.
fn unharmed(editor: &mut Editor, session: &str, handle: &str) {
    let status = editor.call("session/status", json!({ "sessionId": session })).unwrap();
    assert_eq!(status["_meta"]["adjourn/suspend"]["handle"], handle, "{status}");
}

#[test]
fn what_is_no_message_is_answered_and_the_connection_lives() {
    let home = Home::new();
    let (mut editor, session, handle) = parked(&home);
    let deep = [vec![b'['; 200_000], vec![b']'; 200_000]].concat();
    let deep_params = [
        br#"{"jsonrpc":"2.0","id":77,"method":"session/status","params":{"sessionId":"#.to_vec(),
        deep.clone(),
        b"}}".to_vec(),
    ]
    .concat();
    let long = vec![b'x'; 100 * 1024 * 1024];
    let lines: [(&[u8], i64); 10] = [
        (b"{", -32700),
        (b"hello", -32700),
        (b"\xff\xfe{}", -32700),
        (br#"{"jsonrpc":"2.0","id":1,"method":"session/li"#, -32700),
        (b"[]", -32600),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"session/list"}]"#, -32600),
        (br#"{"jsonrpc":"1.0","id":1,"method":"session/list"}"#, -32600),
        (&deep, -32600),
        (&deep_params, -32602),
        (&long, -32600),
    ];
    for (line, code) in lines {
        editor.line(line);
        let answer = editor.until("an error", |message| message.get("error").is_some());
        assert_eq!(
            answer["error"]["code"],
            code,
            "{}",
            String::from_utf8_lossy(&line[..8.min(line.len())])
        );
    }
    // Parameters have names, and one that is missing is named.
    for (params, path) in [(json!(["x", "y"]), ""), (json!({}), "sessionId")] {
        let error = editor.call("session/suspend", params).unwrap_err();
        assert_eq!((&error["code"], &error["data"]["path"]), (&json!(-32602), &json!(path)));
    }
    // Nobody answers what nobody asked.
    editor.line(b"");
    editor.line(br#"{"jsonrpc":"2.0","method":"no/such/thing","params":7}"#);
    editor.line(br#"{"jsonrpc":"2.0","id":9999,"result":{}}"#);
    assert_eq!(editor.overheard(), Vec::<Value>::new());
    unharmed(&mut editor, &session, &handle);
    // Half a line at the end is nobody's message.
    assert_eq!(editor.close(), 0);
}

#[test]
fn a_wrong_type_in_any_field_is_an_error_that_names_it() {
    let home = Home::new();
    let (mut editor, session, handle) = parked(&home);
    let requests = [
        ("session/new", json!({ "cwd": "/tmp", "mcpServers": [{ "name": "x" }] })),
        ("session/load", json!({ "sessionId": session, "cwd": "/tmp" })),
        (
            "session/prompt",
            json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "x" }] }),
        ),
        ("session/status", json!({ "sessionId": session })),
        ("session/list", json!({ "cwd": "/tmp", "cursor": "0" })),
        (
            "session/suspend",
            json!({
                "sessionId": session, "reason": "x", "mode": "finish_step", "graceMs": 5,
                "resumeWhen": {
                    "onEvent": "a.b", "trigger": { "exact": { "name": "a" } }, "since": 1,
                    "timeout": { "durationMinutes": 1, "onTimeout": "fail" },
                },
                "_meta": {},
            }),
        ),
        (
            "session/resume",
            json!({
                "sessionId": session, "cwd": "/tmp", "handle": handle, "continueTranscript": true,
                "replayFrom": { "type": "_adjourn_from", "seq": 1 }, "idempotencyKey": "k",
                "addBudget": { "usd": 1, "tokens": 1 },
            }),
        ),
    ];
    let wrong =
        [json!(7), json!("word"), json!([[]]), json!({ "a": {} }), json!(true), json!(-1.5)];
    let mut tried = 0;
    for (method, params) in &requests {
        for pointer in pointers(params) {
            let right = params.pointer(&pointer).unwrap();
            for wrong in &wrong {
                if std::mem::discriminant(wrong) == std::mem::discriminant(right) {
                    continue;
                }
                let mut params = params.clone();
                *params.pointer_mut(&pointer).unwrap() = wrong.clone();
                let Err(error) = editor.call(method, params) else {
                    panic!("{method} takes {wrong} at {pointer}");
                };
                assert_eq!(error["code"], -32602, "{method} {pointer} {wrong}: {error}");
                let field = pointer.split('/').nth(1).unwrap();
                let path = error["data"]["path"].as_str().unwrap();
                assert!(path.starts_with(field), "{method} {pointer} {wrong}: {error}");
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "{tried}");
    unharmed(&mut editor, &session, &handle);
}

/// Returns the places of all values in an object.
fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<_> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(values) => {
            values.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    let mut all = Vec::new();
    for (key, value) in children {
        all.push(format!("/{key}"));
        all.extend(pointers(value).into_iter().map(|pointer| format!("/{key}{pointer}")));
    }
    all
}

#[test]
fn cursors_that_are_not_known_are_refused() {
    let home = Home::new();
    let (mut editor, session, handle) = parked(&home);
    for cursor in [
        json!("start"),
        json!({}),
        json!({ "type": "message", "messageId": "m1" }),
        json!({ "type": "_other" }),
        json!({ "type": "_adjourn_from" }),
    ] {
        let resume = json!({ "sessionId": session, "replayFrom": cursor });
        let refused = editor.call("session/resume", resume).unwrap_err();
        assert_eq!(refused["code"], -32602, "{cursor}");
    }
    unharmed(&mut editor, &session, &handle);
}

#[test]
fn what_is_too_large_is_refused_and_nothing_changes() {
    let home = Home::new();
    let (mut editor, session, handle) = parked(&home);
    let suspend = |field: &str, value: Value| {
        let mut request = json!({ "sessionId": session });
        request[field] = value;
        request
    };
    for (request, path) in [
        (suspend("reason", json!("x".repeat(5000))), "reason"),
        (suspend("_meta", json!({ "x": "x".repeat(5000) })), "_meta"),
        (suspend("resumeWhen", json!({ "onEvent": "x".repeat(20_000) })), "resumeWhen"),
    ] {
        let refused = editor.call("session/suspend", request).unwrap_err();
        assert_eq!(refused["code"], -32602, "{refused}");
        let found = refused["data"]["path"].as_str().unwrap();
        assert!(found.starts_with(path), "{refused}");
    }
    let prompt = editor.prompt(&session, &"x".repeat(13 * 1024 * 1024));
    assert_eq!(editor.answer(prompt).unwrap_err()["code"], -32602);
    unharmed(&mut editor, &session, &handle);
}

/// What nobody asked for costs what it takes to read it, however many sessions are open.
#[test]
fn an_answer_that_nobody_asked_for_goes_to_no_session() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, SCRIPT);
    let mut session = String::new();
    for _ in 0..50 {
        session = editor.new_session();
    }
    let before = editor.peak_memory();
    let long = "x".repeat(8 * 1024 * 1024);
    for id in [json!(1), json!(99), json!("1"), json!(null)] {
        editor.send(json!({ "jsonrpc": "2.0", "id": id, "result": { "content": long } }));
        editor.send(json!({ "jsonrpc": "2.0", "id": id, "error": { "message": long } }));
    }
    editor.call("session/status", json!({ "sessionId": session })).unwrap();
    let grown = editor.peak_memory() - before;
    assert!(grown < 64 * 1024 * 1024, "{grown} bytes");
    // An id of any length would be kept by every session that might have it.
    let long = "x".repeat(2000);
    editor.send(json!({ "jsonrpc": "2.0", "id": long, "method": "session/list", "params": {} }));
    let answer = editor.until("an error", |message| message.get("error").is_some());
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
    editor.notify("$/cancel_request", json!({ "requestId": long }));
    assert_eq!(editor.overheard(), Vec::<Value>::new());
}

#[test]
fn what_says_nothing_or_says_it_wrongly_is_refused_with_what_is_wrong() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, SCRIPT);
    let session = editor.new_session();
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let cases = [
        ("session/prompt", json!({ "prompt": [] }), "prompt", "prompt: must not be empty"),
        ("session/prompt", json!({ "prompt": text("") }), "prompt", "prompt: must not be blank"),
        (
            "session/prompt",
            json!({ "prompt": text(" \n\t") }),
            "prompt",
            "prompt: must not be blank",
        ),
        (
            "session/suspend",
            json!({ "reason": " " }),
            "reason",
            "reason: must not be blank; it may be left out",
        ),
        (
            "session/suspend",
            json!({ "resume_when": { "onEvent": "a" } }),
            "resume_when",
            "resume_when: there is no such field; \
             there are sessionId, reason, resumeWhen, mode, graceMs, _meta",
        ),
        (
            "session/suspend",
            json!({ "resumeWhen": { "onEvent": "*" } }),
            "resumeWhen.onEvent",
            "resumeWhen.onEvent: expected a name whose first part has no star, got \"*\"",
        ),
        (
            "session/suspend",
            json!({ "_meta": { "adjourn/suspend": { "resumeWhen": { "onEvent": "**" } } } }),
            "_meta[\"adjourn/suspend\"].resumeWhen.onEvent",
            "_meta[\"adjourn/suspend\"].resumeWhen.onEvent: \
             expected a name whose first part has no star, got \"**\"",
        ),
    ];
    for (method, mut params, path, message) in cases {
        params["sessionId"] = json!(session);
        let error = editor.call(method, params).unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!((&error["data"]["path"], &error["message"]), (&path.into(), &message.into()));
    }
    let status = editor.call("session/status", json!({ "sessionId": session })).unwrap();
    assert_eq!(status["_meta"]["adjourn/suspend"]["state"], "idle", "{status}");
    // A picture says something without a word.
    let picture = json!([{ "type": "image", "data": "aGk=", "mimeType": "image/png" }]);
    editor.call("session/prompt", json!({ "sessionId": session, "prompt": picture })).unwrap();
    let resume = json!({ "sessionId": session, "input": " " });
    let error = editor.call("session/resume", resume).unwrap_err();
    assert_eq!(
        (&error["data"]["path"], &error["message"]),
        (&"input".into(), &"input: must not be blank".into())
    );
}
