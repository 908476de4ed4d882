//! Peers that do not read: what is written to them is given up after a while.

use std::future::Future as _;
use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A connection whose peer has to take what is written within a time.
pub(crate) struct Patient<T> {
    inner: T,
    patience: Duration,
    /// Runs while the peer takes nothing.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<T> Patient<T> {
    pub(crate) const fn new(inner: T, patience: Duration) -> Self {
        Self { inner, patience, waiting: None }
    }

    /// Passes on what became of a write, or that it takes too long.
    fn passed<R>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<Result<R, Error>>,
    ) -> Poll<Result<R, Error>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(context));
        // Whoever asks again is refused again, until the peer takes something.
        waiting.as_mut().reset(Instant::now());
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the peer takes nothing")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Patient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.passed(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.passed(context, flushed)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, buffers);
        self.passed(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_peer_does_not_take_in_time_is_given_up() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let (here, mut there) = tokio::io::duplex(8);
        let mut here = Patient::new(here, PATIENCE);
        here.write_all(b"12345678").await.unwrap();
        let start = Instant::now();
        let refused = here.write_all(b"9").await.unwrap_err();
        assert_eq!((refused.kind(), start.elapsed()), (ErrorKind::TimedOut, PATIENCE));
        // One that takes something, however slowly, is waited for again.
        let mut taken = [0; 8];
        there.read_exact(&mut taken).await.unwrap();
        here.write_all(b"12345678").await.unwrap();
        let start = Instant::now();
        let reading = async {
            tokio::time::sleep(PATIENCE / 2).await;
            there.read_exact(&mut taken).await.unwrap();
        };
        let (written, ()) = tokio::join!(here.write_all(b"9"), reading);
        written.unwrap();
        assert_eq!(start.elapsed(), PATIENCE / 2);
    }
}
