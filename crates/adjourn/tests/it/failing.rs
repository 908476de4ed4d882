//! Steps that fail: the host tries again, waits until that makes sense, asks, or fails the run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn::clock::Clock as _;
use adjourn::{Config, Failures};
use adjourn_core::Session;
use adjourn_core::carry::Usage;
use adjourn_core::command::{RunEnd, Suspend};
use adjourn_core::conditions::Conditions;
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::session::{Initiator, Outcome, Wait};
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
    /// How the next steps fail, if they do; behind them the run is completed.
    failures: VecDeque<Option<Failure>>,
    /// What each step was given.
    given: Vec<Vec<ModelMessage>>,
}

impl Service {
    fn that_fails(failures: impl IntoIterator<Item = Failure>) -> Self {
        Self::that(failures.into_iter().map(Some))
    }

    /// A service some of whose steps fail; the others leave the run to go on.
    fn that(steps: impl IntoIterator<Item = Option<Failure>>) -> Self {
        let failures = steps.into_iter().collect();
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
            let goes_on = failure.is_some();
            if let Some(failure) = failure.flatten() {
                return out.emit(Part::Failed(failure)).await;
            }
            let text = "age".to_owned();
            out.emit(Part::Delta { message: 0, words: Words::Said, text }).await;
            let end = RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
            let ends = (!goes_on).then_some(end);
            out.emit(Part::Finished(Finish { ends, ..Finish::default() })).await;
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        emitting(|_| std::future::ready(()))
    }
}

fn failure(message: &str, retry_at: Option<Timestamp>) -> Failure {
    Failure { kind: "rate_limit".to_owned(), message: message.to_owned(), retry_at }
}

fn of_kind(kind: &str, retry_at: Option<Timestamp>) -> Failure {
    Failure { kind: kind.to_owned(), ..failure("slow down", retry_at) }
}

/// Waits until the host waits to try a step again.
async fn until_it_waits_to_retry(fixture: &Fixture, id: SessionId, failed: u64) -> Arc<Session> {
    let waits = |session: &Session| {
        session.run().is_some_and(|run| {
            run.step.is_none() && run.progress.failures.get("overloaded") == failed
        })
    };
    fixture.until(id, "a failed step", waits).await
}

