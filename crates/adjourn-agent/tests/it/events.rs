//! The events, as hosts see them.

use adjourn_agent::{AgentEvent, Price, Prices};
use serde_json::{Value, json};

use crate::fixture::{Ran, agent, events, model};

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
