//! A process that is spoken with where it is measured: no thread stands in between.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use super::Child;

/// A process whose lines the benchmark reads on its own thread. The process is held up when its pipe
/// is full and the benchmark does not read; that of a [`Process`](super::Process) is always read.
#[derive(Debug)]
pub struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Pipe {
    /// Starts a process.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = Child::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let (input, output) = (child.as_std().stdin.take(), child.as_std().stdout.take());
        let output = output.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// The process has ended, or says what is no text.
    pub fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process has ended"));
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    /// Says something to it.
    ///
    /// # Errors
    /// The process has ended, or its input is lent.
    pub fn tell(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(bytes.as_ref())
    }

    /// Lends its input, for a thread that writes while another reads.
    ///
    /// # Errors
    /// It is lent already.
    pub fn take_input(&mut self) -> io::Result<ChildStdin> {
        self.input.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Gives its input back.
    pub fn give_input(&mut self, input: ChildStdin) {
        self.input = Some(input);
    }

    /// Returns the process at the other end.
    pub fn child(&self) -> &Child {
        &self.child
    }
}
