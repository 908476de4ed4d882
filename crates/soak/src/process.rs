//! The processes of a trial: this very program, started again in a role.
//!
//! A child ends when its input does, so none outlives a trial that is cut short.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use adjourn_testkit::process::{self, Signal, listens, signal};

use crate::scene::Scene;

/// How long a process may take for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often somebody looks who waits for a process.
const LOOK: Duration = Duration::from_millis(1);
/// SIGKILL, as an exit status has it.
const KILLED: i32 = 9;

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

    /// Returns how it has ended, if it has.
    ///
    /// # Panics
    /// The system does not know.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child")
    }

    /// Ends it with SIGKILL.
    ///
    /// # Errors
    /// It had ended before, and how.
    ///
    /// # Panics
    /// The system does not know.
    pub fn kill(mut self) -> Result<(), ExitStatus> {
        if let Some(status) = self.has_ended() {
            return Err(status);
        }
        let _ = self.0.kill();
        let status = self.0.wait().expect("a child");
        // It may have been quicker.
        if status.signal() == Some(KILLED) { Ok(()) } else { Err(status) }
    }

    /// Asks it to end, with SIGTERM, as soon as it listens: one that has only just started would
    /// die of it.
    ///
    /// # Panics
    /// It never listens.
    pub async fn ask_to_end(&mut self) {
        let start = Instant::now();
        while self.has_ended().is_none() {
            if listens(self.id()) {
                return signal(&self.0, Signal::TERM);
            }
            assert!(start.elapsed() < PATIENCE, "process {} does not listen", self.id());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// It does not end.
    pub async fn ended(mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.has_ended() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "process {} does not end", self.id());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Stops it with SIGSTOP, and returns when all of its threads stand still or have ended.
    ///
    /// # Panics
    /// It does not stop.
    pub fn stop(&self) {
        process::stop(&self.0);
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        signal(&self.0, Signal::CONT);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended, unless the trial was cut short.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the program that runs now.
///
/// # Panics
/// The system does not know.
pub fn this_program() -> PathBuf {
    std::env::current_exe().as_deref().map(Path::to_owned).expect("a program has a path")
}
