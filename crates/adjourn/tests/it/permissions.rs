//! Calls that somebody has to allow: nothing starts before, and nobody is asked for nothing.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adjourn::about::About;
use adjourn::clock::Clock;
use adjourn::permission::Permissions;
use adjourn::script::{Script, Scripted};
use adjourn_core::Command;
use adjourn_core::command::{CallResult, Cancel, Mode, Resume, Suspend};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::SessionId;
use adjourn_core::ledger::CallId;
use adjourn_driver::{
    Block, BoxFuture, BoxStream, Call, CallContent, CallPart, Driver, Drivers, Finish, Message,
    Opening, Part, PermissionAnswer, PermissionRequest, RequestedCall, Role, Step, emitting,
};
use adjourn_store::Store as _;
use tokio::sync::oneshot;

use crate::fixture::{Fixture, Working};

const DEPLOY: &str = r#"{"runs": [[{"tool": {"name": "deploy", "ms": 1000, "permission": true}}, {"say": "done"}]]}"#;

/// Somebody who is asked, and answers when the test does.
#[derive(Clone, Default)]
struct Clerk(Arc<Mutex<Desk>>);

#[derive(Default)]
struct Desk {
    open: Vec<(String, oneshot::Sender<PermissionAnswer>)>,
    asked: usize,
    is_away: bool,
}

impl Permissions for Clerk {
    fn ask(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        let (clerk, tool) = (self.clone(), request.call.tool);
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            {
                let mut desk = clerk.0.lock().unwrap();
                desk.asked += 1;
                desk.open.push((tool, answer));
            }
            answered.await.unwrap()
        })
    }

    fn is_attended(&self, _: SessionId) -> bool {
        !self.0.lock().unwrap().is_away
    }
}

impl Clerk {
    /// Returns the tools that somebody waits to use.
    fn open(&self) -> Vec<String> {
        let mut desk = self.0.lock().unwrap();
        desk.open.retain(|(_, answer)| !answer.is_closed());
        desk.open.iter().map(|(tool, _)| tool.clone()).collect()
    }

    /// Returns how often it was asked.
    fn asked(&self) -> usize {
        self.0.lock().unwrap().asked
    }

