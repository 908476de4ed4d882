//! The same agent, run by an engine with a store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adjourn::core::carry::Budget;
use adjourn::core::command::Mode;
use adjourn::core::event::What;
use adjourn::core::session::{Outcome, Prior, State, Wait};
use adjourn::{Adjourn, RunningHost, SessionRef, Suspension};
use adjourn_agent::{
    AddBudget, Agent, AgentGuardrails, Clock, FailureKind, FunctionTool, Payload, ResumeError,
    ScriptedModel, SuspensionRecord, ToolError, ToolSource, Toolbox,
};
use adjourn_core::Session;
use adjourn_core::id::Handle;
use adjourn_core::time::Timestamp;
use adjourn_driver::{BoxFuture, Environment, Message};
use adjourn_testkit::until;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fixture::{BEGINNING, Ran, ask, events, keys, model, payload, text};

/// A model that is cut off, looks, asks, and has done.
fn script() -> Value {
    json!([
        { "text": "I will", "finish": "length" },
        { "text": "I look.", "calls": [{ "tool": "look" }] },
        { "calls": [{ "tool": "look" }, ask("Merge it?")] },
        { "text": "Merged." },
    ])
}

fn reviewer(adjourn: &Adjourn, model: &Arc<ScriptedModel>, ran: &Ran) -> Agent {
    let agent = Agent::builder(Arc::clone(model)).keys(keys()).name("reviewer");
    agent.tenant(adjourn.tenant()).tool(ran.tool("look")).build().unwrap()
}

/// Waits until the session asks, and returns what was said and the question's handle.
async fn asked(session: &SessionRef) -> (Vec<Message>, Handle) {
    let mut moments = session.watch().await.unwrap();
    let mut said = Vec::new();
    while let Some(moment) = moments.next().await.unwrap() {
        said.extend(moment.said.iter().map(|(_, message)| message.clone()));
        if let What::Suspended(suspended) = &moment.event.what
            && let Wait::Question(_) = suspended.park.pause.wait
        {
            return (said, suspended.park.pause.handle);
        }
    }
    panic!("it never asked");
}

#[tokio::test]
async fn an_engine_runs_the_agent_and_a_person_answers_it_there() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let (model, ran) = (model(script()), Ran::default());
    let agent = reviewer(&adjourn, &model, &ran);
    let created = adjourn.create_with(agent.driver_spec()).prompt("Review it.").await.unwrap();
    let driver = agent.clone();
    let host = adjourn.host().driver("reviewer", move |_| driver.clone()).start().await.unwrap();
    let (_, handle) = asked(&created).await;
    assert_eq!(ran.names(), ["look"], "nothing runs beside the question");
    created.prompt("yes").answering(handle).await.unwrap();
    let run = created.finished().await.unwrap();
    assert_eq!(run.end.outcome, Outcome::Completed);
    assert_eq!(created.load().await.unwrap().memory.last_words, "Merged.");
    host.stop().await.unwrap();
    for request in model.requests() {
        assert_eq!(adjourn_conformance::given::providers_take(&request.messages), Ok(()));
    }
}

#[tokio::test]
async fn a_session_of_an_engine_goes_on_alone_with_a_record() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let (model, ran) = (model(script()), Ran::default());
    let agent = reviewer(&adjourn, &model, &ran);
    let session = adjourn.create_with(agent.driver_spec()).prompt("Review it.").await.unwrap();
    let driver = agent.clone();
    let host = adjourn.host().driver("reviewer", move |_| driver.clone()).start().await.unwrap();
    let (messages, _) = asked(&session).await;
    host.stop().await.unwrap();
    let state = session.load().await.unwrap();
    let whole = Payload { driver: agent.driver_spec(), session: (*state).clone(), messages };
    let record = SuspensionRecord::seal(keys().current(), &whole, None).unwrap();
    assert_eq!(payload(&record)["pending_question"], "Merge it?");
    assert_eq!(payload(&record)["iteration_count"], 2);
    let run = events(agent.resume(&record, "yes").await.unwrap()).await;
    assert_eq!(text(&run), "Merged.");
}

