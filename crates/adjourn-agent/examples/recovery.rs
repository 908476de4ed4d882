//! Recovery: the agent goes round in circles, its recovery asks a person, and goes on with the
//! answer.

use adjourn_agent::{Agent, FunctionTool, RunOutcome, ScriptedModel, ToolError};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Search {
    /// The words that the search looks for.
    words: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A model that looks for the same thing until it is told something.
    let search = r#"{ "calls": [{ "tool": "search", "arguments": { "words": "invoice" } }] }"#;
    let found = r#"{ "text": "There are no invoices; I looked for bills, too." }"#;
    let script = [vec![search; 6], vec![found]].concat().join("\n");
    let search = FunctionTool::new("search", "Searches the archive.", async |search: Search| {
        Ok::<_, ToolError>(format!("nothing about {}", search.words))
    });
    let agent = Agent::builder(ScriptedModel::parse(&script)?)
        .tool(search.idempotent())
        .ephemeral_keys()
        .build()?;

    let result = agent.run("Find the invoice.").result().await;
    let RunOutcome::Suspended(asked) = result.outcome else { return Err("it did not ask".into()) };
    println!("The agent asks: {}", asked.question);
    let kind = asked.originating_failure_kind.ok_or("it wanted to ask by itself")?;
    println!("because of: {kind}");

    let done = agent.resume(&asked.suspension_record, "It may be called a bill.").await?;
    println!("The agent says: {}", done.result().await.text);
    Ok(())
}