/// Returns the agent's messages, and whether each was broken off.
fn said(fixture: &Fixture, id: SessionId) -> Vec<(String, bool)> {
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
        fixture.ring_hosts();
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

/// The count of tries is in the journal: another host goes on counting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_always_fails_for_now_parks_no_more_often_than_it_may_be_tried_again() {
    let fixture = Fixture::new();
    let minute = Duration::from_secs(60);
    let times = (1..=9).map(|minutes| fixture.clock.now().after(minute * minutes));
    let service = Service::that_fails(times.map(|at| failure("slow down", Some(at))));
    let failures = Failures { retries: 2, ..Failures::default() };
    let config = Config { failures, ..Config::default() };
    let mut host = fixture.host_as(Arc::new(service.clone()), config.clone()).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    for tries in 1..=2 {
        let parked = |session: &Session| {
            session.state.name() == "suspended" && session.totals.tokens() == 3 * tries
        };
        fixture.until(id, "parked", parked).await;
        let next = fixture.host_as(Arc::new(service.clone()), config.clone()).await;
        std::mem::replace(&mut host, next).stop().await;
        fixture.clock.advance(minute);
    }
    let failed = fixture.until_state(id, "idle").await;
    let last = failed.last_run.as_ref().unwrap();
    assert_eq!(last.outcome, Outcome::Failed);
    assert_eq!(last.error.as_deref(), Some("after 3 tries: rate_limit: slow down"));
    assert_eq!(service.steps(), 3);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_failed_for_good_fails_the_run() {
    let fixture = Fixture::new();
    let service = Service::that_fails([of_kind("no_such_model", None)]);
    let host = fixture.host_with(Arc::new(service.clone())).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    let failed = fixture.until_state(id, "idle").await;
    let last = failed.last_run.as_ref().unwrap();
    assert_eq!(last.outcome, Outcome::Failed);
    assert_eq!(last.error.as_deref(), Some("no_such_model: slow down"));
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

#[tokio::test]
async fn a_line_inside_of_a_step_has_its_session_run_and_host() {
    let log = crate::log::Log::of(tracing::Level::DEBUG);
    let fixture = Fixture::new();
    let service = Service::that_fails([of_kind("no_such_model", None)]);
    let host = fixture.host_with(Arc::new(service)).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    let run = fixture.until_state(id, "idle").await.last_run.as_ref().unwrap().id;
    let claim = format!("claim{{session={id} run={run} epoch=1 host={}}}", host.id);
    let around = format!("{claim}:step{{run={run} number=1}}: ");
    let lines = log.lines();
    let line = lines.iter().find(|line| line.contains("a step failed")).unwrap();
    assert!(line.contains(&around), "{line}");
    host.stop().await;
}

/// Where there are no spans of steps, the line has all of it by itself.
#[tokio::test]
async fn a_step_that_failed_is_told_with_its_session_run_and_host() {
    let log = crate::log::Log::of(tracing::Level::INFO);
    let fixture = Fixture::new();
    let service = Service::that_fails([of_kind("no_such_model", None)]);
    let host = fixture.host_with(Arc::new(service)).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    let run = fixture.until_state(id, "idle").await.last_run.as_ref().unwrap().id;
    let lines = log.lines();
    let line = lines.iter().find(|line| line.contains("a step failed")).unwrap();
    for field in [format!("session={id}"), format!("run={run}"), format!("host={}", host.id)] {
        assert!(line.contains(&field), "no {field}: {line}");
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_that_is_past_means_soon_but_not_for_ever() {
    let fixture = Fixture::new();
    let past = Timestamp::from_millis(fixture.clock.now().as_millis() - 1);
    let tries = usize::try_from(Failures::default().retries).unwrap() + 1;
    for failing in [1, tries] {
        let failures = std::iter::repeat_n(of_kind("no_such_model", Some(past)), failing);
        let service = Service::that_fails(failures);
        let host = fixture.host_with(Arc::new(service.clone())).await;
        let id = fixture.create("{}");
        fixture.prompt(id, "go");
        let done = fixture.pass_until(id, "idle").await;
        let (outcome, steps) = match failing {
            1 => (Outcome::Completed, 2),
            _ => (Outcome::Failed, tries),
        };
        assert_eq!(done.last_run.as_ref().unwrap().outcome, outcome);
        assert_eq!((done.woke.as_ref(), service.steps()), (None, steps));
        host.stop().await;
    }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_that_passes_is_tried_again_after_longer_and_longer_waits() {
    let fixture = Fixture::new();
    let service = Service::that_fails([(); 3].map(|()| of_kind("overloaded", None)));
    let host = fixture.host_with(Arc::new(service.clone())).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    until_it_waits_to_retry(&fixture, id, 1).await;
    assert_eq!(service.steps(), 1, "no time has passed");
    let done = fixture.pass_until(id, "idle").await;
    assert_eq!(done.last_run.as_ref().unwrap().outcome, Outcome::Completed);
    assert_eq!((service.steps(), done.woke.as_ref()), (4, None));
    // One second, two and four, of each of which up to a half may be left out.
    assert!(fixture.clock.elapsed() >= Duration::from_millis(3_500));
    let half = ("half a mess".to_owned(), true);
    let whole = ("half a message".to_owned(), false);
    assert_eq!(said(&fixture, id), [half.clone(), half.clone(), half, whole]);
    assert_eq!(service.given(3), ["go"], "nothing of what was broken off is told");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_failures_in_a_row_count() {
    let fixture = Fixture::new();
    let fails = || Some(of_kind("overloaded", None));
    let failures = Failures { retries: 2, ..Failures::default() };
    for (steps, outcome, tries) in [
        (vec![fails(), fails(), None, fails(), fails()], Outcome::Completed, 6),
        (vec![fails(), None, fails(), fails(), fails()], Outcome::Failed, 5),
    ] {
        let service = Service::that(steps);
        let config = Config { failures: failures.clone(), ..Config::default() };
        let host = fixture.host_as(Arc::new(service.clone()), config).await;
        let id = fixture.create("{}");
        fixture.prompt(id, "go");
        let done = fixture.pass_until(id, "idle").await;
        let last = done.last_run.as_ref().unwrap();
        assert_eq!((last.outcome, service.steps()), (outcome, tries));
        if outcome == Outcome::Failed {
            assert_eq!(last.error.as_deref(), Some("after 3 tries: overloaded: slow down"));
        }
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_asked_about_a_failure_that_a_person_can_end() {
    let fixture = Fixture::new();
    let service = Service::that_fails([of_kind("auth_required", None)]);
    let host = fixture.host_with(Arc::new(service.clone())).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    let asked = fixture.until_state(id, "suspended").await;
    let Wait::Question(question) = &asked.suspended().unwrap().shown().pause.wait else {
        panic!("nothing is asked: {asked:#?}");
    };
    assert_eq!(question.question, "auth_required: slow down");
    assert_eq!(question.originating_failure_kind.as_deref(), Some("auth_required"));
    fixture.resume(id, Some("logged in")).unwrap();
    let done = fixture.until_state(id, "idle").await;
    assert_eq!(done.last_run.as_ref().unwrap().outcome, Outcome::Completed);
    assert!(service.given(1).iter().any(|told| told.contains("logged in")));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tries_are_counted_across_a_kill_between_them() {
    let fixture = Fixture::new();
    let service = Service::that_fails([(); 2].map(|()| of_kind("overloaded", None)));
    let failures = Failures { retries: 1, ..Failures::default() };
    let config = Config { failures, ..Config::default() };
    let first = fixture.host_as(Arc::new(service.clone()), config.clone()).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    until_it_waits_to_retry(&fixture, id, 1).await;
    first.kill().await;
    let second = fixture.host_as(Arc::new(service.clone()), config).await;
    let failed = fixture.pass_until(id, "idle").await;
    let last = failed.last_run.as_ref().unwrap();
    assert_eq!(last.error.as_deref(), Some("after 2 tries: overloaded: slow down"));
    assert_eq!(service.steps(), 2);
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_waits_to_try_again_is_suspended_canceled_and_given_back_at_once() {
    let fixture = Fixture::new();
    for end in ["suspend", "cancel", "stop"] {
        let service = Service::that_fails([of_kind("overloaded", None)]);
        let host = fixture.host_with(Arc::new(service.clone())).await;
        let id = fixture.create("{}");
        fixture.prompt(id, "go");
        until_it_waits_to_retry(&fixture, id, 1).await;
        match end {
            "suspend" => {
                fixture.suspend(id, Suspend::default());
                assert_eq!(fixture.session(id).state.name(), "suspended");
                fixture.resume(id, None).unwrap();
                // It was a while, and nothing is waited for any more.
                fixture.until_state(id, "idle").await;
                assert_eq!(service.steps(), 2);
                host.stop().await;
            }
            "cancel" => {
                fixture.adjourn().session(id).cancel().await.unwrap();
                let last = fixture.session(id).last_run.clone().unwrap();
                assert_eq!((last.outcome, service.steps()), (Outcome::Canceled, 1));
                host.stop().await;
            }
            _ => {
                host.stop().await;
                assert_eq!(fixture.session(id).state.name(), "ready");
            }
        }
    }
    assert_eq!(fixture.clock.elapsed(), Duration::ZERO);
}

/// What `failures.*` does can be tried by hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_fails_steps_in_every_way_and_goes_on_behind_each() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(
        r#"{"runs": [
          [{"fail": {"kind": "overloaded"}}, {"say": "tried again"},
           {"fail": {"kind": "rate_limit", "why": "slow down", "retry_after_ms": 60000}},
           {"fail": {"kind": "auth_required"}}, {"say": "logged in"}],
          [{"fail": {"kind": "no_such_model", "why": "it is gone"}}, {"say": "never"}],
          [{"say": "the next run"}]]}"#,
    );
    fixture.prompt(id, "go");
    let parked = fixture.pass_until(id, "suspended").await;
    let pause = &parked.suspended().unwrap().shown().pause;
    assert_eq!(pause.reason.as_deref(), Some("rate_limit: slow down"));
    let asks = |session: &Session| {
        let wait = session.suspended().map(|suspended| &suspended.shown().pause.wait);
        matches!(wait, Some(Wait::Question(_)))
    };
    fixture.clock.advance(Duration::from_secs(60));
    fixture.until(id, "asked", asks).await;
    fixture.resume(id, Some("yes")).unwrap();
    fixture.until_state(id, "idle").await;
    fixture.prompt(id, "go");
    let over = |runs: u64| {
        move |session: &Session| session.state.name() == "idle" && session.epoch.0 >= runs
    };
    let failed = fixture.until(id, "failed", over(4)).await;
    let last = failed.last_run.as_ref().unwrap();
    assert_eq!(last.error.as_deref(), Some("no_such_model: it is gone"));
    fixture.prompt(id, "go");
    fixture.until(id, "done", over(5)).await;
    let words: Vec<_> = said(&fixture, id).into_iter().map(|(words, _)| words).collect();
    assert_eq!(words, ["tried again", "logged in", "the next run"]);
    host.stop().await;
}
