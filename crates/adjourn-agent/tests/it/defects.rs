//! Known defects of libraries like this one, each with a test that it is not here. The numbers are
//! those of the table in `docs/agent.md`.

use std::sync::Arc;
use std::time::Duration;

use adjourn_agent::{
    Action, AddBudget, Agent, AgentEvent, AgentGuardrails, BuildError, CancellationRequest,
    Failure, FailureKind, FunctionTool, MemoryLedger, RecoveryPolicy, ResumeError, RunOutcome,
    ScriptedModel, SuspensionRecord, ToolError,
};
use adjourn_conformance::given::providers_take;
use serde_json::{Value, json};

use crate::fixture::{
    Ran, SlowModel, TestClock, agent, ask, asks, edited, errors, events, keys, last_words, model,
    payload, question, stored, suspended, tags, text,
};

#[tokio::test(start_paused = true)]
async fn defect_1_the_documented_round_trip_resumes() {
    let model = model(asks());
    let first = agent(&model).build().unwrap();
    let asked = question(&events(first.run("Summarise sales")).await);
    let record: SuspensionRecord = asked.suspension_record.to_string().parse().unwrap();
    assert_eq!(record, asked.suspension_record);
    // Another agent, as in another process.
    let second = agent(&model).build().unwrap();
    let then = events(second.resume(&record, "monthly").await.unwrap()).await;
    assert_eq!(text(&then), "It has 3 rows.");
    let seen = model.requests().pop().unwrap().messages;
    let words: Vec<_> =
        seen.iter().flat_map(|m| m.blocks.iter().filter_map(|block| block.words())).collect();
    assert_eq!(words.iter().filter(|words| **words == "Summarise sales").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn defect_2_whatever_is_changed_in_a_record_is_refused() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Summarise sales")).await;
    let changes = [
        ("Summarise sales", "Delete all sales"),
        ("\"cumulative_cost_usd\":0.0", "\"cumulative_cost_usd\":9.0"),
        ("\"iteration_count\":1", "\"iteration_count\":0"),
        ("Which table?", "Which chair?"),
    ];
    for (from, to) in changes {
        let changed = edited(&record, |blob| {
            let text = blob["payload"].as_str().unwrap();
            assert!(text.contains(from), "{from} is not in {text}");
            blob["payload"] = json!(text.replace(from, to));
        });
        let refused = agent.resume(&changed, "monthly").await.unwrap_err();
        assert!(matches!(refused, ResumeError::SuspensionTokenMismatch { .. }), "{refused}");
    }
    let later = edited(&record, |blob| blob["suspendedAt"] = json!("2026-11-16T00:00:01.000Z"));
    let refused = agent.resume(&later, "monthly").await.unwrap_err();
    assert!(matches!(refused, ResumeError::SuspensionTokenMismatch { .. }), "{refused}");
    assert_eq!(model.requests().len(), 1, "the model has not seen anything of it");
}

#[test]
fn defect_3_of_many_who_resume_a_record_at_once_one_does() {
    let model = model(asks());
    let agent = agent_of_threads(&model);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let record = runtime.block_on(suspended(agent.run("Summarise sales")));
    let barrier = Arc::new(std::sync::Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (agent, record, barrier) = (agent.clone(), record.clone(), Arc::clone(&barrier));
            std::thread::spawn(move || {
                barrier.wait();
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                match runtime.block_on(async { agent.resume(&record, "monthly").await }) {
                    Ok(_) => true,
                    Err(ResumeError::AlreadyConsumed { .. }) => false,
                    Err(other) => panic!("{other}"),
                }
            })
        })
        .collect();
    let won = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count();
    assert_eq!(won, 1);
}

fn agent_of_threads(model: &Arc<adjourn_agent::ScriptedModel>) -> Agent {
    Agent::builder(Arc::clone(model)).keys(keys()).build().unwrap()
}

#[test]
fn defect_4_there_is_no_default_secret() {
    let model = model(asks());
    let built = Agent::builder(Arc::clone(&model)).build();
    assert_eq!(built.unwrap_err(), BuildError::NoKeys);
    assert!(Agent::builder(model).ephemeral_keys().build().is_ok());
}

