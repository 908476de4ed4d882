//! The agent as a driver: one step is one model call with what comes of it.
//!
//! Where it has got to is in the [driver's state](place) and in what was said, so that any host goes
//! on with it. What it tells beside the parts of a step goes to an outbox, if a host wants it.

mod active;
mod answer;
mod call;
mod permission;
pub(crate) mod place;
pub(crate) mod questions;
mod recover;
mod requested;
mod sources;
mod step;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use adjourn_core::Session;
use adjourn_core::command::RunEnd;
use adjourn_driver::{BoxFuture, BoxStream, Call, CallPart, Driver, Part, Step, emitting};

use crate::agent::Inner;
use crate::cancellation::CancellationRequest;
use crate::clock::Clock;
use crate::events::AgentEvent;
use active::ActiveTime;
use sources::Sources;

/// Where a driver leaves events that are no parts of a step.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outbox(Arc<Mutex<VecDeque<AgentEvent>>>);

impl Outbox {
    fn push(&self, event: AgentEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
    }

    /// Takes out the oldest event.
    pub(crate) fn take(&self) -> Option<AgentEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Returns whether there is something to take out.
    pub(crate) fn has_news(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// The agent, as it drives one session.
#[derive(Clone)]
pub(crate) struct AgentDriver {
    inner: Arc<Inner>,
    clock: Arc<dyn Clock>,
    outbox: Option<Outbox>,
    /// What a host knows of a cancel that the session does not know of yet.
    cancellation: Option<CancellationRequest>,
    /// How long tools have run.
    active: ActiveTime,
    /// Where tools are found that have to be looked for.
    sources: Sources,
}

impl AgentDriver {
    pub(crate) fn new(inner: Arc<Inner>, clock: Arc<dyn Clock>, outbox: Option<Outbox>) -> Self {
        let sources = Sources::new(&inner.sources);
        let (active, cancellation) = (ActiveTime::default(), None);
        Self { inner, clock, outbox, cancellation, active, sources }
    }

    /// Lets a request keep the tools of calls from beginning.
    pub(crate) fn cancelled_by(self, cancellation: Option<CancellationRequest>) -> Self {
        Self { cancellation, ..self }
    }

    /// Returns whether the run is asked to stop.
    fn is_canceled(&self) -> bool {
        self.cancellation.as_ref().is_some_and(CancellationRequest::is_set)
    }

    /// Tells something that is no part of a step.
    fn tell(&self, event: impl FnOnce() -> AgentEvent) {
        if let Some(outbox) = &self.outbox {
            outbox.push(event());
        }
    }
}

impl Driver for AgentDriver {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let driver = self.clone();
        emitting(|out| step::Stepping::new(driver, step, out).run())
    }

    fn parks_unasked(&self) -> bool {
        true
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        let driver = self.clone();
        emitting(|out| call::run(driver, call, out))
    }

    fn finish(&mut self, _: &Session) -> Option<RunEnd> {
        // The model sees what came of its calls, and says when it is done.
        None
    }

    fn keep(&mut self) -> bool {
        self.sources.are_open()
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        self.sources.close()
    }
}
