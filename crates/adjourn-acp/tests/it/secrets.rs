//! Values of variables and headers, and secrets of addresses: agents are given them, and nothing stores
//! them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use adjourn_core::driver::DriverSpec;
use adjourn_driver::{
    BoxStream, Driver, Drivers, Environment, Finish, McpValues, Message, Part, Step, emitting,
};
use serde_json::{Value, json};

use crate::process::Process;

/// An agent that remembers what it was given.
#[derive(Clone, Default)]
struct Agent(Arc<Mutex<Vec<Environment>>>);

impl Agent {
    fn given(&self) -> Vec<Environment> {
        self.0.lock().unwrap().clone()
    }
}

impl Drivers for Agent {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Driver for Agent {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        self.0.lock().unwrap().push(Environment::clone(&step.environment));
        emitting(|out| async move {
            out.emit(Part::Message(Message::agent("done"))).await;
            out.emit(Part::Finished(Finish::completed())).await;
        })
    }
}

/// Describes servers with these values.
fn servers(header: &str, variable: &str) -> Value {
    json!([
        { "type": "http", "name": "files", "url": format!("http://localhost:1?key=q{variable}"),
          "headers": [{ "name": "Authorization", "value": header }] },
        { "name": "local", "command": "/bin/local", "args": [],
          "env": [{ "name": "LOCAL_KEY", "value": variable }] },
    ])
}

fn expected(header: &str, variable: &str) -> Environment {
    let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let mut files = McpValues { headers: one("Authorization", header), ..McpValues::default() };
    files.headers.insert("?key".to_owned(), format!("q{variable}"));
    let local = McpValues { variables: one("LOCAL_KEY", variable), ..McpValues::default() };
    let mcp_servers = [("files".to_owned(), files), ("local".to_owned(), local)].into();
    Environment { mcp_servers, ..Environment::default() }
}

fn holds(stored: &[u8], text: &str) -> bool {
    stored.windows(text.len()).any(|bytes| bytes == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_headers_and_variables_reach_the_agent_and_are_stored_nowhere() {
    let agent = Agent::default();
    let process = Process::start_with(Arc::new(agent.clone())).await;
    let mut client = process.connect().await;
    let new = json!({ "cwd": "/tmp", "mcpServers": servers("Bearer hush1", "hush2") });
    let made = client.call("session/new", new).await;
    let session = made["sessionId"].as_str().unwrap().to_owned();
    client.prompt(&session).await;
    client.until_state("running").await;
    client.until_state("idle").await;
    assert_eq!(agent.given(), [expected("Bearer hush1", "hush2")]);

    // Another process reads the names in the journal; the client that opens the session there sends
    // it the values.
    let other = Agent::default();
    let beside = process.beside_with(Arc::new(other.clone())).await;
    let mut second = beside.connect().await;
    let values = servers("Bearer hush3", "hush4");
    let resume = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": values });
    second.call("session/resume", resume).await;
    second.prompt(&session).await;
    second.until_state("running").await;
    second.until_state("idle").await;
    // A client that resumes may name other servers than those of the journal: its list holds.
    let named = json!([
        { "type": "http", "name": "files", "url": "http://localhost:1?key=…",
          "headers": [{ "name": "Authorization" }] },
        { "name": "local", "command": "/bin/local", "args": [], "env": [{ "name": "LOCAL_KEY" }] },
    ]);
    let servers = named.as_array().cloned();
    let given = Environment { servers, ..expected("Bearer hush3", "hush4") };
    assert_eq!(other.given(), [given]);

    let stored = process.stored();
    assert!(holds(&stored, "Authorization") && holds(&stored, "LOCAL_KEY"), "names are kept");
    assert!(!holds(&stored, "hush"), "values are not");
    let shown = format!("{:?}", agent.given());
    assert!(shown.contains("Authorization") && !shown.contains("hush"), "{shown}");
}
