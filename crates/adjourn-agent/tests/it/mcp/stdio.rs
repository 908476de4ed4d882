//! Servers over stdio: their tools, their results, and what goes wrong with them.

use std::sync::Arc;
use std::time::Duration;

use adjourn_agent::mcp::McpServers;
use adjourn_agent::{
    AgentGuardrails, Effect, FailureKind, ModelRequest, RunOutcome, ScriptedModel, ToolSpec,
};
use adjourn_driver::{Client, PermissionAnswer, PermissionRequest};
use adjourn_testkit::log::Log;
use adjourn_testkit::until;
use serde_json::{Value, json};
use tracing::Level;

use super::{call, demo, noted, program, runs};
use crate::fixture::{agent, errors, events, model, text};

/// Returns what a model was shown as the last result.
fn result(request: &ModelRequest) -> &adjourn_driver::ModelMessage {
    request.messages.iter().rev().find(|message| message.answers.is_some()).unwrap()
}

fn words(request: &ModelRequest) -> String {
    result(request).blocks.iter().filter_map(|block| block.words()).collect()
}

/// Runs an agent with servers and these calls, one after the other; returns what its model was asked.
async fn run(servers: &McpServers, calls: Vec<Value>) -> Vec<ModelRequest> {
    let model = script(calls);
    let agent = agent(&model).mcp_servers(servers).build().unwrap();
    events(agent.run("Go.")).await;
    model.requests()
}

fn script(calls: Vec<Value>) -> Arc<ScriptedModel> {
    let mut answers: Vec<_> = calls.into_iter().map(|call| json!({ "calls": [call] })).collect();
    answers.push(json!({ "text": "Done." }));
    model(json!(answers))
}

#[tokio::test]
async fn a_model_is_told_the_tools_of_a_server_as_the_server_describes_them() {
    let directory = tempfile::tempdir().unwrap();
    let requests = run(&demo(directory.path(), json!({})), Vec::new()).await;
    let tool = |name: &str| -> &ToolSpec {
        requests[0].tools.iter().find(|tool| tool.name == format!("demo__{name}")).unwrap()
    };
    let echo = tool("echo");
    assert_eq!(echo.title.as_deref(), Some("Say it again"));
    assert_eq!(echo.description, "The tool echo.");
    assert_eq!(echo.parameters["required"], json!(["text"]));
    for (name, effect, permission, kind) in [
        ("echo", Effect::Idempotent, false, "read"),
        ("variable", Effect::Idempotent, false, "fetch"),
        ("put", Effect::Idempotent, true, "other"),
        ("note", Effect::SideEffecting, true, "other"),
        ("start", Effect::SideEffecting, true, "other"),
    ] {
        let tool = tool(name);
        let told = (tool.effect, tool.permission, tool.kind.as_deref());
        assert_eq!(told, (effect, permission, Some(kind)), "{name}");
    }
    assert_eq!(noted(directory.path(), "started").len(), 1);
    assert_eq!(noted(directory.path(), "ended").len(), 1, "it ended by itself");
}

#[tokio::test]
async fn results_reach_the_model_whole() {
    let directory = tempfile::tempdir().unwrap();
    let calls = vec![call("echo", "hello"), call("refuse", "")];
    let requests = run(&demo(directory.path(), json!({})), calls).await;
    let echoed = result(&requests[1]);
    let blocks: Vec<_> = echoed.blocks.iter().map(adjourn_driver::Block::to_value).collect();
    assert_eq!(
        json!(blocks),
        json!([
            { "type": "text", "text": "hello", "annotations": { "audience": ["user"] } },
            { "type": "resource_link", "uri": "file:///notes", "name": "notes" },
        ])
    );
    assert_eq!(echoed.structured, Some(json!({ "echoed": "hello" })));
    assert!(!echoed.is_error);
    let refused = result(&requests[2]);
    assert!(refused.is_error);
    assert_eq!(words(&requests[2]), "not on a Sunday");
    let structured = refused.structured.as_ref().unwrap();
    assert_eq!(structured["structuredContent"], json!({ "day": "Sunday" }));
}

#[tokio::test]
async fn arguments_that_a_servers_schema_refuses_never_reach_it() {
    let directory = tempfile::tempdir().unwrap();
    let wrong = json!({ "tool": "demo__echo", "arguments": { "text": 7 } });
    let requests = run(&demo(directory.path(), json!({})), vec![wrong]).await;
    assert!(words(&requests[1]).contains("/text"), "{}", words(&requests[1]));
}

#[tokio::test]
async fn a_server_sees_its_own_variables_and_none_of_this_process() {
    let directory = tempfile::tempdir().unwrap();
    let calls = ["DEMO_TOKEN", "PATH", "CARGO_MANIFEST_DIR"].map(|name| call("variable", name));
    let servers = demo(directory.path(), json!({ "DEMO_TOKEN": "hush" }));
    let requests = run(&servers, calls.into()).await;
    assert_eq!(words(&requests[1]), "4 bytes");
    assert_ne!(words(&requests[2]), "none");
    // Cargo sets it for every test.
    assert_eq!(words(&requests[3]), "none");
}

