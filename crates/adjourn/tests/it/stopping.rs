//! A host that stops and does not wait for calls any longer leaves its sessions as a dead one does.

use adjourn::{Error, StoreError};
use adjourn_core::id::SessionId;
use adjourn_driver::Message;
use tracing::Level;

use crate::fixture::Fixture;
use crate::log::Log;

/// Starts a script, and stops its host when a tool is in flight; the tool does not return in time.
async fn stopped_in(fixture: &Fixture, script: &str, tool: &str) -> SessionId {
    let host = fixture.host().await;
    let id = fixture.create(script);
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, tool).await;
    let stopping = tokio::spawn(host.stop());
    while !stopping.is_finished() {
        fixture.clock.advance(std::time::Duration::from_millis(500));
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    stopping.await.unwrap();
    id
}

/// Returns what the host has told the model about calls, and of which tools there are results.
fn told(fixture: &Fixture, id: SessionId) -> Vec<String> {
    fixture.said(id).iter().filter(|said| said.answers.is_some()).map(Message::text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_may_run_twice_are_run_again_by_the_next_host() {
    let fixture = Fixture::new();
    let script = r#"{"runs": [[{"tool": {"name": "fetch", "ms": 40000, "idempotent": true}},
                               {"say": "done"}]]}"#;
    let id = stopped_in(&fixture, script, "fetch").await;
    assert_eq!(fixture.session(id).state.name(), "ready");
    let host = fixture.host().await;
    fixture.pass_until(id, "idle").await;
    assert_eq!(fixture.dispatched(id), 2);
    assert_eq!(told(&fixture, id), ["fetch done"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_may_not_park_the_session_and_the_model_is_told() {
    let fixture = Fixture::new();
    let script = r#"{"runs": [[{"tools": [{"name": "fetch", "ms": 40000, "idempotent": true},
                                          {"name": "deploy", "ms": 40000}]},
                               {"say": "done"}]]}"#;
    let id = stopped_in(&fixture, script, "deploy").await;
    let session = fixture.session(id);
    assert_eq!(session.status().pause.unwrap().reason, Some("host_interrupted"));
    assert_eq!(session.status().unknown_calls, ["deploy"]);
    let host = fixture.host().await;
    fixture.resume(id, None).unwrap();
    fixture.pass_until(id, "idle").await;
    assert_eq!(fixture.dispatched(id), 3, "one of them ran again");
    let unknown = "[adjourn] deploy: its outcome is unknown: it was cut off while it ran";
    assert_eq!(told(&fixture, id), ["fetch done", unknown]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequence_does_not_go_on_behind_a_call_whose_outcome_is_unknown() {
    let fixture = Fixture::new();
    let script = r#"{"runs": [[{"sequence": [{"name": "migrate", "ms": 99000}, {"name": "deploy"},
                                             {"name": "announce"}]},
                               {"say": "done"}]]}"#;
    let id = stopped_in(&fixture, script, "migrate").await;
    assert_eq!(fixture.session(id).status().unknown_calls, ["migrate"]);
    let host = fixture.host().await;
    fixture.resume(id, None).unwrap();
    fixture.pass_until(id, "idle").await;
    assert_eq!(fixture.dispatched(id), 1, "nothing behind it ran");
    let not_run = "not run: the outcome of migrate before it is unknown";
    let unknown = "[adjourn] migrate: its outcome is unknown: it was cut off while it ran";
    assert_eq!(told(&fixture, id), [not_run, not_run, unknown]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_call_is_made_again_by_the_next_host() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(r#"{"runs": [[{"say": {"text": "well", "ms": 40000}}]]}"#);
    fixture.prompt(id, "go");
    fixture.until(id, "thinking", |session| session.run().is_some_and(|run| run.told)).await;
    let stopping = tokio::spawn(host.stop());
    fixture.clock.until_waited_for(2).await;
    fixture.clock.advance(std::time::Duration::from_secs(30));
    stopping.await.unwrap();
    assert_eq!(fixture.session(id).state.name(), "ready");
    let host = fixture.host().await;
    fixture.pass_until(id, "idle").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_panics_has_failed() {
    use std::sync::Arc;

    use adjourn::clock::Clock;
    use adjourn::script::Scripted;
    use adjourn_core::Session;
    use adjourn_core::command::RunEnd;
    use adjourn_core::driver::DriverSpec;
    use adjourn_driver::{BoxStream, Call, CallPart, Driver, Drivers, Part, Step, emitting};

    struct Panics(Box<dyn Driver>);
    impl Driver for Panics {
        fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
            self.0.step(step)
        }
        fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
            match call.content.tool.as_str() {
                "panics" => emitting(|_| async { panic!("as it was told to") }),
                _ => self.0.call(call),
            }
        }
        fn finish(&mut self, session: &Session) -> Option<RunEnd> {
            self.0.finish(session)
        }
    }
    struct Panicking(Scripted);
    impl Drivers for Panicking {
        fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
            Ok(Box::new(Panics(self.0.make(spec)?)))
        }
    }

    let fixture = Fixture::new();
    let clock: Arc<dyn Clock> = Arc::new(fixture.clock.clone());
    let host = fixture.host_with(Arc::new(Panicking(Scripted::new(clock)))).await;
    let script = r#"{"runs": [[{"tools": [{"name": "panics", "idempotent": true},
                                          {"name": "works", "ms": 1000}]}, {"say": "done"}]]}"#;
    let id = fixture.create(script);
    fixture.prompt(id, "go");
    fixture.pass_until(id, "idle").await;
    let mut told = told(&fixture, id);
    told.sort();
    assert_eq!(told, ["it failed: the tool panicked", "works done"]);
    host.stop().await;
}

/// A store that takes nothing does not keep a host for ever: it ends as if it had died.
#[tokio::test]
async fn a_host_that_cannot_give_back_what_it_has_ends_all_the_same() {
    use std::time::Duration;

    let log = Log::of(Level::WARN);
    let fixture = Fixture::with(|options| options.patience = Duration::from_millis(50));
    let host = fixture.host().await;
    let script = r#"{"runs": [[{"tool": {"name": "fetch", "ms": 90000, "idempotent": true}},
                               {"say": "done"}]]}"#;
    let id = fixture.create(script);
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, "fetch").await;
    let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let stopping = tokio::spawn(host.try_to_stop());
    while !stopping.is_finished() {
        fixture.clock.advance(Duration::from_millis(500));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let error = stopping.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Locked { .. })), "{error}");
    let run = fixture.session(id).run().unwrap().id.to_string();
    let said = log.lines();
    let line = said.iter().find(|line| line.contains("is not given back")).unwrap();
    assert!(line.contains(&run) && line.contains(&id.to_string()), "{line}");
    connection.execute_batch("ROLLBACK").unwrap();
    let host = fixture.host().await;
    fixture.pass_until(id, "idle").await;
    assert!(fixture.happened(id).contains(&"host_lost"));
    host.stop().await;
}
