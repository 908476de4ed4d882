//! Stdin and stdout as most editors use them: a pipe each, waited for without a thread.
//!
//! The streams that tokio has for them take a thread for each read and each write, since either may
//! be a file or a terminal. Waking it takes longer than the read, and an editor sees all of it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, Stdin, Stdout};
use tokio::net::unix::pipe;

/// What an editor says.
#[derive(Debug)]
pub enum Input {
    Pipe(pipe::Receiver),
    /// A socket, a file, a pipe with a name, a terminal, or whatever there is without `/proc`.
    Other(Stdin),
}

/// What an editor is told.
#[derive(Debug)]
pub enum Output {
    Pipe(pipe::Sender),
    /// As with [`Input::Other`].
    Other(Stdout),
}

impl Input {
    /// Returns stdin.
    pub fn stdin() -> Self {
        // One that is opened again can be made non-blocking for this process alone.
        let opened = pipe("/proc/self/fd/0")
            .and_then(|path| pipe::OpenOptions::new().open_receiver(path).ok());
        opened.map_or_else(|| Self::Other(tokio::io::stdin()), Self::Pipe)
    }
}

impl Output {
    /// Returns stdout.
    pub fn stdout() -> Self {
        let opened = pipe("/proc/self/fd/1")
            .and_then(|path| pipe::OpenOptions::new().open_sender(path).ok());
        opened.map_or_else(|| Self::Other(tokio::io::stdout()), Self::Pipe)
    }
}

/// Returns the path to a stream of this process if it is a pipe without a name. One in a file system
/// that is opened again when its writers are gone does not end: it waits for the next one.
fn pipe(stream: &str) -> Option<&str> {
    let is = std::fs::read_link(stream).ok()?;
    is.to_str()?.starts_with("pipe:").then_some(stream)
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            Self::Other(stdin) => Pin::new(stdin).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Self::Other(stdout) => Pin::new(stdout).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            // The system has what was written.
            Self::Pipe(_) => Poll::Ready(Ok(())),
            Self::Other(stdout) => Pin::new(stdout).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            // It ends with the process.
            Self::Pipe(_) => Poll::Ready(Ok(())),
            Self::Other(stdout) => Pin::new(stdout).poll_shutdown(cx),
        }
    }
}
