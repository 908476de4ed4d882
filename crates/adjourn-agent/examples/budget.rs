//! A budget: the run stops when its money is used up, and goes on when there is more.

use adjourn_agent::{
    AddBudget, Agent, AgentGuardrails, FunctionTool, Price, Prices, ResumeError, RunOutcome,
    ScriptedModel, ToolError,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    /// The number of the page.
    number: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A model that reads four pages, at 0.02 USD for each answer.
    let read = |number: u32| {
        format!(
            r#"{{ "calls": [{{ "tool": "read", "arguments": {{ "number": {number} }} }}],
                 "usage": {{ "prompt_tokens": 10000, "completion_tokens": 1000 }} }}"#
        )
    };
    let mut script: Vec<String> = (1..=4).map(read).collect();
    script.push(r#"{ "text": "It is about boats." }"#.to_owned());
    let read = FunctionTool::new("read", "Reads a page.", async |page: Page| {
        Ok::<_, ToolError>(format!("page {}: boats", page.number))
    });
    let guardrails = AgentGuardrails { max_cost_usd: Some(0.05), ..AgentGuardrails::default() };
    let prices =
        Prices::new().with("scripted", Price { prompt: 1.0, completion: 10.0, ..Price::default() });
    let agent = Agent::builder(ScriptedModel::parse(&format!("[{}]", script.join(",")))?)
        .tool(read.idempotent())
        .guardrails(guardrails)
        .prices(prices)
        .ephemeral_keys()
        .build()?;

    let result = agent.run("What is the book about?").result().await;
    let RunOutcome::Suspended(asked) = result.outcome else { return Err("it did not ask".into()) };
    println!("The agent asks: {}", asked.question);

    let record = asked.suspension_record;
    if let Err(ResumeError::BudgetNotRaised) = agent.resume(&record, "Go on.").await {
        println!("Without money it does not go on.");
    }
    let more = AddBudget { cost_micro_usd: 100_000, ..AddBudget::default() };
    let run = agent.resume(&record, "Go on.").add_budget(more).await?;
    let done = run.result().await;
    println!("The agent says: {}", done.text);
    println!("It has cost {:.2} USD.", done.totals.cost_micro_usd as f64 / 1e6);
    Ok(())
}
