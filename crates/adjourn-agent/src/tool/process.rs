//! Programs that tools start: each in a process group of its own, which ends with its guard.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// Words in the name of a variable that say that its value is a secret.
const SECRET_WORDS: &[&str] =
    &["KEY", "KEYS", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS"];

/// A program with all that it has started and not put into another group.
///
/// Dropping it kills them all, without waiting. When this process is killed, the program's input
/// ends, which tells one that listens to it that its time is over.
pub(super) struct ProcessGroup {
    child: Child,
    leader: Option<Pid>,
}

impl ProcessGroup {
    /// Starts a program in a group of its own, with pipes to all that it reads and writes.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { child, leader })
    }

    /// Returns the program, to speak with it.
    pub(super) const fn program(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the end of the program. Others of its group may go on.
    ///
    /// # Errors
    /// The system does not say.
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Sends a signal to all of the group.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // It fails if nothing is left of the group.
            let _ = kill_process_group(leader, signal);
        }
    }

    /// Lets the program end by itself within `grace`, asks it to within as much time again, and
    /// kills what is left then. Returns how the program ended.
    #[cfg(feature = "mcp")]
    pub(super) async fn end(mut self, grace: std::time::Duration) -> Option<ExitStatus> {
        for ask in [None, Some(Signal::TERM), Some(Signal::KILL)] {
            if let Some(signal) = ask {
                self.signal(signal);
            }
            if let Ok(status) = tokio::time::timeout(grace, self.exited()).await {
                return status.ok();
            }
        }
        None
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Returns the variables of this process that a program may see which a model has written: all but
/// those whose names say that they are secrets.
pub(super) fn without_secrets(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let is_secret = |name: &OsString| {
        let name = name.to_string_lossy().to_uppercase();
        name.split(['_', '-', '.']).any(|word| SECRET_WORDS.contains(&word))
    };
    variables.filter(|(name, _)| !is_secret(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_say_that_they_are_secrets_are_not_passed_on() {
        let variables = [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "hush"),
            ("github_token", "hush"),
            ("AWS_SECRET_ACCESS_KEY", "hush"),
            ("KEYBOARD", "qwerty"),
            ("CARGO_HOME", "/cargo"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let kept = without_secrets(variables.into_iter());
        let names: Vec<_> = kept.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["PATH", "KEYBOARD", "CARGO_HOME"]);
    }
}
