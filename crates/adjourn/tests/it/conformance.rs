//! The scenarios of `conformance/`, played against hosts without a face: every verb is a command.
//!
//! The hosts' drivers record what they are given, so that it is not the log that is looked at but
//! what reached the agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn::clock::{Clock, Machine};
use adjourn::doorbell::Hosts;
use adjourn::script::Scripted;
use adjourn::watch::Watcher;
use adjourn::{Config, Host};
use adjourn_conformance::given::Recording;
use adjourn_conformance::matching::Matcher;
use adjourn_conformance::scenario::{Event, How, Restart, Resume, Scenario, Suspend, Why};
use adjourn_conformance::{Ending, Face, Refusal, Reply, logs, play, scenarios};
use adjourn_core::command::{self, Cancel, Close, Prompt, Reach, Requester};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::What;
use adjourn_core::facts;
use adjourn_core::id::{RequestId, SessionId};
use adjourn_core::session::Phase;
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Rejected, json};
use adjourn_driver::Message;
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Done, Environment as _, Request, Sqlite, Store as _};
use adjourn_testkit::store;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::fixture::ann;

/// How many scenarios are played at once: they mostly wait.
const AT_ONCE: usize = 12;

/// A cancel has time at any pace: scenarios have no calls that hang in one.
const CANCEL_GRACE_MS: u64 = 600_000;

#[test]
fn every_scenario_holds_and_its_driver_is_given_what_it_says() {
    let runtime = Arc::new(Runtime::new().unwrap());
    let endings = Arc::default();
    let open = |scenario: &Scenario| Bare::open(scenario, &runtime, &endings);
    let failures = play::every_scenario(AT_ONCE, &open);
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
    let endings = endings.lock().unwrap();
    let mut looked_at = 0;
    for (file, text) in scenarios().unwrap() {
        let scenario: Value = json::stored(text.as_bytes()).unwrap();
        let ending = &endings[scenario["name"].as_str().unwrap()];
        assert!(ending.given.is_some(), "{file}");
        for place in leaves("/given", &scenario["given"]) {
            looked_at += 1;
            let found = differences(&mutant(&scenario, &place), ending);
            assert!(!found.is_empty(), "{file} {place}: it is not missed");
        }
    }
    assert!(looked_at > 100, "few scenarios say what is given: {looked_at}");
}

/// Returns where an ending is not what a scenario says of `given`.
fn differences(scenario: &Value, ending: &Ending) -> Vec<String> {
    let start = Timestamp::from_millis(0);
    let scenario = Scenario::read(&scenario.to_string(), start, 1).unwrap();
    let found = Matcher::new(start, Duration::ZERO).ending(&scenario, ending);
    found.into_iter().filter(|found| found.starts_with("given")).collect()
}

/// Returns the places of all that a value says.
fn leaves(place: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => {
            let inner = values.iter().enumerate();
            inner.flat_map(|(index, value)| leaves(&format!("{place}/{index}"), value)).collect()
        }
        Value::Object(fields) => {
            let inner = fields.iter();
            inner.flat_map(|(name, value)| leaves(&format!("{place}/{name}"), value)).collect()
        }
        Value::Null => Vec::new(),
        _ => vec![place.to_owned()],
    }
}

/// Returns a scenario that says something else in one place.
fn mutant(scenario: &Value, place: &str) -> Value {
    let mut mutant = scenario.clone();
    let value = mutant.pointer_mut(place).unwrap();
    *value = match value {
        Value::Bool(truth) => json!(!*truth),
        _ => json!("something else"),
    };
    mutant
}

/// What each scenario came to, by its name.
type Endings = Arc<Mutex<HashMap<String, Ending>>>;

/// A store with one session, and a host in this process.
struct Bare {
    name: String,
    endings: Endings,
    runtime: Arc<Runtime>,
    id: SessionId,
    store: Sqlite,
    drivers: Recording,
    host: Arc<Mutex<Option<Working>>>,
    /// How long each host that is still to come waits for calls when it is drained.
    graces: std::vec::IntoIter<Option<Duration>>,
    /// Held, so that it is there as long as the store.
    _directory: store::Fixture<Machine>,
}

/// A host at work.
struct Working {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), adjourn_store::Error>>,
}

