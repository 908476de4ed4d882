//! Programs that tools start: each in a process group of its own, which ends with its guard.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};

use adjourn_driver::is_secret_name;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, ChildStdout, Command};
#[cfg(feature = "mcp")]
use tokio::process::{ChildStderr, ChildStdin};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What the variables begin with in which a host gives MCP servers the values of their headers. Each
/// of them is a secret, whatever the header is called.
pub(super) const OF_HEADERS: &str = "ADJOURN_MCP_";

/// Variables that sound like secrets and are none: the working directory, the one before it, and
/// where the agent listens that signs for git and ssh.
const NO_SECRETS: &[&str] = &["PWD", "OLDPWD", "SSH_AUTH_SOCK"];

/// A program with all that it has started and not put into another group.
///
/// Dropping it kills them all, without waiting. When this process is killed, the program's input
/// ends, which tells one that listens to it that its time is over; a group that is
/// [watched](ProcessGroup::watched) is killed.
pub(super) struct ProcessGroup {
    /// The pipes of the program, until they are taken.
    #[cfg(feature = "mcp")]
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    #[cfg(feature = "mcp")]
    pub(super) stderr: Option<ChildStderr>,
    leader: Option<Pid>,
    /// The program. It is not waited for before it is dropped: as long as it is not, its number, which
    /// is its group's, is given to no other.
    _program: Child,
    /// How the program ended, once it has.
    ended: watch::Receiver<Option<ExitStatus>>,
    /// What kills the group when this process has gone. It is killed itself as it is dropped.
    watcher: Option<Child>,
}

/// Waits until its input ends, and kills a group.
const WATCHER: &str = "read -r _; kill -s KILL -- \"-$1\"";

impl ProcessGroup {
    /// Starts a program in a group of its own, with pipes to all that it reads and writes.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (ends, ended) = watch::channel(None);
        let group = Self {
            #[cfg(feature = "mcp")]
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            #[cfg(feature = "mcp")]
            stderr: child.stderr.take(),
            leader,
            _program: child,
            ended,
            watcher: None,
        };
        tokio::spawn(async move {
            if let Some(leader) = leader
                && let Ok(status) = end_of(leader).await
            {
                ends.send_replace(Some(status));
            }
        });
        Ok(group)
    }

    /// Has the group killed also when this process is killed: a command that goes on alone would run
    /// beside the one that an agent starts in its place.
    ///
    /// # Errors
    /// The system has no process for that; the group is killed.
    pub(super) fn watched(mut self) -> io::Result<Self> {
        if let Some(leader) = self.leader {
            let mut watcher = Command::new("sh");
            watcher.arg("-c").arg(WATCHER).arg("sh").arg(leader.as_raw_nonzero().to_string());
            watcher.env_clear().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            // What ends this process by a signal to its group does not end the watcher with it.
            self.watcher = Some(watcher.process_group(0).kill_on_drop(true).spawn()?);
        }
        Ok(self)
    }

    /// Waits for the end of the program. Others of its group may go on.
    ///
    /// # Errors
    /// The system does not say.
    pub(super) fn exited(&self) -> impl Future<Output = io::Result<ExitStatus>> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            let status = ended.wait_for(Option::is_some).await.map(|status| *status);
            status.ok().flatten().ok_or_else(|| io::Error::other("its end was not seen"))
        }
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
    pub(super) async fn end(self, grace: std::time::Duration) -> Option<ExitStatus> {
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

/// Waits for the end of a program of this process, and leaves its number taken.
async fn end_of(program: Pid) -> io::Result<ExitStatus> {
    // From here on no end is missed.
    let mut ends = signal(SignalKind::child())?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        if let Some(status) = waitid(WaitId::Pid(program), options)? {
            let exit = status.exit_status().map(|code| (code & 0xff) << 8);
            return Ok(ExitStatus::from_raw(exit.or(status.terminating_signal()).unwrap_or(0)));
        }
        ends.recv().await;
    }
}

/// Returns the variables of this process that a program may see which a model has written: all but
/// those whose names say that they are secrets.
pub(super) fn without_secrets(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    variables.filter(|(name, _)| !is_secret(&name.to_string_lossy())).collect()
}

/// Returns whether the name of a variable says that its value is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    name.to_uppercase().starts_with(OF_HEADERS)
        || (is_secret_name(name) && !NO_SECRETS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_say_that_they_are_secrets_are_not_passed_on() {
        let secrets = [
            "OPENAI_API_KEY",
            "github_token",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "MY_PASSWORDS",
            "SSH_PASSPHRASE",
            "MYSQL_PWD",
            "mysql_pwd",
            "APIKEY",
            "MY_APIKEY_FILE",
            "GITHUBTOKEN",
            "API_TOKENS",
            "KEY2",
            "KEYS",
            "KEYS2",
            "OPENAI_KEY_2",
            "SIGNING.KEY",
            "CREDENTIAL",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "PRIVATE_PEM",
            "HTTP_AUTH",
            "NPM_CONFIG__AUTH",
            "ADJOURN_MCP_SRV_AUTHORIZATION",
            "ADJOURN_MCP_SRV_X_SUBSCRIPTION",
            "adjourn_mcp_srv_user",
            "DB_PASS",
            "SESSION_COOKIE",
            "COOKIES",
        ];
        let others = [
            "PATH",
            "PWD",
            "OLDPWD",
            "SSH_AUTH_SOCK",
            "KEYBOARD",
            "MONKEY",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "COMPASS",
            "BYPASS_CACHE",
            "CARGO_HOME",
            "ADJOURN_MCP",
            "S",
            "2",
        ];
        let variables = secrets.iter().chain(&others);
        let kept = without_secrets(variables.map(|name| (name.into(), "value".into())));
        let names: Vec<_> = kept.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, others);
    }
}
