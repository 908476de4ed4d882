//! A run, as a stream of events.

use std::future::{IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use adjourn_core::carry::AddBudget;
use adjourn_driver::{BoxFuture, BoxStream, Message};
use adjourn_record::portable::DEFAULT_MAX_AGE;
use futures_core::Stream;

use crate::agent::Inner;
use crate::cancellation::CancellationRequest;
use crate::clock::WorkClock;
use crate::events::AgentEvent;
use crate::host::{self, Beginning};
use crate::record::SuspensionRecord;
use crate::result::AgentResult;
use crate::resume::ResumeError;

/// A run: a stream of [`AgentEvent`]s.
///
/// It runs while it is polled. Time in which it is not polled after an event counts for nothing: a
/// slow consumer is no stall. Dropping it ends the run without a trace.
pub struct Run {
    inner: Arc<Inner>,
    beginning: Option<Beginning>,
    cancellation: Option<CancellationRequest>,
    clock: WorkClock,
    result: Arc<Mutex<AgentResult>>,
    stream: Option<BoxStream<'static, AgentEvent>>,
}

impl Run {
    pub(crate) fn start(inner: Arc<Inner>, message: Message) -> Self {
        Self::new(inner, Beginning::Prompt(message))
    }

    fn new(inner: Arc<Inner>, beginning: Beginning) -> Self {
        let clock = WorkClock::new(Arc::clone(&inner.clock));
        Self {
            inner,
            beginning: Some(beginning),
            cancellation: None,
            clock,
            result: Arc::default(),
            stream: None,
        }
    }

    /// Lets a request cancel the run. It has to be given before the run is polled.
    #[must_use]
    pub fn cancellation(mut self, request: CancellationRequest) -> Self {
        self.cancellation = Some(request);
        self
    }

    /// Returns the next event; nothing when the run is over.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Runs to the end, and returns what came of it.
    pub async fn result(mut self) -> AgentResult {
        while self.next().await.is_some() {}
        std::mem::take(&mut *self.result.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Stream for Run {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        if let Some(beginning) = self.beginning.take() {
            let cancellation = self.cancellation.take();
            let (inner, result) = (Arc::clone(&self.inner), Arc::clone(&self.result));
            let clock = self.clock.clone();
            self.stream = Some(host::run(inner, beginning, cancellation, clock, result));
        }
        self.clock.go_on();
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        let event = stream.as_mut().poll_next(context);
        match &event {
            Poll::Ready(Some(_)) => self.clock.stop(),
            Poll::Ready(None) => self.stream = None,
            Poll::Pending => {}
        }
        event
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("begun", &self.beginning.is_none()).finish_non_exhaustive()
    }
}

/// A resume that is about to be tried; it is awaited.
#[must_use = "nothing is resumed before it is awaited"]
pub struct Resume {
    inner: Arc<Inner>,
    record: SuspensionRecord,
    reply: Message,
    cancellation: Option<CancellationRequest>,
    max_age: Option<Duration>,
    add_budget: Option<AddBudget>,
    any_model: bool,
}

impl Resume {
    pub(crate) fn new(inner: Arc<Inner>, record: SuspensionRecord, reply: Message) -> Self {
        let max_age = Some(DEFAULT_MAX_AGE);
        Self {
            inner,
            record,
            reply,
            cancellation: None,
            max_age,
            add_budget: None,
            any_model: false,
        }
    }

    /// Lets a request cancel the run.
    pub fn cancellation(mut self, request: CancellationRequest) -> Self {
        self.cancellation = Some(request);
        self
    }

    /// Says how old the record may be; `None` lets it be of any age. It is 24 hours otherwise.
    pub const fn max_suspension_age(mut self, age: Option<Duration>) -> Self {
        self.max_age = age;
        self
    }

    /// Adds to what the run may use. After `budget_exceeded` a run goes on only with something added.
    pub const fn add_budget(mut self, budget: AddBudget) -> Self {
        self.add_budget = Some(budget);
        self
    }

    /// Takes a record that was made with another model.
    pub const fn any_model(mut self) -> Self {
        self.any_model = true;
        self
    }

    async fn go(self) -> Result<Run, ResumeError> {
        let Self { inner, record, reply, cancellation, max_age, add_budget, any_model } = self;
        let resumed =
            host::check(&inner, &record, reply, host::Terms { max_age, add_budget, any_model })?;
        host::consume(&inner, &resumed).await?;
        let mut run = Run::new(inner, Beginning::Resumed(Box::new(resumed)));
        run.cancellation = cancellation;
        Ok(run)
    }
}

impl IntoFuture for Resume {
    type Output = Result<Run, ResumeError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.go())
    }
}
