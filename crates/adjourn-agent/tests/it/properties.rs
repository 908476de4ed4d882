//! What holds for whatever a model says and whatever its tools do.

use adjourn_agent::{AgentEvent, AgentGuardrails, FailureKind, FunctionTool, ToolError};
use adjourn_conformance::given::providers_take;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Ran, agent, ask, events, model, stored};

/// An answer of a model that may be anything.
fn answer() -> impl Strategy<Value = Value> {
    let call = prop_oneof![
        (0..3_u8).prop_map(|n| json!({ "tool": "look", "arguments": { "n": n } })),
        Just(json!({ "tool": "look", "id": "same" })),
        Just(json!({ "tool": "unclear" })),
        Just(json!({ "tool": "none", "id": "" })),
        Just(json!({ "tool": "", "arguments": "no object" })),
        Just(ask("Which?")),
        Just(ask(" ")),
    ];
    let finish = prop_oneof![
        6 => Just(Value::Null), 1 => Just(json!("length")), 1 => Just(json!("refusal")),
    ];
    let error = prop_oneof![
        6 => Just(Value::Null),
        1 => Just(json!({ "kind": "transient_provider" })),
        1 => Just(json!({ "kind": "auth_required" })),
    ];
    let text = prop_oneof![Just(Value::Null), Just(json!("Some words.")), Just(json!(" "))];
    let thought = prop_oneof![Just(Value::Null), Just(json!("Hm."))];
    (thought, text, proptest::collection::vec(call, 0..4), finish, error).prop_map(
        |(thought, text, calls, finish, error)| {
            json!({ "thought": thought, "text": text, "calls": calls, "finish": finish,
                    "error": error })
        },
    )
}

/// Runs an agent by a script, and answers whatever it asks; returns how often it asked.
async fn play(script: Vec<Value>) -> usize {
    let model = model(Value::Array(script));
    let unclear = FunctionTool::new("unclear", "Is unclear.", |_: Value| async {
        Err::<String, _>(ToolError::of(FailureKind::AmbiguousInput, "two fit"))
    });
    let guardrails = AgentGuardrails { loop_hard_threshold: 2, ..AgentGuardrails::default() };
    let agent = agent(&model).guardrails(guardrails).tool(Ran::default().tool("look"));
    let agent = agent.tool(unclear).build().unwrap();
    let mut run = agent.run("Go.");
    let mut asked = 0;
    loop {
        let events = events(run).await;
        let terminal = |event: &AgentEvent| {
            let tag = event.tag();
            matches!(tag, "handoff" | "partial_run_summary" | "user_input_requested")
        };
        let last = events.iter().position(terminal);
        assert!(last.is_none_or(|last| last + 1 == events.len()), "something follows the end");
        for request in model.requests() {
            assert_eq!(providers_take(&request.messages), Ok(()));
        }
        let Some(AgentEvent::UserInputRequested(request)) = events.last() else { return asked };
        asked += 1;
        let record = stored(&request.suspension_record);
        run = agent.resume(&record, "this one").await.unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_run_ends_and_every_suspension_leaves_what_providers_take(
        script in proptest::collection::vec(answer(), 0..12),
    ) {
        let length = script.len();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let asked = runtime.block_on(play(script));
        prop_assert!(asked <= 2 * length + 1);
    }
}
