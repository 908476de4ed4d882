//! Failures, and what is done about them.

use std::time::Duration;

use adjourn_agent::{
    Action, AgentEvent, AgentGuardrails, DefaultPolicy, Failure, FailureKind, FunctionTool,
    RecoveryPolicy, RunOutcome, ToolError,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{
    Ran, agent, errors, events, last_words, model, payload, question, suspended, tags, text,
};

fn overloaded() -> Value {
    json!({ "text": "I was", "error": { "kind": "transient_provider", "message": "overloaded" } })
}

#[tokio::test(start_paused = true)]
async fn a_failed_model_call_is_retried_after_a_while() {
    let model = model(json!([overloaded(), overloaded(), { "text": "Hello." }]));
    let agent = agent(&model).build().unwrap();
    let begun = Instant::now();
    let run = events(agent.run("Hello?")).await;
    let waited = begun.elapsed();
    assert!((Duration::from_millis(1500)..=Duration::from_secs(3)).contains(&waited), "{waited:?}");
    let failed = errors(&run);
    assert_eq!(failed.len(), 2);
    assert!(failed.iter().all(|error| error.recoverable));
    assert_eq!(failed[0].failure.as_ref().unwrap().kind, FailureKind::TransientProvider);
    assert!(text(&run).ends_with("Hello."));
    // What a broken answer said is not shown to the model.
    let seen = model.requests().pop().unwrap().messages;
    assert!(!format!("{seen:?}").contains("I was"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_says_when_is_asked_again_then() {
    let error =
        json!({ "kind": "transient_provider", "message": "slow down", "retry_after_s": 12 });
    let model = model(json!([{ "error": error }, { "text": "Hello." }]));
    let agent = agent(&model).build().unwrap();
    let begun = Instant::now();
    events(agent.run("Hello?")).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(12));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_wants_more_time_than_a_run_has_is_not_waited_for() {
    let error = json!({ "kind": "transient_provider", "message": "later", "retry_after_s": 3600 });
    let agent = agent(&model(json!([{ "error": error }]))).build().unwrap();
    let begun = Instant::now();
    assert_eq!(tags(&events(agent.run("Hello?")).await).last(), Some(&"handoff"));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn retries_that_are_used_up_are_a_handoff_and_a_success_begins_them_anew() {
    let twice = vec![overloaded(); 3];
    let look = json!({ "calls": [{ "tool": "look" }] });
    let script = [twice.clone(), vec![look], twice, vec![overloaded()]].concat();
    let model = model(Value::Array(script));
    let agent = agent(&model).tool(Ran::default().tool("look")).build().unwrap();
    let run = events(agent.run("Look.")).await;
    assert_eq!(model.requests().len(), 8);
    let Some(AgentEvent::Handoff(handoff)) = run.last() else { panic!("{run:?}") };
    assert!(handoff.rationale.contains("overloaded"));
    assert!(!handoff.suggested_next_steps.is_empty());
}

#[tokio::test(start_paused = true)]
async fn agt_03_04_credentials_that_are_refused_make_the_agent_ask() {
    let error = json!({ "kind": "auth_required", "message": "invalid api key", "status": 401 });
    let model = model(json!([{ "error": error }, { "text": "Hello." }]));
    let agent = agent(&model).build().unwrap();
    let asked = question(&events(agent.run("Hello?")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::AuthRequired));
    let run = agent.resume(&asked.suspension_record, "it is set now").await.unwrap();
    assert_eq!(text(&events(run).await), "Hello.");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_a_handoff() {
    for finish in ["refusal", "content_filter"] {
        let model = model(json!([{ "text": "No.", "finish": finish }]));
        let run = agent(&model).build().unwrap().run("Do it.");
        assert_eq!(tags(&events(run).await).last(), Some(&"handoff"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stops_for_calls_and_has_none_completes_nothing() {
    let promises = json!({ "text": "I look it up.", "finish": "tool_calls" });
    let model = model(json!([promises, { "text": "It has 3 rows." }]));
    let run = events(agent(&model).build().unwrap().run("How many rows?")).await;
    let failed = errors(&run).pop().unwrap().failure.unwrap();
    assert_eq!(failed.kind, FailureKind::NoProgress);
    assert_eq!(model.requests().len(), 2);
    assert!(text(&run).ends_with("It has 3 rows."));
}

/// An agent whose one tool fails in a way.
fn failing(
    kind: FailureKind,
) -> (adjourn_agent::Agent, std::sync::Arc<adjourn_agent::ScriptedModel>) {
    let look = json!({ "calls": [{ "tool": "look" }] });
    let model = model(Value::Array(vec![look; 5]));
    let fails = FunctionTool::new("look", "Fails.", move |_: Value| async move {
        Err::<String, _>(ToolError::of(kind, "it is so"))
    });
    (agent(&model).tool(fails).build().unwrap(), model)
}

#[tokio::test(start_paused = true)]
async fn a_tool_can_raise_every_kind_of_failure() {
    for kind in FailureKind::ALL {
        let (agent, model) = failing(*kind);
        let run = events(agent.run("Look.")).await;
        let last = *tags(&run).last().unwrap();
        // Each tells the model, or a person, what went wrong.
        match kind.default_action() {
            Action::AskUser => assert_eq!(question(&run).originating_failure_kind, Some(*kind)),
            Action::NarrowScope => {
                assert_eq!(last, "handoff", "{kind}: narrowing once did not help");
                assert_eq!(model.requests().len(), 2, "{kind}");
            }
            Action::Handoff | Action::Retry | Action::Stop => assert_eq!(last, "handoff", "{kind}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn agt_15_43_to_46_what_was_met_is_in_the_record_and_stays_in_context() {
    let look = json!({ "tool": "look", "arguments": { "b": 1, "a": 2 } });
    let model = model(json!([
        { "calls": [look] }, { "calls": [look] }, { "calls": [crate::fixture::ask("Well?")] },
        { "text": "Done." },
    ]));
    let fails = FunctionTool::new("look", "Fails.", |_: Value| async {
        Err::<String, _>(ToolError::new("no such table"))
    });
    let agent = agent(&model).tool(fails).build().unwrap();
    let record = suspended(agent.run("Look.")).await;
    let held = payload(&record);
    let history = held["tool_call_history"].as_array().unwrap();
    assert_eq!(history.len(), 3);
    assert_eq!(history[0], history[1]);
    assert_eq!(held["last_repeat_counts"][history[0].as_str().unwrap()], 2);
    assert_eq!(held["failure_attempts"], json!({ "tool_error": 2 }));
    assert_eq!(held["lessons_learned"][0]["kind"], "tool_error");
    assert_eq!(held["lessons_learned"].as_array().unwrap().len(), 1, "one of each kind");
    events(agent.resume(&record, "go on").await.unwrap()).await;
    assert!(last_words(&model).contains("no such table"));
    // The second result warned the model that it repeats itself.
    let seen = format!("{:?}", model.requests().pop().unwrap().messages);
    assert!(seen.contains("This call was made 2 times"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn agt_44_an_unrelated_question_does_not_set_back_the_count_of_repeated_calls() {
    let look = json!({ "calls": [{ "tool": "look" }] });
    let script = [
        vec![look.clone(); 4],
        vec![json!({ "calls": [crate::fixture::ask("Well?")] })],
        vec![look; 2],
    ];
    let model = model(Value::Array(script.concat()));
    let ran = Ran::default();
    let agent = agent(&model).tool(ran.tool("look")).build().unwrap();
    let record = suspended(agent.run("Look.")).await;
    let then = events(agent.resume(&record, "go on").await.unwrap()).await;
    assert_eq!(question(&then).originating_failure_kind, Some(FailureKind::LoopDetected));
    assert_eq!(ran.names().len(), 5);
}

/// What was asked for before a circle, however often, hides no call of it.
#[tokio::test(start_paused = true)]
async fn a_loop_of_two_calls_is_met_behind_as_many_others_as_are_counted() {
    let look = |n: usize| json!({ "tool": "look", "arguments": { "n": n } });
    let others: Vec<_> = (0..64).map(look).collect();
    let circle = |n: usize| json!({ "calls": [look(98 + n % 2)] });
    let script = [vec![json!({ "calls": others }); 2], (0..12).map(circle).collect()].concat();
    let model = model(Value::Array(script));
    let ran = Ran::default();
    let agent = agent(&model).tool(ran.tool("look")).build().unwrap();
    let asked = question(&events(agent.run("Look.")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::LoopDetected));
    assert_eq!(ran.names().len(), 2 * 64 + 2 * 5, "the sixth of one of them does not run");
    let counts = payload(&asked.suspension_record)["last_repeat_counts"].clone();
    assert_eq!(counts.as_object().unwrap().len(), 64);
}

/// A policy that ends every run with what it has.
struct Stops;

impl RecoveryPolicy for Stops {
    fn retry_budget(&self, _: FailureKind) -> u32 {
        0
    }

    fn backoff(&self, kind: FailureKind, attempts: u32) -> Duration {
        DefaultPolicy { llm_max_retries: 0 }.backoff(kind, attempts)
    }

    fn decide(&self, _: &Failure, _: u32) -> Action {
        Action::Stop
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_can_replace_the_policy() {
    let model = model(json!([overloaded()]));
    let agent = agent(&model).recovery_policy(Stops).build().unwrap();
    let run = events(agent.run("Hello?")).await;
    let Some(AgentEvent::PartialRunSummary(summary)) = run.last() else { panic!("{run:?}") };
    assert!(summary.missing[0].contains("overloaded"));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_says_when_it_refills_parks_the_run_if_it_may() {
    let error = json!({ "kind": "transient_provider", "message": "quota used up", "status": 429,
                        "resets_at": "2026-11-16T06:00:00Z" });
    let script = json!([{ "error": error }, { "text": "Hello." }]);
    let guardrails = AgentGuardrails { park_on_quota: true, ..AgentGuardrails::default() };
    let agent = agent(&model(script)).guardrails(guardrails).build().unwrap();
    let parked = question(&events(agent.run("Hello?")).await);
    assert!(parked.question.contains("quota"), "{}", parked.question);
    let conditions = serde_json::to_value(parked.conditions.unwrap()).unwrap();
    assert!(conditions.to_string().contains("2026-11-16T06:00:00"), "{conditions}");
    let run = agent.resume(&parked.suspension_record, "it is time").await.unwrap();
    assert_eq!(run.result().await.outcome, RunOutcome::Completed);
}

/// A time that is said by mistake is no time to park until: nothing would ever wake the run.
#[tokio::test(start_paused = true)]
async fn a_quota_that_refills_in_another_century_is_not_waited_for() {
    let error = json!({ "kind": "transient_provider", "message": "quota used up", "status": 429,
                        "resets_at": "2126-11-16T06:00:00Z" });
    let guardrails = AgentGuardrails { park_on_quota: true, ..AgentGuardrails::default() };
    let agent = agent(&model(json!([{ "error": error }]))).guardrails(guardrails);
    let run = agent.build().unwrap().run("Hello?").result().await;
    let RunOutcome::HandedOff(handoff) = run.outcome else { panic!("{:?}", run.outcome) };
    assert!(!handoff.rationale.contains("park_on_quota"), "it is on: {}", handoff.rationale);
}

/// A quota that refills at once is tried again as another failure of the provider is.
#[tokio::test(start_paused = true)]
async fn a_quota_that_refills_sooner_than_a_retry_is_not_parked_for() {
    let error = json!({ "kind": "transient_provider", "message": "busy", "status": 429,
                        "retry_after_s": 0 });
    let limited = || json!({ "error": error });
    let model = model(json!([limited(), limited(), limited(), limited(), limited()]));
    let guardrails = AgentGuardrails { park_on_quota: true, ..AgentGuardrails::default() };
    let run = agent(&model).guardrails(guardrails).build().unwrap().run("Hello?").result().await;
    assert!(matches!(run.outcome, RunOutcome::HandedOff(_)), "{:?}", run.outcome);
    assert_eq!(model.requests().len(), 4);
}

/// Where a run does not wait for a quota, it says when that refills, and what would have waited.
#[tokio::test(start_paused = true)]
async fn a_quota_that_is_not_waited_for_says_when_it_refills() {
    let refills = "2026-11-16T23:00:00Z";
    let quota = json!({ "kind": "transient_provider", "message": "used up", "resets_at": refills });
    let model = model(json!([{ "error": quota }]));
    let run = agent(&model).build().unwrap().run("Hello?");
    let RunOutcome::HandedOff(handoff) = run.result().await.outcome else { panic!("it waited") };
    for words in ["used up", "2026-11-16T23:00:00", "park_on_quota"] {
        assert!(handoff.rationale.contains(words), "{}", handoff.rationale);
    }
}