impl Bare {
    fn open(
        scenario: &Scenario,
        runtime: &Arc<Runtime>,
        endings: &Endings,
    ) -> Result<Self, String> {
        let directory = store::Fixture::with(Machine);
        let store = directory.open();
        let clock: Arc<dyn Clock> = Arc::new(Machine);
        let drivers = Recording::of(Arc::new(Scripted::new(clock)));
        let mut graces = scenario.graces().into_iter();
        let host = start(runtime, &store, &drivers, graces.next().flatten());
        let driver = DriverSpec::script(scenario.script.to_string());
        let founding = store::founding_by(&Machine, driver);
        let made = store.transact(move |tx| tx.create(ann(), founding)).wait();
        let id = made.map_err(|error| error.to_string())?.session.id;
        Ok(Self {
            name: scenario.name.clone(),
            endings: Arc::clone(endings),
            runtime: Arc::clone(runtime),
            id,
            store,
            drivers,
            host: Arc::new(Mutex::new(Some(host))),
            graces,
            _directory: directory,
        })
    }

    /// Gives a command, and says nothing but that it was taken.
    fn give(&self, command: Command, said: Vec<Message>) -> Reply {
        self.ask(command, said, |_| Value::Null)
    }

    fn ask(&self, command: Command, said: Vec<Message>, answer: fn(&Done) -> Value) -> Reply {
        let said = said.iter().map(Message::encode).collect();
        let request = Request::new(self.id, ann(), command).saying(said);
        let (store, hosts) = (self.store.clone(), Hosts::beside(self.store.path()));
        Reply::later(move || {
            let done = store.transact(move |tx| tx.command(request)).wait();
            hosts.ring();
            done.map(|done| answer(&done)).map_err(|error| match error {
                CommandError::Rejected(rejected) => refusal(rejected),
                other => Refusal::broken(other.to_string()),
            })
        })
    }
}

impl Face for Bare {
    fn prompt(&mut self, text: &str) -> Reply {
        let said = Message::user(text);
        // Every message is another one.
        let message_id = Some(Machine.uuid().to_string());
        let (content, reach) = (said.content(), Reach::Waits);
        let prompt = Prompt { content, message_id, handle: None, reach };
        self.give(Command::Prompt(prompt), vec![said])
    }

    fn suspend(&mut self, suspend: &Suspend) -> Reply {
        let conditions = Conditions::parse(&suspend.resume_when, Spelling::Camel);
        let resume_when = match conditions {
            Ok(conditions) => conditions,
            Err(invalid) => {
                return Reply::now(Err(refusal(invalid.within("resumeWhen").into())));
            }
        };
        let suspend = command::Suspend {
            reason: suspend.reason.clone(),
            resume_when,
            mode: suspend.mode,
            grace_ms: suspend.grace_ms,
            requester: Some(Requester::Call(RequestId::new(Machine.uuid()))),
            ..command::Suspend::default()
        };
        self.give(Command::Suspend(suspend), Vec::new())
    }

    fn resume(&mut self, resume: &Resume) -> Reply {
        let given = resume.handle.as_ref().map(|handle| handle.parse().unwrap());
        // Without a handle, the question is meant that is shown; a key says by itself what is.
        let session = self.store.session(self.id).unwrap().unwrap();
        let by_sight = resume.idempotency_key.is_none() && session.phase() == Phase::Asking;
        let shown = session.suspended().filter(|_| by_sight);
        let said = resume.input.clone().map(Message::user_value);
        let resume = command::Resume {
            handle: given.or(shown.map(|suspended| suspended.shown().pause.handle)),
            input: said.as_ref().map(Message::content),
            continue_transcript: resume.continue_transcript.unwrap_or(true),
            idempotency_key: resume.idempotency_key.clone(),
            ..command::Resume::default()
        };
        self.ask(Command::Resume(resume), said.into_iter().collect(), resumed)
    }

    fn event(&mut self, event: &Event) -> Reply {
        let new = NewEvent {
            id: event.id.clone().unwrap_or_else(|| Machine.uuid().to_string()),
            source: event.source.clone().unwrap_or_else(|| "conformance".to_owned()),
            name: event.name.clone(),
            subject: event.subject.clone(),
            time: Machine.now(),
            tenant: "acme".to_owned(),
            session: event.session.then_some(self.id),
            data: event.data.as_ref().map(Value::to_string),
        };
        let (store, hosts) = (self.store.clone(), Hosts::beside(self.store.path()));
        Reply::later(move || {
            let taken = store.transact(move |tx| tx.acknowledge(&new)).wait();
            hosts.ring();
            taken.map(|_| Value::Null).map_err(|error| Refusal::broken(error.to_string()))
        })
    }