    async fn until_open(&self, tools: &[&str]) {
        let start = Instant::now();
        while self.open() != tools {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "never {tools:?}: {:?}",
                self.open()
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn answer(&self, tool: &str, permission: PermissionAnswer) {
        let mut desk = self.0.lock().unwrap();
        let index = desk.open.iter().position(|(open, _)| open == tool).unwrap();
        desk.open.remove(index).1.send(permission).unwrap();
    }

    fn refuse(&self, tool: &str) {
        self.answer(tool, PermissionAnswer::Refused("not today".to_owned()));
    }

    async fn host(&self, fixture: &Fixture) -> Working {
        let clock: Arc<dyn Clock> = Arc::new(fixture.clock.clone());
        fixture.host_with(Arc::new(Scripted::new(clock).asking(Arc::new(self.clone())))).await
    }
}

fn create(fixture: &Fixture, script: &str) -> SessionId {
    let mut spec = DriverSpec::script(script);
    spec.needs = Script::parse(script).unwrap().needs();
    fixture.create_with(spec)
}

fn results(fixture: &Fixture, id: SessionId) -> Vec<String> {
    let said = fixture.said(id);
    said.iter().filter(|said| said.role == Role::Tool).map(Message::text).collect()
}

/// A session whose only call waits for somebody to allow it.
async fn asking() -> (Fixture, Clerk, Working, SessionId) {
    let (fixture, clerk) = (Fixture::new(), Clerk::default());
    let host = clerk.host(&fixture).await;
    let id = create(&fixture, DEPLOY);
    fixture.prompt(id, "go");
    clerk.until_open(&["deploy"]).await;
    assert_eq!(fixture.happened(id).last(), Some(&"calls_asked"), "nothing starts before");
    (fixture, clerk, host, id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_starts_when_it_is_allowed() {
    let (fixture, clerk, host, id) = asking().await;
    clerk.answer("deploy", PermissionAnswer::Granted { always: false });
    fixture.until_in_flight(id, "deploy").await;
    fixture.pass_until(id, "idle").await;
    assert_eq!(results(&fixture, id), ["deploy done"]);
    assert_eq!((fixture.dispatched(id), clerk.asked()), (1, 1));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_refused_never_starts_and_the_run_goes_on() {
    let (fixture, clerk, host, id) = asking().await;
    clerk.refuse("deploy");
    let session = fixture.until_state(id, "idle").await;
    assert_eq!(session.last_run.as_ref().unwrap().outcome.as_str(), "completed");
    assert_eq!(results(&fixture, id), ["not today"]);
    assert_eq!(fixture.dispatched(id), 0);
    host.stop().await;
}

/// The answer is in the journal: a host that takes the session over does not ask, either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_allowed_for_good_is_not_asked_for_again_by_any_host() {
    let (fixture, clerk) = (Fixture::new(), Clerk::default());
    let host = clerk.host(&fixture).await;
    let deploys = r#"{"tool": {"name": "deploy", "permission": true}}"#;
    let other = r#"{"tool": {"name": "drop", "permission": true}}"#;
    let id =
        create(&fixture, &format!(r#"{{"runs": [[{deploys}, {deploys}], [{deploys}, {other}]]}}"#));
    fixture.prompt(id, "go");
    clerk.until_open(&["deploy"]).await;
    clerk.answer("deploy", PermissionAnswer::Granted { always: true });
    fixture.pass_until(id, "idle").await;
    host.kill().await;
    let host = clerk.host(&fixture).await;
    fixture.prompt(id, "again");
    clerk.until_open(&["drop"]).await;
    assert_eq!((fixture.dispatched(id), clerk.asked()), (3, 2));
    clerk.refuse("drop");
    fixture.pass_until(id, "idle").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspend_takes_the_request_back_and_a_plain_resume_asks_again() {
    for mode in [Mode::FinishStep, Mode::InterruptImmediate] {
        let (fixture, clerk, host, id) = asking().await;
        fixture.suspend(id, Suspend { mode, ..Suspend::default() });
        fixture.until_state(id, "suspended").await;
        clerk.until_open(&[]).await;
        assert_eq!(fixture.dispatched(id), 0, "{mode:?}");
        fixture.resume(id, None).unwrap();
        clerk.until_open(&["deploy"]).await;
        clerk.answer("deploy", PermissionAnswer::Granted { always: false });
        fixture.pass_until(id, "idle").await;
        assert_eq!(results(&fixture, id), ["deploy done"], "{mode:?}");
        assert_eq!((fixture.dispatched(id), clerk.asked()), (1, 2), "{mode:?}");
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_that_says_something_does_not_ask_again() {
    for (input, continue_transcript) in [(Some("rather not"), true), (None, false)] {
        let (fixture, clerk, host, id) = asking().await;
        fixture.suspend(id, Suspend::default());
        fixture.until_state(id, "suspended").await;
        let said: Vec<_> = input.map(Message::user).into_iter().collect();
        let resume = Resume {
            handle: fixture.handle(id),
            input: said.first().map(Message::content),
            continue_transcript,
            ..Resume::default()
        };
        fixture.give(id, Command::Resume(resume), said).unwrap();
        fixture.until_state(id, "idle").await;
        assert_eq!((fixture.dispatched(id), clerk.asked()), (0, 1), "the model decides");
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspend_that_waits_for_the_run_waits_for_the_permission() {
    let (fixture, clerk, host, id) = asking().await;
    let (mode, grace_ms) = (Mode::WaitForCompletion, Some(1000));
    fixture.suspend(id, Suspend { mode, grace_ms, ..Suspend::default() });
    // A grace is for calls in flight; there is none.
    fixture.clock.advance(Duration::from_secs(5));
    let revision = fixture.session(id).revision;
    fixture.ring_hosts();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(clerk.open(), ["deploy"]);
    assert_eq!(fixture.session(id).revision, revision, "nothing happens while somebody is asked");
    clerk.refuse("deploy");
    fixture.until_state(id, "suspended").await;
    assert_eq!(results(&fixture, id), ["not today"]);
    fixture.resume(id, None).unwrap();
    fixture.until_state(id, "idle").await;
    assert_eq!(clerk.asked(), 1);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_takes_the_request_back() {
    let (fixture, clerk, host, id) = asking().await;
    fixture.give(id, Command::Cancel(Cancel::default()), Vec::new()).unwrap();
    let session = fixture.until_state(id, "idle").await;
    assert_eq!(session.last_run.as_ref().unwrap().outcome.as_str(), "canceled");
    clerk.until_open(&[]).await;
    assert_eq!(fixture.dispatched(id), 0);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_or_dies_leaves_the_asking_to_the_next() {
    for dies in [false, true] {
        let (fixture, clerk, host, id) = asking().await;
        match dies {
            true => host.kill().await,
            false => {
                // It does not wait for an answer, however long its calls may take.
                host.stop().await;
                assert_eq!(fixture.session(id).state.name(), "ready");
            }
        }
        clerk.until_open(&[]).await;
        let host = clerk.host(&fixture).await;
        clerk.until_open(&["deploy"]).await;
        clerk.answer("deploy", PermissionAnswer::Granted { always: false });
        fixture.pass_until(id, "idle").await;
        assert_eq!((fixture.dispatched(id), clerk.asked()), (1, 2), "dies: {dies}");
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_calls_each_starts_as_soon_as_it_may() {
    let (fixture, clerk) = (Fixture::new(), Clerk::default());
    let host = clerk.host(&fixture).await;
    let id = create(
        &fixture,
        r#"{"runs": [[{"tools": [{"name": "lint", "ms": 1000},
                                 {"name": "push", "ms": 1000, "permission": true},
                                 {"name": "tag", "ms": 1000, "permission": true}]}]]}"#,
    );
    fixture.prompt(id, "go");
    clerk.until_open(&["push", "tag"]).await;
    fixture.until_in_flight(id, "lint").await;
    clerk.answer("tag", PermissionAnswer::Granted { always: false });
    fixture.until_in_flight(id, "tag").await;
    assert_eq!(clerk.open(), ["push"]);
    // What may start belongs to the step; what still waits is deferred.
    fixture.suspend(id, Suspend::default());
    clerk.until_open(&[]).await;
    fixture.pass_until(id, "suspended").await;
    assert_eq!(results(&fixture, id).len(), 2);
    fixture.resume(id, None).unwrap();
    clerk.until_open(&["push"]).await;
    clerk.refuse("push");
    fixture.until_state(id, "idle").await;
    assert_eq!(results(&fixture, id).last().unwrap(), "not today");
    assert_eq!(fixture.dispatched(id), 2);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequence_asks_for_one_after_the_other() {
    let (fixture, clerk) = (Fixture::new(), Clerk::default());
    let host = clerk.host(&fixture).await;
    let id = create(
        &fixture,
        r#"{"runs": [[{"sequence": [{"name": "same", "permission": true},
                                    {"name": "same", "ms": 1000},
                                    {"name": "last", "permission": true}]}]]}"#,
    );
    fixture.prompt(id, "go");
    clerk.until_open(&["same"]).await;
    clerk.answer("same", PermissionAnswer::Granted { always: false });
    fixture.until_in_flight(id, "same").await;
    fixture.until(id, "the second", |_| fixture.dispatched(id) == 2).await;
    assert_eq!(clerk.asked(), 1, "a call is known by more than its name");
    // A call is dispatched before it looks at the clock.
    let last = || {
        fixture.clock.advance(Duration::from_millis(100));
        clerk.open() == ["last"]
    };
    fixture.until(id, "the last", |_| last()).await;
    clerk.answer("last", PermissionAnswer::Granted { always: false });
    fixture.until_state(id, "idle").await;
    assert_eq!(fixture.dispatched(id), 3);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_for_a_step_that_is_to_end() {
    let (fixture, clerk) = (Fixture::new(), Clerk::default());
    let host = clerk.host(&fixture).await;
    let id = create(
        &fixture,
        r#"{"runs": [[{"tools": [{"name": "lint", "ms": 1000}]},
                      {"sequence": [{"name": "build", "ms": 1000},
                                    {"name": "push", "permission": true}]}]]}"#,
    );
    fixture.prompt(id, "go");
    fixture.pass_until_in_flight(id, "build").await;
    fixture.suspend(id, Suspend::default());
    let session = fixture.pass_until(id, "suspended").await;
    assert_eq!(clerk.asked(), 0);
    assert_eq!(session.calls.len(), 1, "it is deferred");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_waits_for_a_host_where_somebody_can_answer() {
    let (fixture, clerk) = (Fixture::new(), Clerk::default());
    clerk.0.lock().unwrap().is_away = true;
    let hosts = [fixture.host().await, clerk.host(&fixture).await];
    let id = create(&fixture, DEPLOY);
    fixture.prompt(id, "go");
    let declined = || {
        let hosts = fixture.store.hosts().unwrap();
        let mut why: Vec<_> = hosts
            .iter()
            .filter_map(|host| About::parse(&host.about).declines(id).map(str::to_owned))
            .collect();
        why.sort();
        why
    };
    let start = Instant::now();
    while declined()
        != [
            "it asks for permissions, and no editor is connected to this host",
            "it asks for permissions, and no editor of this host shows it",
        ]
    {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {:?}", declined());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(fixture.session(id).state.name(), "ready");
    clerk.0.lock().unwrap().is_away = false;
    fixture.ring_hosts();
    clerk.until_open(&["deploy"]).await;
    clerk.refuse("deploy");
    fixture.until_state(id, "idle").await;
    for host in hosts {
        host.stop().await;
    }
}

/// An agent that looks, writes if somebody allows it, and looks again, in order.
struct Writer;

impl Drivers for Writer {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(Self))
    }
}

impl Driver for Writer {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let begins = step.opening == Opening::Prompt;
        emitting(move |out| async move {
            if !begins {
                return out.emit(Part::Finished(Finish::completed())).await;
            }
            let call = |id: &str, permission| {
                let content = CallContent::new(CallId::from(id), "tool");
                RequestedCall { permission, in_order: true, ..RequestedCall::new(content) }
            };
            let calls = vec![call("look", false), call("write", true), call("again", false)];
            out.emit(Part::Calls(calls)).await;
            out.emit(Part::Finished(Finish::default())).await;
        })
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        emitting(move |out| async move {
            let content = vec![Block::text(format!("{} ran", call.content.id))];
            let (result, structured) = (CallResult::Done, None);
            out.emit(CallPart::Ended { result, content, structured }).await;
        })
    }
}

#[tokio::test]
async fn where_no_person_can_be_asked_a_driver_that_does_not_park_loses_that_call_alone() {
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(Writer)).await;
    let kind = DriverKind::Native { model: "writer".to_owned() };
    let id = fixture.create_with(DriverSpec::new(kind));
    fixture.prompt(id, "go");
    fixture.until_state(id, "idle").await;
    let declined = "not run: no person can be asked for permission";
    assert_eq!(results(&fixture, id), ["look ran", declined, "again ran"]);
    host.stop().await;
}