#[tokio::test]
async fn a_budget_of_the_guardrails_is_raised_by_a_resume_in_an_engine_too() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let usage = json!({ "prompt_tokens": 60, "completion_tokens": 40 });
    let look =
        |n: u32| json!({ "calls": [{ "tool": "look", "arguments": { "n": n } }], "usage": usage });
    let model = model(json!([look(1), look(2), { "text": "Done.", "usage": usage }]));
    let guardrails = AgentGuardrails { max_tokens: Some(150), ..AgentGuardrails::default() };
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("reader");
    let agent = agent.guardrails(guardrails).tool(Ran::default().tool("look")).build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Read.").await.unwrap();
    let host = adjourn.host().driver("reader", move |_| agent.clone()).start().await.unwrap();
    let (_, handle) = asked(&session).await;
    assert_eq!(session.load().await.unwrap().totals.tokens(), 200);
    let more = AddBudget { tokens: 100, ..AddBudget::default() };
    session.resume().handle(handle).input("go on").add_budget(more).await.unwrap();
    let run = session.finished().await.unwrap();
    assert_eq!(run.end.outcome, Outcome::Completed);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_budget_that_was_raised_stays_raised_if_the_next_step_is_broken_off() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let usage = json!({ "prompt_tokens": 60, "completion_tokens": 40 });
    let look =
        |n: u32| json!({ "calls": [{ "tool": "look", "arguments": { "n": n } }], "usage": usage });
    let slow = json!({ "text": "I read on and on", "ms": 600_000 });
    let model = model(json!([look(1), look(2), slow, { "text": "Done.", "usage": usage }]));
    let guardrails = AgentGuardrails { max_tokens: Some(150), ..AgentGuardrails::default() };
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("reader");
    let agent = agent.guardrails(guardrails).tool(Ran::default().tool("look")).build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Read.").await.unwrap();
    let host = adjourn.host().driver("reader", move |_| agent.clone()).start().await.unwrap();
    let (_, handle) = asked(&session).await;
    let more = AddBudget { tokens: 100, ..AddBudget::default() };
    session.resume().handle(handle).input("go on").add_budget(more).await.unwrap();
    until("the model speaks", || model.requests().len() == 3).await;
    session.suspend().mode(Mode::InterruptImmediate).await.unwrap();
    session.resume().await.unwrap();
    until("it is asked again", || model.requests().len() == 4).await;
    let run = session.finished().await.unwrap();
    assert_eq!(run.end.outcome, Outcome::Completed);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_tool_failed_with_in_one_run_is_no_failure_of_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let model = model(json!([
        { "calls": [{ "tool": "fetch" }] }, { "text": "Signed in." }, { "text": "Hello." },
    ]));
    let fetch = FunctionTool::new("fetch", "Fetches.", |_: Value| async {
        Err::<String, _>(ToolError::of(FailureKind::AuthRequired, "who are you?"))
    });
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("fetcher").tool(fetch);
    let agent = agent.build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Fetch.").await.unwrap();
    let host = adjourn.host().driver("fetcher", move |_| agent.clone()).start().await.unwrap();
    let (_, handle) = asked(&session).await;
    session.prompt("I have signed in").answering(handle).await.unwrap();
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    session.prompt("Hello").await.unwrap();
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    let state = session.load().await.unwrap();
    assert_eq!(state.memory.last_words, "Hello.", "it is not asked about the old failure again");
    let last = model.requests().pop().unwrap();
    assert!(!format!("{:?}", last.messages).contains("went wrong"), "{last:?}");
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_refill_counts_however_it_comes() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let usage = json!({ "prompt_tokens": 60, "completion_tokens": 40 });
    let model = model(json!([
        { "calls": [{ "tool": "look" }], "usage": usage }, { "text": "Done.", "usage": usage },
    ]));
    let guardrails = AgentGuardrails { max_tokens: Some(50), ..AgentGuardrails::default() };
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("reader");
    let agent = agent.guardrails(guardrails).tool(Ran::default().tool("look")).build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Read.").await.unwrap();
    // Nothing has run yet: the resume brings nothing to tell but the refill.
    session.suspend().await.unwrap();
    let more = AddBudget { tokens: 100, ..AddBudget::default() };
    session.resume().add_budget(more).await.unwrap();
    let host = adjourn.host().driver("reader", move |_| agent.clone()).start().await.unwrap();
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_refusal_is_not_overruled_by_what_is_said_later() {
    assert_no_call_runs_behind("Do not allow", "yes").await;
}

#[tokio::test]
async fn a_permission_is_taken_back_by_what_is_said_before_its_call() {
    assert_no_call_runs_behind("Allow once", "No, wait.").await;
}

