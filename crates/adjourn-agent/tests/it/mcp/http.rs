//! Servers over streamable HTTP.

use adjourn_agent::mcp::McpServers;
use adjourn_agent::{AgentEvent, AgentGuardrails, FailureKind};
use adjourn_testkit::until;
use serde_json::json;

use super::http_server::{AUTHORIZATION, HttpServer, Refusal};
use crate::fixture::{agent, errors, events, model, question, text};

fn web(url: &str, authorization: &str) -> McpServers {
    let headers = json!({ "Authorization": authorization });
    let servers = json!({ "mcpServers": { "web": { "url": url, "headers": headers } } });
    McpServers::read(&servers).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_is_called_with_its_headers_and_left_in_order() {
    let server = HttpServer::start();
    let model = model(json!([{ "calls": [{ "tool": "web__look" }] }, { "text": "Done." }]));
    let agent = agent(&model).mcp_servers(&web(&server.url, AUTHORIZATION)).build().unwrap();
    let run = events(agent.run("Look.")).await;
    assert_eq!(text(&run), "Done.");
    let seen = format!("{:?}", model.requests()[1].messages);
    assert!(seen.contains("seen") && !seen.contains("hush"), "{seen}");
    let called = server.called();
    for method in ["initialize", "notifications/initialized", "tools/list", "tools/call"] {
        assert!(called.contains(&method.to_owned()), "{method}: {called:?}");
    }
    assert!(called.contains(&"DELETE".to_owned()), "its session is given back: {called:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_answer_with_a_stream_of_events() {
    let server = HttpServer::streaming();
    let model = model(json!([{ "calls": [{ "tool": "web__look" }] }, { "text": "Done." }]));
    let agent = agent(&model).mcp_servers(&web(&server.url, AUTHORIZATION)).build().unwrap();
    assert_eq!(text(&events(agent.run("Look.")).await), "Done.");
    let seen = format!("{:?}", model.requests()[1].messages);
    assert!(seen.contains("seen at /mcp"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_secrets_of_an_address_reach_the_server_and_no_result_shows_them() {
    let server = HttpServer::start();
    let model = model(json!([{ "calls": [{ "tool": "web__look" }] }, { "text": "Done." }]));
    let url = format!(
        "{}?key=hush%2Dkey&project=seen&token=${{ADJOURN_TEST_TOKEN:-hush-user}}",
        server.url
    );
    let agent = agent(&model).mcp_servers(&web(&url, AUTHORIZATION)).build().unwrap();
    assert_eq!(text(&events(agent.run("Look.")).await), "Done.");
    let targets = server.targets();
    let whole = "/mcp?key=hush%2Dkey&project=seen&token=hush-user";
    assert!(targets.iter().all(|target| target == whole), "{targets:?}");
    let seen = format!("{:?}", model.requests()[1].messages);
    assert!(seen.contains("seen at /mcp?key=…&project=seen&token=…"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_takes_too_long_is_cancelled_at_the_server() {
    let server = HttpServer::start();
    let model = model(json!([
        { "calls": [{ "tool": "web__wait" }] }, { "calls": [{ "tool": "web__look" }] },
        { "text": "Done." },
    ]));
    let guardrails = AgentGuardrails { tool_timeout_s: 0.3, ..AgentGuardrails::default() };
    let agent = agent(&model).mcp_servers(&web(&server.url, AUTHORIZATION));
    let agent = agent.guardrails(guardrails).build().unwrap();
    let mut run = agent.run("Wait.");
    while let Some(event) = run.next().await {
        if let AgentEvent::ToolResultObserved(observed) = event
            && observed.tool == "web__wait"
        {
            break;
        }
    }
    // The server is told while the run goes on.
    until("cancelled", || server.called().contains(&"notifications/cancelled".to_owned())).await;
    assert_eq!(text(&events(run).await), "Done.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_that_a_server_refuses_make_the_agent_ask() {
    let server = HttpServer::start();
    let model = model(json!([{ "text": "Done." }]));
    let servers = web(&server.url, "Bearer wrong-hush");
    let agent = agent(&model).mcp_servers(&servers).build().unwrap();
    let asked = question(&events(agent.run("Look.")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::AuthRequired));
    let shown = format!("{asked:?} {}", serde_json::to_string(&asked.suspension_record).unwrap());
    assert!(shown.contains("MCP server") && !shown.contains("hush"), "{shown}");
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_asked_for_at_whichever_request_they_are_refused() {
    for from in ["initialize", "tools/list", "tools/call"] {
        for says_which in [false, true] {
            let server = HttpServer::refusing(Refusal { from, says_which });
            let model = model(json!([{ "calls": [{ "tool": "web__look" }] }, { "text": "Done." }]));
            let servers = web(&server.url, AUTHORIZATION);
            let agent = agent(&model).mcp_servers(&servers).build().unwrap();
            let asked = question(&events(agent.run("Look.")).await);
            let kind = asked.originating_failure_kind;
            assert_eq!(kind, Some(FailureKind::AuthRequired), "{from}: {asked:?}");
            let record = serde_json::to_string(&asked.suspension_record).unwrap();
            let shown = format!("{} {:?} {record}", asked.question, asked.context);
            assert!(shown.contains("MCP server"), "{from}: {shown}");
            for word in ["hush", "rmcp", "::", "Transport"] {
                assert!(!shown.contains(word), "{from} {word}: {shown}");
            }
        }
    }
}

/// What cannot be reached is named by its address, which a secret may be a part of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_listen_is_told() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url =
        format!("http://{}/mcp?key=${{ADJOURN_TEST_KEY:-hush-key}}", free.local_addr().unwrap());
    drop(free);
    let model = model(json!([{ "text": "Done." }]));
    let agent = agent(&model).mcp_servers(&web(&url, AUTHORIZATION)).build().unwrap();
    let run: Vec<AgentEvent> = events(agent.run("Look.")).await;
    assert_eq!(text(&run), "Done.");
    let failure = errors(&run).remove(0).failure.unwrap();
    assert_eq!(failure.kind, FailureKind::ToolError);
    assert!(failure.explanation.contains("MCP server \"web\" cannot be used"), "{failure}");
    assert!(!failure.explanation.contains("hush-key"), "{failure}");
}
