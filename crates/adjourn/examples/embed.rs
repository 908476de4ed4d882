//! An agent of a program's own: parked until the tests have passed, woken by an event, done.

use adjourn::driver::{BoxStream, Driver, Finish, Message, Part, Step, emitting};
use adjourn::{Adjourn, Event};

struct Reviewer;

impl Driver for Reviewer {
    fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
        emitting(|out| async move {
            out.emit(Part::Message(Message::agent("Looks good to me."))).await;
            out.emit(Part::Finished(Finish::completed())).await;
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let adjourn = Adjourn::open(directory.path().join("agents.db")).await?;
    let session = adjourn.create("reviewer").label("team", "web").prompt("Review PR 12.").await?;

    // It waits for the tests, whatever becomes of this process.
    let pause = session.suspend().reason("tests run").on_event("ci.passed:pr/12").await?;
    println!("parked as {}", pause.handle);

    let host = adjourn.host().driver("reviewer", |_| Reviewer).start().await?;
    adjourn.publish(Event::new("ci.passed").subject("pr/12")).await?;

    let run = session.finished().await?;
    let said = run.last_words.map(|message| message.text());
    println!("woken, and {}: {said:?}", run.end.outcome.as_str());
    assert_eq!(said.as_deref(), Some("Looks good to me."));
    host.stop().await?;
    Ok(())
}