/// Answers the question for a permission, and says something else before a host hears of that.
async fn assert_no_call_runs_behind(answer: &str, later: &str) {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let model = model(json!([{ "calls": [{ "tool": "deploy" }] }, { "text": "As you wish." }]));
    let ran = Ran::default();
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("deployer");
    let agent = agent.tool(ran.tool("deploy").asks_permission()).build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Deploy.").await.unwrap();
    let driver = agent.clone();
    let host = adjourn.host().driver("deployer", move |_| driver.clone()).start().await.unwrap();
    let (_, handle) = asked(&session).await;
    host.stop().await.unwrap();
    session.prompt(answer).answering(handle).await.unwrap();
    session.suspend().await.unwrap();
    session.resume().input(later).await.unwrap();
    let host = adjourn.host().driver("deployer", move |_| agent.clone()).start().await.unwrap();
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    assert!(ran.names().is_empty(), "{answer}, {later}");
    let told = format!("{:?}", model.requests().pop().unwrap().messages);
    assert!(told.contains(answer) && told.contains(later), "the model reads both: {told}");
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_step_in_which_no_model_was_asked_is_none_of_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let model = model(json!([{ "calls": [{ "tool": "deploy" }] }, { "text": "Done." }]));
    let ran = Ran::default();
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("deployer");
    let agent = agent.tool(ran.tool("deploy").asks_permission()).build().unwrap();
    let two = Budget { iterations: Some(2), ..Budget::default() };
    let created = adjourn.create_with(agent.driver_spec()).budget(two);
    let session = created.prompt("Deploy.").await.unwrap();
    let host = adjourn.host().driver("deployer", move |_| agent.clone()).start().await.unwrap();
    let (_, handle) = asked(&session).await;
    session.prompt("Allow once").answering(handle).await.unwrap();
    // The call that was allowed is a step of its own.
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    assert_eq!((ran.names().len(), model.requests().len()), (1, 2));
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_pause_that_is_lifted_allows_no_call() {
    for mode in [Mode::FinishStep, Mode::WaitForCompletion, Mode::InterruptImmediate] {
        let directory = tempfile::tempdir().unwrap();
        let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
        let deploy = json!({ "text": "I deploy", "ms": 300, "calls": [{ "tool": "deploy" }] });
        let model = model(json!([deploy, { "text": "As you wish." }]));
        let ran = Ran::default();
        let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("deployer");
        let agent = agent.tool(ran.tool("deploy").asks_permission()).build().unwrap();
        let session = adjourn.create_with(agent.driver_spec()).prompt("Deploy.").await.unwrap();
        let host = adjourn.host().driver("deployer", move |_| agent.clone()).start().await.unwrap();
        until("the model speaks", || model.requests().len() == 1).await;
        session.suspend().mode(mode).await.unwrap();
        session.resume().await.unwrap();
        if mode == Mode::InterruptImmediate {
            session.finished().await.unwrap();
        } else {
            // The question was asked beneath the pause, and stays open.
            let (_, handle) = asked(&session).await;
            session.resume().handle(handle).input("not now").await.unwrap();
            session.finished().await.unwrap();
        }
        assert!(ran.names().is_empty(), "{mode:?}: no person has allowed it");
        host.stop().await.unwrap();
    }
}

/// A session in an engine that was paused while its agent said its last words, with the pause, the
/// model and the host. The directory is that of its store.
async fn paused_behind_the_last_words(
    directory: &Path,
    mode: Mode,
    later: Value,
) -> (SessionRef, Suspension, Arc<ScriptedModel>, RunningHost) {
    let adjourn = Adjourn::open(directory.join("agents.db")).await.unwrap();
    let model = model(json!([{ "text": "It is built.", "ms": 1000 }, later]));
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("builder").build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Build.").await.unwrap();
    let host = adjourn.host().driver("builder", move |_| agent.clone()).start().await.unwrap();
    until("the model speaks", || model.requests().len() == 1).await;
    // It returns when the session is parked: behind the words that nothing follows.
    let paused = session.suspend().mode(mode).await.unwrap();
    let state = session.load().await.unwrap();
    assert_eq!(state.memory.last_words, "It is built.", "{mode:?}");
    let State::Suspended(suspended) = &state.state else { panic!("{state:?}") };
    let Prior::Kept(kept) = &suspended.prior else { panic!("{suspended:?}") };
    assert_eq!(kept.end.outcome, Outcome::Completed, "{mode:?}");
    (session, paused, model, host)
}

/// The behaviour of `suspend-as-the-run-ends` in `conformance/`, which ends with a call.
#[tokio::test]
async fn a_suspend_that_the_last_words_overtake_is_not_lost_and_keeps_the_outcome() {
    for mode in [Mode::FinishStep, Mode::WaitForCompletion] {
        let directory = tempfile::tempdir().unwrap();
        let later = json!({ "text": "More." });
        let (session, paused, model, host) =
            paused_behind_the_last_words(directory.path(), mode, later).await;
        session.resume().handle(paused.handle).await.unwrap();
        assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
        assert_eq!(session.load().await.unwrap().state, State::Idle, "{mode:?}");
        assert_eq!(model.requests().len(), 1, "{mode:?}: the run was over");
        host.stop().await.unwrap();
    }
}

/// The behaviour of `suspend-kept-outcome-and-input` in `conformance/`, which ends with a call.
#[tokio::test]
async fn an_input_behind_the_last_words_starts_the_next_run() {
    for mode in [Mode::FinishStep, Mode::WaitForCompletion] {
        let directory = tempfile::tempdir().unwrap();
        let later = json!({ "text": "Built again." });
        let (session, paused, model, host) =
            paused_behind_the_last_words(directory.path(), mode, later).await;
        let first = session.load().await.unwrap().run().unwrap().id;
        session.resume().handle(paused.handle).input("once more").await.unwrap();
        until("the model is asked again", || model.requests().len() == 2).await;
        let run = session.finished().await.unwrap();
        assert_eq!(run.end.outcome, Outcome::Completed, "{mode:?}");
        assert_ne!(run.id, first, "{mode:?}: it is a run of its own");
        assert_eq!(session.load().await.unwrap().memory.last_words, "Built again.");
        let told = model.requests().pop().unwrap().messages;
        assert!(format!("{:?}", told.last()).contains("once more"), "{told:?}");
        host.stop().await.unwrap();
    }
}

/// A source of tools that is looked for until it is let go.
struct Held(Arc<Notify>);

impl ToolSource for Held {
    fn tools(
        &self,
        session: Arc<Session>,
        _: Arc<Environment>,
    ) -> BoxFuture<'static, Result<Arc<Toolbox>, ToolError>> {
        let free = Arc::clone(&self.0);
        Box::pin(async move {
            // The turn behind the answer.
            if session.run().is_some_and(|run| run.turn == 2) {
                free.notified().await;
            }
            Ok(Arc::default())
        })
    }
}

