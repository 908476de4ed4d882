//! What a scripted agent does shows in the transcript and in what the session has used.

use adjourn_core::session::Outcome;
use adjourn_driver::{Block, Message, Role, Shown, Words};
use serde_json::json;

use crate::fixture::Fixture;

/// Runs a script of one run to its end, and returns what the agent and its tools said.
async fn said(fixture: &Fixture, items: &str) -> Vec<Message> {
    let host = fixture.host().await;
    let id = fixture.create(&format!(r#"{{"runs": [[{items}]]}}"#));
    fixture.prompt(id, "go");
    let done = fixture.pass_until(id, "idle").await;
    assert_eq!(done.last_run.as_ref().unwrap().outcome, Outcome::Completed);
    host.stop().await;
    let said = fixture.said(id).into_iter();
    said.filter(|said| matches!(said.role, Role::Agent | Role::Tool)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_thinks_at_once_and_word_by_word() {
    let fixture = Fixture::new();
    let said = said(
        &fixture,
        r#"{"think": "hm"},
           {"say": {"text": "hello", "think": "greet"}},
           {"say": {"text": "one two", "think": "count up", "ms": 400}},
           {"think": {"text": "a while", "ms": 200}}"#,
    )
    .await;
    let blocks: Vec<_> = said.iter().map(|said| said.blocks.clone()).collect();
    assert_eq!(
        blocks,
        [
            vec![Block::thought("hm")],
            vec![Block::thought("greet"), Block::text("hello")],
            vec![Block::thought("count up"), Block::text("one two")],
            vec![Block::thought("a while")],
        ]
    );
    // What comes word by word has an id from its first word on.
    assert_eq!(
        said.iter().map(|said| said.id.is_some()).collect::<Vec<_>>(),
        [false, false, true, true]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_and_thoughts_share_the_time_that_they_take() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture
        .create(r#"{"runs": [[{"say": {"text": "three four", "think": "one two ", "ms": 400}}]]}"#);
    let mut deltas = host.claimant.live().watch(id);
    fixture.prompt(id, "go");
    fixture.pass_until(id, "idle").await;
    let mut told = Vec::new();
    while let Ok(delta) = deltas.try_recv() {
        told.push((delta.offset, delta.words, delta.text.clone()));
    }
    let (thought, said) = (Words::Thought, Words::Said);
    let expected =
        [(0, thought, "one "), (4, thought, "two "), (8, said, "three "), (14, said, "four")];
    let expected = expected.map(|(at, words, text)| (at, words, text.to_owned()));
    assert_eq!(told, expected);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_shows_a_plan_its_context_its_mode_and_its_commands() {
    let fixture = Fixture::new();
    let said = said(
        &fixture,
        r#"{"plan": ["build", {"content": "test", "priority": "high", "status": "in_progress"}]},
           {"context": {"used": 10, "size": 200}},
           {"mode": "architect"},
           {"commands": [{"name": "test", "description": "runs the tests"}]},
           {"plan": []}"#,
    )
    .await;
    let shown: Vec<_> = said.into_iter().map(|said| said.shown.unwrap()).collect();
    let entry = |content: &str, priority: &str, status: &str| json!({ "content": content, "priority": priority, "status": status });
    let plan = vec![entry("build", "medium", "pending"), entry("test", "high", "in_progress")];
    let commands = vec![json!({ "name": "test", "description": "runs the tests" })];
    assert_eq!(
        shown,
        [
            Shown::Plan(plan),
            Shown::Context { used: 10, size: 200 },
            Shown::Mode("architect".to_owned()),
            Shown::Commands(commands),
            Shown::Plan(Vec::new()),
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_tools_take_arguments_and_say_what_came_of_them() {
    let fixture = Fixture::new();
    let said = said(
        &fixture,
        r#"{"tool": {"name": "edit", "args": {"path": "a.rs"}, "title": "Edit a.rs", "kind": "edit",
                     "locations": ["/src/a.rs"], "result": {"lines": 3}}},
           {"sequence": [{"name": "lint", "args": ["a", 1], "result": "two warnings", "fails": true},
                         {"name": "push", "fails": true}, {"name": "tag"}]}"#,
    )
    .await;
    let [edit, edited, next, linted, pushed, tagged] = &said[..] else { unreachable!("{said:#?}") };
    let call = &edit.calls[0];
    assert_eq!(
        (call.tool.as_str(), call.title(), call.kind.as_deref()),
        ("edit", "Edit a.rs", Some("edit"))
    );
    assert_eq!(call.arguments, json!({ "path": "a.rs" }));
    assert_eq!(call.locations, [json!({ "path": "/src/a.rs" })]);
    assert_eq!(next.calls[0].arguments, json!(["a", 1]));
    let result = |said: &Message| (said.text(), said.structured.clone(), said.is_error);
    assert_eq!(result(edited), (r#"{"lines":3}"#.to_owned(), Some(json!({ "lines": 3 })), false));
    assert_eq!(edited.answers.as_ref(), Some(&call.id));
    assert_eq!(result(linted), ("two warnings".to_owned(), None, true));
    assert_eq!(result(pushed), ("push failed".to_owned(), None, true));
    assert_eq!(result(tagged), ("tag done".to_owned(), None, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_it_spends_adds_up() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(
        r#"{"runs": [[
            {"spend": {"usd": 0.02, "tokens": 120}},
            {"say": {"text": "dear", "spend": {"usd": 0.000001}}},
            {"say": {"text": "slow and dear", "ms": 300, "spend": {"tokens": 3}}},
            {"think": {"text": "hm", "spend": {"usd": 1}}}
        ]]}"#,
    );
    fixture.prompt(id, "go");
    let done = fixture.pass_until(id, "idle").await;
    assert_eq!(done.totals.cost_micro_usd, 1_020_001);
    assert_eq!(done.totals.tokens(), 123);
    host.stop().await;
}
