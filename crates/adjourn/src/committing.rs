//! A command on its way into a commit, which is not lost when its caller stops waiting.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// A command on its way into a commit; it resolves when the commit is durable.
///
/// # Cancel safety
/// Nothing has happened before it is polled. Dropped after that, the command takes its course in
/// the background, with all that belongs to it (a claim, a ring), and only its answer is lost; if
/// the runtime ends with it, other hosts find what it left.
#[must_use = "nothing happens before it is awaited"]
pub struct Committing<T: Send + 'static> {
    /// The work, until it is done.
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    begun: bool,
}

impl<T: Send + 'static> Committing<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), begun: false }
    }
}

impl<T: Send + 'static> Future for Committing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.begun = true;
        let Some(work) = &mut self.work else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Committing<T> {
    fn drop(&mut self) {
        if let (Some(work), true) = (self.work.take(), self.begun)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}
