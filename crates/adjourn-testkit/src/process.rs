//! Processes that a test, a trial or a benchmark has started: lines, signals, and what the system
//! knows of them.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

use std::fmt::Display;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::kill_process;

pub use rustix::process::{Pid, Signal};

/// How long a process may take before its test gives up: far longer than anything takes.
const SILENCE: Duration = Duration::from_secs(40);
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
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
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
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    pub fn signal(&self, which: Signal) {
        signal(&self.child, which);
    }

    /// Stops it with SIGSTOP, and returns when all of its threads stand still.
    pub fn stop(&self) {
        stop(&self.child);
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
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.line()).collect()
    }

    /// Hangs up, waits until it ends, and returns its exit code.
    ///
    /// # Panics
    /// A signal ended it.
    #[must_use]
    pub fn end(mut self) -> i32 {
        self.hang_up();
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended, unless the test failed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
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

/// Sends a signal to a process that this one has started.
///
/// # Panics
/// It has ended, and was waited for.
pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Stops a process with SIGSTOP, and returns when all of its threads stand still or have ended.
///
/// # Panics
/// It does not stop.
pub fn stop(child: &Child) {
    signal(child, Signal::STOP);
    let start = Instant::now();
    // One thread takes the signal and passes it on; the others run on until then.
    while !threads(child.id()).all(|state| matches!(state, 'T' | 'Z')) {
        assert!(start.elapsed() < SILENCE, "process {} does not stop", child.id());
        std::thread::yield_now();
    }
}

/// Returns the state of each thread of a process, as one letter; a thread that ends meanwhile is
/// left out.
fn threads(id: u32) -> impl Iterator<Item = char> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).unwrap();
    threads.flatten().filter_map(|thread| {
        let about = fs::read_to_string(thread.path().join("stat")).ok()?;
        // The state follows the name, which stands in brackets.
        about.rsplit(") ").next()?.chars().next()
    })
}

/// Returns whether a process has something of its own that it does when SIGTERM comes.
pub fn listens(id: u32) -> bool {
    let caught = status(id, "SigCgt:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    caught.is_some_and(|caught| caught & (1 << (Signal::TERM.as_raw() - 1)) != 0)
}

/// Returns the most memory that a process ever had in use, in bytes.
///
/// # Panics
/// There is no such process.
pub fn peak_memory(id: u32) -> u64 {
    let kilobytes = status(id, "VmHWM:").unwrap();
    kilobytes.trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Returns what the system says of a process under a name, if the process is there.
fn status(id: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|line| line.trim().to_owned())
}