/// A session whose person has allowed a call, and which was interrupted before the call could run.
struct Interrupted {
    session: SessionRef,
    model: Arc<ScriptedModel>,
    ran: Ran,
    host: RunningHost,
}

async fn interrupted_behind_a_permission(directory: &Path) -> Interrupted {
    let adjourn = Adjourn::open(directory.join("agents.db")).await.unwrap();
    let model = model(json!([{ "calls": [{ "tool": "deploy" }] }, { "text": "Done." }]));
    let (ran, free) = (Ran::default(), Arc::new(Notify::new()));
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("deployer");
    let agent = agent.tool(ran.tool("deploy").asks_permission());
    let agent = agent.tool_source(Arc::new(Held(free))).build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Deploy.").await.unwrap();
    let host = adjourn.host().driver("deployer", move |_| agent.clone()).start().await.unwrap();
    let (_, handle) = asked(&session).await;
    session.prompt("Allow once").answering(handle).await.unwrap();
    let told = |session: &Session| session.run().is_some_and(|run| run.told);
    let mut moments = session.watch().await.unwrap();
    while !told(&session.load().await.unwrap()) {
        moments.next().await.unwrap();
    }
    session.suspend().mode(Mode::InterruptImmediate).await.unwrap();
    assert!(ran.names().is_empty());
    Interrupted { session, model, ran, host }
}

