//! The processes of a trial: this very program, started again in a role.
//!
//! A child ends when its input does, so none outlives a trial that is cut short.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use adjourn_testkit::process::Child;

use crate::scene::Scene;

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
    pub fn host(&self, max_running: usize) -> Child {
        self.start(&["host", &max_running.to_string()])
    }

    /// Starts somebody who watches, and is in no list of the store.
    pub fn watcher(&self) -> Child {
        self.start(&["watch"])
    }

    fn start(&self, role: &[&str]) -> Child {
        let mut command = Command::new(&self.path);
        command.arg(crate::role::ROLE).arg(self.scene.directory()).args(role);
        let started = Child::start(command.stdin(Stdio::piped()).stdout(Stdio::null()));
        started.expect("the program starts")
    }
}

/// Returns the program that runs now.
///
/// # Panics
/// The system does not know.
pub fn this_program() -> PathBuf {
    std::env::current_exe().as_deref().map(Path::to_owned).expect("a program has a path")
}
