//! The scenarios of `conformance/`, played against the core.
//!
//! The same files run against the command line and the protocols; what is special here is only
//! that time is virtual and the host is a [`Simulation`]. `conformance/README.md` says what a
//! scenario means, and is all that somebody needs who writes another runner.

mod matching;
mod mutants;
mod scenario;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjourn_core::arrival::Arrival;
use adjourn_core::command::{Cancel, Close, Prompt, Reach, Resume, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::event::What;
use adjourn_core::facts::Answer;
use adjourn_core::id::Seq;
use adjourn_core::time::Timestamp;
use adjourn_core::transcript::Content;
use adjourn_core::{Command, Event, Rejected};
use serde_json::{Value, json};

use crate::simulation::{Simulation, resumption};
use crate::world::session_id;
use matching::Matcher;
use scenario::{Does, Fields, How, Notice, Refused, Scenario, Step, Verb};

/// How far a step keeps from what happens by itself, so that a runner in real time sees the same.
const ROOM: Duration = Duration::from_millis(200);

#[test]
fn every_scenario_holds() {
    let mut failures = Vec::new();
    for (file, text) in scenarios() {
        let found = play_all(&text);
        println!("{} {file}", if found.is_empty() { "ok    " } else { "FAILED" });
        failures.extend(found.into_iter().map(|failure| format!("{file}: {failure}")));
    }
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
}

/// Returns every scenario by the name of its file; whatever lies beside them is taken for one.
fn scenarios() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut paths: Vec<_> = std::fs::read_dir(&directory)
        .expect("the directory of the scenarios")
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("README.md"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are no scenarios in {}", directory.display());
    let read = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        (file, std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(read).collect()
}

/// Plays a scenario in every order in which its races can turn out; returns what went wrong.
fn play_all(text: &str) -> Vec<String> {
    let start = start();
    let scenario = match Scenario::read(text, start) {
        Ok(scenario) => scenario,
        Err(error) => return vec![error],
    };
    let racers = scenario.steps.iter().map(|step| match &step.does {
        Does::Race(verbs) => verbs.len(),
        Does::Nothing | Does::One(_) => 1,
    });
    for first in 0..racers.max().unwrap_or(1) {
        let index = Cell::new(0);
        let played = catch_unwind(AssertUnwindSafe(|| {
            let mut play = Play::new(start, &scenario, first);
            play.steps(&index);
            play.ending();
            play.failures
        }));
        let failures = played.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panicked");
            vec![format!("step {}: {text}", index.get() + 1)]
        });
        if !failures.is_empty() {
            return failures;
        }
    }
    Vec::new()
}

fn start() -> Timestamp {
    crate::world::World::new().now
}

/// A scenario that is being played.
struct Play<'a> {
    scenario: &'a Scenario,
    start: Timestamp,
    simulation: Simulation,
    matcher: Matcher,
    /// Who comes first in a race.
    first: usize,
    messages: u32,
    failures: Vec<String>,
}

impl<'a> Play<'a> {
    fn new(start: Timestamp, scenario: &'a Scenario, first: usize) -> Self {
        Self {
            scenario,
            start,
            simulation: Simulation::new(scenario.script.clone()),
            matcher: Matcher::new(start),
            first,
            messages: 0,
            failures: Vec::new(),
        }
    }

    fn steps(&mut self, index: &Cell<usize>) {
        for (number, step) in self.scenario.steps.iter().enumerate() {
            index.set(number);
            let before = self.failures.len();
            self.simulation.advance(self.start.after(step.at.0));
            self.step(step);
            for failure in &mut self.failures[before..] {
                *failure = format!("step {} (at {}): {failure}", number + 1, step.at);
            }
        }
    }

