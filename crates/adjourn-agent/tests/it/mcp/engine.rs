//! Sessions of an engine with MCP servers: what is stored of them, and who can run them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjourn::core::session::{Outcome, State};
use adjourn::{Adjourn, RunningHost, SessionRef};
use adjourn_agent::mcp::McpServers;
use adjourn_agent::{Agent, ScriptedModel};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{Handle, SessionId};
use adjourn_driver::{Driver, Drivers, Environment};
use adjourn_testkit::until;
use serde_json::json;

use super::{call, demo, noted, program, runs};
use crate::fixture::{ask, keys, model};

/// Makes native agents with the servers of their sessions.
struct Natives {
    model: Arc<ScriptedModel>,
}

impl Natives {
    fn servers(spec: &DriverSpec) -> Result<McpServers, String> {
        let servers = McpServers::read(&json!(spec.mcp_servers)).map_err(|e| e.to_string())?;
        Ok(servers.in_directory(spec.cwd.clone().unwrap_or_default()).allow_all())
    }

    fn agent(&self, servers: &McpServers) -> Agent {
        let agent = Agent::builder(Arc::clone(&self.model)).keys(keys());
        agent.mcp_servers(servers).build().unwrap()
    }
}

impl Drivers for Natives {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(self.agent(&Self::servers(spec)?)))
    }

    fn lacks_values(&self, spec: &DriverSpec, environment: &Environment) -> Option<String> {
        Self::servers(spec).ok()?.lacks(environment)
    }
}

/// A store with a host that runs native agents, and a spec for sessions with the server `demo`.
async fn engine(
    directory: &Path,
    model: &Arc<ScriptedModel>,
    servers: &McpServers,
    warm: Duration,
) -> (Adjourn, RunningHost, DriverSpec) {
    let adjourn = Adjourn::open(directory.join("agents.db")).await.unwrap();
    let natives = Natives { model: Arc::clone(model) };
    let mut spec = natives.agent(servers).driver_spec();
    spec.cwd = Some(directory.to_str().unwrap().to_owned());
    spec.mcp_servers = servers.descriptions();
    let host = adjourn.host().others(Arc::new(natives)).warm(4, warm).start().await.unwrap();
    (adjourn, host, spec)
}

/// Returns why the only host does not run a session.
async fn declined(adjourn: &Adjourn, id: SessionId) -> Option<String> {
    let hosts = adjourn.known_hosts().await.unwrap();
    hosts.first()?.about.declines(id).map(str::to_owned)
}

