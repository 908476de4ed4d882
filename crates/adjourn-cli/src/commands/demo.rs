//! `demo`: a tour without a network, in a store of its own that goes away.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::Duration;

use adjourn::clock::{Environment as _, Machine};
use adjourn::core::driver::DriverSpec;
use adjourn::core::session::Phase;
use adjourn::driver::Role;
use adjourn::{Claims, Event};
use serde_json::json;

use crate::commands::run::{create, say};
use crate::entry::{happened, said};
use crate::failure::Failure;
use crate::foreground::host;
use crate::founding::Given;
use crate::liveness::Living;
use crate::log_lines::LogLines;
use crate::place::Place;
use crate::settings::Settings;
use crate::signals::{Ended, Signals};
use crate::terminal::Output;
use crate::view::View;
use crate::watch::Watch;

/// The agent of the tour.
const SCRIPT: &str = r#"{"runs": [[
  {"say": "I start the build; it takes a while."},
  {"tool": {"name": "build", "ms": 700}},
  {"await": {"reason": "waiting on ci", "summary": "the build is out; ci has it now",
             "conditions": {"onEvent": "ci.passed:build-1"}}},
  {"say": "CI passed, and I still know which build it was."},
  {"await": {"reason": "giving the cache a moment",
             "conditions": {"timeout": {"durationMinutes": 0.05}}}},
  {"ask": {"question": "Deploy to which region?", "choices": ["north", "south"]}},
  {"say": "Deployed. Done."}
]]}"#;

/// How long the tour rests where there is something to read.
const READ: Duration = Duration::from_millis(1500);

pub async fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let directory = Scratch::new()?;
    tokio::select! {
        ended = guide(settings, &directory, output) => ended,
        Ended(code) = signals.next() => Err(Failure::interrupted(code, "the tour ends here")),
    }
}

/// Shows everything, in order.
async fn guide(settings: &Settings, directory: &Scratch, output: &Output) -> Result<(), Failure> {
    let place = Place::scratch(settings, &directory.0).await?;
    let founding = Given::default().founding(&place, DriverSpec::script(SCRIPT), None).await?;
    let id = create(&place, founding).await?;
    let mut tour = Tour { watcher: Watch::from_start(&place, id), place, output };
    tour.talk("A host runs a scripted agent; everything it does is committed before it counts.");
    let working = host(&tour.place, Claims::Only(id), output).await?;
    say(&tour.place, id, "build and deploy").await?;
    tour.until(Phase::Suspended).await?;

    tour.talk("It parked itself. The host stops now: nothing is left running, not even a timer.");
    working.now().await?;
    tokio::time::sleep(READ).await;
    tour.talk("An event arrives while nobody is there: ci.passed:build-1. It is stored, not lost.");
    tour.event("ci.passed", "build-1").await?;
    tokio::time::sleep(READ).await;

    tour.talk("Another host starts, finds the event, and wakes the agent: once.");
    let working = host(&tour.place, Claims::Only(id), output).await?;
    tour.until(Phase::Asking).await?;
    tour.talk("A deadline woke it, too, and now it asks. We answer: north.");
    tokio::time::sleep(READ).await;
    say(&tour.place, id, "north").await?;
    tour.until(Phase::Idle).await?;
    working.now().await?;

    tour.talk("The same story, read back from the journal:");
    let mut story = LogLines::default();
    for entry in tour.place.adjourn.session(id).journal(1, 1000).await? {
        let object = happened(entry.revision, &entry.event);
        output.object(&object, &story.event(&entry.event, output));
    }
    Ok(())
}

struct Tour<'a> {
    place: Place,
    watcher: Watch,
    output: &'a Output,
}

impl Tour<'_> {
    fn talk(&self, line: &str) {
        self.output.talk(&format!("\n# {line}"));
    }

    async fn until(&mut self, phase: Phase) -> Result<(), Failure> {
        loop {
            if let Some(seen) = self.watcher.look().await? {
                for moment in &seen.moments {
                    // Each message of this agent is one entry: it says everything at once.
                    for (number, message) in &moment.said {
                        if message.role == Role::Agent && message.words_len() > 0 {
                            let line = format!("agent: {}", message.text());
                            let object = said(moment, *number, message);
                            self.output.object(&json!({ "said": object }), &line);
                        }
                    }
                }
                if seen.session.phase() == phase {
                    let living = Living::of(&self.place).await?;
                    let now = self.place.clock.now();
                    let view = View { session: &seen.session, now, living: &living };
                    self.output.object(&view.json(), &format!("[{}]", view.standing()));
                    return Ok(());
                }
            }
            let line = || "the agent works or waits".to_owned();
            self.output.live_while(self.watcher.wait(), line).await;
        }
    }

    async fn event(&self, name: &str, subject: &str) -> Result<(), Failure> {
        let event = Event::new(name).subject(subject).source("demo");
        self.place.adjourn.publish(event).await?;
        Ok(())
    }
}

/// A directory that goes away with the tour.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        // A name that cannot be taken already, and a directory that others cannot look into.
        let name = format!("adjourn-demo-{}", Machine.uuid().simple());
        let path = std::env::temp_dir().join(name);
        let mut private = std::fs::DirBuilder::new();
        private
            .mode(0o700)
            .create(&path)
            .map_err(|error| Failure::other(format!("cannot make {}: {error}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing in it is needed any more; what is left of it is the system's to clear.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
