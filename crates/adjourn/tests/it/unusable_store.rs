//! A host that finds its store locked or full waits until it is not, and says so.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::home::{Home, signal};

/// A host that does not serve yet.
struct Waiting {
    child: Child,
    talk: BufReader<ChildStderr>,
}

impl Waiting {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let talk = BufReader::new(child.stderr.take().unwrap());
        Self { child, talk }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.talk.read_line(&mut line).unwrap();
        line
    }

    fn ends(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn store(home: &Home) -> std::path::PathBuf {
    home.parked(r#"{"steps": [{"await": {"reason": "x"}}]}"#);
    home.path(".local/share/adjourn/store.db")
}

#[test]
fn a_store_that_is_locked_is_waited_for() {
    let home = Home::new();
    let other = rusqlite::Connection::open(store(&home)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Waiting::start(home.command(&["serve"]));
    let line = waiting.line();
    assert_eq!(line, "waiting for the store: another process keeps it locked\n");
    other.execute_batch("COMMIT").unwrap();
    assert!(waiting.line().starts_with("serving "));
    signal(&waiting.child, Signal::TERM);
    assert_eq!(waiting.ends(), 0);
}

#[test]
fn a_host_that_waits_can_be_stopped() {
    let home = Home::new();
    let other = rusqlite::Connection::open(store(&home)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Waiting::start(home.command(&["serve"]));
    assert!(waiting.line().starts_with("waiting "));
    let told = Instant::now();
    signal(&waiting.child, Signal::INT);
    assert_eq!(waiting.ends(), 0);
    assert!(
        told.elapsed() < Duration::from_secs(15),
        "it waited for the lock: {:?}",
        told.elapsed()
    );
}

/// A limit on the size of files is a disk that is full, also for whoever lives on when it comes.
#[test]
fn a_store_that_is_full_is_waited_for() {
    let home = Home::new();
    store(&home);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -f 8; exec \"$0\" serve", env!("CARGO_BIN_EXE_adjourn")]);
    command.env_clear().envs(home.environment());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut waiting = Waiting::start(command);
    let line = waiting.line();
    assert!(line.starts_with("waiting for the store: the store is full: "), "{line}");
    let no_limit = Rlimit { current: None, maximum: None };
    prlimit(Some(Pid::from_child(&waiting.child)), Resource::Fsize, no_limit).unwrap();
    assert!(waiting.line().starts_with("serving "));
    signal(&waiting.child, Signal::TERM);
    assert_eq!(waiting.ends(), 0);
}

#[test]
fn a_command_that_comes_to_a_limit_is_told_that_the_store_is_full() {
    let home = Home::new();
    store(&home);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 8; exec \"$0\" event a", env!("CARGO_BIN_EXE_adjourn")]);
    command.env_clear().envs(home.environment());
    let told = home.ended(command);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.talk.contains("the store is full"), "{told:?}");
}
