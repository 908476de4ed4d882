//! The shortest agent that asks: it suspends to a record, which any process with the same keys
//! resumes.

use adjourn_agent::{Agent, AgentEvent, ScriptedModel, SuspensionRecord};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A model that answers from a list; a real one is made from its name.
    let model = ScriptedModel::parse(
        r#"{ "calls": [{ "tool": "ask_user", "arguments": { "question": "Which table?" } }] }
           { "text": "The monthly table has 12 rows." }"#,
    )?;
    let agent = Agent::builder(model).ephemeral_keys().build()?;

    let mut record: Option<SuspensionRecord> = None;
    let mut events = agent.run("Summarise the sales table.");
    while let Some(event) = events.next().await {
        if let AgentEvent::UserInputRequested(asked) = event {
            println!("The agent asks: {}", asked.question);
            record = Some(asked.suspension_record);
        }
    }

    // It is JSON: a row, a blob, a file. Then, some other day:
    let record = record.ok_or("it did not ask")?.to_string().parse()?;
    let done = agent.resume(&record, "The monthly one.").await?.result().await;
    println!("The agent says: {}", done.text);
    Ok(())
}
