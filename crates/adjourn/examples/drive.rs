//! A driver with tools: it runs a call, parks itself until an event comes, asks a person, and is done.
//!
//! It keeps nothing in memory. Where it has got to is in the journal, so that any host that knows
//! its name goes on with it, also after a crash.

use adjourn::core::command::{CallResult, Question};
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::event::What;
use adjourn::core::ledger::CallId;
use adjourn::core::session::Wait;
use adjourn::driver::{
    Block, BoxStream, Call, CallContent, CallPart, Driver, Finish, Message, Park, Part,
    RequestedCall, Role, Step, emitting,
};
use adjourn::{Adjourn, Event};
use serde_json::{Value, json};

struct Deployer {
    branch: String,
}

impl Deployer {
    fn new(config: &Value) -> Self {
        Self { branch: config["branch"].as_str().unwrap_or("main").to_owned() }
    }
}

impl Driver for Deployer {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let place = step.session.driver_state.clone().unwrap_or_default();
        let branch = self.branch.clone();
        let parts = match place.as_str() {
            // A tool: the host runs it when this step has ended, and commits before and after.
            "" => {
                let call = CallContent {
                    arguments: json!({ "branch": branch }),
                    ..CallContent::new(CallId("build-1".to_owned()), "build")
                };
                vec![
                    Part::Message(Message::agent(format!("I build {branch}."))),
                    Part::Calls(vec![RequestedCall::new(call)]),
                    Part::Finished(Finish::default().at("built")),
                ]
            }
            // A park: nothing runs until the event comes, or a day has passed.
            "built" => {
                let until = json!({
                    "onEvent": format!("ci.passed:{branch}"),
                    "timeout": { "durationMinutes": 24 * 60 },
                });
                let conditions = Conditions::parse(&until, Spelling::Camel).unwrap_or_default();
                let reason = "the tests run".to_owned();
                vec![
                    Part::Park(Park::Await { reason, conditions, summary: None }),
                    Part::Finished(Finish::default().at("tested")),
                ]
            }
            // A question: a person answers it when there is time.
            "tested" => {
                let question = Question {
                    question: "Deploy to production?".to_owned(),
                    context: None,
                    choices: vec!["yes".to_owned(), "no".to_owned()],
                    originating_failure_kind: None,
                };
                vec![Part::Park(Park::Ask(question)), Part::Finished(Finish::default().at("asked"))]
            }
            _ => {
                // The answer is what a person said last, also if this step was broken off before.
                let said = step.transcript.before(step.transcript.len(), 8).unwrap_or_default();
                let last = said.iter().rev().find(|message| message.role == Role::User);
                let answer = last.and_then(|message| message.blocks.iter().find_map(Block::words));
                let answer = answer.unwrap_or_default();
                let done = if answer == "yes" { "Deployed." } else { "Left as it was." };
                vec![Part::Message(Message::agent(done)), Part::Finished(Finish::completed())]
            }
        };
        emitting(|out| async move {
            for part in parts {
                out.emit(part).await;
            }
        })
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        emitting(move |out| async move {
            let result = format!("{} of {}: ok", call.content.tool, call.content.arguments());
            let content = vec![Block::text(result)];
            let result = CallResult::Done;
            out.emit(CallPart::Ended { result, content, structured: None }).await;
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await?;
    let host = adjourn.host().driver("deployer", Deployer::new).start().await?;
    let created = adjourn.create("deployer").config(json!({ "branch": "main" }));
    let session = created.prompt("Ship it.").await?;

    let mut moments = session.watch().await?;
    let mut lived = Vec::new();
    while let Some(moment) = moments.next().await? {
        for (_, message) in &moment.said {
            println!("{:?}: {}", message.role, message.text());
        }
        match moment.event.what {
            What::Suspended(suspended) => match suspended.park.pause.wait {
                Wait::Open => {
                    println!("parked; the tests pass");
                    lived.push("parked");
                    adjourn.publish(Event::new("ci.passed").subject("main")).await?;
                }
                Wait::Question(question) => {
                    println!("asked: {}", question.question);
                    lived.push("asked");
                    session.prompt("yes").answering(suspended.park.pause.handle).await?;
                }
            },
            What::CallsReturned(_) => lived.push("built"),
            What::RunEnded(ended) => {
                println!("the run {}", ended.end.outcome.as_str());
                break;
            }
            _ => {}
        }
    }
    assert_eq!(lived, ["built", "parked", "asked"]);
    let said = session.finished().await?.last_words.map(|message| message.text());
    assert_eq!(said.as_deref(), Some("Deployed."));
    host.stop().await?;
    Ok(())
}
