//! Processes that a test, a trial or a benchmark has started: lines, signals, and what the system
//! knows of them.
//!
//! Each is a [`Child`], which does not outlive the one that started it. A [`Process`] is one that is
//! spoken with in lines, and whose output a thread reads all the time; a [`Pipe`] has no such thread,
//! for benchmarks.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod child;
mod pipe;
mod system;

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

pub use child::Child;
pub use pipe::Pipe;
pub use rustix::process::{Pid, Signal};
pub use system::{is_running, peak_memory, processor_time, resident};

/// How long a process may take before its test gives up: far longer than anything takes.
const SILENCE: Duration = Duration::from_secs(60);
/// What stands before a line of a test binary that plays a role: its harness writes there, too.
const MARK: char = '@';

/// A process that is spoken with in lines. It does not outlive the test.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a process, and listens to it.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn start(command: &mut Command) -> Self {
        Self::hearing(command, Some)
    }

    /// Starts this very test binary again for one test alone, which plays a role, and listens to
    /// what it [`say`]s. `command` starts the binary, and has no arguments for it yet.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn start_again(command: &mut Command, test: &str) -> Self {
        command.args(["--exact", test, "--nocapture"]);
        Self::hearing(command, |line| Some(line.split_once(MARK)?.1.to_owned()))
    }

    fn hearing(command: &mut Command, heard: fn(String) -> Option<String>) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Child::start(piped).unwrap();
        let (input, output) = (child.as_std().stdin.take(), child.as_std().stdout.take().unwrap());
        let (sender, lines) = channel();
        // All that it said before its end is heard, also what was still in the pipe then.
        std::thread::spawn(move || {
            let said = BufReader::new(output).lines().map_while(Result::ok);
            for line in said.filter_map(heard) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines }
    }

    /// Waits for the next line; there is none if the process has ended.
    ///
    /// # Panics
    /// It says nothing.
    pub fn line(&self) -> Option<String> {
        match self.line_within(SILENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("process {} says nothing", self.id()),
        }
    }

    /// Waits for the next line, and not for long.
    ///
    /// # Errors
    /// It has ended, or says nothing.
    pub fn line_within(&self, patience: Duration) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(patience)
    }

    /// Says a line to it.
    ///
    /// # Panics
    /// It has ended, or was hung up on.
    pub fn tell(&mut self, line: impl AsRef<[u8]>) {
        self.tell_half(line);
        self.tell_half("\n");
    }

    /// Says something to it that is not the end of a line.
    ///
    /// # Panics
    /// It has ended, or was hung up on.
    pub fn tell_half(&mut self, bytes: impl AsRef<[u8]>) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes.as_ref()).unwrap();
        input.flush().unwrap();
    }

    /// Says nothing more to it, and listens on.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Returns its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its number, as the system takes it.
    pub fn pid(&self) -> Pid {
        self.child.pid()
    }

    /// Returns the process alone, without what is said to it and by it.
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// Sends it a signal.
    pub fn signal(&self, which: Signal) {
        self.child.signal(which);
    }

    /// Stops it with SIGSTOP, and returns when all of its threads stand still.
    pub fn stop(&self) {
        self.child.stop();
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it with SIGKILL, and returns what it had still said.
    ///
    /// # Panics
    /// The system does not know it.
    pub fn kill(mut self) -> Vec<String> {
        // It may have ended by itself.
        let _ = self.child.kill();
        std::iter::from_fn(|| self.line()).collect()
    }

    /// Hangs up, waits until it ends, and returns its exit code.
    ///
    /// # Panics
    /// A signal ended it.
    #[must_use]
    pub fn end(mut self) -> i32 {
        self.hang_up();
        self.child.wait().code().unwrap()
    }
}

/// Says a line to the test that started this process with [`Process::start_again`].
///
/// # Panics
/// That test does not listen.
pub fn say(line: impl Display) {
    let mut out = std::io::stdout().lock();
    // In one piece: a process that is killed must not leave half a line that looks whole.
    out.write_all(format!("{MARK}{line}\n").as_bytes()).expect("the parent listens");
    out.flush().expect("the parent listens");
}

/// Sends a signal to a process that a test has started without a [`Child`].
///
/// # Panics
/// It has ended, and was waited for.
pub fn signal(child: &std::process::Child, signal: Signal) {
    rustix::process::kill_process(Pid::from_child(child), signal).unwrap();
}
