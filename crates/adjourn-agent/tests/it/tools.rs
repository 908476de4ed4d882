//! Tools: checked before they run.

use std::sync::Arc;

use adjourn_agent::{FunctionTool, ResumeError, RunOutcome, ToolError};
use adjourn_core::command::CallResult;
use adjourn_core::ledger::CallId;
use adjourn_driver::{
    BoxFuture, Call, CallContent, CallPart, Client, Driver as _, NoClient, PermissionAnswer,
    PermissionRequest,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fixture::{Ran, agent, events, model, question, tags, text};

/// What the tool `read` takes.
#[derive(Deserialize, JsonSchema)]
struct Read {
    /// The file to read.
    path: String,
    /// How many lines.
    #[serde(default)]
    lines: Option<u32>,
}

fn read(ran: &Ran) -> FunctionTool {
    let ran = ran.clone();
    FunctionTool::new("read", "Reads a file.", move |read: Read| {
        ran.push(&read.path);
        async move { Ok::<_, ToolError>(json!({ "lines": read.lines.unwrap_or(7) })) }
    })
}

#[tokio::test(start_paused = true)]
async fn the_schema_of_a_function_is_that_of_its_arguments() {
    let model = model(json!([]));
    let agent = agent(&model).tool(read(&Ran::default())).build().unwrap();
    events(agent.run("Read.")).await;
    let tools = model.requests()[0].tools.clone();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["ask_user", "read"]);
    let parameters = &tools[1].parameters;
    assert_eq!(parameters["required"], json!(["path"]));
    assert_eq!(parameters["properties"]["path"]["description"], "The file to read.");
    assert_eq!(tools[0].parameters["required"], json!(["question"]));
}

#[tokio::test(start_paused = true)]
async fn arguments_that_the_schema_refuses_never_reach_the_tool() {
    let wrong = json!({ "tool": "read", "arguments": { "path": 7 } });
    let right = json!({ "tool": "read", "arguments": { "path": "a.txt", "lines": 2 } });
    let model = model(json!([
        { "calls": [wrong, { "tool": "none" }] }, { "calls": [right] }, { "text": "Done." },
    ]));
    let ran = Ran::default();
    let agent = agent(&model).tool(read(&ran)).build().unwrap();
    let run = events(agent.run("Read.")).await;
    assert_eq!(ran.names(), ["a.txt"]);
    assert_eq!(text(&run), "Done.");
    let seen = format!("{:?}", model.requests()[1].messages);
    assert!(seen.contains("/path"), "the model is told what is wrong, and where: {seen}");
    assert!(seen.contains("there is no tool"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_deferred_is_checked_against_the_tools_of_the_day() {
    let model = model(crate::fixture::asks());
    let ran = Ran::default();
    let mut agent = agent(&model).tool(read(&ran)).build().unwrap();
    let record = crate::fixture::suspended(agent.run("Read.")).await;
    let session = Arc::new(agent.read(&record).unwrap().session);
    // Calls as they may have been asked for before the program had another version.
    for (tool, arguments, ends) in [
        ("read", json!({ "file": "a.txt" }), CallResult::Failed),
        ("gone", json!({}), CallResult::Failed),
        ("read", json!({ "path": "a.txt" }), CallResult::Done),
    ] {
        let content = CallContent { arguments, ..CallContent::new(CallId::from("c"), tool) };
        let (client, environment) = (Arc::new(NoClient), Arc::default());
        let mut parts =
            agent.call(Call { session: Arc::clone(&session), content, client, environment });
        let part = std::future::poll_fn(|context| parts.as_mut().poll_next(context)).await;
        let Some(CallPart::Ended { result, .. }) = part else { panic!("{part:?}") };
        assert_eq!(result, ends, "{tool}");
    }
    assert_eq!(ran.names(), ["a.txt"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_words_is_told_to_the_model_and_not_asked() {
    let model = model(json!([
        { "calls": [{ "tool": "ask_user", "arguments": { "question": "  " } }] },
        { "text": "Never mind." },
    ]));
    let run = events(agent(&model).build().unwrap().run("Ask.")).await;
    assert_eq!(text(&run), "Never mind.");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_fails_and_no_more() {
    let panics = FunctionTool::new("panic", "Panics.", |_: Value| async {
        match std::hint::black_box(true) {
            true => panic!("as it was told"),
            false => Ok::<_, ToolError>("never"),
        }
    });
    let model = model(json!([{ "calls": [{ "tool": "panic" }] }, { "text": "It panicked." }]));
    let run = events(agent(&model).tool(panics).build().unwrap().run("Panic.")).await;
    assert_eq!(text(&run), "It panicked.");
}

/// A client that gives one answer to all requests.
struct Says(PermissionAnswer);

impl Client for Says {
    fn permission(&self, _: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_needs_permission_runs_only_with_it() {
    let refused = PermissionAnswer::Refused("not today".to_owned());
    let granted = PermissionAnswer::Granted { always: false };
    for (answer, runs) in [(refused, 0), (granted, 1), (PermissionAnswer::Gone, 0)] {
        let model = model(json!([{ "calls": [{ "tool": "delete" }] }, { "text": "Done." }]));
        let ran = Ran::default();
        let agent = agent(&model).tool(ran.tool("delete").asks_permission());
        let agent = agent.client(Arc::new(Says(answer))).build().unwrap();
        events(agent.run("Delete it.")).await;
        assert_eq!(ran.names().len(), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_may_park_itself_and_the_reply_is_its_input() {
    let wait = json!({ "tool": "await_resumption", "arguments": {
        "reason": "the tests run", "conditions": { "onEvent": "ci.passed" }, "summary": "PR 12",
    } });
    let model = model(json!([{ "calls": [wait] }, { "text": "Merged." }]));
    let agent = agent(&model).await_resumption().build().unwrap();
    let first = events(agent.run("Merge it.")).await;
    let parked = question(&first);
    assert_eq!(
        (parked.question.as_str(), parked.context.as_deref()),
        ("the tests run", Some("PR 12"))
    );
    assert!(parked.conditions.is_some());
    let blank = agent.resume(&parked.suspension_record, " ").await.unwrap_err();
    assert!(matches!(blank, ResumeError::EmptyReply));
    let run = agent.resume(&parked.suspension_record, "they passed").await.unwrap();
    assert_eq!(run.result().await.outcome, RunOutcome::Completed);
    assert_eq!(tags(&first), ["llm_call_completed", "user_input_requested"]);
}