    fn step(&mut self, step: &Step) {
        // While nobody is there, the world goes on and clients do not.
        if !matches!(&step.does, Does::One(Verb::Event(_))) {
            self.is_served("something is done");
        }
        match &step.does {
            Does::Nothing => {}
            Does::One(verb) => {
                let given = self.give(verb);
                self.judge(given.as_ref().err(), step.refused.as_ref());
                if let (Ok(answer), Some(expected)) = (given, &step.answer) {
                    let found = self.matcher.differences(expected, &answer);
                    self.failures.extend(found.into_iter().map(|found| format!("answer.{found}")));
                }
            }
            Does::Race(verbs) => self.race(verbs, step.refused.as_ref()),
        }
        self.simulation.settle();
        if let Some(expected) = &step.expect {
            self.is_served("something is expected");
            let status = serde_json::to_value(self.simulation.world.session.status()).unwrap();
            let found = self.matcher.differences(expected, &status);
            if !found.is_empty() {
                self.failures.extend(found);
                self.fail(format!("the whole status is {status}"));
            }
        }
    }

    /// Gives all verbs before anything else happens; one is taken, or all where none is refused.
    fn race(&mut self, verbs: &[Verb], refused: Option<&Refused>) {
        for turn in 0..verbs.len() {
            let verb = &verbs[(self.first + turn) % verbs.len()];
            let given = self.give(verb);
            self.judge(given.as_ref().err(), refused.filter(|_| turn > 0));
        }
    }

    fn judge(&mut self, rejected: Option<&Rejected>, expected: Option<&Refused>) {
        match (rejected, expected) {
            (None, None) => {}
            (Some(rejected), None) => {
                self.fail(format!("refused {}: {rejected}", rejected.reason()));
            }
            (None, Some(expected)) => {
                self.fail(format!("expected to be refused {}, and was not", expected.reason));
            }
            (Some(rejected), Some(expected)) => {
                if rejected.reason() != expected.reason {
                    let (reason, wanted) = (rejected.reason(), &expected.reason);
                    self.fail(format!("expected to be refused {wanted}, found {reason}"));
                }
                let path = match rejected {
                    Rejected::Invalid { path, .. } => Some(path),
                    _ => None,
                };
                if expected.path.is_some() && expected.path.as_ref() != path {
                    let wanted = &expected.path;
                    self.fail(format!("expected to be refused at {wanted:?}, found {path:?}"));
                }
            }
        }
    }

    /// Does what a client does, and returns what it is answered.
    fn give(&mut self, verb: &Verb) -> Result<Value, Rejected> {
        let (command, words) = match verb {
            Verb::Prompt(text) => {
                self.messages += 1;
                let prompt = Prompt {
                    content: Content::text(text),
                    // Every message is another one, as it is over any face.
                    message_id: Some(format!("m{}", self.messages)),
                    handle: None,
                    reach: Reach::OwnFace,
                };
                (Command::Prompt(prompt), Some(text.clone()))
            }
            Verb::Suspend(suspend) => {
                let conditions = Conditions::parse(&suspend.resume_when, Spelling::Camel);
                let suspend = Suspend {
                    reason: suspend.reason.clone(),
                    resume_when: conditions.map_err(|invalid| invalid.within("resumeWhen"))?,
                    mode: suspend.mode,
                    grace_ms: suspend.grace_ms,
                    ..Suspend::default()
                };
                (Command::Suspend(suspend), None)
            }
            Verb::Resume(resume) => return self.resume(resume),
            Verb::Cancel(why) => (Command::Cancel(Cancel { reason: why.reason.clone() }), None),
            Verb::Close(why) => (Command::Close(Close { reason: why.reason.clone() }), None),
            Verb::Event(event) => {
                self.event(event);
                return Ok(Value::Null);
            }
            Verb::Restart(restart) => {
                let away = restart.away.map(|away| away.0).unwrap_or_default();
                match restart.how {
                    How::Kill => self.simulation.kill(away),
                    How::Drain => {
                        let grace = restart.grace_ms.map(Duration::from_millis);
                        self.simulation.drain(grace, away);
                    }
                }
                return Ok(Value::Null);
            }
        };
        self.simulation.ask(command, words.as_deref()).map(|_| Value::Null)
    }

