//! The processes of a trial: this very program, started again in a role.
//!
//! A child ends when its input does, so none outlives a trial that is cut short.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::scene::Scene;

/// How long a process may take for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often somebody looks who waits for a process.
const LOOK: Duration = Duration::from_millis(1);

/// Starts the processes of a trial.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    scene: Scene,
}

impl Program {
    /// Names the program that plays all roles, and where it does.
    pub fn new(path: impl Into<PathBuf>, scene: Scene) -> Self {
        Self { path: path.into(), scene }
    }

    /// Starts a host that drives at most so many sessions at once.
    pub fn host(&self, max_running: usize) -> Process {
        self.start(&["host", &max_running.to_string()])
    }

    /// Starts somebody who watches, and is in no list of the store.
    pub fn watcher(&self) -> Process {
        self.start(&["watch"])
    }

    fn start(&self, role: &[&str]) -> Process {
        let mut command = Command::new(&self.path);
        command.arg(crate::role::ROLE).arg(self.scene.directory()).args(role);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Process(child.expect("the program starts"))
    }
}

/// A process of a trial.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Returns its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Ends it with SIGKILL; returns whether it was still there.
    pub fn kill(mut self) -> bool {
        let there = self.0.try_wait().expect("a child").is_none();
        let _ = self.0.kill();
        self.0.wait().expect("a child");
        there
    }

    /// Asks it to end, with SIGTERM.
    pub fn ask_to_end(&self) {
        self.signal("TERM");
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// It does not end.
    pub async fn ended(mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "process {} does not end", self.id());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Stops it with SIGSTOP, and returns when all of its threads stand still.
    ///
    /// # Panics
    /// It does not stop.
    pub async fn stop(&self) {
        self.signal("STOP");
        let start = Instant::now();
        // One thread takes the signal and passes it on; the others run on until then.
        while !threads(self.id()).all(|state| state == 'T') {
            assert!(start.elapsed() < PATIENCE, "process {} does not stop", self.id());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.id().to_string()]).status();
        assert!(sent.expect("there is a `kill`").success(), "cannot send {name}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended, unless the trial was cut short.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the state of each thread of a process, as one letter; a thread that ends meanwhile is
/// left out.
fn threads(id: u32) -> impl Iterator<Item = char> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).expect("a child");
    threads.flatten().filter_map(|thread| {
        let about = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        // The state follows the name, which stands in brackets.
        about.rsplit(") ").next()?.chars().next()
    })
}

/// Returns the program that runs now.
///
/// # Panics
/// The system does not know.
pub fn this_program() -> PathBuf {
    std::env::current_exe().as_deref().map(Path::to_owned).expect("a program has a path")
}
