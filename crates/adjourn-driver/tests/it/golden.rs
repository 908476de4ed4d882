//! The encoding of messages, frozen: every entry ever written stays readable.
//!
//! `tests/golden/` holds an example of each. A file is never changed; what is written otherwise
//! than before gets a file beside those that are there. `UPDATE_EXPECT=1` adds files that are
//! missing.

use std::path::{Path, PathBuf};

use adjourn_core::ledger::CallId;
use adjourn_driver::content::Fate;
use adjourn_driver::{Block, CallContent, Message, Role, Segment, Shown};
use serde_json::{Value, json};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn block(value: Value) -> Block {
    Block::from_fields(value.as_object().unwrap().clone()).unwrap()
}

fn call(id: &str) -> CallId {
    CallId(id.to_owned())
}

fn values(value: Value) -> Vec<Value> {
    value.as_array().unwrap().clone()
}

/// Returns an example of every role, block, segment and kind of what is shown.
fn examples() -> Vec<(&'static str, Message)> {
    let annotations = json!({ "audience": ["user"], "priority": 0.5 });
    let blocks = vec![
        block(json!({ "type": "text", "text": "Grüße \"park\"\n🚀", "annotations": annotations })),
        block(json!({
            "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png",
            "uri": "file:///tmp/a.png", "annotations": { "lastModified": "2026-01-01T00:00:00Z" },
        })),
        block(json!({ "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" })),
        block(json!({
            "type": "resource",
            "resource": { "uri": "file:///a.rs", "text": "fn a() {}", "mimeType": "text/x-rust" },
            "_meta": { "adjourn.dev/kept": [1, 2.5, null, true] },
        })),
        block(json!({
            "type": "resource", "resource": { "uri": "file:///a.bin", "blob": "AAEC" },
        })),
        block(json!({
            "type": "resource_link", "uri": "file:///a.rs", "name": "a.rs", "title": "A",
            "description": "a file", "mimeType": "text/x-rust", "size": 9,
            "_meta": { "k": { "deep": [] } },
        })),
        block(json!({ "type": "of_another_day", "field": 1 })),
    ];
    let asks = CallContent {
        title: Some("Build it".to_owned()),
        kind: Some("execute".to_owned()),
        arguments: json!({ "target": "all", "jobs": 4 }),
        locations: values(json!([{ "path": "/a.rs", "line": 3 }])),
        ..CallContent::new(call("1.2-0-6"), "build")
    };
    let thinks = vec![
        block(json!({ "type": "thought", "text": "first", "_meta": { "signature": "c2ln" } })),
        Block::text("I build it."),
    ];
    let part = |offset, last, text: &str| Message {
        id: Some("m1".to_owned()),
        segment: Some(Segment { offset, last }),
        step: Some(3),
        ..Message::agent(text)
    };
    let shown = |shown| Message::showing(shown).in_step(Some(3));
    let update = json!({ "title": "Build", "status": "in_progress" });
    vec![
        ("user", Message::user("go")),
        ("user-blocks", Message::new(Role::User, blocks.clone())),
        ("user-value", Message::user_value(json!({ "table": "monthly", "rows": [1, 2] }))),
        ("agent", Message::agent("done").in_step(Some(1))),
        (
            "agent-calls",
            Message {
                id: Some("m7".to_owned()),
                calls: vec![asks, CallContent::new(call("1.2-1-6"), "lint")],
                step: Some(2),
                ..Message::new(Role::Agent, thinks)
            },
        ),
        (
            "agent-signed-call",
            Message {
                calls: vec![CallContent {
                    signed: Some(
                        json!({ "by": "anthropic/m", "thoughts": [{ "signature": "c2ln" }] })
                            .into(),
                    ),
                    ..CallContent::new(call("toolu_1"), "lint")
                }],
                ..Message::new(Role::Agent, Vec::new())
            },
        ),
        (
            "user-meta",
            Message {
                meta: json!({ "a2a": { "extensions": ["urn:x"], "metadata": { "k": 1 } } })
                    .as_object()
                    .cloned(),
                ..Message::user("hi")
            },
        ),
        ("agent-aborted", Message { aborted: true, ..Message::agent("I was ab") }),
        ("agent-segment", part(0, false, "first ")),
        ("agent-segment-last", part(6, true, "last")),
        ("tool", Message::result(call("1.2-0-6"), vec![Block::text("built")])),
        (
            "tool-error",
            Message {
                structured: Some(json!({ "exitCode": 2 })),
                is_error: true,
                ..Message::result(call("1.2-0-6"), blocks)
            },
        ),
        ("host", Message::host("[adjourn] Woken after 1h.").answering(Some(call("1.2-0-6")))),
        ("host-digest", Message { digest: true, ..Message::host("[adjourn] In short:") }),
        ("host-not-run", Message::fate(call("1.2-0-6"), "build", Fate::NotRun)),
        ("host-unknown", Message::fate(call("1.2-0-6"), "build", Fate::Unknown)),
        (
            "shown-plan",
            shown(Shown::Plan(values(json!([
                { "content": "build", "priority": "high", "status": "pending" },
            ])))),
        ),
        ("shown-context", shown(Shown::Context { used: 5_000, size: 200_000 })),
        (
            "shown-commands",
            shown(Shown::Commands(values(json!([{ "name": "test", "description": "Test it" }])))),
        ),
        ("shown-mode", shown(Shown::Mode("plan".to_owned()))),
        (
            "shown-call",
            shown(Shown::Call { id: call("1.2-0-6"), update: update.as_object().unwrap().clone() }),
        ),
        ("shown-raw", shown(Shown::Raw(json!({ "sessionUpdate": "of_another_day", "n": 1 })))),
    ]
}

