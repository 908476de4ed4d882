//! Many at once, in a program that embeds the library and at terminals: one has its way, and the
//! others are told of it.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::process::Child;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use adjourn::{Adjourn, Error, Event, Published, StoreError, Woken};
use adjourn_core::Rejected;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::event::What;
use adjourn_core::id::{Handle, SessionId};
use adjourn_testkit::host::wait;
use serde_json::Value;

use crate::home::Home;

/// Callers within one process.
const TASKS: usize = 64;
/// Processes that race with them.
const PROCESSES: usize = 8;
const ROUNDS: usize = 3;
/// How long the processes may take until they wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// A home with one session that is parked again and again.
struct Race {
    home: Home,
    adjourn: Adjourn,
    id: String,
}

impl Race {
    fn new() -> Self {
        let home = Home::new();
        let script = home.file("script.json", r#"{"steps": [{"await": {"reason": "x"}}]}"#);
        home.told(&["run", "--script", &script, "--detach"]);
        let id = home.json(&["ls"])["sessionId"].as_str().unwrap().to_owned();
        let adjourn = open(&home);
        Self { home, adjourn, id }
    }

    fn session(&self) -> SessionId {
        self.id.parse().unwrap()
    }

    /// Returns the handle of the suspension; the next round makes another.
    fn handle(&self, round: usize) -> String {
        if round > 0 {
            // Nobody hosts it: it is ready, and paused where it is.
            self.home.json(&["suspend", &self.id]);
        }
        self.home.json(&["show", &self.id])["handle"].as_str().unwrap().to_owned()
    }

    /// Starts processes with `arguments`, and runs `task` in threads at the same time.
    ///
    /// The write lock is held until all processes wait for it, so that they begin at once.
    fn run<T: Send>(
        &self,
        arguments: &[&str],
        task: impl Fn(usize) -> T + Sync,
    ) -> (Vec<T>, Vec<(i32, Value)>) {
        let start = Barrier::new(TASKS);
        let (go, waits) = std::sync::mpsc::channel::<()>();
        let (holds, is_held) = std::sync::mpsc::channel::<()>();
        let holder = open(&self.home);
        std::thread::scope(|scope| {
            let held = scope.spawn(move || {
                wait(holder.transact(move |_| {
                    let _ = holds.send(());
                    let _ = waits.recv();
                    Ok::<_, StoreError>(())
                }))
            });
            is_held.recv().unwrap();
            let processes: Vec<Child> = (0..PROCESSES)
                .map(|number| {
                    let mut command = self.home.command(&[arguments, &["--json"]].concat());
                    command.env("USER", format!("process-{number}")).spawn().unwrap()
                })
                .collect();
            let threads: Vec<_> = (0..TASKS)
                .map(|number| {
                    let (start, task) = (&start, &task);
                    scope.spawn(move || {
                        start.wait();
                        task(number)
                    })
                })
                .collect();
            // With this one, which waits for its tasks.
            self.until_wait(PROCESSES + 1);
            go.send(()).unwrap();
            held.join().unwrap().unwrap();
            let told = processes.into_iter().map(|process| {
                let output = process.wait_with_output().unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                let last = text.lines().next_back().unwrap_or_else(|| panic!("it said nothing"));
                (output.status.code().unwrap(), serde_json::from_str(last).unwrap())
            });
            let told = told.collect();
            (threads.into_iter().map(|thread| thread.join().unwrap()).collect(), told)
        })
    }

    /// Waits until so many processes wait for the write lock. Each of them says so, by a lock on
    /// a file beside the store.
    fn until_wait(&self, processes: usize) {
        let queue = std::fs::metadata(self.home.path(".local/share/adjourn/store.db-queue"));
        let file = format!(":{}", queue.unwrap().ino());
        let start = Instant::now();
        loop {
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            let is_on_it = |line: &&str| line.split(' ').any(|word| word.ends_with(&file));
            let waiting = locks.lines().filter(is_on_it).count();
            if waiting >= processes {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{waiting} wait, and not {processes}: {locks}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn resume(&self, number: usize, handle: &str, key: Option<&str>) -> Result<Woken, Error> {
        let handle: Handle = handle.parse().unwrap();
        let by = Actor::new(Face::Library, format!("task-{number}"));
        let resume = self.adjourn.session(self.session()).resume().handle(handle).by(by);
        match key {
            Some(key) => wait(resume.key(key)),
            None => wait(resume),
        }
    }

    /// Returns how often a suspension was resumed, and as what: when, why, by whom.
    fn resumptions(&self, handle: &str) -> Vec<(String, String, String)> {
        let handle: Handle = handle.parse().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let session = self.adjourn.session(self.session());
        let entries = runtime.block_on(session.journal(1, usize::MAX)).unwrap();
        let resumed = entries.iter().filter_map(|entry| match &entry.event.what {
            What::Resumed(resumed) if resumed.resumption.handle == handle => {
                let cause = resumed.resumption.cause.to_string();
                Some((entry.event.at.to_string(), cause, entry.event.by.to_string()))
            }
            _ => None,
        });
        resumed.collect()
    }
}

/// Opens the store of a home, as a program of its user does.
pub fn open(home: &Home) -> Adjourn {
    let store = Adjourn::builder(home.path(".local/share/adjourn/store.db"));
    store.key_directory(home.path(".config/adjourn/keys")).open_blocking().unwrap()
}

#[test]
fn of_many_who_resume_one_suspension_one_does_and_the_others_are_told() {
    let race = Race::new();
    for round in 0..ROUNDS {
        let handle = race.handle(round);
        let arguments = ["resume", &race.id, "--handle", &handle, "--detach"];
        let (tasks, processes) = race.run(&arguments, |number| race.resume(number, &handle, None));
        let resumptions = race.resumptions(&handle);
        let [first] = resumptions.as_slice() else { panic!("resumed {resumptions:?}") };
        let mut winners = 0;
        for answer in tasks {
            match answer {
                Ok(_) => winners += 1,
                Err(Error::Refused(Rejected::AlreadyResumed { at, cause, by, .. })) => {
                    assert_eq!(first, &(at.to_string(), cause.to_string(), by.to_string()));
                }
                Err(error) => panic!("{error}"),
            }
        }
        for (code, told) in processes {
            if code == 0 {
                winners += 1;
                continue;
            }
            let error = &told["error"];
            assert_eq!((code, &error["reason"]), (3, &"ALREADY_RESUMED".into()), "{told}");
            let text = |key: &str| error[key].as_str().unwrap().to_owned();
            assert_eq!(first, &(text("at"), text("cause"), text("by")));
        }
        assert_eq!(winners, 1);
    }
}

#[test]
fn of_many_with_one_idempotency_key_one_has_an_effect_and_all_have_the_answer() {
    let race = Race::new();
    for round in 0..ROUNDS {
        let handle = race.handle(round);
        let key = format!("key-{round}");
        let arguments =
            ["resume", &race.id, "--handle", &handle, "--idempotency-key", &key, "--detach"];
        let (tasks, processes) =
            race.run(&arguments, |number| race.resume(number, &handle, Some(&key)));
        assert_eq!(race.resumptions(&handle).len(), 1);
        let mut effects = 0;
        let mut answers = Vec::new();
        for woken in tasks {
            let woken = woken.unwrap();
            effects += usize::from(!woken.repeated);
            answers.push(woken.resumption().unwrap().clone());
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert!(effects <= 1, "one of the processes may have been the first");
        for (code, told) in &processes {
            assert_eq!(*code, 0, "{told}");
            assert_eq!(told, &processes[0].1);
        }
    }
}

#[test]
fn an_event_that_many_send_is_taken_once() {
    let race = Race::new();
    for round in 0..ROUNDS {
        let event_id = format!("event-{round}");
        let arguments = ["event", "ci.passed", "--id", &event_id];
        let (tasks, processes) = race.run(&arguments, |_| {
            let event = Event::new("ci.passed").id(&event_id).source("cli");
            wait(race.adjourn.publish(event)).unwrap()
        });
        let told = processes.iter().map(|(code, told)| {
            assert_eq!(*code, 0, "{told}");
            (told["seq"].as_u64().unwrap(), told["fresh"].as_bool().unwrap())
        });
        let tasks = tasks.into_iter().map(|Published { seq, fresh }| (seq.0, fresh));
        let all: Vec<_> = tasks.chain(told).collect();
        assert_eq!(all.iter().filter(|(_, fresh)| *fresh).count(), 1, "{all:?}");
        let numbers: BTreeSet<_> = all.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(numbers.len(), 1, "{numbers:?}");
    }
}
