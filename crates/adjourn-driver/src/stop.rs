//! How a step learns that it is to come to an end.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use adjourn_core::command::Mode;
use futures_core::Stream;
use tokio::sync::watch;

use crate::driver::{BoxFuture, BoxStream};
use crate::part::Part;

/// Why a step is to come to an end, and by when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// What is asked for: [`Mode::FinishStep`] lets a model call and its calls complete, and an
    /// agent with a loop of its own end its open calls; [`Mode::InterruptImmediate`] breaks off
    /// what the model says. A cancel is as the latter.
    pub mode: Mode,
    /// When the host drops the step, counted from when this is told; nothing if it waits for ever.
    /// It is told once, and again only if the mode or that time is another.
    pub within: Option<Duration>,
}

/// Says whether a step is to come to an end.
#[derive(Debug, Clone)]
pub struct StopWatch(watch::Receiver<Option<Stop>>);

impl StopWatch {
    /// Makes a watch, and what it is told through.
    pub fn new() -> (watch::Sender<Option<Stop>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self(receiver))
    }

    /// Returns what was asked for so far.
    pub fn asked(&self) -> Option<Stop> {
        *self.0.borrow()
    }

    /// Waits until something else is asked for than this returned last, and returns it; nothing if
    /// that was taken back.
    pub async fn changed(&mut self) -> Option<Stop> {
        match self.0.changed().await {
            Ok(()) => *self.0.borrow_and_update(),
            // The host is gone, and drops the step with itself.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits until at least `mode` is asked for; for ever if it never is.
    pub async fn at_least(&mut self, mode: Mode) -> Stop {
        let reached = self.0.wait_for(|stop| stop.is_some_and(|stop| stop.mode >= mode)).await;
        let reached = reached.map(|stop| *stop);
        match reached {
            Ok(Some(stop)) => stop,
            // The host is gone, and drops the step with itself.
            _ => std::future::pending().await,
        }
    }
}

/// Breaks a step off as soon as [`Mode::InterruptImmediate`] is asked for: what a model says can be
/// dropped at any word. An agent with a loop of its own ends its step by itself instead.
pub fn breakable(
    mut stop: StopWatch,
    stream: BoxStream<'static, Part>,
) -> BoxStream<'static, Part> {
    let asked = Box::pin(async move {
        stop.at_least(Mode::InterruptImmediate).await;
    });
    Box::pin(Breakable { asked, stream: Some(stream) })
}

struct Breakable {
    asked: BoxFuture<'static, ()>,
    /// The step, until it is over.
    stream: Option<BoxStream<'static, Part>>,
}

impl Stream for Breakable {
    type Item = Part;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Part>> {
        if self.stream.is_some() && self.asked.as_mut().poll(context).is_ready() {
            self.stream = None;
            return Poll::Ready(Some(Part::Broken));
        }
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        let part = stream.as_mut().poll_next(context);
        if let Poll::Ready(None) = part {
            self.stream = None;
        }
        part
    }
}