#[tokio::test(start_paused = true)]
async fn defect_5_a_record_is_bound_to_its_tenant_agent_session_and_model() {
    let model = model(asks());
    let own = || agent(&model).tenant("a").name("reviewer");
    let record = suspended(own().build().unwrap().run("Review it.")).await;
    let other_model = Arc::new(ScriptedModel::parse("[]").unwrap().with_id("other"));
    let other_session = "sess-019abf6b-7d51-7c1d-bb02-0123456789ab".parse().unwrap();
    for (agent, differs) in [
        (own().tenant("b"), "tenant"),
        (own().name("writer"), "agent"),
        (own().session_id(other_session), "session"),
        (agent(&other_model).tenant("a").name("reviewer"), "model"),
    ] {
        let refused = agent.build().unwrap().resume(&record, "go on").await.unwrap_err();
        match refused {
            ResumeError::OtherOwner { what, .. } => assert_eq!(what, differs),
            other => panic!("{differs}: {other}"),
        }
    }
    let other = agent(&other_model).tenant("a").name("reviewer").build().unwrap();
    assert!(other.resume(&record, "go on").any_model().await.is_ok());
    // The next record is of the model that went on with this one.
    let asks = json!([{ "text": "I look." }, { "calls": [ask("Which column?")] }]);
    let third = ScriptedModel::parse(&asks.to_string()).unwrap().with_id("third");
    // It is resumed twice here, as it would be by a process that knows nothing of the first time.
    let third = agent(&Arc::new(third)).tenant("a").name("reviewer");
    let third = third.ledger(Arc::new(MemoryLedger::new())).build().unwrap();
    let next = suspended(third.resume(&record, "go on").any_model().await.unwrap()).await;
    assert_eq!(payload(&next)["model_id"], "third");
    assert!(third.resume(&next, "go on").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn defect_6_a_token_that_is_none_is_refused_by_type() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Summarise sales")).await;
    let token = serde_json::to_value(&record).unwrap()["token"].as_str().unwrap().to_owned();
    let (nonce, digest) = token.split_once('.').unwrap();
    for token in [format!(".{digest}"), format!("{nonce}."), format!("{nonce}.ß{digest}")] {
        let changed = edited(&record, |blob| blob["token"] = json!(token));
        let refused = agent.resume(&changed, "monthly").await.unwrap_err();
        assert!(matches!(refused, ResumeError::Malformed { .. }), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn defect_7_no_character_can_move_from_one_field_to_the_next() {
    let model = model(asks());
    let agent = agent(&model).tenant("acme").build().unwrap();
    let record = suspended(agent.run("Summarise sales")).await;
    let moved = edited(&record, |blob| {
        let session = format!("e{}", blob["session"].as_str().unwrap());
        (blob["tenant"], blob["session"]) = (json!("acm"), json!(session));
    });
    let refused = agent.resume(&moved, "monthly").await.unwrap_err();
    assert!(matches!(refused, ResumeError::SuspensionTokenMismatch { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn defect_8_no_budget_is_had_by_naming_another_failure() {
    let model = model(json!([
        { "calls": [{ "tool": "look" }] }, { "calls": [ask("Which?")] }, { "text": "never" },
    ]));
    let guardrails = AgentGuardrails { max_iterations: 2, ..AgentGuardrails::default() };
    let agent = agent(&model).guardrails(guardrails).tool(Ran::default().tool("look"));
    let agent = agent.build().unwrap();
    let record = suspended(agent.run("Look.")).await;
    let changed = edited(&record, |blob| {
        let text = blob["payload"].as_str().unwrap();
        let from = "\"originating_failure_kind\":null";
        assert!(text.contains(from), "{text}");
        blob["payload"] =
            json!(text.replace(from, "\"originating_failure_kind\":\"iteration_limit\""));
    });
    let refused = agent.resume(&changed, "that one").await.unwrap_err();
    assert!(matches!(refused, ResumeError::SuspensionTokenMismatch { .. }), "{refused}");
    // An answer to an unrelated question is no budget, either.
    let then = events(agent.resume(&record, "that one").await.unwrap()).await;
    assert_eq!(question(&then).originating_failure_kind, Some(FailureKind::IterationLimit));
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn defect_9_the_time_limit_asks_and_the_answer_resets_it() {
    let slow = |_: Value| async {
        tokio::time::sleep(Duration::from_secs(200)).await;
        Ok::<_, ToolError>("slept")
    };
    let model = model(json!([
        { "calls": [{ "tool": "sleep" }] }, { "calls": [{ "tool": "sleep" }] },
        { "text": "Rested." },
    ]));
    let agent = agent(&model).tool(FunctionTool::new("sleep", "Sleeps.", slow)).build().unwrap();
    let asked = question(&events(agent.run("Sleep.")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::TimeLimit));
    assert_eq!(payload(&asked.suspension_record)["elapsed_seconds"], 400.0);
    let then = events(agent.resume(&asked.suspension_record, "go on").await.unwrap()).await;
    assert_eq!(text(&then), "Rested.");
}

/// A model that asks for the same call as often as it is asked, and says something in the end.
fn repeats(times: usize) -> Value {
    let mut answers = vec![json!({ "text": "Again.", "calls": [{ "tool": "look" }] }); times];
    answers.push(json!({ "text": "Done." }));
    Value::Array(answers)
}

#[tokio::test(start_paused = true)]
async fn defect_10_a_suspension_leaves_no_call_without_a_result() {
    let model = model(repeats(6));
    let ran = Ran::default();
    let agent = agent(&model).tool(ran.tool("look")).build().unwrap();
    let asked = question(&events(agent.run("Look.")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::LoopDetected));
    assert_eq!(ran.names().len(), 5, "the sixth does not run");
    events(agent.resume(&asked.suspension_record, "stop that").await.unwrap()).await;
    for request in model.requests() {
        assert_eq!(providers_take(&request.messages), Ok(()));
    }
    let truncated = crate::fixture::model(json!([
        { "text": "I will", "calls": [{ "tool": "look" }], "finish": "length" },
        { "text": "I", "calls": [{ "tool": "look" }], "finish": "length" },
    ]));
    let agent = crate::fixture::agent(&truncated).tool(ran.tool("look")).build().unwrap();
    let run = events(agent.run("Look.")).await;
    assert_eq!(tags(&run).last(), Some(&"handoff"));
    let seen = truncated.requests().pop().unwrap().messages;
    assert_eq!(providers_take(&seen), Ok(()));
    assert!(seen.iter().all(|message| message.calls.is_empty()), "{seen:#?}");
}

#[tokio::test(start_paused = true)]
async fn defect_11_a_call_can_be_made_again_after_its_loop_was_answered() {
    let model = model(repeats(8));
    let ran = Ran::default();
    let agent = agent(&model).tool(ran.tool("look")).build().unwrap();
    let record = suspended(agent.run("Look.")).await;
    let then = events(agent.resume(&record, "look twice more").await.unwrap()).await;
    assert_eq!(text(&then), "Again.Again.Done.");
    assert_eq!(ran.names().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn defect_12_a_corrective_instruction_is_given_once() {
    let model = model(json!([{}, { "calls": [{ "tool": "look" }] }, { "text": "Done." }]));
    let agent = agent(&model).tool(Ran::default().tool("look")).build().unwrap();
    let run = events(agent.run("Look.")).await;
    assert_eq!(text(&run), "Done.");
    let given = |index: usize| {
        let request = model.requests()[index].clone();
        request.messages.last().unwrap().blocks[0]
            .words()
            .unwrap()
            .contains("Your last answer was empty")
    };
    assert_eq!([given(0), given(1), given(2)], [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn defect_13_five_iterations_are_five_answers() {
    let call =
        |number: usize| json!({ "calls": [{ "tool": "look", "arguments": { "n": number } }] });
    let model = model((0..9).map(call).collect());
    let guardrails = AgentGuardrails { max_iterations: 5, ..AgentGuardrails::default() };
    let agent = agent(&model).guardrails(guardrails).tool(Ran::default().tool("look"));
    let agent = agent.build().unwrap();
    let asked = question(&events(agent.run("Look.")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::IterationLimit));
    assert_eq!(model.requests().len(), 5);
    events(agent.resume(&asked.suspension_record, "five more").await.unwrap()).await;
    assert_eq!(model.requests().len(), 10, "the answer gives as many again");
}

#[tokio::test(start_paused = true)]
async fn defect_14_choices_are_kept_and_nothing_of_a_batch_runs_beside_a_question() {
    let first = json!({ "tool": "ask_user", "arguments": {
        "question": "May I delete it?", "choices": ["yes", "no"],
    } });
    let model = model(json!([
        { "calls": [{ "tool": "look" }, first, ask("And the other?"), { "tool": "delete" }] },
        { "text": "Left alone." },
    ]));
    let ran = Ran::default();
    let agent = agent(&model).tool(ran.tool("look")).tool(ran.tool("delete")).build().unwrap();
    let asked = question(&events(agent.run("Tidy up.")).await);
    assert_eq!(asked.question, "May I delete it?");
    assert_eq!(payload(&asked.suspension_record)["pending_choices"], json!(["yes", "no"]));
    events(agent.resume(&stored(&asked.suspension_record), "no").await.unwrap()).await;
    assert!(ran.names().is_empty(), "{:?} ran", ran.names());
    let seen = model.requests().pop().unwrap().messages;
    assert_eq!(providers_take(&seen), Ok(()));
    let not_run = seen.iter().filter(|message| {
        message.blocks.iter().any(|block| block.words().unwrap_or_default().contains("not run"))
    });
    assert_eq!(not_run.count(), 3, "the model knows that the others did not run: {seen:#?}");
}

#[tokio::test(start_paused = true)]
async fn defect_15_a_cancel_wins_over_a_question_at_every_event() {
    for stop_at in 0.. {
        let agent = agent(&model(asks())).build().unwrap();
        let cancel = CancellationRequest::default();
        let mut run = agent.run("Summarise sales").cancellation(cancel.clone());
        let mut seen = Vec::new();
        while let Some(event) = run.next().await {
            if seen.len() == stop_at {
                cancel.set();
            }
            seen.push(event);
        }
        let last = seen.last().unwrap().tag();
        if stop_at + 1 == seen.len() && last == "user_input_requested" {
            // The record was out before the request: all events but the last were tried.
            assert!(stop_at > 2);
            return;
        }
        assert_eq!(last, "run_cancelled", "cancelled at event {stop_at}");
        assert!(seen.iter().all(|event| event.tag() != "user_input_requested"));
    }
}

#[tokio::test(start_paused = true)]
async fn defect_16_a_slow_consumer_is_no_stall() {
    let model = model(json!([
        { "text": "a b c d e f", "calls": [{ "tool": "look" }] }, { "text": "Done." },
    ]));
    let guardrails = AgentGuardrails {
        max_execution_time_s: 5.0,
        llm_timeout_s: 5.0,
        tool_timeout_s: 5.0,
        stream_heartbeat_s: 5.0,
        stall_threshold_s: 5.0,
        ..AgentGuardrails::default()
    };
    let agent = agent(&model).guardrails(guardrails).tool(Ran::default().tool("look"));
    let mut run = agent.build().unwrap().run("Look.");
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        tokio::time::sleep(Duration::from_secs(60)).await;
        seen.push(event);
    }
    assert!(errors(&seen).is_empty(), "{:?}", errors(&seen));
    assert!(text(&seen).ends_with("Done."));
    let elapsed = |event: &AgentEvent| match event {
        AgentEvent::StateSnapshot(snapshot) => Some(snapshot.elapsed_seconds),
        _ => None,
    };
    let elapsed: Vec<_> = seen.iter().filter_map(elapsed).collect();
    assert!(elapsed.len() > 2 && elapsed.iter().all(|elapsed| *elapsed == 0.0), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn defect_17_what_a_failure_carries_never_keeps_a_run_from_suspending() {
    let deep = (0..200).fold(Value::Null, |inner, _| json!([inner]));
    let fail = move |_: Value| {
        let failure = Failure::new(FailureKind::AmbiguousInput, "two tables fit")
            .partial_data(deep.clone())
            .with("choices", json!(["monthly", "raw"]));
        async move { Err::<String, _>(ToolError::from(failure)) }
    };
    let model = model(json!([{ "calls": [{ "tool": "look" }] }, { "text": "Done." }]));
    let agent = agent(&model).tool(FunctionTool::new("look", "Looks.", fail)).build().unwrap();
    let asked = question(&events(agent.run("Look.")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::AmbiguousInput));
    assert_eq!(asked.choices, Some(vec!["monthly".to_owned(), "raw".to_owned()]));
    let lessons = payload(&asked.suspension_record)["lessons_learned"].clone();
    assert_eq!(lessons[0]["explanation"], "two tables fit");
    assert_eq!(lessons[0].get("partial_data"), None, "what could not be read again is left out");
    let run = agent.resume(&stored(&asked.suspension_record), "monthly").await.unwrap();
    assert_eq!(run.result().await.outcome, RunOutcome::Completed);
    assert!(last_words(&model).contains("two tables fit"), "the lesson stays in context");
}

/// A policy that has a person asked about every failure.
struct Asks;

impl RecoveryPolicy for Asks {
    fn retry_budget(&self, _: FailureKind) -> u32 {
        0
    }

    fn backoff(&self, _: FailureKind, _: u32) -> Duration {
        Duration::ZERO
    }

    fn decide(&self, _: &Failure, _: u32) -> Action {
        Action::AskUser
    }
}

#[tokio::test(start_paused = true)]
async fn defect_17_failures_of_every_kind_at_once_do_not_keep_a_run_from_suspending() {
    // Quotes take the most room: they are written in a text that is written in a text.
    let quotes = |count| "\"".repeat(count);
    let fail = move |arguments: Value| {
        let kind = FailureKind::parse(arguments["kind"].as_str().unwrap()).unwrap();
        let failure = Failure::new(kind, format!("{kind} {}", quotes(2000)));
        let failure = failure.partial_data(json!(quotes(1022))).with("more", json!(quotes(500)));
        let failure = (0..8).fold(failure, |failure, _| failure.blocker(quotes(500)));
        async move { Err::<String, _>(ToolError::from(failure)) }
    };
    let call = |kind: &FailureKind| json!({ "tool": "look", "arguments": { "kind": kind } });
    let calls: Vec<_> = FailureKind::ALL.iter().map(call).collect();
    let model = model(json!([{ "calls": calls }, { "text": "Done." }]));
    let agent = agent(&model).tool(FunctionTool::new("look", "Looks.", fail));
    let agent = agent.recovery_policy(Asks).build().unwrap();
    let mut run = agent.run("Look.");
    for kind in FailureKind::ALL {
        let asked = question(&events(run).await);
        assert_eq!(asked.originating_failure_kind, Some(*kind));
        assert!(asked.question.contains(&format!("{kind} \"\"\"")), "{}", asked.question);
        let resume = agent.resume(&stored(&asked.suspension_record), "go on");
        let more = AddBudget { tokens: 1, ..AddBudget::default() };
        run = match kind {
            FailureKind::BudgetExceeded => resume.add_budget(more).await.unwrap(),
            _ => resume.await.unwrap(),
        };
    }
    assert_eq!(run.result().await.outcome, RunOutcome::Completed);
    let learned = last_words(&model);
    for kind in FailureKind::ALL.iter().rev().take(5) {
        assert!(learned.contains(&format!("{kind}: {kind} \"")), "{kind}: {learned}");
    }
}

#[tokio::test(start_paused = true)]
async fn defect_15_a_cancel_breaks_a_model_call_off_at_once() {
    let hanging = SlowModel(vec![(1000, adjourn_agent::ModelPart::Text("late".to_owned()))]);
    let clock = Arc::new(TestClock::new());
    let agent = Agent::builder(hanging).keys(keys()).clock(Arc::clone(&clock) as _);
    let guardrails = AgentGuardrails { llm_timeout_s: 900.0, ..AgentGuardrails::default() };
    let agent = agent.guardrails(guardrails).build().unwrap();
    let cancel = CancellationRequest::default();
    let canceller = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        canceller.set();
    });
    let begun = tokio::time::Instant::now();
    let run = events(agent.run("Think.").cancellation(cancel)).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    assert_eq!(tags(&run), ["run_cancelled"]);
}
