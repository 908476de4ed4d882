//! Other processes: this very test binary, started again to play one role, and to be killed,
//! starved or stopped while it does.
//!
//! A child talks in lines on its output, each behind a mark, since the test harness writes there
//! too. It ends when its input does, so none outlives the test that started it.

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use adjourn_store::sqlite::Options;
use adjourn_testkit::VirtualClock;

use crate::fixture::keys;

const ROLE: &str = "ADJOURN_TEST_ROLE";
const STORE: &str = "ADJOURN_TEST_STORE";
const SERIES: &str = "ADJOURN_TEST_SERIES";
const MARK: char = '@';
/// How long a child may be silent before its test gives up: far longer than anything takes.
const SILENCE: Duration = Duration::from_secs(40);

/// The body of every child process. It tests nothing by itself and does nothing in an ordinary
/// run of the tests; the tests that start it judge what it says.
#[test]
fn plays_its_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let orders = orders();
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("write", point) => crate::crash::write(point),
        ("saturate", "") => crate::fairness::saturate(&orders),
        ("single", "") => crate::fairness::single(&orders),
        ("fill", "") => crate::faults::fill(&orders),
        ("try", "") => crate::faults::try_it(),
        _ => panic!("there is no role {role:?}"),
    }
}

/// Says a line to the test that started this process.
pub fn say(line: impl Display) {
    let mut out = std::io::stdout().lock();
    // In one piece: whoever is killed in the middle must not leave half a line that looks whole.
    out.write_all(format!("{MARK}{line}\n").as_bytes()).expect("the parent listens");
    out.flush().expect("the parent listens");
}

/// Returns how this child is to open the store: with ids that no other process makes.
pub fn options() -> Options {
    let variable = |name| std::env::var(name).expect("the parent has set it");
    let series = variable(SERIES).parse().expect("a series");
    Options::new(variable(STORE), Arc::new(VirtualClock::of_series(series)), keys())
}

/// Passes on what the parent says, and ends this process with it.
fn orders() -> Receiver<String> {
    let (sender, orders) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            // A role that takes no orders has dropped the other end.
            let _ = sender.send(line);
        }
        std::process::exit(0);
    });
    orders
}

/// A child process, as its parent has it.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a child in a role, with the store at `path`.
    pub fn start(role: &str, path: &Path) -> Self {
        Self::run(Command::new(std::env::current_exe().unwrap()), role, path)
    }

    /// Starts a child by a command to which the arguments of the test binary are still to be added.
    pub fn run(mut command: Command, role: &str, path: &Path) -> Self {
        static CHILDREN: AtomicU16 = AtomicU16::new(100);
        let mut child = command
            .args(["--exact", "child::plays_its_role", "--nocapture"])
            .env(ROLE, role)
            .env(STORE, path)
            .env(SERIES, CHILDREN.fetch_add(1, Ordering::Relaxed).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        // All that a child said before its end is heard, also what was still in the pipe then.
        std::thread::spawn(move || {
            let said = BufReader::new(output).lines().map_while(Result::ok);
            for line in said.filter_map(|line| Some(line.split_once(MARK)?.1.to_owned())) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines }
    }

    /// Waits for the next line; there is none if the child has ended.
    pub fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(SILENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the child says nothing"),
        }
    }

    /// Tells the child something.
    pub fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Returns the number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it with SIGSTOP, and returns when all of its threads stand still.
    pub fn stop(&self) {
        self.signal("STOP");
        let start = Instant::now();
        // One thread takes the signal and passes it on; the others run on until then.
        while !self.threads().all(|state| state == 'T') {
            assert!(start.elapsed() < SILENCE, "it does not stop");
            std::thread::yield_now();
        }
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.id().to_string()]).status();
        assert!(sent.unwrap().success(), "cannot send {name}");
    }

    /// Returns the state of each thread, as one letter.
    fn threads(&self) -> impl Iterator<Item = char> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.id())).unwrap();
        threads.map(|thread| {
            let about = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
            // The state follows the name, which stands in brackets.
            about.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap()
        })
    }

    /// Kills it with SIGKILL, and returns what it had still said.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.line()).collect()
    }

    /// Lets it end by itself.
    pub fn end(mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test that fails leaves nobody behind; one that has ended is not there any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
