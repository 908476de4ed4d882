//! A command on its way into a commit, which is not lost when its caller stops waiting.

use std::fmt;
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
///
/// # Panics
/// It panics if it is polled after it has resolved, as futures of `async` blocks do.
#[must_use = "nothing happens before it is awaited"]
pub struct Committing<T: Send + 'static> {
    /// The work, until it is done.
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    begun: bool,
    /// Where it was first polled, and goes on if it is dropped, on whatever thread.
    runtime: Option<Handle>,
}

impl<T: Send + 'static> Committing<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), begun: false, runtime: None }
    }
}

impl<T: Send + 'static> Future for Committing<T> {
    type Output = T;

    #[expect(clippy::panic, reason = "as every future does that is polled after it has resolved")]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if !self.begun {
            self.begun = true;
            self.runtime = Handle::try_current().ok();
        }
        let Some(work) = &mut self.work else { panic!("a commit was polled after it was done") };
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
            && let Some(runtime) = self.runtime.take()
        {
            runtime.spawn(work);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Committing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committing")
            .field("begun", &self.begun)
            .field("done", &self.work.is_none())
            .finish_non_exhaustive()
    }
}