#[tokio::test]
async fn values_that_a_server_reveals_are_taken_out_of_results() {
    let directory = tempfile::tempdir().unwrap();
    // Of the values one is short, and a part of words that are not.
    let servers = demo(directory.path(), json!({ "DEMO_TOKEN": "hush-hush", "LEVEL": "oken" }));
    let requests = run(&servers, vec![call("reveal", ""), call("reveal", "fail")]).await;
    for (request, fails) in [(&requests[1], false), (&requests[2], true)] {
        let revealed = result(request);
        assert_eq!(revealed.is_error, fails);
        let blocks: Vec<_> = revealed.blocks.iter().map(adjourn_driver::Block::to_value).collect();
        let resource = json!({ "uri": "file:///…", "text": "the token is …." });
        assert_eq!(
            json!(blocks),
            json!([
                { "type": "text", "text": "the token is …." },
                { "type": "resource", "resource": resource },
            ])
        );
        let structured = revealed.structured.as_ref().unwrap();
        let structured = if fails { &structured["structuredContent"] } else { structured };
        assert_eq!(structured, &json!({ "token": "…", "list": ["the token is …."] }));
        assert!(!format!("{request:?}").contains("hush"), "{request:?}");
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_at_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let model = script(vec![call("wait", ""), call("echo", "still here")]);
    let guardrails = AgentGuardrails { tool_timeout_s: 0.3, ..AgentGuardrails::default() };
    let agent = agent(&model).mcp_servers(&demo(directory.path(), json!({})));
    let agent = agent.guardrails(guardrails).build().unwrap();
    let run = events(agent.run("Wait.")).await;
    assert_eq!(text(&run), "Done.");
    let requests = model.requests();
    assert_eq!(words(&requests[1]), "demo__wait took more than 0.3 s");
    assert!(words(&requests[2]).contains("still here"), "{}", words(&requests[2]));
    assert_eq!(noted(directory.path(), "cancelled").len(), 1);
    assert_eq!(noted(directory.path(), "started").len(), 1, "it is the same server");
}

/// A client that allows everything.
struct Allows;

impl Client for Allows {
    fn permission(
        &self,
        _: PermissionRequest,
    ) -> adjourn_driver::BoxFuture<'static, PermissionAnswer> {
        Box::pin(std::future::ready(PermissionAnswer::Granted { always: false }))
    }
}

#[tokio::test]
async fn a_server_that_dies_is_told_and_started_again() {
    let directory = tempfile::tempdir().unwrap();
    let model = script(vec![call("die", ""), call("echo", "again")]);
    let servers = demo(directory.path(), json!({ "DEMO_TOKEN": "hush" }));
    let agent = agent(&model).mcp_servers(&servers).client(Arc::new(Allows)).build().unwrap();
    let run = events(agent.run("Die.")).await;
    assert_eq!(text(&run), "Done.");
    let requests = model.requests();
    let died = words(&requests[1]);
    let expected = "MCP server \"demo\" ended while die ran; whether it was done is not known";
    assert_eq!(died, expected);
    assert!(words(&requests[2]).contains("again"));
    assert_eq!(noted(directory.path(), "started").len(), 2);
}

/// What a server has started may hold its output open for ever.
#[tokio::test]
async fn a_server_that_dies_and_leaves_something_behind_is_told_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let model = script(vec![call("die", ""), call("echo", "again")]);
    let leaves = format!("sleep 600 & exec {}", program());
    let entry = json!({ "command": "sh", "args": ["-c", leaves] });
    let servers = McpServers::read(&json!({ "mcpServers": { "demo": entry } })).unwrap();
    let servers = servers.in_directory(directory.path()).allow_all();
    let agent = agent(&model).mcp_servers(&servers).build().unwrap();
    assert_eq!(text(&events(agent.run("Die.")).await), "Done.");
    let requests = model.requests();
    assert!(words(&requests[1]).contains("ended while die ran"), "{}", words(&requests[1]));
    assert!(words(&requests[2]).contains("again"));
}

/// Its call is not waited for until it takes too long, which would be ten minutes.
#[tokio::test]
async fn a_message_that_is_too_long_fails_its_call_with_words_that_name_the_size() {
    let directory = tempfile::tempdir().unwrap();
    let calls = vec![call("flood", "17"), call("flood", "65"), call("echo", "again")];
    let requests = run(&demo(directory.path(), json!({})), calls).await;
    // It is no more than a long result: the server goes on.
    let long = words(&requests[1]);
    assert!(long.contains("what it has sent cannot be taken"), "{long}");
    let expected = "MCP server \"demo\" was ended: it sent a message of more than 64 MiB while flood \
                    ran; whether it was done is not known";
    assert_eq!(words(&requests[2]), expected);
    assert!(words(&requests[3]).contains("again"));
    assert_eq!(noted(directory.path(), "started").len(), 2);
}

