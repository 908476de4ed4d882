//! ACP clients that people use, as people use them: real programs that know nothing of adjourn.
//!
//! `make sdk-clients` installs them in the versions that `tests/sdk` pins. acp-cli has to be
//! compiled; `make test-editors` does that, and runs its tests, too.

#[cfg(feature = "test-acp-cli")]
mod acp_cli;
mod acpx;
mod python;

use std::collections::BTreeSet;
use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use adjourn_testkit::process::Child;

use crate::home::Home;

/// How long a client may take for anything; they are slow to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// Parks in its first run, and says something in its second.
const PARKS: &str = r#"{"runs": [[
  {"say": "build started"},
  {"await": {"reason": "waiting on ci", "summary": "paused on CI",
             "conditions": {"onEvent": "ci.passed"}}},
  {"say": "ci passed"}
], [{"say": "second run"}]]}"#;

/// Asks for permission in each run.
const DEPLOYS: &str = r#"{"steps": [
  {"say": "First."},
  {"tool": {"name": "deploy", "permission": true}},
  {"say": "over"}
]}"#;

/// Needs nothing that only one process has, in each run.
const SAYS: &str = r#"{"steps": [{"say": "First."}, {"tool": {"name": "look"}}, {"say": "over"}]}"#;

/// Has a call that takes longer than any test, then a run without one.
const BUILDS: &str = r#"{"runs": [[
  {"say": "First."},
  {"tool": {"name": "build", "ms": 600000}},
  {"say": "built"}
], [{"say": "second run"}]]}"#;

/// A client in a process of its own; it does not outlive the test.
struct Client {
    child: Child,
    said: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Client {
    /// Starts a client; what it writes on both streams is kept together.
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::start(&mut command).unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let stdout = keep(child.as_std().stdout.take().unwrap(), Arc::clone(&said));
        let stderr = keep(child.as_std().stderr.take().unwrap(), Arc::clone(&said));
        Self { child, said, readers: vec![stdout, stderr] }
    }

    /// Returns everything it has said so far.
    fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    /// Waits until it has said something.
    fn until(&self, text: &str) {
        let start = Instant::now();
        while !self.said().contains(text) {
            assert!(start.elapsed() < PATIENCE, "never {text:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types a line into it.
    fn types(&mut self, line: &str) {
        let stdin = self.child.as_std().stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    /// Waits for its end, and returns its code and everything it said.
    fn end(mut self) -> (i32, String) {
        drop(self.child.as_std().stdin.take());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.has_ended() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "it goes on: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        };
        for reader in std::mem::take(&mut self.readers) {
            reader.join().unwrap();
        }
        (status.code().unwrap(), self.said())
    }
}

/// Keeps what a stream brings, until it ends.
fn keep(mut from: impl Read + Send + 'static, into: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            into.lock().unwrap().extend_from_slice(&bytes[..count]);
        }
    })
}

/// Returns a command in a user's home, in a project of its own, and nothing of the machine's
/// settings but for where its programs are.
fn command(home: &Home, project: &str, program: PathBuf) -> Command {
    let directory = home.path(project);
    std::fs::create_dir_all(&directory).unwrap();
    let mut command = Command::new(program);
    command.current_dir(directory).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).envs(home.environment());
    command
}

/// Returns the hosts that have claimed a session.
fn claimed_by(home: &Home, session: &str) -> BTreeSet<String> {
    let log = home.jsons(&["log", session]);
    let claims = log.iter().filter(|entry| entry["event"] == "claimed");
    claims.map(|claim| claim["host"].to_string()).collect()
}

/// Kills the only host that drives a session, as a crash would.
fn kill_owner(home: &Home) {
    let hosts = home.jsons(&["hosts"]);
    let owner = hosts.iter().find(|host| host["running"] == 1).unwrap();
    let pid = i32::try_from(owner["pid"].as_i64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
