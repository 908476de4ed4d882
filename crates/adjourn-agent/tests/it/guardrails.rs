//! Guardrails: what they count, and what they stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adjourn_agent::{
    AddBudget, Agent, AgentEvent, AgentGuardrails, BuildError, Clock, FailureKind, FunctionTool,
    ModelPart, Price, Prices, ResumeError, SuspensionRecord, ToolCall, ToolError,
};
use adjourn_core::carry::Budget;
use adjourn_core::time::Timestamp;
use adjourn_driver::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::fixture::{
    Ran, SlowModel, TestClock, agent, errors, events, key, keys, model, payload, question,
    suspended, tags, text,
};

#[test]
fn the_defaults_are_those_that_are_documented() {
    let defaults = serde_json::to_value(AgentGuardrails::default()).unwrap();
    let expected = json!({
        "max_iterations": 50, "max_execution_time_s": 300.0, "llm_timeout_s": 60.0,
        "llm_max_retries": 3, "tool_timeout_s": 600.0, "stall_threshold_s": 30.0,
        "stream_heartbeat_s": 20.0, "loop_soft_threshold": 2, "loop_hard_threshold": 6,
        "max_cost_usd": null, "max_tokens": null, "park_on_quota": false,
    });
    assert_eq!(defaults, expected);
}

#[test]
fn a_guardrail_that_makes_no_sense_is_refused_when_the_agent_is_built() {
    let model = model(json!([]));
    let with = |guardrails| agent(&model).guardrails(guardrails).build().unwrap_err().to_string();
    let default = AgentGuardrails::default;
    assert!(with(AgentGuardrails { max_iterations: 0, ..default() }).contains("max_iterations"));
    assert!(with(AgentGuardrails { llm_timeout_s: f64::NAN, ..default() }).contains("llm_timeout"));
    let negative = AgentGuardrails { max_cost_usd: Some(-1.0), ..default() };
    assert!(with(negative).contains("max_cost_usd"));
    assert!(with(AgentGuardrails { loop_hard_threshold: 1, ..default() }).contains("loop_hard"));
}

/// A limit that could never be reached is refused, and not passed over in silence.
#[tokio::test(start_paused = true)]
async fn cost_is_limited_only_where_it_is_known() {
    let unpriced = model(json!([{ "text": "Done.", "usage": { "prompt_tokens": 1 } }]));
    let guardrails = AgentGuardrails { max_cost_usd: Some(1.0), ..AgentGuardrails::default() };
    let refused = agent(&unpriced).guardrails(guardrails).build().unwrap_err();
    assert_eq!(refused, BuildError::NoPrice { model: "scripted".to_owned() });
    let said = refused.to_string();
    assert!(said.contains("what scripted costs is not known; give its price"), "{said}");
    let prices = Prices::new().with("scripted", Price::default());
    assert!(agent(&unpriced).guardrails(guardrails).prices(prices).build().is_ok());
    let states = model(json!([{ "text": "Done.", "usage": { "cost_usd": 0.5 } }]));
    assert!(agent(&states).guardrails(guardrails).build().is_ok(), "the model says it itself");
    let tokens = AgentGuardrails { max_tokens: Some(5), ..AgentGuardrails::default() };
    assert!(agent(&unpriced).guardrails(tokens).build().is_ok());
}

