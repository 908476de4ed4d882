//! A web server that suspends in one request and resumes in another, in another process.
//!
//! `web_handler` starts itself twice as a server, for two requests, with nothing in common but a
//! directory: the keys, the ledger of consumed records, and what a database would keep. Each
//! process answers one request and is gone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use adjourn_agent::{
    Agent, Clock as _, FileLedger, KeyDir, ResumeError, RunOutcome, ScriptedModel, SystemClock,
};

type Failure = Box<dyn std::error::Error>;

const SCRIPT: &str = r#"[
    { "calls": [{ "tool": "ask_user", "arguments":
        { "question": "Which table?", "choices": ["monthly", "raw"] } }] },
    { "text": "The monthly table has 12 rows." }
]"#;

/// Makes the agent, in whatever process: the same keys, the same ledger.
fn agent(directory: &Path) -> Result<Agent, Failure> {
    let keys = KeyDir::new(directory.join("keys")).load(SystemClock.now())?;
    let ledger = FileLedger::open(directory.join("consumed"))?;
    let model = ScriptedModel::parse(SCRIPT)?;
    Ok(Agent::builder(model).keys(keys).ledger(Arc::new(ledger)).build()?)
}

/// Answers `POST /runs`: begins a run, and keeps its record if it asks.
async fn begin(directory: &Path, message: &str) -> Result<String, Failure> {
    let result = agent(directory)?.run(message).result().await;
    Ok(match result.outcome {
        RunOutcome::Suspended(asked) => {
            std::fs::write(directory.join("record.json"), asked.suspension_record.to_string())?;
            let choices = asked.choices.unwrap_or_default().join(" or ");
            format!("202 {} ({choices})", asked.question)
        }
        _ => format!("200 {}", result.text),
    })
}

/// Answers `POST /runs/answer`: resumes the run with a reply.
async fn answer(directory: &Path, reply: &str) -> Result<String, Failure> {
    let record = std::fs::read_to_string(directory.join("record.json"))?.parse()?;
    Ok(match agent(directory)?.resume(&record, reply).await {
        Ok(run) => format!("200 {}", run.result().await.text),
        Err(ResumeError::EmptyReply) => "422 the answer is empty".to_owned(),
        Err(ResumeError::SuspensionExpired { .. }) => "410 too late; start over".to_owned(),
        Err(ResumeError::AlreadyConsumed { .. }) => "409 answered before".to_owned(),
        Err(refused) => format!("403 {refused}"),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [directory, request, body] = arguments.as_slice() {
        let directory = PathBuf::from(directory);
        let response = match request.as_str() {
            "begin" => begin(&directory, body).await?,
            _ => answer(&directory, body).await?,
        };
        println!("{response}");
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    for (request, body) in [
        ("begin", "Summarise the sales table."),
        ("answer", ""),
        ("answer", "monthly"),
        ("answer", "raw"),
    ] {
        // Every request is a process of its own.
        let program = std::env::current_exe()?;
        let output = Command::new(program).arg(directory.path()).args([request, body]).output()?;
        print!("{request} {body:?}: {}", String::from_utf8_lossy(&output.stdout));
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
