//! The scenarios of `conformance/`, played at the command line: every verb is a process, and so is
//! every look.

mod mutants;

use std::io::Read as _;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn_conformance::scenario::{Event, How, Restart, Resume, Scenario, Suspend, Why};
use adjourn_conformance::{Answer, Ending, Face, Refusal, Reply, logs, play};
use serde_json::Value;

use crate::home::{Home, Serving};

/// How many scenarios are played at once: they mostly wait.
const AT_ONCE: usize = 8;

#[test]
fn every_scenario_holds() {
    let failures = play::every_scenario(AT_ONCE, &Terminal::open);
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
}

/// A cancel has time at any pace: scenarios have no calls that hang in one.
pub const CONFIG: &str = "[host]\ncancel_grace = \"10m\"\n";

/// A home with one session, and a host in a process of its own.
struct Terminal {
    id: String,
    host: Arc<Mutex<Option<Serving>>>,
    /// How long each host that is still to come waits for calls when it is drained.
    graces: std::vec::IntoIter<Option<Duration>>,
    /// Processes that may still run.
    given: Vec<Arc<Mutex<Child>>>,
    home: Arc<Home>,
}

impl Terminal {
    fn open(scenario: &Scenario) -> Result<Self, String> {
        let home = Arc::new(Home::new());
        home.config(CONFIG);
        let mut graces = scenario.graces().into_iter();
        let host = serve(&home, graces.next().flatten());
        let script = home.file("script.json", &scenario.script.to_string());
        let told = home.told(&["new", "--script", &script]);
        if told.code != 0 {
            return Err(told.talk);
        }
        let id = told.data.trim().to_owned();
        Ok(Self { id, host: Arc::new(Mutex::new(Some(host))), graces, given: Vec::new(), home })
    }

    /// Types a command, and leaves it running.
    fn give(&mut self, verb: &str, arguments: &[&str]) -> Reply {
        let id = self.id.clone();
        self.run(&[&[verb, &id, "--json"], arguments].concat())
    }

    fn run(&mut self, arguments: &[&str]) -> Reply {
        let mut child = self.home.command(arguments).spawn().unwrap();
        let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let child = Arc::new(Mutex::new(child));
        self.given.push(Arc::clone(&child));
        let suspends = arguments.first() == Some(&"suspend");
        Reply::later(move || {
            let (mut data, mut talk) = (String::new(), String::new());
            stdout.read_to_string(&mut data).unwrap();
            stderr.read_to_string(&mut talk).unwrap();
            let ended = child.lock().unwrap().wait().unwrap();
            match answer(ended.success(), &data, &talk) {
                // One that is taken back later was taken all the same.
                Err(refusal) if suspends && refusal.reason == "WITHDRAWN" => Ok(Value::Null),
                answer => answer,
            }
        })
    }
}

impl Face for Terminal {
    fn prompt(&mut self, text: &str) -> Reply {
        self.give("prompt", &["--detach", "--", text])
    }