/// A model that looks until it has done, at a tenth of a dollar for each answer.
fn expensive() -> Value {
    let usage = json!({ "prompt_tokens": 100_000, "completion_tokens": 0 });
    let look = |n: usize| json!({ "calls": [{ "tool": "look", "arguments": { "n": n } }], "usage": usage });
    let mut answers: Vec<_> = (0..4).map(look).collect();
    answers.push(json!({ "text": "Done.", "usage": usage }));
    Value::Array(answers)
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_asks_and_goes_on_when_it_is_raised() {
    let model = model(expensive());
    let guardrails = AgentGuardrails { max_cost_usd: Some(0.25), ..AgentGuardrails::default() };
    let prices =
        Prices::new().with("scripted", Price { prompt: 1.0, completion: 2.0, ..Price::default() });
    let agent = agent(&model).guardrails(guardrails).prices(prices);
    let agent = agent.tool(Ran::default().tool("look")).build().unwrap();
    let asked = question(&events(agent.run("Look.")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::BudgetExceeded));
    assert_eq!(payload(&asked.suspension_record)["cumulative_cost_usd"], 0.3);
    let record = asked.suspension_record;
    let refused = agent.resume(&record, "go on").await.unwrap_err();
    assert!(matches!(refused, ResumeError::BudgetNotRaised), "{refused}");
    let more = |cost_micro_usd| AddBudget { cost_micro_usd, ..AddBudget::default() };
    // A tenth of a dollar more is 0.35: one more answer, and it asks again.
    let run = agent.resume(&record, "go on").add_budget(more(100_000)).await.unwrap();
    let again = question(&events(run).await);
    assert_eq!(again.originating_failure_kind, Some(FailureKind::BudgetExceeded));
    assert_eq!(model.requests().len(), 4);
    let run = agent.resume(&again.suspension_record, "go on").add_budget(more(500_000));
    assert_eq!(text(&events(run.await.unwrap()).await), "Done.");
}

#[tokio::test(start_paused = true)]
async fn tokens_are_a_budget_too() {
    let model = model(expensive());
    let guardrails = AgentGuardrails { max_tokens: Some(200_000), ..AgentGuardrails::default() };
    let agent = agent(&model).guardrails(guardrails).tool(Ran::default().tool("look"));
    let asked = question(&events(agent.build().unwrap().run("Look.")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::BudgetExceeded));
    assert_eq!(model.requests().len(), 2);
}

/// A session of an engine may have limits of its own, which its record keeps.
#[tokio::test(start_paused = true)]
async fn what_a_session_has_used_up_is_asked_about_as_guardrails_ask() {
    let usage = json!({ "prompt_tokens": 100_000, "completion_tokens": 0 });
    let ask = crate::fixture::ask("Which?");
    let script = json!([{ "calls": [ask], "usage": usage, "ms": 42_000 }, { "text": "Done." }]);
    let spend = Budget { cost_micro_usd: Some(50_000), tokens: Some(60_000), ..Budget::default() };
    let steps = Budget { iterations: Some(1), ..Budget::default() };
    let time = Budget { active_ms: Some(30_000), ..Budget::default() };
    for (budget, kind, asks) in [
        (
            spend,
            FailureKind::BudgetExceeded,
            "The session has cost 0.1 USD, and may cost 0.05 USD, and has used 100000 tokens, and may \
             use 60000. Should it go on? Then its budget has to be raised.",
        ),
        (
            steps,
            FailureKind::IterationLimit,
            "The run has had 1 steps, as many as it may. Should it go on, and with what?",
        ),
        (
            time,
            FailureKind::TimeLimit,
            "The run has worked for 42 s, and may for 30 s. Should it go on, and with what?",
        ),
    ] {
        let price = Price { prompt: 1.0, completion: 2.0, ..Price::default() };
        let agent = agent(&model(script.clone())).prices(Prices::new().with("scripted", price));
        let agent = agent.build().unwrap();
        let first = suspended(agent.run("Look.")).await;
        let mut limited = agent.read(&first).unwrap();
        limited.session.budget = budget;
        let record = SuspensionRecord::seal(&key(1), &limited, None).unwrap();
        let asked = question(&events(agent.resume(&record, "sales").await.unwrap()).await);
        assert_eq!(asked.question, asks);
        assert_eq!(asked.originating_failure_kind, Some(kind));
        let record = asked.suspension_record;
        if kind == FailureKind::BudgetExceeded {
            let refused = agent.resume(&record, "go on").await.unwrap_err();
            assert!(matches!(refused, ResumeError::BudgetNotRaised), "{refused}");
        }
        let more = AddBudget { cost_micro_usd: 100_000, tokens: 100_000, ..AddBudget::default() };
        let run = agent.resume(&record, "go on").add_budget(more).await.unwrap();
        assert_eq!(text(&events(run).await), "Done.");
    }
}

fn slow(parts: Vec<(u64, ModelPart)>, guardrails: AgentGuardrails) -> Agent {
    let builder = Agent::builder(SlowModel(parts)).keys(keys()).guardrails(guardrails);
    builder.clock(Arc::new(TestClock::new())).build().unwrap()
}

fn word(text: &str) -> ModelPart {
    ModelPart::Text(text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn agt_57_a_model_call_that_takes_too_long_is_broken_off() {
    let guardrails = AgentGuardrails { llm_max_retries: 0, ..AgentGuardrails::default() };
    let begun = Instant::now();
    let run = events(slow(vec![(600, word("late"))], guardrails).run("Think.")).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(60));
    assert_eq!(tags(&run).last(), Some(&"handoff"));
    assert_eq!(text(&run), "");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_goes_on_talking_is_broken_off_in_time() {
    let guardrails = AgentGuardrails { llm_max_retries: 0, ..AgentGuardrails::default() };
    let begun = Instant::now();
    let run = events(slow(vec![(10, word("on ")); 9], guardrails).run("Think.")).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(60));
    assert_eq!(text(&run), "on ".repeat(6));
    let Some(AgentEvent::Handoff(handoff)) = run.last() else { panic!("{run:?}") };
    assert!(handoff.rationale.contains("the answer took more than 60 s"), "{handoff:?}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_falls_silent_is_broken_off_sooner() {
    let guardrails = AgentGuardrails { llm_max_retries: 0, ..AgentGuardrails::default() };
    let begun = Instant::now();
    let parts = vec![(15, word("I ")), (30, word("think"))];
    let run = events(slow(parts, guardrails).run("Think.")).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(15 + 20));
    assert_eq!(tags(&run).last(), Some(&"handoff"));
}

#[tokio::test(start_paused = true)]
async fn watchers_are_told_once_of_a_long_silence_and_it_counts_for_nothing() {
    let parts =
        vec![(45, word("Well.")), (0, ModelPart::Finished(adjourn_agent::FinishReason::Stop))];
    let run = events(slow(parts, AgentGuardrails::default()).run("Think.")).await;
    let errors = errors(&run);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].recoverable);
    assert_eq!(errors[0].error_type.as_deref(), Some("stalled"));
    assert_eq!(text(&run), "Well.");
}