#[tokio::test]
async fn a_permission_whose_step_is_interrupted_is_asked_for_again() {
    let directory = tempfile::tempdir().unwrap();
    let Interrupted { session, model, ran, host } =
        interrupted_behind_a_permission(directory.path()).await;
    session.resume().await.unwrap();
    let mut moments = session.watch().await.unwrap();
    let mut asked = Vec::new();
    while asked.len() < 2 {
        let moment = moments.next().await.unwrap().unwrap();
        if let What::Suspended(suspended) = &moment.event.what
            && let Wait::Question(question) = &suspended.park.pause.wait
        {
            asked.push((question.question.clone(), suspended.park.pause.handle));
        }
    }
    assert_eq!(asked[0].0, asked[1].0);
    session.prompt("Allow once").answering(asked[1].1).await.unwrap();
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    assert_eq!((ran.names().len(), model.requests().len()), (1, 2));
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_permission_whose_step_is_interrupted_is_not_asked_for_behind_other_words() {
    let directory = tempfile::tempdir().unwrap();
    let Interrupted { session, model, ran, host } =
        interrupted_behind_a_permission(directory.path()).await;
    session.resume().input("Leave it for today.").await.unwrap();
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    assert_eq!((ran.names().len(), model.requests().len()), (0, 2));
    let told = format!("{:?}", model.requests()[1].messages);
    assert!(told.contains("Leave it for today."), "{told}");
    host.stop().await.unwrap();
}

/// A clock that stands still until it is moved on.
#[derive(Default)]
struct StillClock(AtomicU64);

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BEGINNING)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn time_that_a_tool_took_counts_also_if_the_session_parks_right_behind_it() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let model = model(json!([{ "calls": [{ "tool": "build" }] }, { "text": "Built." }]));
    let (clock, goes_on) = (Arc::new(StillClock::default()), Arc::new(Notify::new()));
    let (moved, gate) = (Arc::clone(&clock), Arc::clone(&goes_on));
    let build = FunctionTool::new("build", "Builds.", move |_: Value| {
        let (moved, gate) = (Arc::clone(&moved), Arc::clone(&gate));
        async move {
            gate.notified().await;
            moved.0.fetch_add(90, Ordering::SeqCst);
            Ok::<_, ToolError>("built".to_owned())
        }
    });
    let guardrails = AgentGuardrails { max_execution_time_s: 60.0, ..AgentGuardrails::default() };
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("builder").tool(build);
    let agent = agent.guardrails(guardrails).clock(clock).build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Build.").await.unwrap();
    let driver = agent.clone();
    let host = adjourn.host().driver("builder", move |_| driver.clone()).start().await.unwrap();
    let mut moments = session.watch().await.unwrap();
    while let Some(moment) = moments.next().await.unwrap() {
        if let What::CallsDispatched(_) = moment.event.what {
            break;
        }
    }
    let pause = session.suspend().accepted().await.unwrap();
    goes_on.notify_one();
    session.in_force(&pause).await.unwrap();
    host.stop().await.unwrap();
    let parked = session.load().await.unwrap();
    assert_eq!(parked.run().unwrap().progress.active_ms, 90_000);
    // Another process has made nothing of it but what is durable.
    let host = adjourn.host().driver("builder", move |_| agent.clone()).start().await.unwrap();
    session.resume().await.unwrap();
    asked(&session).await;
    let parked = session.load().await.unwrap();
    let Wait::Question(question) = &parked.suspended().unwrap().park.pause.wait else { panic!() };
    assert_eq!(question.originating_failure_kind.as_deref(), Some("time_limit"));
    assert_eq!(model.requests().len(), 1, "it is not asked before the person has answered");
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_suspend_does_not_wait_until_a_failed_model_call_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await.unwrap();
    let error = json!({ "kind": "transient_provider", "message": "later", "retry_after_s": 250 });
    let model = model(json!([{ "error": error }, { "text": "Done." }]));
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("waiter").build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Wait.").await.unwrap();
    let host = adjourn.host().driver("waiter", move |_| agent.clone()).start().await.unwrap();
    let mut moments = session.watch().await.unwrap();
    while let Some(moment) = moments.next().await.unwrap() {
        if let What::StepAborted(_) = moment.event.what {
            break;
        }
    }
    session.suspend().reason("lunch").await.unwrap();
    assert_eq!(model.requests().len(), 1);
    session.cancel().await.unwrap();
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_session_that_an_engine_exports_is_resumed_alone_and_once() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::builder(directory.path().join("agents.db")).keys(keys()).open().await;
    let adjourn = adjourn.unwrap();
    let (model, ran) = (model(script()), Ran::default());
    let agent = reviewer(&adjourn, &model, &ran);
    let session = adjourn.create_with(agent.driver_spec()).prompt("Review it.").await.unwrap();
    let driver = agent.clone();
    let host = adjourn.host().driver("reviewer", move |_| driver.clone()).start().await.unwrap();
    asked(&session).await;
    host.stop().await.unwrap();
    let exported = session.export().await.unwrap().record.to_string();
    let record: SuspensionRecord = exported.parse().unwrap();
    let payload = payload(&record);
    for (field, value) in [
        ("pending_question", json!("Merge it?")),
        ("iteration_count", json!(2)),
        ("model_id", json!("scripted")),
        ("originating_failure_kind", Value::Null),
    ] {
        assert_eq!(payload[field], value, "{field}");
    }
    assert_eq!(payload["tool_call_history"].as_array().unwrap().len(), 3);
    assert!(payload["last_repeat_counts"].as_object().is_some_and(|counts| !counts.is_empty()));
    assert_eq!(payload["lessons_learned"][0]["kind"], "output_truncated");
    for field in
        ["run_id", "session_id", "suspended_at", "started_at", "messages", "failure_attempts"]
    {
        assert!(!payload[field].is_null(), "{field}");
    }
    let run = events(agent.resume(&record, "yes").await.unwrap()).await;
    assert_eq!(text(&run), "Merged.");
    let twice = agent.resume(&record, "yes").await.unwrap_err();
    assert!(matches!(twice, ResumeError::AlreadyConsumed { .. }), "{twice}");
}