    fn cancel(&mut self, why: &Why) -> Reply {
        let cancel = Cancel { reason: why.reason.clone(), grace_ms: Some(CANCEL_GRACE_MS) };
        self.give(Command::Cancel(cancel), Vec::new())
    }

    fn close(&mut self, why: &Why) -> Reply {
        self.give(Command::Close(Close { reason: why.reason.clone() }), Vec::new())
    }

    fn restart(&mut self, restart: &Restart) -> Reply {
        let grace = self.graces.next().flatten();
        let (runtime, host) = (Arc::clone(&self.runtime), Arc::clone(&self.host));
        let (store, drivers) = (self.store.clone(), self.drivers.clone());
        let Restart { how, away, .. } = restart.clone();
        Reply::later(move || {
            let mut host = host.lock().unwrap();
            let old = host.take().unwrap();
            match how {
                How::Kill => {
                    old.task.abort();
                    let _ = runtime.block_on(old.task);
                }
                How::Drain => {
                    let _ = old.stop.send(());
                    runtime.block_on(old.task).unwrap().unwrap();
                }
            }
            std::thread::sleep(away.map(|away| away.0).unwrap_or_default());
            *host = Some(start(&runtime, &store, &drivers, grace));
            Ok(Value::Null)
        })
    }

    fn status(&mut self) -> Result<Value, String> {
        let session = self.store.session(self.id).unwrap().unwrap();
        Ok(serde_json::to_value(session.status()).unwrap())
    }

    fn ending(&mut self) -> Result<Ending, String> {
        let mut watcher = Watcher::from_start(self.store.clone(), self.id);
        let (mut journal, mut transcript) = (Vec::new(), Vec::new());
        for moment in watcher.rest().unwrap() {
            for (_, said) in &moment.said {
                let mut object = serde_json::to_value(said).unwrap();
                object["revision"] = moment.revision.into();
                object["text"] = said.text().into();
                transcript.push(object);
            }
            journal.push((moment.revision, moment.event));
        }
        let given = Some(self.drivers.given()?);
        let ending = Ending { given, ..logs::look_back(journal, transcript)? };
        self.endings.lock().unwrap().insert(self.name.clone(), ending.clone());
        Ok(ending)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let host = self.host.lock().unwrap().take();
        if let Some(host) = host {
            host.task.abort();
            let _ = self.runtime.block_on(host.task);
        }
    }
}

fn start(
    runtime: &Runtime,
    store: &Sqlite,
    drivers: &Recording,
    grace: Option<Duration>,
) -> Working {
    let (hosts, clock) = (Hosts::beside(store.path()), Arc::new(Machine));
    let config = Config { drain: grace.unwrap_or(Config::default().drain), ..Config::default() };
    let host = Host::join(store.clone(), hosts, clock, Arc::new(drivers.clone()), config);
    let host = runtime.block_on(host).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = runtime.spawn(host.run(async move {
        // Without a word it is never told to stop.
        if stopped.await.is_err() {
            std::future::pending::<()>().await;
        }
    }));
    Working { stop, task }
}

fn refusal(rejected: Rejected) -> Refusal {
    let (reason, message) = (rejected.reason().to_owned(), rejected.to_string());
    let path = match rejected {
        Rejected::Invalid { path, .. } => Some(path),
        _ => None,
    };
    Refusal { reason, path, message }
}

/// Returns what a resume is answered; where its key was used before, what it was answered then.
fn resumed(done: &Done) -> Value {
    let first = done.events.iter().find_map(|event| match &event.what {
        What::Resumed(resumed) => Some(&resumed.resumption),
        What::HoldLifted(lifted) => Some(&lifted.resumption),
        _ => None,
    });
    let first = first.or(match &done.answered {
        Some(facts::Answer::Resumed(resumption)) => Some(resumption),
        Some(facts::Answer::Withdrawn { .. }) | None => None,
    });
    first.map(logs::resumption).unwrap_or_default()
}