#[tokio::test]
async fn tools_run_by_permission_unless_they_are_always_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let asking = demo(directory.path(), json!({}));
    let entry = json!({ "command": program(), "alwaysAllow": ["note"] });
    let allowed = McpServers::read(&json!({ "mcpServers": { "demo": entry } })).unwrap();
    let allowed = allowed.in_directory(directory.path());
    for (servers, notes) in [(&asking, 0), (&allowed, 1), (&asking.clone().allow_all(), 2)] {
        run(servers, vec![call("note", "hello")]).await;
        assert_eq!(noted(directory.path(), "notes").len(), notes);
    }
}

#[tokio::test]
async fn a_server_may_have_more_tools_later() {
    let directory = tempfile::tempdir().unwrap();
    let calls = vec![call("more", ""), call("echo", "")];
    let requests = run(&demo(directory.path(), json!({})), calls).await;
    let count = |request: &ModelRequest| request.tools.len();
    // The server says so before it answers the call that brought them.
    assert_eq!((count(&requests[0]), count(&requests[1])), (12, 13));
    // Providers take no slash.
    let is_new = |tool: &ToolSpec| tool.name.starts_with("demo__one-more-");
    assert!(requests[1].tools.iter().any(is_new));
}

#[tokio::test]
async fn a_tool_that_cannot_be_used_is_left_out_and_only_debug_repeats_what_the_server_said() {
    let log = Log::of(Level::DEBUG);
    let directory = tempfile::tempdir().unwrap();
    let servers = demo(directory.path(), json!({ "DEMO_BROKEN": "hush-1" }));
    let requests = run(&servers, vec![call("echo", "hello")]).await;
    assert_eq!(requests[0].tools.len(), 12, "all others are there");
    let lines = log.lines();
    let said = |words: &str| lines.iter().find(|line| line.contains(words)).map(String::as_str);
    let warned = said("a tool of an MCP server is left out").unwrap();
    assert!(warned.contains("WARN") && warned.contains("demo"), "{warned}");
    let why = said("broken").unwrap();
    assert!(why.contains("DEBUG"), "{why}");
    assert_eq!(said("hush-1"), None, "it is a secret of the server");
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_a_failure_with_its_reason_and_the_run_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let sh =
        |script: &str| json!({ "command": "sh", "args": ["-c", script], "env": { "K": "hush-1" } });
    for (server, reason) in [
        (json!({ "command": "/no/such/program" }), "\"/no/such/program\" cannot be started: "),
        (
            sh("echo \"no good: $K\" >&2; exit 4"),
            "it ended before it answered (exit status: 4); it said: no good: …",
        ),
        (sh("echo $$ > pid; exec sleep 600"), "it did not answer within 2 s"),
        (
            json!({ "command": "a", "env": { "B": "${ADJOURN_TEST_NONE}" } }),
            "it lacks ADJOURN_TEST_NONE",
        ),
    ] {
        let servers = json!({ "mcpServers": { "bad": server, "demo": { "command": program() } } });
        let servers = McpServers::read(&servers).unwrap().in_directory(directory.path());
        let servers = servers.connect_within(Duration::from_secs(2));
        let model = script(vec![call("echo", "hello")]);
        let agent = agent(&model).mcp_servers(&servers).build().unwrap();
        let mut run = agent.run("Go.");
        let mut seen = Vec::new();
        while let Some(event) = run.next().await {
            seen.push(event);
        }
        assert_eq!(run.result().await.outcome, RunOutcome::Completed, "{reason}");
        let errors = errors(&seen);
        assert_eq!(errors.len(), 1, "it is told once: {errors:?}");
        let failure = errors[0].failure.clone().unwrap();
        assert_eq!(failure.kind, FailureKind::ToolError);
        let said = format!("MCP server \"bad\" cannot be used: {reason}");
        assert!(failure.explanation.starts_with(&said), "{}", failure.explanation);
        assert!(words(&model.requests()[1]).contains("hello"), "the other server is there");
    }
    let pid = &noted(directory.path(), "pid")[0];
    until("gone", || !runs(pid)).await;
}

#[tokio::test]
async fn servers_that_cannot_be_used_are_told_together_and_take_no_tries_from_tools() {
    let gone = |name: &str| json!({ "command": format!("/no/such/{name}") });
    let servers = json!({ "mcpServers": {
        "one": gone("a"), "two": gone("b"), "three": gone("c"), "demo": { "command": program() },
    } });
    let directory = tempfile::tempdir().unwrap();
    let servers = McpServers::read(&servers).unwrap().in_directory(directory.path());
    let model = script(vec![call("echo", "hello")]);
    let agent = agent(&model).mcp_servers(&servers).build().unwrap();
    let mut run = agent.run("Go.");
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        seen.push(event);
    }
    assert_eq!(run.result().await.outcome, RunOutcome::Completed);
    let errors = errors(&seen);
    assert_eq!(errors.len(), 1, "they are told once: {errors:?}");
    for name in ["one", "two", "three"] {
        assert!(errors[0].message.contains(&format!("{name:?}")), "{}", errors[0].message);
    }
    assert!(words(&model.requests()[1]).contains("hello"), "the other server is there");
}
