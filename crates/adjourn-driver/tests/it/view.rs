//! What a model is shown, rule by rule.

use adjourn_core::ledger::CallId;
use adjourn_driver::content::Fate;
use adjourn_driver::{Block, CallContent, Message, ModelRole, Role, Shown, model_view};
use serde_json::json;

fn id(id: &str) -> CallId {
    CallId(id.to_owned())
}

fn asks(words: &str, calls: &[&str]) -> Message {
    let calls = calls.iter().map(|call| CallContent::new(id(call), "build")).collect();
    Message { calls, ..Message::agent(words) }
}

fn result(call: &str, words: &str) -> Message {
    Message::result(id(call), vec![Block::text(words)])
}

/// Shows a view, a line for each message.
fn shown(entries: &[Message]) -> Vec<String> {
    let lines = model_view(entries).into_iter().map(|message| {
        let role = match message.role {
            ModelRole::User => "user".to_owned(),
            ModelRole::Agent => "agent".to_owned(),
            ModelRole::Tool => format!("tool {}", message.answers.unwrap()),
        };
        let failed = if message.is_error { " failed" } else { "" };
        let block = |block: &Block| match block.words() {
            Some(words) if block.is_thought() => format!("({words})"),
            Some(words) => words.to_owned(),
            None => format!("<{}>", block.kind()),
        };
        let blocks: Vec<_> = message.blocks.iter().map(block).collect();
        let calls: Vec<_> = message.calls.iter().map(|call| call.id.0.as_str()).collect();
        let calls = if calls.is_empty() { String::new() } else { format!(" {calls:?}") };
        format!("{role}{failed}: {}{calls}", blocks.join(" | "))
    });
    lines.collect()
}

#[test]
fn each_call_has_its_result_right_behind_it_in_order() {
    let entries = [
        Message::user("go"),
        asks("I build", &["a", "b"]),
        result("b", "built b"),
        Message::user("hurry"),
        result("a", "built a"),
        Message::agent("done"),
    ];
    assert_eq!(
        shown(&entries),
        [
            "user: go",
            r#"agent: I build ["a", "b"]"#,
            "tool a: built a",
            "tool b: built b",
            "user: hurry",
            "agent: done",
        ]
    );
}

#[test]
fn what_became_of_a_call_without_a_result_is_its_result() {
    let entries = [
        Message::user("go"),
        asks("", &["a", "b", "c", "d"]),
        Message::fate(id("a"), "build", Fate::NotRun),
        Message::fate(id("b"), "build", Fate::Unknown),
        // A wait is over: nothing failed.
        Message::host("[adjourn] Woken after 1h.").answering(Some(id("c"))),
    ];
    assert_eq!(
        shown(&entries),
        [
            "user: go",
            r#"agent:  ["a", "b", "c", "d"]"#,
            "tool a failed: [adjourn] build: not run: it was stopped before it started",
            "tool b failed: [adjourn] build: its outcome is unknown: it was cut off while it ran",
            "tool c: [adjourn] Woken after 1h.",
            "tool d failed: [adjourn] build: no result of this call is known",
        ]
    );
}

#[test]
fn a_tools_own_word_counts_for_more_than_the_hosts() {
    let entries = [
        Message::user("go"),
        asks("", &["a"]),
        Message::fate(id("a"), "build", Fate::Unknown),
        result("a", "built after all"),
        Message { is_error: true, ..result("a", "twice") },
        Message::fate(id("a"), "build", Fate::Unknown),
    ];
    let unknown = "user: [adjourn] build: its outcome is unknown: it was cut off while it ran";
    assert_eq!(
        shown(&entries),
        [
            "user: go",
            r#"agent:  ["a"]"#,
            "tool a: built after all",
            unknown,
            "user: [adjourn] A further error of call a: | twice",
            unknown,
        ]
    );
}