#[tokio::test]
async fn a_run_that_was_suspended_alone_goes_on_in_an_engine() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::builder(directory.path().join("agents.db")).keys(keys()).open().await;
    let adjourn = adjourn.unwrap();
    let (model, ran) = (model(script()), Ran::default());
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("reviewer");
    let agent = agent.tool(ran.tool("look")).build().unwrap();
    let record = crate::fixture::suspended(agent.run("Review it.")).await;
    let record = record.to_string().parse().unwrap();
    let session = adjourn.import(record).await.unwrap();
    assert_eq!(session.load().await.unwrap().totals.tokens(), 0);
    let driver = agent.clone();
    let host = adjourn.host().driver("reviewer", move |_| driver.clone()).start().await.unwrap();
    let (_, handle) = asked_before(&session).await;
    session.prompt("yes").answering(handle).await.unwrap();
    let run = session.finished().await.unwrap();
    assert_eq!(run.end.outcome, Outcome::Completed);
    assert_eq!(session.load().await.unwrap().memory.last_words, "Merged.");
    host.stop().await.unwrap();
    for request in model.requests() {
        assert_eq!(adjourn_conformance::given::providers_take(&request.messages), Ok(()));
    }
}

/// Returns the question that a session was imported with.
async fn asked_before(session: &SessionRef) -> (String, Handle) {
    let state = session.load().await.unwrap();
    let parked = &state.suspended().unwrap().park.pause;
    let Wait::Question(question) = &parked.wait else { panic!("it asks nothing") };
    (question.question.clone(), parked.handle)
}

#[tokio::test]
async fn a_park_that_is_no_question_is_resumed_with_its_input() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::builder(directory.path().join("agents.db")).keys(keys()).open().await;
    let adjourn = adjourn.unwrap();
    let (model, ran) = (model(json!([{ "text": "Hurried." }])), Ran::default());
    let agent = reviewer(&adjourn, &model, &ran);
    let session = adjourn.create_with(agent.driver_spec()).prompt("Review it.").await.unwrap();
    session.suspend().reason("lunch").await.unwrap();
    let record = SuspensionRecord::from(session.export().await.unwrap().record);
    let run = events(agent.resume(&record, "hurry").await.unwrap()).await;
    assert_eq!(text(&run), "Hurried.");
    let told = format!("{:?}", model.requests());
    assert!(told.contains("hurry") && told.contains("Review it."), "{told}");
}

#[tokio::test]
async fn a_script_that_an_engine_exports_is_not_resumed_by_an_agent() {
    let directory = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::builder(directory.path().join("agents.db")).keys(keys()).open().await;
    let adjourn = adjourn.unwrap();
    let script = adjourn_core::driver::DriverSpec::script(r#"{"steps": []}"#);
    let session = adjourn.create_with(script).prompt("Go.").await.unwrap();
    session.suspend().await.unwrap();
    let record = SuspensionRecord::from(session.export().await.unwrap().record);
    let agent = reviewer(&adjourn, &model(json!([])), &Ran::default());
    let refused = agent.resume(&record, "yes").await.unwrap_err();
    assert!(matches!(refused, ResumeError::OtherDriver { .. }), "{refused}");
    adjourn.import(record.to_string().parse().unwrap()).await.unwrap();
}
