//! JSON of every depth, over every face: refused in words, or readable by everybody afterwards.

use adjourn_testkit::http;
use serde_json::{Value, json};

use crate::acp::editor::Editor;
use crate::home::Home;

/// A key that serde_json takes for itself: what it names is read as the text of another document.
const PRIVATE: &str = "$serde_json::private::RawValue";

const PARKS: &str = r#"{"steps": [{"await": {"reason": "x", "conditions": {"onEvent": "go"}}}]}"#;

/// Lists in one another.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

/// Documents in one another, each as deep as serde_json allows: thousands of levels in all.
fn smuggled() -> String {
    let list = |inner: String| format!("{}{inner}{}", "[".repeat(100), "]".repeat(100));
    let mut text = list("1".to_owned());
    for _ in 0..16 {
        text = list(json!({ PRIVATE: text }).to_string());
    }
    text
}

/// Checks that a refusal names the limit, and the place.
fn is_clear(error: &Value) {
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("nested deeper than 64 levels"), "{error}");
    assert_eq!(error["code"], -32602, "{error}");
    assert!(!error["data"]["path"].as_str().unwrap().is_empty(), "{error}");
}

#[test]
fn every_depth_over_acp_is_refused_or_readable_by_everybody() {
    let home = Home::new();
    let mut editor = Editor::v1(&home, PARKS);
    let mut sessions = Vec::new();
    let mut accepted = [0; 5];
    for depth in 1..=200 {
        let deep = nested(depth);
        let servers = json!({ "cwd": "/tmp", "mcpServers": [{ "name": "x", "deep": deep }] });
        let session = match editor.call("session/new", servers) {
            Ok(made) => {
                accepted[0] = depth;
                made["sessionId"].as_str().unwrap().to_owned()
            }
            Err(error) => {
                is_clear(&error);
                editor.new_session()
            }
        };
        let at = |session: &str| json!({ "sessionId": session });
        let mut requests = [
            ("session/suspend", json!({ "_meta": { "deep": deep } })),
            ("session/resume", json!({ "input": deep })),
            (
                "session/prompt",
                json!({ "prompt": [{ "type": "text", "text": "a" }], "_meta": { "deep": deep } }),
            ),
            (
                "session/prompt",
                json!({ "prompt": [{ "type": "text", "text": "b", "deep": deep }] }),
            ),
        ];
        for (index, (method, params)) in requests.iter_mut().enumerate() {
            params["sessionId"] = at(&session)["sessionId"].clone();
            match editor.call(method, params.take()) {
                Ok(_) => accepted[index + 1] = depth,
                Err(error) => is_clear(&error),
            }
            if *method == "session/suspend" && accepted[1] < depth {
                editor.call(method, at(&session)).unwrap();
            }
            // A resume with input, and every prompt, starts a turn that parks.
            if *method == "session/resume" && accepted[index + 1] == depth {
                editor.until("parked", |message| {
                    message["params"]["update"]["sessionUpdate"] == "suspended"
                });
            }
        }
        sessions.push(session);
    }
    // Each face wraps a few levels around what it is given.
    assert_eq!(accepted, [60, 61, 62, 61, 60]);
    editor.close();

    let listed = home.jsons(&["ls", "--all"]);
    let mut other = Editor::v1(&home, PARKS);
    for session in &sessions {
        assert!(listed.iter().any(|listed| listed["sessionId"] == session.as_str()), "{session}");
        let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
        other.call("session/load", load).unwrap();
    }
    other.close();
    // A host drives the deepest of them, too.
    let serving = home.serve();
    home.json(&["event", "go"]);
    for session in &sessions[50..62] {
        home.until_log(session, " resumed ");
        assert_eq!(home.told(&["show", session]).code, 0);
    }
    assert_eq!(serving.terminate(), 0);
}

/// Posts an event, and returns the status and the body.
fn post(url: &str, data: &str) -> (u16, Value) {
    let address = url.strip_prefix("http://").and_then(|url| url.split('/').next()).unwrap();
    let id = data.len().to_string();
    let event = [("ce-specversion", "1.0"), ("ce-id", &id), ("ce-source", "t"), ("ce-type", "go")];
    let headers = [&event[..], &[("content-type", "application/json")]].concat();
    let answer = http::send(address, "POST /v1/events", &headers, data);
    (answer.status, answer.json())
}

/// Returns where a host that listens takes events.
fn url(said: &str) -> &str {
    said.lines().find_map(|line| line.strip_prefix("listening on ")).unwrap()
}