    fn resume(&mut self, resume: &scenario::Resume) -> Result<Value, Rejected> {
        let handle = match resume.handle.as_ref().map(|word| self.matcher.handle(word)).transpose()
        {
            Ok(handle) => handle.map(|handle| handle.parse().expect("a handle")),
            Err(unknown) => {
                self.fail(unknown);
                return Ok(Value::Null);
            }
        };
        let words = resume.input.as_ref().map(|input| match input {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let command = Resume {
            handle,
            input: words.as_deref().map(Content::text),
            continue_transcript: resume.continue_transcript.unwrap_or(true),
            idempotency_key: resume.idempotency_key.clone(),
            ..Resume::default()
        };
        let events = self.simulation.ask(Command::Resume(command), words.as_deref())?;
        let first = events.iter().find_map(|event: &Event| match &event.what {
            What::Resumed(resumed) => Some(resumption(&resumed.resumption)),
            What::HoldLifted(lifted) => Some(resumption(&lifted.resumption)),
            _ => None,
        });
        // Nothing happened: the key was used before, and the first answer holds.
        let again = || {
            let key = resume.idempotency_key.as_ref()?;
            match &self.simulation.world.answers.get(key)?.answer {
                Answer::Resumed(first) => Some(resumption(first)),
                Answer::Withdrawn { .. } => None,
            }
        };
        Ok(first.or_else(again).unwrap_or_default())
    }

    fn event(&mut self, event: &scenario::Event) {
        let number = self.simulation.world.arrivals.len() + 1;
        let arrival = Arrival {
            seq: Seq(0),
            id: event.id.clone().unwrap_or_else(|| format!("e{number}")),
            source: event.source.clone().unwrap_or_else(|| "conformance".to_owned()),
            name: event.name.clone(),
            subject: event.subject.clone(),
            time: self.simulation.world.now,
            session: event.session.then(|| session_id(1)),
        };
        self.simulation.event(arrival, event.data.clone());
    }

    /// Looks back on the whole.
    fn ending(&mut self) {
        let scenario = self.scenario;
        let notices = self.simulation.trace.notices.clone();
        let timeline = scenario.timeline.iter().map(|notice| match notice {
            Notice::Suspended(fields) => json!({ "suspended": fields }),
            Notice::Resumed(fields) => json!({ "resumed": fields }),
        });
        self.list("timeline", &timeline.collect::<Vec<_>>(), &notices);
        if let Some(turns) = &scenario.turns {
            let given = self.simulation.trace.turns.clone();
            let turns: Vec<_> = turns.iter().cloned().map(Value::Object).collect();
            self.list("turns", &turns, &given);
        }
        let trace = &self.simulation.trace;
        let mut failures = Vec::new();
        if trace.tools != scenario.tools {
            failures.push(format!("tools: expected {:?}, found {:?}", scenario.tools, trace.tools));
        }
        if let Some(said) = &scenario.said
            && *said != trace.said
        {
            failures.push(format!("said: expected {said:?}, found {:?}", trace.said));
        }
        for (index, step) in scenario.steps.iter().enumerate() {
            let at = self.start.after(step.at.0);
            for stirred in &trace.stirred {
                if at.since(*stirred).max(stirred.since(at)) < ROOM {
                    let (number, own) = (index + 1, stirred.since(self.start));
                    failures.push(format!("step {number} is too close to what happens at {own:?}"));
                }
            }
        }
        let (whole, short) = self.simulation.world.refold();
        assert_eq!(whole, self.simulation.world.session, "the journal folds to the live state");
        assert_eq!(short, self.simulation.world.session, "and so it does from its last snapshot");
        self.failures.extend(failures);
    }

    /// Compares two lists: in number and order exactly, each element by the fields it names.
    fn list(&mut self, what: &str, expected: &[Value], actual: &[Value]) {
        for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
            let expected: &Fields = expected.as_object().unwrap();
            let found = self.matcher.differences(expected, actual);
            let place = format!("{what}[{index}]");
            self.failures.extend(found.into_iter().map(|found| format!("{place}.{found}")));
        }
        if expected.len() != actual.len() {
            let (wanted, found) = (expected.len(), actual.len());
            self.fail(format!("{what}: expected {wanted}, found {found}: {}", json!(actual)));
        }
    }

    fn is_served(&mut self, what: &str) {
        if !self.simulation.is_served() {
            self.fail(format!("{what} before the host is back"));
        }
    }

    fn fail(&mut self, failure: impl Into<String>) {
        self.failures.push(failure.into());
    }
}