#[test]
fn results_of_calls_that_are_not_shown_are_words() {
    let picture = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
    let picture = Block::from_fields(picture.as_object().unwrap().clone()).unwrap();
    let entries = [
        asks("before", &["a"]),
        Message { digest: true, ..Message::host("[adjourn] In short") },
        Message::result(id("a"), vec![Block::text("built"), picture]),
        Message { aborted: true, ..asks("I was", &["b"]) },
        Message { structured: Some(json!({ "ok": true })), ..Message::result(id("b"), vec![]) },
        Message::new(Role::Tool, vec![Block::text("of nothing")]),
    ];
    assert_eq!(
        shown(&entries),
        [
            "user: [adjourn] In short",
            "user: [adjourn] A result of call a: | built | <image>",
            r#"user: [adjourn] A result of call b: | {"ok":true}"#,
            "user: [adjourn] A result: | of nothing",
        ]
    );
}

#[test]
fn only_tools_and_the_host_answer_calls() {
    let entries =
        [Message::user("go"), asks("", &["a"]), Message::user("no").answering(Some(id("a")))];
    let unknown = "tool a failed: [adjourn] build: no result of this call is known";
    assert_eq!(shown(&entries), ["user: go", r#"agent:  ["a"]"#, unknown, "user: no"]);
}

#[test]
fn a_result_always_says_something() {
    let structured = Some(json!({ "rows": 3 }));
    let entries = [
        Message::user("go"),
        asks("", &["a", "b"]),
        Message { structured, ..Message::result(id("a"), vec![Block::text("")]) },
        result("b", " \n"),
    ];
    let expected = [r#"tool a: {"rows":3}"#, "tool b: [adjourn] build: ended without a word"];
    assert_eq!(shown(&entries)[2..], expected);
}

#[test]
fn a_call_that_is_asked_for_again_is_the_same_until_it_is_answered() {
    let entries = [
        Message::user("go"),
        asks("may I?", &["a"]),
        asks("", &["a"]),
        result("a", "first"),
        asks("again", &["a", "a-2"]),
        result("a", "second"),
        result("a-2", "third"),
    ];
    assert_eq!(
        shown(&entries),
        [
            "user: go",
            r#"agent: may I? ["a"]"#,
            "tool a: first",
            r#"agent: again ["a-2", "a-2-2"]"#,
            "tool a-2: second",
            "tool a-2-2: third",
        ]
    );
}

#[test]
fn what_the_agent_says_in_one_go_is_one_message() {
    let thinks = Message::new(Role::Agent, vec![Block::thought("hm")]);
    let entries = [
        Message::user("go"),
        thinks.clone(),
        Message::agent("I build"),
        Message { aborted: true, ..Message::agent("brok") },
        asks("", &["a"]),
        result("a", "built"),
        thinks,
    ];
    let said = r#"agent: (hm) | I build ["a"]"#;
    assert_eq!(shown(&entries), ["user: go", said, "tool a: built"]);
}

#[test]
fn what_says_nothing_is_left_out() {
    let entries = [
        Message::user("go"),
        Message::showing(Shown::Mode("plan".to_owned())),
        Message::agent(" \n"),
        Message::new(Role::Agent, vec![Block::text(""), Block::text("x"), Block::thought("then")]),
        Message { shown: Some(Shown::Mode("code".to_owned())), ..Message::agent("y") },
        Message::host(""),
    ];
    // Nothing of what else is said with it is lost.
    assert_eq!(shown(&entries), ["user: go", "agent: x | (then) | y"]);
    assert_eq!(shown(&entries[..4]), ["user: go", "agent: x"]);
    assert_eq!(shown(&[]), [""; 0]);
}

#[test]
fn nothing_begins_with_the_agent() {
    let entries = [
        asks("", &["a"]),
        Message::new(Role::Agent, vec![Block::thought("hm"), Block::text("I begin")]),
        result("a", "built"),
        asks("then", &["b"]),
        result("b", "built, too"),
    ];
    assert_eq!(
        shown(&entries),
        [
            "user: [adjourn] What was said first cannot be shown. The agent answered: | I begin",
            "user: [adjourn] A result of call a: | built",
            r#"agent: then ["b"]"#,
            "tool b: built, too",
        ]
    );
}
