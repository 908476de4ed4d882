//! Steps that fail: the host waits until trying again makes sense, or fails the run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn_core::carry::Usage;
use adjourn_core::command::RunEnd;
use adjourn_core::conditions::Conditions;
use adjourn_core::driver::DriverSpec;
use adjourn_core::session::{Cause, Initiator, Outcome};
use adjourn_core::time::Timestamp;
use adjourn_driver::{
    BoxStream, Call, CallPart, Driver, Drivers, Failure, Finish, ModelMessage, Part, Role, Step,
    Words, emitting,
};
use adjourn_store::Environment as _;

use crate::fixture::Fixture;
use crate::provider;

/// A model whose service fails as often as it is told to, in the middle of a message.
#[derive(Clone, Default)]
struct Service(Arc<Mutex<Log>>);

#[derive(Default)]
struct Log {
    failures: VecDeque<Failure>,
    /// What each step was given.
    given: Vec<Vec<ModelMessage>>,
}

impl Service {
    fn that_fails(failures: impl IntoIterator<Item = Failure>) -> Self {
        let failures = failures.into_iter().collect();
        Self(Arc::new(Mutex::new(Log { failures, ..Log::default() })))
    }

    /// Returns the words that a step was given.
    fn given(&self, step: usize) -> Vec<String> {
        let view = self.0.lock().unwrap().given[step].clone();
        provider::takes(&view);
        view.iter().map(|said| said.blocks[0].words().unwrap().to_owned()).collect()
    }

    fn steps(&self) -> usize {
        self.0.lock().unwrap().given.len()
    }
}

impl Drivers for Service {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Driver for Service {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let failure = {
            let mut log = self.0.lock().unwrap();
            log.given.push(step.transcript.messages().unwrap());
            log.failures.pop_front()
        };
        emitting(|out| async move {
            let text = "half a mess".to_owned();
            out.emit(Part::Delta { message: 0, words: Words::Said, text }).await;
            let tokens = Usage { completion_tokens: 3, ..Usage::default() };
            out.emit(Part::Spent(tokens)).await;
            if let Some(failure) = failure {
                return out.emit(Part::Failed(failure)).await;
            }
            let text = "age".to_owned();
            out.emit(Part::Delta { message: 0, words: Words::Said, text }).await;
            let end = RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
            out.emit(Part::Finished(Finish { ends: Some(end), ..Finish::default() })).await;
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        emitting(|_| std::future::ready(()))
    }
}

fn failure(message: &str, retry_at: Option<Timestamp>) -> Failure {
    Failure { kind: "rate_limit".to_owned(), message: message.to_owned(), retry_at }
}

/// Returns the agent's messages, and whether each was broken off.
fn said(fixture: &Fixture, id: adjourn_core::id::SessionId) -> Vec<(String, bool)> {
    let said = fixture.said(id).into_iter().filter(|said| said.role == Role::Agent);
    said.map(|said| (said.text(), said.aborted)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_failed_for_now_is_tried_again_when_that_makes_sense() {
    let fixture = Fixture::new();
    let minute = Duration::from_secs(60);
    let [first, second] = [1, 2].map(|minutes| fixture.clock.now().after(minute * minutes));
    let failures = [first, second].map(|at| failure("slow down", Some(at)));
    let service = Service::that_fails(failures);
    let host = fixture.host_with(Arc::new(service.clone())).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    for (tries, at) in [(1, first), (2, second)] {
        let parked = fixture.until(id, "parked", |session| {
            session.state.name() == "suspended" && session.totals.tokens() == 3 * tries
        });
        let parked = parked.await;
        let pause = &parked.suspended().unwrap().shown().pause;
        assert_eq!(pause.initiator, Initiator::Agent);
        assert_eq!(pause.reason.as_deref(), Some("rate_limit: slow down"));
        assert_eq!(pause.conditions, Some(Conditions::at(at)));
        // Nothing happens a moment before.
        fixture.clock.advance(minute - Duration::from_millis(1));
        fixture.hosts().ring();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(fixture.session(id).revision, parked.revision);
        fixture.clock.advance(Duration::from_millis(1));
    }
    let done = fixture.until_state(id, "idle").await;
    assert_eq!(done.last_run.as_ref().unwrap().outcome, Outcome::Completed);
    assert_eq!(done.totals.tokens(), 9, "what failed was used, too");
    let half = ("half a mess".to_owned(), true);
    assert_eq!(said(&fixture, id), [half.clone(), half, ("half a message".to_owned(), false)]);
    // What was broken off is no part of the conversation.
    assert_eq!(service.given(0), ["go"]);
    let given = service.given(2);
    assert_eq!((given.len(), given[0].as_str()), (3, "go"));
    for told in &given[1..] {
        assert!(told.starts_with("[adjourn] "), "{told}");
        assert!(told.contains("rate_limit: slow down"), "{told}");
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_failed_for_good_fails_the_run() {
    let fixture = Fixture::new();
    let service = Service::that_fails([failure("no such model", None)]);
    let host = fixture.host_with(Arc::new(service.clone())).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    let failed = fixture.until_state(id, "idle").await;
    let last = failed.last_run.as_ref().unwrap();
    assert_eq!(last.outcome, Outcome::Failed);
    assert_eq!(last.error.as_deref(), Some("rate_limit: no such model"));
    assert_eq!(said(&fixture, id), [("half a mess".to_owned(), true)]);
    assert_eq!(failed.totals.tokens(), 3);
    // The next prompt begins another run.
    fixture.prompt(id, "again");
    let done = fixture.until(id, "done", |session| {
        session.last_run.as_ref().is_some_and(|run| run.outcome == Outcome::Completed)
    });
    done.await;
    assert_eq!(service.given(1), ["go", "again"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_that_is_past_means_at_once() {
    let fixture = Fixture::new();
    let past = Timestamp::from_millis(fixture.clock.now().as_millis() - 1);
    let service = Service::that_fails([failure("slow down", Some(past))]);
    let host = fixture.host_with(Arc::new(service.clone())).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    let done = fixture.until_state(id, "idle").await;
    assert_eq!(done.last_run.as_ref().unwrap().outcome, Outcome::Completed);
    assert_eq!(done.woke.as_ref().unwrap().cause, Cause::ConditionFired);
    assert_eq!(service.steps(), 2);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_story_of_a_failure_is_cut_and_the_step_is_tried_again() {
    let fixture = Fixture::new();
    let at = fixture.clock.now().after(Duration::from_secs(60));
    let service = Service::that_fails([failure(&"ä".repeat(100_000), Some(at))]);
    let host = fixture.host_with(Arc::new(service)).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    let parked = fixture.until_state(id, "suspended").await;
    let reason = parked.suspended().unwrap().shown().pause.reason.clone().unwrap();
    assert!(reason.starts_with("rate_limit: ää") && reason.len() <= 1024, "{reason}");
    host.stop().await;
}