    fn suspend(&mut self, suspend: &Suspend) -> Reply {
        let arguments = suspend_arguments(suspend, &self.id);
        self.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).at_the_end()
    }

    fn resume(&mut self, resume: &Resume) -> Reply {
        let mut arguments = vec!["--detach"];
        arguments.extend(resume.handle.iter().flat_map(|handle| ["--handle", handle]));
        let input = resume.input.as_ref().map(Value::to_string);
        arguments.extend(input.iter().flat_map(|input| ["--input", input]));
        if resume.continue_transcript == Some(false) {
            arguments.push("--fresh");
        }
        let key = resume.idempotency_key.iter();
        arguments.extend(key.flat_map(|key| ["--idempotency-key", key]));
        self.give("resume", &arguments)
    }

    fn event(&mut self, event: &Event) -> Reply {
        let arguments = event_arguments(event, &self.id);
        self.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn cancel(&mut self, why: &Why) -> Reply {
        let reason = why.reason.iter().flat_map(|reason| ["--reason", reason]);
        self.give("cancel", &reason.collect::<Vec<_>>())
    }

    fn close(&mut self, why: &Why) -> Reply {
        let reason = why.reason.iter().flat_map(|reason| ["--reason", reason]);
        self.give("close", &reason.collect::<Vec<_>>())
    }

    fn restart(&mut self, restart: &Restart) -> Reply {
        let grace = self.graces.next().flatten();
        let (home, host) = (Arc::clone(&self.home), Arc::clone(&self.host));
        let Restart { how, away, .. } = restart.clone();
        Reply::later(move || {
            let mut host = host.lock().unwrap();
            let old = host.take().unwrap();
            match how {
                How::Kill => old.kill(),
                How::Drain => assert_eq!(old.terminate(), 0),
            }
            std::thread::sleep(away.map(|away| away.0).unwrap_or_default());
            *host = Some(serve(&home, grace));
            Ok(Value::Null)
        })
    }

    fn status(&mut self) -> Result<Value, String> {
        let told = self.home.told(&["show", &self.id, "--json"]);
        serde_json::from_str(&told.data).map_err(|error| format!("{error}: {told:?}"))
    }

    fn ending(&mut self) -> Result<Ending, String> {
        let journal = self.home.told(&["log", &self.id, "--json"]);
        let transcript = self.home.told(&["log", &self.id, "--transcript", "--json"]);
        logs::ending(&journal.data, &transcript.data)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        for child in &self.given {
            let mut child = child.lock().unwrap();
            // Most have ended long since.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn serve(home: &Home, grace: Option<Duration>) -> Serving {
    let grace = grace.map(|grace| format!("{}ms", grace.as_millis()));
    let arguments: Vec<_> = grace.iter().flat_map(|grace| ["--drain", grace]).collect();
    home.serve_with(&arguments).0
}

/// Returns how a suspend is typed in.
pub fn suspend_arguments(suspend: &Suspend, session: &str) -> Vec<String> {
    let mode = serde_json::to_value(suspend.mode).unwrap();
    let mut arguments = vec!["suspend", session, "--json", "--mode", mode.as_str().unwrap()];
    arguments.extend(suspend.reason.iter().flat_map(|reason| ["--reason", reason]));
    let conditions = suspend.resume_when.to_string();
    if !suspend.resume_when.is_null() {
        arguments.extend(["--resume-when", &conditions]);
    }
    let grace = suspend.grace_ms.map(|ms| format!("{ms}ms"));
    arguments.extend(grace.iter().flat_map(|grace| ["--grace", grace]));
    arguments.into_iter().map(str::to_owned).collect()
}

/// Returns how an event is typed in.
pub fn event_arguments(event: &Event, session: &str) -> Vec<String> {
    let subject = event.subject.iter().map(|subject| format!(":{subject}"));
    let name = event.name.clone() + &subject.collect::<String>();
    let mut arguments = vec!["event".to_owned(), name, "--json".to_owned()];
    let mut option = |flag: &str, value: Option<String>| {
        arguments.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    };
    option("--source", event.source.clone());
    option("--id", event.id.clone());
    option("--data", event.data.as_ref().map(Value::to_string));
    option("--session", event.session.then(|| session.to_owned()));
    arguments
}

/// Types a command, and returns what became of it.
pub fn told(home: &Home, arguments: &[String]) -> Answer {
    let told = home.told(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    answer(told.code == 0, &told.data, &told.talk)
}

/// Reads what a command printed.
fn answer(success: bool, data: &str, talk: &str) -> Answer {
    let objects = data.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    let objects = objects.map_err(|error| Refusal::broken(format!("{error}: {data}")))?;
    if success {
        // What a resume is answered comes before the status.
        let resumed = objects.iter().find_map(|object| object.get("resumed"));
        return Ok(resumed.cloned().unwrap_or_default());
    }
    let error = objects.last().map(|object| &object["error"]);
    let text = |name: &str| error.and_then(|error| error[name].as_str()).map(str::to_owned);
    let Some(reason) = text("reason") else { return Err(Refusal::broken(talk)) };
    // What is malformed is a mistake in usage here.
    let reason = if reason == "USAGE" { "INVALID".to_owned() } else { reason };
    Err(Refusal { reason, path: text("path"), message: text("message").unwrap_or_default() })
}
