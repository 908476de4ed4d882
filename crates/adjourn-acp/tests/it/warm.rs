//! Agents that a host keeps warm, as clients see them.

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::driver::DriverSpec;
use adjourn_driver::{BoxStream, Driver, Drivers, Finish, Part, Step, emitting};
use serde_json::{Value, json};

use crate::process::{Client, Process};

/// An agent that has nothing to say, and is kept.
#[derive(Clone, Copy)]
struct Kept;

impl Drivers for Kept {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(*self))
    }
}

impl Driver for Kept {
    fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
        emitting(|out| async move { out.emit(Part::Finished(Finish::completed())).await })
    }

    fn keep(&mut self) -> bool {
        true
    }
}

async fn until_kept(process: &Process, session: &str) {
    let kept = async {
        while process.keeper_of(session).is_none() {
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
    let process = Process::start_with(Arc::new(Kept)).await;
    let mut client = process.connect().await;
    let session = client.new_session().await;
    client.prompt(&session).await;
    until_kept(&process, &session).await;
    let keeper = json!(process.keeper_of(&session));
    let elsewhere = process.beside_with(Arc::new(Kept)).await;
    let (mut today, mut draft) = (elsewhere.connect_of_today().await, elsewhere.connect().await);
    assert_eq!(status(&mut today, &session).await, (json!("live"), keeper.clone()));
    assert_eq!(status(&mut draft, &session).await, (json!("open"), keeper));
    process.kill().await;
    assert_eq!(status(&mut today, &session).await, (json!("not_found"), Value::Null));
    assert_eq!(status(&mut draft, &session).await, (json!("saved"), Value::Null));
}