#[test]
fn every_example_is_written_as_its_golden_file_has_it() {
    for (name, message) in examples() {
        let path = directory().join(format!("{name}.1.json"));
        let bytes = message.encode();
        if !path.exists() && std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        let golden = std::fs::read(&path).unwrap_or_default();
        assert_eq!(
            String::from_utf8_lossy(&golden),
            String::from_utf8_lossy(&bytes),
            "{name}; `make update-expected` adds a file that is missing, and changes none"
        );
        assert_eq!(Message::decode(&golden).unwrap(), message, "{name}");
    }
}

#[test]
fn every_golden_file_is_readable() {
    let mut read = 0;
    for file in std::fs::read_dir(directory()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let message = Message::decode(&bytes).unwrap();
        assert_eq!(message.encode(), bytes, "what is read is written the same");
        read += 1;
    }
    assert!(read >= examples().len(), "{read}");
}

/// Fields that only some messages have are frozen, too.
#[test]
fn the_golden_files_have_every_field() {
    let all: String = std::fs::read_dir(directory())
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    for field in [
        "v",
        "id",
        "role",
        "blocks",
        "calls",
        "answers",
        "structured",
        "isError",
        "fate",
        "aborted",
        "digest",
        "step",
        "segment",
        "shown",
        "offset",
        "last",
        "tool",
        "title",
        "kind",
        "arguments",
        "locations",
        "plan",
        "context",
        "used",
        "size",
        "commands",
        "mode",
        "call",
        "update",
        "raw",
        "annotations",
        "_meta",
        "meta",
    ] {
        assert!(all.contains(&format!("\"{field}\":")), "no golden file has {field}");
    }
}

fn problem(text: &str) -> String {
    Message::decode(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn unknown_fields_are_ignored() {
    let text = r#"{"v":1,"role":"agent","mood":"good","blocks":[{"type":"text","text":"hi"}],
        "calls":[{"id":"c","tool":"t","priority":1}]}"#;
    let expected =
        Message { calls: vec![CallContent::new(call("c"), "t")], ..Message::agent("hi") };
    assert_eq!(Message::decode(text.as_bytes()).unwrap(), expected);
}

#[test]
fn a_message_of_a_newer_program_is_refused_whatever_it_holds() {
    let newer = "a message of version 2, which is newer than 1";
    assert_eq!(problem(r#"{"v":2,"role":"user","blocks":[]}"#), newer);
    assert_eq!(problem(r#"{"v":2,"role":"crowd","blocks":{"of":"another shape"}}"#), newer);
}

#[test]
fn what_is_no_message_is_an_error_and_not_a_guess() {
    assert_eq!(
        problem(r#"{"role":"user","content":"go"}"#),
        "missing field `v` at line 1 column 30"
    );
    assert!(problem(r#"{"v":1,"role":"crowd"}"#).starts_with("unknown variant `crowd`"));
    assert!(problem(r#"{"v":1,"role":"agent","shown":{"mood":1}}"#).contains("`mood`"));
    for blocks in [r#"[{"text":"x"}]"#, r#"[{"type":"text"}]"#, r#"[{"type":"text","text":1}]"#] {
        let text = format!(r#"{{"v":1,"role":"user","blocks":{blocks}}}"#);
        assert!(problem(&text).contains("without a type, or a text without words"), "{text}");
    }
}

#[test]
fn a_value_is_said_as_what_it_is() {
    assert_eq!(Message::user_value(json!("yes")), Message::user("yes"));
    let list = json!([{ "type": "text", "text": "a" }, { "type": "image", "data": "" }]);
    let said = Message::user_value(list.clone());
    assert_eq!(said.blocks.iter().map(Block::to_value).collect::<Value>(), list);
    assert_eq!(said.structured, None);
    for value in [
        json!(7),
        json!({ "a": 1 }),
        json!([1]),
        json!([{ "a": 1 }]),
        json!([{
            "type": "thought", "text": "not a person's",
        }]),
        json!([{ "type": "refund", "amount": 5 }]),
        json!([{ "type": "text", "text": "a" }, { "type": "resource_link" }]),
    ] {
        let said = Message::user_value(value.clone());
        assert_eq!((said.text(), said.structured), (value.to_string(), Some(value)));
    }
    for value in [list, json!([])] {
        let said = Message::plain_value(value.clone());
        assert_eq!((said.text(), said.structured), (value.to_string(), Some(value)));
    }
    assert_eq!(Message::plain_value(json!("yes")), Message::user("yes"));
    assert!(!Message::plain_value(json!([])).content().blank);
    // A value is stored once: what may be given is as long as the limit says.
    let long = json!({ "rows": "x".repeat(1 << 20) });
    assert!(Message::user_value(long).encode().len() < (1 << 20) + 100);
    assert!(Message::user_value(json!([])).content().blank);
    assert!(!Message::user_value(json!([{ "type": "image", "data": "" }])).content().blank);
}
