//! The end of servers: none of them, and nothing that they have started, outlives its driver.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use adjourn_agent::AgentEvent;
use adjourn_testkit::until;
use serde_json::json;

use super::{call, demo, noted, runs};
use crate::fixture::{agent, events, model};

/// Names the directory of a process that plays the host.
const HOST_IN: &str = "ADJOURN_TEST_MCP_HOST";

#[tokio::test]
async fn what_a_server_has_started_ends_with_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let model = model(json!([{ "calls": [call("start", "")] }, { "text": "Done." }]));
    let servers = demo(directory.path(), json!({})).allow_all();
    let agent = agent(&model).mcp_servers(&servers).build().unwrap();
    events(agent.run("Start.")).await;
    let result = &model.requests()[1].messages[2];
    let grandchild: String = result.blocks.iter().filter_map(|block| block.words()).collect();
    let server = noted(directory.path(), "started").remove(0);
    assert!(!runs(&server), "the run has waited for it");
    until("gone", || !runs(&grandchild)).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_no_server_behind() {
    let directory = tempfile::tempdir().unwrap();
    let model = model(json!([{ "calls": [call("wait", "")] }]));
    let agent = agent(&model).mcp_servers(&demo(directory.path(), json!({}))).build().unwrap();
    let mut run = agent.run("Wait.");
    while let Some(event) = run.next().await {
        if let AgentEvent::ToolEvent(_) = event {
            break;
        }
    }
    let server = noted(directory.path(), "started").remove(0);
    assert!(runs(&server));
    drop(run);
    until("gone", || !runs(&server)).await;
}

#[tokio::test]
async fn each_run_of_an_agent_has_a_server_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let model = model(json!([{ "text": "One." }, { "text": "Two." }]));
    let agent = agent(&model).mcp_servers(&demo(directory.path(), json!({}))).build().unwrap();
    let other = agent.clone();
    tokio::join!(events(agent.run("Go.")), events(other.run("Go.")));
    let started = noted(directory.path(), "started");
    assert_eq!(started.len(), 2);
    assert_ne!(started[0], started[1]);
}

/// Starts this test binary again, to play a host that is in the middle of a call.
fn host(directory: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "mcp::ending::plays_a_host", "--nocapture"]);
    command.env(HOST_IN, directory).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits for ever in a call, if it was started to do so.
#[tokio::test]
async fn plays_a_host() {
    let Ok(directory) = std::env::var(HOST_IN) else { return };
    let model = model(json!([{ "calls": [call("wait", "")] }]));
    let servers = demo(Path::new(&directory), json!({}));
    let agent = agent(&Arc::clone(&model)).mcp_servers(&servers).build().unwrap();
    events(agent.run("Wait.")).await;
}

#[tokio::test]
async fn a_server_ends_when_its_host_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut host = host(directory.path());
    // One that has yet to answer something ends by the pipe that is broken, and not by its input.
    until("waiting", || !noted(directory.path(), "waiting").is_empty()).await;
    let server = noted(directory.path(), "waiting").remove(0);
    host.kill().unwrap();
    host.wait().unwrap();
    until("gone", || !runs(&server)).await;
    assert_eq!(noted(directory.path(), "ended"), [server], "its input ended");
}