#[test]
fn every_depth_of_an_event_is_refused_or_wakes_and_is_told() {
    let home = Home::new();
    let waits = r#"{"await": {"reason": "x", "conditions": {"onEvent": "go"}}}"#;
    let script = format!(r#"{{"runs": [[{}]]}}"#, [waits; 200].join(","));
    let id = home.parked(&script);
    let (serving, said) = home.serve_with(&["--listen", "127.0.0.1:0", "--insecure-open"]);
    let mut woken = 0;
    let mut wakes = |depth: usize| {
        woken += 1;
        let start = std::time::Instant::now();
        while home.told(&["log", &id, "--transcript"]).data.matches("Its data: ").count() < woken {
            assert!(start.elapsed().as_secs() < 20, "{depth} never woke it");
        }
    };
    for depth in 1..=200 {
        let (status, body) = post(url(&said), &nested(depth).to_string());
        if depth <= 64 {
            assert_eq!(status, 200, "{depth}: {body}");
        } else {
            let clear = "nested deeper than 64 levels, at byte 64";
            assert_eq!((status, &body["detail"]), (400, &clear.into()), "{depth}: {body}");
        }
        if depth % 16 == 0 && depth <= 64 {
            wakes(depth);
        }
    }
    for depth in [1, 63, 64, 65, 123, 126, 127, 128, 200] {
        let told = home.told(&["event", "go", "--data", &nested(depth).to_string()]);
        assert_eq!(told.code, if depth <= 64 { 0 } else { 2 }, "{depth}: {told:?}");
        if depth > 64 {
            let clear =
                "error: --data: [0][0][0][0][0]…: nested deeper than 64 levels, at byte 64\n";
            assert_eq!(told.talk, clear);
        }
    }
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn what_is_typed_and_what_is_in_a_script_is_held_to_the_same_depth() {
    let home = Home::new();
    let id = home.parked(r#"{"runs": [[{"await": {"reason": "x"}}, {"await": {"reason": "y"}}, {"await": {"reason": "z"}}, {"say": "done"}]]}"#);
    for depth in [1, 64, 65, 123, 126, 127, 128, 200] {
        let told = home.told(&["resume", &id, "--input", &nested(depth).to_string()]);
        assert_eq!(told.code, if depth <= 64 { 0 } else { 2 }, "{depth}: {told:?}");
        assert_eq!(depth > 64, told.talk.contains("nested deeper than 64 levels"), "{told:?}");
        assert_eq!(home.told(&["show", &id]).code, 0);
        let trigger = nested(depth).to_string();
        let told = home.told(&["suspend", &id, "--trigger", &trigger]);
        assert_eq!(told.code, 2, "{told:?}");
        let script =
            format!(r#"{{"steps": [{{"await": {{"reason": "x", "conditions": {trigger}}}}}]}}"#);
        let script = home.file("deep.json", &script);
        let told = home.told(&["run", "--script", &script]);
        assert_eq!(told.code, 2, "{told:?}");
    }
}

/// Two requests and one event, each of which has once ended every process on its store.
#[test]
fn a_document_inside_of_a_document_is_refused_at_every_door() {
    let home = Home::new();
    let text = smuggled();
    assert!((250_000..400_000).contains(&text.len()), "{}", text.len());
    let clear = |message: &str| {
        assert!(
            message.contains(r#"a key must not begin with "$serde_json::private::""#),
            "{message}"
        );
    };
    let mut editor = Editor::v1(&home, PARKS);
    let session = editor.new_session();
    let server = json!({ PRIVATE: text, "name": "x" });
    let block = json!({ "type": "text", "text": "x", "more": { PRIVATE: text } });
    for (method, params) in [
        ("session/new", json!({ "cwd": "/tmp", "mcpServers": [server] })),
        ("session/prompt", json!({ "sessionId": session, "prompt": [block] })),
        ("session/suspend", json!({ "sessionId": session, "_meta": { PRIVATE: "1" } })),
        ("session/resume", json!({ "sessionId": session, "input": { PRIVATE: "1" } })),
    ] {
        let error = editor.call(method, params).unwrap_err();
        clear(error["message"].as_str().unwrap());
    }
    let escaped = PRIVATE.replace('$', "\\u0024");
    editor.line(
        format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"session/prompt","params":{{"sessionId":"{session}","prompt":[{{"{escaped}":"1"}}]}}}}"#
        )
        .as_bytes(),
    );
    let answer = editor.until("an answer", |message| message["id"] == "x");
    clear(answer["error"]["message"].as_str().unwrap());
    editor.close();

    let (serving, said) = home.serve_with(&["--listen", "127.0.0.1:0", "--insecure-open"]);
    let event = json!({ PRIVATE: text }).to_string();
    let (status, body) = post(url(&said), &event);
    assert_eq!(status, 400);
    clear(body["detail"].as_str().unwrap());
    for arguments in [&["event", "go", "--data", "-"][..], &["resume", &session, "--input", "-"]] {
        let told = home.told_with(&event, arguments);
        assert_eq!(told.code, 2, "{told:?}");
        clear(&told.talk);
    }
    assert_eq!(home.told(&["ls", "--all"]).code, 0);
    assert_eq!(serving.terminate(), 0);
}
