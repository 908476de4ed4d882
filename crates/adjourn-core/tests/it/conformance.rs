//! The scenarios of `conformance/`, played against the core.
//!
//! The same files run against the command line and the protocols; what is special here is only
//! that time is virtual and the host is a [`Simulation`]. `conformance/README.md` says what a
//! scenario means, and is all that somebody needs who writes another runner.

mod mutants;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use adjourn_conformance::matching::{Matcher, judge};
use adjourn_conformance::play::ROOM;
use adjourn_conformance::scenario::{self, Does, Fields, How, Refused, Scenario, Step, Verb};
use adjourn_conformance::{Answer, Ending, Refusal, logs};
use adjourn_core::actor::{Actor, Face};
use adjourn_core::arrival::Arrival;
use adjourn_core::command::{Cancel, Close, Prompt, Reach, Resume, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::event::What;
use adjourn_core::facts;
use adjourn_core::id::{Handle, Seq};
use adjourn_core::time::Timestamp;
use adjourn_core::transcript::Content;
use adjourn_core::{Command, Event, Rejected};
use adjourn_driver::script::Script;
use serde_json::{Value, json};

use crate::simulation::{self, Simulation};
use crate::world::{ann, session_id};

#[test]
fn every_scenario_holds() {
    let mut failures = Vec::new();
    for (file, text) in scenarios() {
        let found = play_all(&text, 1);
        println!("{} {file}", if found.is_empty() { "ok    " } else { "FAILED" });
        failures.extend(found.into_iter().map(|failure| format!("{file}: {failure}")));
    }
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
}

#[test]
fn every_scenario_holds_at_any_pace() {
    for (file, text) in scenarios() {
        assert_eq!(play_all(&text, 3), Vec::<String>::new(), "{file}");
    }
}

fn scenarios() -> Vec<(String, String)> {
    adjourn_conformance::scenarios().unwrap()
}

/// Plays a scenario in every order in which its races can turn out, `pace` times as long as it
/// says; returns what went wrong.
fn play_all(text: &str, pace: u32) -> Vec<String> {
    let start = start();
    let read = Scenario::read(text, start, pace);
    let read = read.and_then(|scenario| Ok((simulation::read(&scenario.script)?, scenario)));
    let (script, scenario) = match read {
        Ok(read) => read,
        Err(error) => return vec![error],
    };
    let racers = scenario.steps.iter().map(|step| match &step.does {
        Does::Race(verbs) => verbs.len(),
        Does::Nothing | Does::One(_) => 1,
    });
    for first in 0..racers.max().unwrap_or(1) {
        let index = Cell::new(0);
        let played = catch_unwind(AssertUnwindSafe(|| {
            let mut play = Play::new(start, &scenario, script.clone(), first);
            play.steps(&index);
            play.ending(ROOM * pace);
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
    /// Suspends that have not taken effect, and what they are to be answered then.
    suspends: Vec<(Handle, Fields)>,
    failures: Vec<String>,
}

impl<'a> Play<'a> {
    fn new(start: Timestamp, scenario: &'a Scenario, script: Script, first: usize) -> Self {
        Self {
            scenario,
            start,
            simulation: Simulation::new(script),
            matcher: Matcher::new(start, Duration::ZERO),
            first,
            messages: 0,
            suspends: Vec::new(),
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
                self.failures.extend(judge(&given, step.refused.as_ref()));
                match (given, &step.answer, verb) {
                    (Ok(handle), Some(expected), Verb::Suspend(_)) => {
                        let handle = serde_json::from_value(handle).expect("a handle");
                        self.suspends.push((handle, expected.clone()));
                    }
                    (Ok(answer), Some(expected), _) => self.answered(expected, &answer),
                    _ => {}
                }
            }
            Does::Race(verbs) => self.race(verbs, step.refused.as_ref()),
        }
        self.simulation.settle();
        self.hear_late();
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

    fn answered(&mut self, expected: &Fields, answer: &Value) {
        let found = self.matcher.differences(expected, answer);
        self.failures.extend(found.into_iter().map(|found| format!("answer.{found}")));
    }

    /// Compares what suspends are answered that have taken effect.
    fn hear_late(&mut self) {
        for (handle, expected) in std::mem::take(&mut self.suspends) {
            let made = self.simulation.trace.notices.iter().find_map(|notice| {
                notice.get("suspended").filter(|made| made["handle"] == handle.to_string())
            });
            match made.cloned() {
                Some(made) => self.answered(&expected, &made),
                None => self.suspends.push((handle, expected)),
            }
        }
    }

    /// Gives all verbs before anything else happens; one is taken, or all where none is refused.
    fn race(&mut self, verbs: &[Verb], refused: Option<&Refused>) {
        for turn in 0..verbs.len() {
            let verb = &verbs[(self.first + turn) % verbs.len()];
            let given = self.give(verb);
            self.failures.extend(judge(&given, refused.filter(|_| turn > 0)));
        }
    }

    /// Does what a client does, and returns what it is answered.
    fn give(&mut self, verb: &Verb) -> Answer {
        self.command(verb).map_err(|rejected| Refusal {
            reason: rejected.reason().to_owned(),
            message: rejected.to_string(),
            path: match rejected {
                Rejected::Invalid { path, .. } => Some(path),
                _ => None,
            },
        })
    }

    fn command(&mut self, verb: &Verb) -> Result<Value, Rejected> {
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
                let elsewhere = suspend.elsewhere;
                let conditions = Conditions::parse(&suspend.resume_when, Spelling::Camel);
                let suspend = Suspend {
                    reason: suspend.reason.clone(),
                    resume_when: conditions.map_err(|invalid| invalid.within("resumeWhen"))?,
                    mode: suspend.mode,
                    grace_ms: suspend.grace_ms,
                    ..Suspend::default()
                };
                let by = if elsewhere { Actor::new(Face::Library, "bob") } else { ann() };
                let events = self.simulation.ask_by(by, Command::Suspend(suspend), None)?;
                return Ok(json!(suspension(&events)));
            }
            Verb::Resume(resume) => return self.resume(resume),
            Verb::Cancel(why) => {
                let reason = why.reason.clone();
                (Command::Cancel(Cancel { reason, ..Cancel::default() }), None)
            }
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
            What::Resumed(resumed) => Some(logs::resumption(&resumed.resumption)),
            What::HoldLifted(lifted) => Some(logs::resumption(&lifted.resumption)),
            _ => None,
        });
        // Nothing happened: the key was used before, and the first answer holds.
        let again = || {
            let key = resume.idempotency_key.as_ref()?;
            match &self.simulation.world.answers.get(key)?.answer {
                facts::Answer::Resumed(first) => Some(logs::resumption(first)),
                facts::Answer::Withdrawn { .. } => None,
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
    fn ending(&mut self, room: Duration) {
        self.hear_late();
        let (scenario, trace) = (self.scenario, &self.simulation.trace);
        let ending = Ending {
            timeline: trace.notices.clone(),
            turns: trace.turns.clone(),
            tools: trace.tools.clone(),
            said: trace.said.clone(),
            given: None,
        };
        let mut failures = self.matcher.ending(scenario, &ending);
        let never = |(handle, _)| format!("answer: {handle} never took effect");
        failures.extend(self.suspends.drain(..).map(never));
        for (index, step) in scenario.steps.iter().enumerate() {
            let at = self.start.after(step.at.0);
            for stirred in &trace.stirred {
                if at.since(*stirred).max(stirred.since(at)) < room {
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

    fn is_served(&mut self, what: &str) {
        if !self.simulation.is_served() {
            self.fail(format!("{what} before the host is back"));
        }
    }

    fn fail(&mut self, failure: impl Into<String>) {
        self.failures.push(failure.into());
    }
}

/// Returns the suspension that a suspend has made, or will make.
fn suspension(events: &[Event]) -> Option<Handle> {
    events.iter().find_map(|event| match &event.what {
        What::Suspended(suspended) => Some(suspended.park.pause.handle),
        What::HoldLaid(laid) => Some(laid.hold.pause.handle),
        What::SuspendRequested(requested) => Some(requested.pause.handle),
        What::SuspendJoined(joined) => Some(joined.handle),
        _ => None,
    })
}
