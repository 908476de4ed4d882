//! The events, as hosts see them.

use adjourn_agent::{AgentEvent, Price, Prices};
use serde_json::{Value, json};

use crate::fixture::{Ran, agent, asks, events, model, suspended};

fn shown(run: &[AgentEvent], tag: &str) -> Vec<Value> {
    let of_tag = run.iter().filter(|event| event.tag() == tag);
    of_tag.map(|event| serde_json::to_value(event).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn agt_21_24_a_run_tells_what_happens_in_order() {
    let model = model(json!([
        { "thought": "Hm.", "text": "I look.", "calls": [{ "tool": "look", "id": "c1" }],
          "usage": { "prompt_tokens": 10, "completion_tokens": 5 } },
        { "text": "Done." },
    ]));
    let agent = agent(&model).tool(Ran::default().tool("look")).build().unwrap();
    let run = events(agent.run("Look.")).await;
    let order: Vec<_> = run.iter().map(AgentEvent::tag).collect();
    expect_test::expect![[r#"
        state_snapshot
        reasoning_delta
        text_delta
        text_delta
        llm_call_completed
        tool_event
        tool_event
        tool_result_observed
        state_snapshot
        text_delta
        llm_call_completed
        state_snapshot"#]]
    .assert_eq(&order.join("\n"));
    assert_eq!(
        shown(&run, "reasoning_delta"),
        [json!({ "type": "reasoning_delta", "text": "Hm." })]
    );
    let statuses: Vec<_> = shown(&run, "tool_event").iter().map(|e| e["status"].clone()).collect();
    assert_eq!(statuses, ["started", "completed"]);
    let observed = &shown(&run, "tool_result_observed")[0];
    assert_eq!((&observed["call_id"], &observed["content"]), (&json!("c1"), &json!("look ran")));
}

#[tokio::test(start_paused = true)]
async fn what_is_told_of_model_calls_adds_up_to_what_was_counted() {
    let usage = |tokens: u64| json!({ "prompt_tokens": tokens, "completion_tokens": 1 });
    let error = json!({ "kind": "transient_provider", "message": "overloaded" });
    let model = model(json!([
        { "text": "I was", "usage": usage(100), "error": error },
        { "error": error },
        { "text": "Done.", "usage": usage(20) },
    ]));
    let run = events(agent(&model).build().unwrap().run("Hello?")).await;
    let told = shown(&run, "llm_call_completed");
    let reasons: Vec<_> = told.iter().map(|call| call["finish_reason"].clone()).collect();
    assert_eq!(reasons, ["error", "stop"], "a call that says nothing of its usage is left out");
    let sum = |field: &str| told.iter().map(|call| call[field].as_u64().unwrap()).sum::<u64>();
    let last = shown(&run, "state_snapshot").pop().unwrap();
    assert_eq!(last["cumulative_prompt_tokens"], sum("prompt_tokens"));
    assert_eq!(last["cumulative_completion_tokens"], sum("completion_tokens"));
    assert_eq!(last["cumulative_prompt_tokens"], 120);
}

#[tokio::test(start_paused = true)]
async fn a_price_that_is_not_known_is_said_to_be_unknown() {
    let script =
        json!([{ "text": "Hi.", "usage": { "prompt_tokens": 1000, "completion_tokens": 100 } }]);
    let run = events(agent(&model(script.clone())).build().unwrap().run("Hello?")).await;
    let call = &shown(&run, "llm_call_completed")[0];
    assert_eq!((&call["cost_usd"], &call["prompt_tokens"]), (&Value::Null, &json!(1000)));
    assert_eq!(shown(&run, "state_snapshot").pop().unwrap()["unpriced_calls"], 1);

    let prices =
        Prices::new().with("scripted", Price { prompt: 1.0, completion: 10.0, ..Price::default() });
    let agent = agent(&model(script)).prices(prices).build().unwrap();
    let run = events(agent.run("Hello?")).await;
    assert_eq!(shown(&run, "llm_call_completed")[0]["cost_usd"], 0.002);
    assert_eq!(shown(&run, "state_snapshot").pop().unwrap()["cumulative_cost_usd"], 0.002);
}

#[tokio::test(start_paused = true)]
async fn every_event_is_read_as_it_was_written() {
    let model = model(json!([
        { "thought": "Hm.", "text": "I look.", "calls": [{ "tool": "look" }] },
        {}, { "calls": [crate::fixture::ask("Well?")] },
    ]));
    let agent = agent(&model).tool(Ran::default().tool("look")).build().unwrap();
    let run = events(agent.run("Look.")).await;
    for event in &run {
        let written = serde_json::to_value(event).unwrap();
        assert_eq!(written["type"], event.tag());
        assert_eq!(serde_json::from_value::<AgentEvent>(written).unwrap(), *event);
    }
    assert_eq!(run.last().unwrap().tag(), "user_input_requested");
}

/// What hosts write down and other programs read: each of the eleven with every field it can have.
#[tokio::test(start_paused = true)]
async fn every_event_has_its_tag_and_its_fields_in_json() {
    let agent = agent(&model(asks())).build().unwrap();
    let record = serde_json::to_value(suspended(agent.run("Summarise sales")).await).unwrap();
    let failure = json!({
        "kind": "tool_error", "explanation": "no", "blockers": ["a wall"],
        "suggested_action": "retry", "partial_data": { "rows": 3 }, "metadata": { "status": 500 },
    });
    let table = [
        ("text_delta", json!({ "text": "Hi." })),
        ("reasoning_delta", json!({ "text": "Hm." })),
        (
            "tool_event",
            json!({ "call_id": "c1", "tool": "look", "status": "started",
                    "arguments": { "n": 1 }, "update": { "title": "Look" } }),
        ),
        (
            "state_snapshot",
            json!({ "session_id": "sess-1", "run_id": "run-1", "iteration_count": 2,
                    "elapsed_seconds": 1.5, "cumulative_cost_usd": 0.25, "unpriced_calls": 1,
                    "cumulative_prompt_tokens": 10, "cumulative_completion_tokens": 5 }),
        ),
        (
            "error",
            json!({ "message": "no", "failure": failure, "recoverable": true,
                    "error_type": "stalled" }),
        ),
        ("run_cancelled", json!({ "message": "over", "reason": "client_disconnect" })),
        (
            "llm_call_completed",
            json!({ "model_id": "scripted", "prompt_tokens": 10, "cached_prompt_tokens": 4,
                    "completion_tokens": 5, "cost_usd": null, "duration_s": 0.5,
                    "finish_reason": "stop" }),
        ),
        (
            "tool_result_observed",
            json!({ "call_id": "c1", "tool": "look", "content": "seen", "is_error": false }),
        ),
        (
            "user_input_requested",
            json!({ "question": "Which?", "context": "two tables", "choices": ["a", "b"],
                    "suspension_record": record, "originating_failure_kind": "loop_detected",
                    "conditions": { "onEvent": "ci.passed" } }),
        ),
        (
            "handoff",
            json!({ "rationale": "no key", "blockers": ["a wall"],
                    "suggested_next_steps": ["a ladder"] }),
        ),
        (
            "partial_run_summary",
            json!({ "missing": ["the end"], "learned_facts": ["a fact"],
                    "next_step_plan": ["go on"] }),
        ),
    ];
    for (tag, fields) in table {
        let mut written = json!({ "type": tag });
        written.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let event: AgentEvent = serde_json::from_value(written.clone()).expect(tag);
        assert_eq!(event.tag(), tag);
        assert_eq!(serde_json::to_value(&event).unwrap(), written, "{tag}");
    }
}
