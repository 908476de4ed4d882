//! A run that asks, and goes on with the answer.

use adjourn_agent::{AgentEvent, ResumeError, RunOutcome};
use adjourn_driver::ModelRole;
use serde_json::json;

use crate::fixture::{Ran, agent, events, model, question, stored, suspended, tags, text};

/// A model that asks which table is meant, and then knows.
fn asks() -> serde_json::Value {
    json!([
        { "text": "Let me ask.", "calls": [{ "tool": "ask_user", "arguments": {
            "question": "Which table?", "context": "There are two.", "choices": ["monthly", "raw"],
        } }], "usage": { "prompt_tokens": 100, "completion_tokens": 10 } },
        { "text": "The monthly table has 3 rows.",
          "usage": { "prompt_tokens": 150, "completion_tokens": 20 } },
    ])
}

#[tokio::test(start_paused = true)]
async fn agt_01_02_06_07_to_13_a_run_asks_and_goes_on_with_the_reply() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let first = events(agent.run("Summarise the sales table")).await;
    assert_eq!(tags(&first), ["llm_call_completed", "user_input_requested"]);
    let asked = question(&first);
    assert_eq!(asked.question, "Which table?");
    assert_eq!(asked.context.as_deref(), Some("There are two."));
    assert_eq!(asked.choices, Some(vec!["monthly".to_owned(), "raw".to_owned()]));
    assert_eq!(asked.originating_failure_kind, None);
    let shown = serde_json::to_value(AgentEvent::UserInputRequested(asked.clone())).unwrap();
    assert_eq!(shown["type"], "user_input_requested");
    assert!(shown["suspension_record"]["token"].is_string());

    let run = agent.resume(&stored(&asked.suspension_record), "monthly").await.unwrap();
    let then = events(run).await;
    assert_eq!(text(&then), "The monthly table has 3 rows.");
    assert_eq!(tags(&then), ["llm_call_completed"]);
    // The reply is the next message of the user's, behind all that was said before.
    let seen = model.requests().pop().unwrap().messages;
    let roles: Vec<_> = seen.iter().map(|message| message.role).collect();
    let (user, agent, tool) = (ModelRole::User, ModelRole::Agent, ModelRole::Tool);
    assert_eq!(roles, [user, agent, tool, user]);
    assert_eq!(seen[3].blocks[0].words(), Some("monthly"));
    assert_eq!(adjourn_conformance::given::providers_take(&seen), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn agt_23_41_42_47_a_resumed_run_goes_on_with_its_totals() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Summarise the sales table")).await;
    let result = agent.resume(&record, "monthly").await.unwrap().result().await;
    assert_eq!(result.outcome, RunOutcome::Completed);
    assert_eq!(result.text, "The monthly table has 3 rows.");
    assert_eq!((result.totals.prompt_tokens, result.totals.completion_tokens), (250, 30));
    assert_eq!(result.iteration_count, 2);
}

#[tokio::test(start_paused = true)]
async fn a_record_is_resumed_once() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Summarise the sales table")).await;
    drop(agent.resume(&record, "monthly").await.unwrap());
    let again = agent.resume(&record, "raw").await.unwrap_err();
    assert!(matches!(again, ResumeError::AlreadyConsumed { .. }), "{again}");
}

#[tokio::test(start_paused = true)]
async fn tools_run_and_the_model_sees_what_came_of_them() {
    let model = model(json!([
        { "calls": [{ "tool": "look" }, { "tool": "write" }] },
        { "text": "Written." },
    ]));
    let ran = Ran::default();
    let agent = agent(&model).tool(ran.tool("look").idempotent()).tool(ran.tool("write"));
    let run = events(agent.build().unwrap().run("Write it.")).await;
    assert_eq!(ran.names(), ["look", "write"]);
    assert_eq!(text(&run), "Written.");
    let told = ["tool_event", "tool_event", "tool_result_observed"];
    let expected = [&["llm_call_completed"], &told[..], &told[..], &["llm_call_completed"]];
    assert_eq!(tags(&run), expected.concat());
    let seen = model.requests().pop().unwrap().messages;
    assert_eq!(seen[2].blocks[0].words(), Some("look ran"));
    assert_eq!(seen[3].blocks[0].words(), Some("write ran"));
}
