//! Budgets: a session that has spent its own stops, and goes on when it has more.

use std::sync::Arc;

use adjourn_core::actor::Face;
use adjourn_core::carry::{AddBudget, Budget, Limit, Usage};
use adjourn_core::command::{Mode, Resume, RunEnd};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::session::{Initiator, Outcome};
use adjourn_core::{Command, Rejected, Session};
use adjourn_driver::{
    BoxStream, Call, CallPart, Driver, Drivers, Finish, Part, Role, Step, Words, emitting,
};
use adjourn_store::{CommandError, Done};

use crate::fixture::Fixture;

const TWO_CENTS: Budget =
    Budget { cost_micro_usd: Some(20_000), tokens: None, iterations: None, active_ms: None };

fn resume(
    fixture: &Fixture,
    id: SessionId,
    add_budget: Option<AddBudget>,
) -> Result<Done, CommandError> {
    let resume = Resume { handle: fixture.handle(id), add_budget, ..Resume::default() };
    fixture.give(id, Command::Resume(resume), Vec::new())
}

/// Resumes without a budget, with too little and with nothing of it, all of which is refused.
fn assert_needs_budget(fixture: &Fixture, id: SessionId) {
    let tokens = AddBudget { tokens: 1_000_000, ..AddBudget::default() };
    for too_little in [None, Some(AddBudget::default()), Some(tokens)] {
        let refused = resume(fixture, id, too_little).unwrap_err();
        let is_refused =
            matches!(refused, CommandError::Rejected(Rejected::BudgetNotRaised { .. }));
        assert!(is_refused, "{too_little:?}: {refused}");
    }
}

/// Asserts that the budget has parked the session, as a client would.
fn assert_parked_by_the_budget(session: &Session) {
    let pause = &session.suspended().unwrap().shown().pause;
    assert_eq!(pause.limit, Some(Limit::BudgetExceeded));
    assert_eq!(pause.reason.as_deref(), Some("budget_exceeded"));
    assert_eq!(pause.initiator, Initiator::Client);
    assert_eq!((pause.by.face, pause.by.principal.as_str()), (Face::Policy, "budget"));
}

fn words(fixture: &Fixture, id: SessionId) -> Vec<String> {
    let said = fixture.said(id).into_iter().filter(|said| said.role == Role::Agent);
    // The last segment of a message may only say that the message is over.
    said.map(|said| said.text()).filter(|text| !text.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_has_spent_its_budget_parks_until_it_has_more() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create_within(
        TWO_CENTS,
        r#"{"runs": [[
            {"say": {"text": "one", "spend": {"usd": 0.01}}},
            {"say": {"text": "two", "ms": 1000, "spend": {"usd": 0.015}}},
            {"say": {"text": "three", "spend": {"usd": 0.01}}},
            {"say": "four"}
        ]]}"#,
    );
    fixture.prompt(id, "go");
    let parked = fixture.pass_until(id, "suspended").await;
    assert_parked_by_the_budget(&parked);
    assert_eq!(parked.totals.cost_micro_usd, 25_000);
    assert_eq!(words(&fixture, id), ["one", "two"], "what was paid for is kept, nothing follows");
    assert_needs_budget(&fixture, id);
    // Half a cent is what it has spent too much.
    let cents =
        |cents: u64| Some(AddBudget { cost_micro_usd: cents * 10_000, ..AddBudget::default() });
    resume(&fixture, id, Some(AddBudget { cost_micro_usd: 5_000, ..AddBudget::default() }))
        .unwrap_err();
    resume(&fixture, id, cents(1)).unwrap();
    let parked = fixture.until(id, "parked again", |session| {
        session.state.name() == "suspended" && session.totals.cost_micro_usd == 35_000
    });
    let parked = parked.await;
    assert_parked_by_the_budget(&parked);
    resume(&fixture, id, cents(1)).unwrap();
    fixture.until_state(id, "idle").await;
    assert_eq!(words(&fixture, id), ["one", "two", "three", "four"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_last_step_spends_the_budget_keeps_its_outcome() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"steps": [{"say": {"text": "dear", "spend": {"usd": 0.02}}}]}"#;
    let id = fixture.create_within(TWO_CENTS, script);
    fixture.prompt(id, "go");
    let parked = fixture.until_state(id, "suspended").await;
    assert_parked_by_the_budget(&parked);
    assert_needs_budget(&fixture, id);
    resume(&fixture, id, Some(AddBudget { cost_micro_usd: 20_000, ..AddBudget::default() }))
        .unwrap();
    let done = fixture.until_state(id, "idle").await;
    assert_eq!(done.last_run.as_ref().unwrap().outcome, Outcome::Completed);
    assert_eq!(words(&fixture, id), ["dear"], "it is not said twice");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_have_a_budget_of_their_own() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let budget = Budget { tokens: Some(100), ..Budget::default() };
    let script = r#"{"runs": [[{"spend": {"tokens": 99, "usd": 5}}, {"spend": {"tokens": 1}}, {"say": "done"}]]}"#;
    let id = fixture.create_within(budget, script);
    fixture.prompt(id, "go");
    let parked = fixture.until_state(id, "suspended").await;
    assert_parked_by_the_budget(&parked);
    assert_eq!(parked.totals.tokens(), 100);
    resume(&fixture, id, Some(AddBudget { cost_micro_usd: 1, ..AddBudget::default() }))
        .unwrap_err();
    resume(&fixture, id, Some(AddBudget { tokens: 1, ..AddBudget::default() })).unwrap();
    fixture.until_state(id, "idle").await;
    host.stop().await;
}

/// An agent with a loop of its own: it spends, and goes on until it is told to stop.
struct Spender;

impl Drivers for Spender {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(Self))
    }
}

impl Driver for Spender {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let mut stop = step.stop.clone();
        emitting(|out| async move {
            let say =
                |text: &str| Part::Delta { message: 0, words: Words::Said, text: text.to_owned() };
            out.emit(say("spending")).await;
            for cost_micro_usd in [10_000, 15_000] {
                out.emit(Part::Spent(Usage { cost_micro_usd, ..Usage::default() })).await;
            }
            let stop = stop.at_least(Mode::FinishStep).await;
            out.emit(say(&format!(", told {:?}", stop.mode))).await;
            let end = RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
            out.emit(Part::Finished(Finish { ends: Some(end), ..Finish::default() })).await;
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        emitting(|_| std::future::ready(()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_that_is_spent_stops_a_step_that_goes_on() {
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(Spender)).await;
    let id = fixture.create_within(TWO_CENTS, "{}");
    fixture.prompt(id, "go");
    let parked = fixture.until_state(id, "suspended").await;
    assert_parked_by_the_budget(&parked);
    assert_eq!(parked.totals.cost_micro_usd, 25_000);
    assert_eq!(words(&fixture, id).concat(), "spending, told FinishStep");
    assert_needs_budget(&fixture, id);
    host.stop().await;
}