/// Works for as long as each of these seconds, and tells something between them.
async fn work(seconds: &[u64], call: ToolCall) {
    for (step, seconds) in seconds.iter().enumerate() {
        if step > 0 {
            call.tell(Map::from_iter([("title".to_owned(), json!(format!("step {step}")))])).await;
        }
        tokio::time::sleep(Duration::from_secs(*seconds)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_tells_is_a_sign_of_life() {
    let table: [(&'static [u64], &[u64]); 5] = [
        (&[100], &[30]),
        (&[1; 100], &[]),
        (&[29, 29, 29], &[]),
        (&[20, 20, 100], &[70]),
        (&[40, 5, 40], &[30, 75]),
    ];
    for (seconds, silent_at) in table {
        // A tool may also tell from a task of its own.
        for has_task in [false, true] {
            let works =
                FunctionTool::with_call("work", "Works.", move |_: Value, call| async move {
                    match has_task {
                        true => tokio::spawn(work(seconds, call)).await?,
                        false => work(seconds, call).await,
                    }
                    Ok::<_, ToolError>("worked")
                });
            let model = model(json!([{ "calls": [{ "tool": "work" }] }, { "text": "Done." }]));
            let agent = agent(&model).tool(works).build().unwrap();
            let begun = Instant::now();
            let mut run = agent.run("Work.");
            let (mut told_at, mut updates) = (Vec::new(), 0);
            while let Some(event) = run.next().await {
                match event {
                    AgentEvent::Error(error) => {
                        assert_eq!(error.error_type.as_deref(), Some("stalled"));
                        assert_eq!(error.message, "work has given no sign of life for 30 s");
                        told_at.push(begun.elapsed().as_secs());
                    }
                    AgentEvent::ToolEvent(event) => {
                        updates += usize::from(!event.update.is_empty());
                    }
                    _ => {}
                }
            }
            assert_eq!(told_at, silent_at, "{seconds:?}");
            assert_eq!(updates, seconds.len() - 1, "{seconds:?}");
        }
    }
}

/// A clock that goes on by a millisecond whenever it is looked at, and in which no wait ends.
#[derive(Default)]
struct CountingClock(AtomicU64);

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(crate::fixture::BEGINNING)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_tool_that_tells_something_all_the_time_is_ended_in_time() {
    let tells = FunctionTool::with_call("tell", "Tells.", |_: Value, call: ToolCall| async move {
        for _ in 0..5000 {
            call.tell(Map::new()).await;
        }
        Ok::<_, ToolError>("told")
    });
    let model = model(json!([{ "calls": [{ "tool": "tell" }] }, { "text": "Done." }]));
    let guardrails = AgentGuardrails { tool_timeout_s: 1.0, ..AgentGuardrails::default() };
    let agent = agent(&model).clock(Arc::new(CountingClock::default())).guardrails(guardrails);
    events(agent.tool(tells).build().unwrap().run("Tell.")).await;
    let seen = format!("{:?}", model.requests()[1].messages);
    assert!(seen.contains("tell took more than 1 s"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_dropped_and_the_model_is_told() {
    let (ended, dropped) = (Ran::default(), Ran::default());
    let (end, drop_seen) = (ended.clone(), dropped.clone());
    let hangs = FunctionTool::new("hang", "Hangs.", move |_: Value| {
        let (end, drop_seen) = (end.clone(), drop_seen.clone());
        async move {
            let _seen = OnDrop(drop_seen);
            tokio::time::sleep(Duration::from_secs(9999)).await;
            end.push("ended");
            Ok::<_, ToolError>("never")
        }
    });
    let model = model(json!([{ "calls": [{ "tool": "hang" }] }, { "text": "It hangs." }]));
    let guardrails = AgentGuardrails { tool_timeout_s: 7.0, ..AgentGuardrails::default() };
    let agent = agent(&model).guardrails(guardrails).tool(hangs).build().unwrap();
    let begun = Instant::now();
    let run = events(agent.run("Hang.")).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(7));
    assert_eq!(text(&run), "It hangs.");
    assert_eq!(dropped.names(), ["dropped"]);
    assert!(ended.names().is_empty());
}

struct OnDrop(Ran);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.push("dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_snapshot_of_a_run_says_how_long_it_has_worked() {
    let sleeps = |seconds| {
        FunctionTool::new("sleep", "Sleeps.", move |_: Value| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok::<_, ToolError>("slept".to_owned())
        })
    };
    let model = model(
        json!([{ "calls": [{ "tool": "sleep" }] }, { "text": "It is all done now.", "ms": 42_000 }]),
    );
    let agent = agent(&model).tool(sleeps(200)).build().unwrap();
    let seen = events(agent.run("Sleep.")).await;
    let Some(AgentEvent::StateSnapshot(last)) = seen.last() else { panic!("{seen:?}") };
    assert_eq!(last.elapsed_seconds, 242.0);
}

#[tokio::test(start_paused = true)]
async fn agt_48_to_50_parked_time_is_free_and_only_the_limit_that_was_hit_starts_again() {
    let call = |tool: &str, n: usize| json!({ "tool": tool, "arguments": { "n": n } });
    let model = model(json!([
        { "calls": [call("work", 1)] },
        { "calls": [crate::fixture::ask("Really?")] },
        { "calls": [call("work", 2)] },
        { "calls": [call("work", 3)] },
        { "text": "Done." },
    ]));
    let works = FunctionTool::new("work", "Works for a minute.", |_: Value| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok::<_, ToolError>("worked")
    });
    let guardrails = AgentGuardrails { max_iterations: 3, ..AgentGuardrails::default() };
    let agent = agent(&model).guardrails(guardrails).tool(works).build().unwrap();
    let asked = question(&events(agent.run("Work.")).await);
    assert_eq!(asked.originating_failure_kind, None);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let run = agent.resume(&asked.suspension_record, "yes").await.unwrap();
    let limit = question(&events(run).await);
    assert_eq!(limit.originating_failure_kind, Some(FailureKind::IterationLimit));
    let held = payload(&limit.suspension_record);
    assert_eq!((&held["iteration_count"], &held["elapsed_seconds"]), (&json!(3), &json!(120.0)));
    let run = agent.resume(&limit.suspension_record, "three more").await.unwrap();
    let rest = events(run).await;
    assert_eq!(text(&rest), "Done.");
    let snapshot = rest.iter().rev().find_map(|event| match event {
        adjourn_agent::AgentEvent::StateSnapshot(snapshot) => Some(snapshot.clone()),
        _ => None,
    });
    assert_eq!(snapshot.unwrap().iteration_count, 2, "counted from the answer on");
}

#[tokio::test(start_paused = true)]
async fn answers_that_a_resume_adds_are_added_to_the_guardrail() {
    let call = |n: usize| json!({ "tool": "work", "arguments": { "n": n } });
    let calls = (1..5).map(|n| json!({ "calls": [call(n)] }));
    let turns: Vec<_> = calls.chain([json!({ "text": "Done." })]).collect();
    let works =
        FunctionTool::new("work", "Works.", |_: Value| async { Ok::<_, ToolError>("worked") });
    let guardrails = AgentGuardrails { max_iterations: 1, ..AgentGuardrails::default() };
    let model = model(json!(turns));
    let agent = agent(&model).guardrails(guardrails).tool(works).build().unwrap();
    let limit = question(&events(agent.run("Work.")).await);
    let more = AddBudget { iterations: 2, ..AddBudget::default() };
    let run = agent.resume(&limit.suspension_record, "go on").add_budget(more).await.unwrap();
    let again = question(&events(run).await);
    assert_eq!(again.originating_failure_kind, Some(FailureKind::IterationLimit));
    assert_eq!(payload(&again.suspension_record)["iteration_count"], json!(3));
    let run = agent.resume(&again.suspension_record, "go on").await.unwrap();
    assert_eq!(text(&events(run).await), "Done.");
}
