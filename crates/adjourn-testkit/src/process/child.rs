//! A process that does not outlive the one that started it.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use super::system::{self, listens, threads};
use super::{Pid, SILENCE, Signal};

/// How long a test that waits for a process sleeps between two looks at it.
const LOOK: Duration = Duration::from_millis(1);

/// A process that ends, at the latest, when this is dropped.
#[derive(Debug)]
pub struct Child(std::process::Child);

impl Child {
    /// Starts a command.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(Self)
    }

    /// Returns it as the standard library has it, for its pipes.
    pub fn as_std(&mut self) -> &mut std::process::Child {
        &mut self.0
    }

    /// Returns its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns its number, as the system takes it.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Returns how it has ended, if it has.
    ///
    /// # Panics
    /// The system does not know.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap()
    }

    /// Waits until it has ended, however long that takes.
    ///
    /// # Panics
    /// The system does not know.
    pub fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }

    /// Waits until it has ended, and lets others work meanwhile.
    ///
    /// # Panics
    /// It does not end.
    pub async fn ended(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.has_ended() {
                return status;
            }
            assert!(start.elapsed() < SILENCE, "process {} does not end", self.id());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends it with SIGKILL.
    ///
    /// # Errors
    /// It had ended before, and how.
    ///
    /// # Panics
    /// The system does not know.
    pub fn kill(&mut self) -> Result<(), ExitStatus> {
        // The system refuses if it has ended and was waited for.
        let _ = self.0.kill();
        let status = self.wait();
        if status.signal() == Some(Signal::KILL.as_raw()) { Ok(()) } else { Err(status) }
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
                return self.signal(Signal::TERM);
            }
            assert!(start.elapsed() < SILENCE, "process {} does not listen", self.id());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// It has ended, and was waited for.
    pub fn signal(&self, signal: Signal) {
        super::signal(&self.0, signal);
    }

    /// Stops it with SIGSTOP, and returns when all of its threads stand still or have ended.
    ///
    /// # Panics
    /// It does not stop.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let start = Instant::now();
        // One thread takes the signal and passes it on; the others run on until then.
        while !threads(self.id()).all(|state| matches!(state, 'T' | 'Z')) {
            assert!(start.elapsed() < SILENCE, "process {} does not stop", self.id());
            std::thread::yield_now();
        }
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Returns the most memory that it ever had in use, in bytes.
    pub fn peak_memory(&self) -> u64 {
        system::peak_memory(self.id())
    }

    /// Returns the processor time that it has used.
    pub fn processor_time(&self) -> Duration {
        system::processor_time(self.id())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It has ended already, unless a test failed before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