/// Waits until a session is parked.
async fn parked(session: &SessionRef) -> Handle {
    loop {
        if let State::Suspended(suspended) = &session.load().await.unwrap().state {
            return suspended.park.pause.handle;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn completed(session: &SessionRef) {
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_without_the_values_leaves_the_session_to_others_and_names_them() {
    let directory = tempfile::tempdir().unwrap();
    let env = json!({ "DEMO_TOKEN": "hush-1", "HOME": "${HOME}" });
    let servers = demo(directory.path(), env);
    let model = model(json!([{ "calls": [call("variable", "DEMO_TOKEN")] }, { "text": "Done." }]));
    let (adjourn, host, spec) = engine(directory.path(), &model, &servers, Duration::ZERO).await;
    let session = adjourn.create_with(spec).prompt("Go.").await.unwrap();
    let why = "it lacks values: DEMO_TOKEN of MCP server \"demo\"";
    let mut said = None;
    while said.as_deref() != Some(why) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        said = declined(&adjourn, session.id()).await;
    }
    let environment = Environment { mcp_servers: servers.values(), ..Environment::default() };
    session.provide(environment).await;
    completed(&session).await;
    let seen = format!("{:?}", model.requests()[1].messages.last().unwrap());
    assert!(seen.contains("6 bytes"), "the server was given it: {seen}");
    host.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_not_in_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let servers = demo(directory.path(), json!({ "DEMO_TOKEN": "hush-2" }));
    let wrong = json!({ "tool": "demo__reveal", "arguments": { "by": "it" } });
    let model = model(json!([
        { "calls": [call("reveal", "")] }, { "calls": [call("reveal", "fail"), wrong] },
        { "calls": [call("die", "")] }, { "text": "Done." },
    ]));
    let (adjourn, host, spec) = engine(directory.path(), &model, &servers, Duration::ZERO).await;
    let id = SessionId::new(uuid::Uuid::now_v7());
    let environment = Environment { mcp_servers: servers.values(), ..Environment::default() };
    adjourn.session(id).provide(environment).await;
    let session = adjourn.create_with(spec).id(id).prompt("Go.").await.unwrap();
    completed(&session).await;
    host.stop().await.unwrap();
    let requests = model.requests();
    let reveal = requests[0].tools.iter().find(|tool| tool.name == "demo__reveal").unwrap();
    assert_eq!(reveal.parameters["properties"]["by"], json!({ "enum": ["…"] }));
    let refused = format!("{:?}", requests[2].messages);
    assert!(refused.contains("is not one of"), "the schema is quoted: {refused}");
    assert!(!format!("{requests:?}").contains("hush-2"), "{requests:?}");
    let stored: Vec<u8> = ["agents.db", "agents.db-wal"]
        .iter()
        .flat_map(|name| std::fs::read(directory.path().join(name)).unwrap_or_default())
        .collect();
    let holds = |text: &str| stored.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(holds("DEMO_TOKEN"), "the name is stored");
    assert!(holds("the token is …."), "what the server said of it is");
    assert!(!holds("hush-2"), "the value is not, also not by what the server said at its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_session_keeps_its_server_only_while_it_is_kept_warm() {
    for warm in [Duration::ZERO, Duration::from_secs(600)] {
        let directory = tempfile::tempdir().unwrap();
        let servers = demo(directory.path(), json!({}));
        let model = model(json!([
            { "calls": [call("echo", "a")] }, { "calls": [ask("Go on?")] },
            { "calls": [call("echo", "b")] }, { "text": "Done." },
        ]));
        let (adjourn, host, spec) = engine(directory.path(), &model, &servers, warm).await;
        let session = adjourn.create_with(spec).prompt("Go.").await.unwrap();
        let handle = parked(&session).await;
        let server = noted(directory.path(), "started").remove(0);
        if warm.is_zero() {
            until("gone", || !runs(&server)).await;
        } else {
            assert!(runs(&server));
        }
        session.prompt("yes").answering(handle).await.unwrap();
        completed(&session).await;
        let starts = if warm.is_zero() { 2 } else { 1 };
        assert_eq!(noted(directory.path(), "started").len(), starts, "{}", program());
        host.stop().await.unwrap();
        for server in noted(directory.path(), "started") {
            until("gone", || !runs(&server)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_failed_is_tried_again_in_the_next_turn() {
    let directory = tempfile::tempdir().unwrap();
    let late = format!("test -e there || exit 1; exec {}", program());
    let servers = McpServers::read(&json!({ "mcpServers": {
        "demo": { "command": program() }, "late": { "command": "sh", "args": ["-c", late] },
    } }));
    let servers = servers.unwrap().in_directory(directory.path());
    let model = model(json!([{ "calls": [ask("Is it there?")] }, { "text": "Done." }]));
    // The driver is kept, and remembers what has failed.
    let warm = Duration::from_secs(600);
    let (adjourn, host, spec) = engine(directory.path(), &model, &servers, warm).await;
    let session = adjourn.create_with(spec).prompt("Go.").await.unwrap();
    let handle = parked(&session).await;
    std::fs::write(directory.path().join("there"), "").unwrap();
    session.prompt("yes").answering(handle).await.unwrap();
    completed(&session).await;
    let has = |request: usize| {
        let tools = model.requests()[request].tools.clone();
        tools.iter().any(|tool| tool.name == "late__echo")
    };
    assert_eq!((has(0), has(1)), (false, true));
    assert_eq!(noted(directory.path(), "started").len(), 2, "the other one was kept");
    host.stop().await.unwrap();
}
