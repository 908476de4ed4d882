//! Agents that a host keeps warm, as clients see them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn_core::driver::DriverSpec;
use adjourn_driver::{BoxStream, Driver, Drivers, Finish, Part, Step, emitting};
use serde_json::{Value, json};

use crate::process::{Client, Process};

/// An agent that has nothing to say, and is kept.
#[derive(Clone, Default)]
struct Kept {
    made: Arc<AtomicUsize>,
    /// Which of those that were made ran a step.
    stepped: Arc<Mutex<Vec<usize>>>,
    number: usize,
}

impl Kept {
    /// Waits until so many steps have begun; returns which agents ran them.
    async fn until_stepped(&self, steps: usize) -> Vec<usize> {
        let stepped = async {
            while self.stepped.lock().unwrap().len() < steps {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), stepped).await.unwrap();
        self.stepped.lock().unwrap().clone()
    }
}

impl Drivers for Kept {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Self { number, ..self.clone() }))
    }
}

impl Driver for Kept {
    fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
        self.stepped.lock().unwrap().push(self.number);
        emitting(|out| async move { out.emit(Part::Finished(Finish::completed())).await })
    }

    fn keep(&mut self) -> bool {
        true
    }
}

async fn until_kept(process: &Process, session: &str) {
    let kept = async {
        while process.keeper_of(session).await.is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), kept).await.unwrap();
}

async fn status(client: &mut Client, session: &str) -> (Value, Value) {
    let status = client.call("session/status", json!({ "sessionId": session })).await;
    (status["status"].clone(), status["_meta"]["adjourn/suspend"]["keptWarmBy"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_agent_a_living_host_keeps_warm_is_live() {
    let process = Process::start_with(Arc::new(Kept::default())).await;
    let mut client = process.connect().await;
    let session = client.new_session().await;
    client.prompt(&session).await;
    until_kept(&process, &session).await;
    let keeper = json!(process.keeper_of(&session).await);
    let elsewhere = process.beside_with(Arc::new(Kept::default())).await;
    let (mut today, mut draft) = (elsewhere.connect_of_today().await, elsewhere.connect().await);
    assert_eq!(status(&mut today, &session).await, (json!("live"), keeper.clone()));
    assert_eq!(status(&mut draft, &session).await, (json!("open"), keeper));
    process.kill().await;
    assert_eq!(status(&mut today, &session).await, (json!("not_found"), Value::Null));
    assert_eq!(status(&mut draft, &session).await, (json!("saved"), Value::Null));
}

/// Clients name the servers of a session whenever they come back to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_kept_when_a_client_comes_back_with_the_same_servers() {
    let server = |name: &str, token: &str| {
        let header = json!({ "name": "Authorization", "value": token });
        json!([{ "type": "http", "name": name, "url": "http://localhost:1", "headers": [header] }])
    };
    let one = server("files", "hush1");
    let others = [server("files", "hush2"), server("mail", "hush1"), json!([])];
    let of_one = others.into_iter().map(|others| (one.clone(), others));
    for (servers, others) in of_one.chain([(json!([]), one.clone())]) {
        let agents = Kept::default();
        let process = Process::start_with(Arc::new(agents.clone())).await;
        let mut client = process.connect_of_today().await;
        let new = json!({ "cwd": "/tmp", "mcpServers": servers });
        let made = client.call("session/new", new).await;
        let session = made["sessionId"].as_str().unwrap().to_owned();
        let load = |servers| json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": servers });
        client.prompt(&session).await;
        agents.until_stepped(1).await;
        for (steps, servers, same) in [(1, &servers, true), (2, &others, false)] {
            until_kept(&process, &session).await;
            assert!(client.call("session/load", load(servers)).await.is_object());
            client.prompt(&session).await;
            let stepped = agents.until_stepped(steps + 1).await;
            assert_eq!(stepped[steps] == stepped[steps - 1], same, "{servers}");
        }
    }
}
