//! A small host in memory: it drives one run by the same `decide`, `evolve` and [`Driver`] as every
//! host does, and tells it as events.
//!
//! What to do next is read off the state after every command, as in a host with a store. What such a
//! host commits, this one takes into a state that is gone with the run, or into a record.

mod begin;
mod calls;
mod commands;
mod limits;
mod speech;
mod step;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use adjourn_core::carry::Usage;
use adjourn_core::command::{FinishStep, StartStep, StepEnd, Take};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::HostId;
use adjourn_core::ledger::{CallId, CallState};
use adjourn_core::session::{Outcome, State, Wait};
use adjourn_core::{Command, Rejected, Session};
use adjourn_driver::told::{digests, fates};
use adjourn_driver::{BoxStream, CallContent, CallPart, Driver as _, Emitter, emitting};

pub(crate) use begin::{Beginning, Terms, check, consume, is_own};

use crate::agent::Inner;
use crate::cancellation::CancellationRequest;
use crate::clock::WorkClock;
use crate::driver::place::Counts;
use crate::driver::{AgentDriver, Outbox};
use crate::events::{AgentError, AgentEvent, RunCancelled, StateSnapshot, UserInputRequested};
use crate::failure::FailureKind;
use crate::record::{PayloadError, SuspensionRecord, dollars, seconds};
use crate::result::{AgentResult, RunOutcome};
use commands::Entries;

/// Runs an agent, and returns what happens.
pub(crate) fn run(
    inner: Arc<Inner>,
    beginning: Beginning,
    cancellation: Option<CancellationRequest>,
    clock: WorkClock,
    result: Arc<Mutex<AgentResult>>,
) -> BoxStream<'static, AgentEvent> {
    emitting(|out| async move {
        let spec = inner.driver_spec();
        match begin::session(&inner, &spec, beginning, &clock) {
            Ok((session, entries, spec)) => {
                let outbox = Outbox::default();
                let driver_clock = Arc::new(clock.clone());
                let driver =
                    AgentDriver::new(Arc::clone(&inner), driver_clock, Some(outbox.clone()))
                        .cancelled_by(cancellation.clone());
                let host = MemoryHost {
                    inner,
                    clock,
                    out,
                    cancellation,
                    result,
                    driver,
                    outbox,
                    spec,
                    host: HostId::new(uuid::Uuid::now_v7()),
                    session: Arc::new(session),
                    entries: Arc::new(entries),
                    starting: VecDeque::new(),
                    running: Vec::new(),
                    worked_ms: 0,
                    given_up: None,
                };
                host.drive().await;
            }
            Err(refused) => {
                let failed = RunOutcome::Failed(refused.to_string());
                result.lock().unwrap_or_else(PoisonError::into_inner).outcome = failed;
                out.emit(impossible(&refused)).await;
            }
        }
    })
}

/// Says that a run cannot go on, because something impossible was asked for.
fn impossible(refused: &dyn std::error::Error) -> AgentEvent {
    AgentEvent::Error(AgentError {
        message: refused.to_string(),
        failure: None,
        recoverable: false,
        error_type: Some("refused".to_owned()),
    })
}

/// A call whose start was told, and that has not begun.
struct StartingCall {
    content: CallContent,
    /// Tools that run from now on without a permission.
    always: Vec<String>,
}

/// A call in flight.
struct RunningCall {
    id: CallId,
    tool: String,
    parts: BoxStream<'static, CallPart>,
    usage: Usage,
}

/// One run, and the session that it belongs to.
struct MemoryHost {
    inner: Arc<Inner>,
    clock: WorkClock,
    out: Emitter<AgentEvent>,
    cancellation: Option<CancellationRequest>,
    result: Arc<Mutex<AgentResult>>,
    driver: AgentDriver,
    outbox: Outbox,
    spec: DriverSpec,
    host: HostId,
    session: Arc<Session>,
    entries: Arc<Entries>,
    starting: VecDeque<StartingCall>,
    running: Vec<RunningCall>,
    /// How long the run has worked, also when it is over.
    worked_ms: u64,
    /// How the agent gave up, if it did; it is told when the run is over.
    given_up: Option<AgentEvent>,
}

impl MemoryHost {
    /// Drives the run until it is suspended or over.
    async fn drive(mut self) {
        loop {
            let heeded = self.heed_cancel();
            if self.is_canceled() {
                self.leave_starting().await;
            }
            let done = match heeded {
                Err(refused) => Err(refused),
                Ok(()) => match &self.session.state {
                    State::Ready(_) => self.take().await,
                    State::Running(_) | State::Quiescing(_) => self.next().await,
                    State::Suspended(_) => {
                        self.driver.kill().await;
                        return self.suspended().await;
                    }
                    State::Idle | State::Ended(_) => {
                        self.driver.kill().await;
                        return self.over().await;
                    }
                },
            };
            if let Err(refused) = done {
                // The agent asked for something impossible: its run ends here.
                self.conclude(RunOutcome::Failed(refused.to_string()));
                return self.out.emit(impossible(&refused)).await;
            }
        }
    }

    /// Takes the session, and begins its first step.
    async fn take(&mut self) -> Result<(), Rejected> {
        let said = self.told_first();
        let take = Take { entries: digests(&said) };
        match self.commit(Command::Take(take), said) {
            Err(Rejected::LimitReached { limit }) => self.stop_by_limit(limit),
            done => done,
        }?;
        self.snapshot().await;
        Ok(())
    }

    /// Does the next thing that the state asks for.
    async fn next(&mut self) -> Result<(), Rejected> {
        let step = self.session.run().and_then(|run| run.step);
        if let Some(step) = step.filter(|step| step.model_in_flight) {
            return self.run_step(step).await;
        }
        if let Some(call) = self.starting.pop_front() {
            return self.begin(call).await;
        }
        if self.session.calls.any(CallState::Dispatched) {
            return self.wait_for_calls().await;
        }
        match step {
            Some(_) if self.session.calls.any(CallState::Asked) => self.dispatch().await,
            Some(_) => {
                let said = fates(&self.session);
                let step = StepEnd { entries: digests(&said), ..StepEnd::default() };
                let epoch = self.session.epoch;
                let finish = FinishStep { epoch, step, ends: None, next: false };
                self.commit(Command::FinishStep(finish), said)
            }
            None => {
                let said = self.told_first();
                let start = StartStep { epoch: self.session.epoch, entries: digests(&said) };
                match self.commit(Command::StartStep(start), said) {
                    Err(Rejected::LimitReached { limit }) => self.stop_by_limit(limit)?,
                    done => done?,
                }
                self.snapshot().await;
                Ok(())
            }
        }
    }

    /// Tells where the run stands.
    async fn snapshot(&mut self) {
        let session = &self.session;
        let run = session.run();
        let run_id = run.map(|run| run.id).or(session.last_run.as_ref().map(|run| run.id));
        let counts = Counts::read(session);
        let snapshot = StateSnapshot {
            session_id: session.id.to_string(),
            run_id: run_id.map(|id| id.to_string()).unwrap_or_default(),
            iteration_count: counts.iterations,
            elapsed_seconds: seconds(self.worked_ms),
            cumulative_cost_usd: dollars(session.totals.cost_micro_usd),
            unpriced_calls: counts.unpriced_calls,
            cumulative_prompt_tokens: session.totals.prompt_tokens,
            cumulative_completion_tokens: session.totals.completion_tokens,
        };
        self.out.emit(AgentEvent::StateSnapshot(snapshot)).await;
    }

    /// Tells what the driver told beside the parts of a step.
    async fn pass_on(&mut self) {
        while let Some(event) = self.outbox.take() {
            match event {
                // Nothing comes behind these, so they wait for the end of the run.
                AgentEvent::Handoff(_) | AgentEvent::PartialRunSummary(_) => {
                    self.given_up = Some(event);
                }
                event => self.out.emit(event).await,
            }
        }
    }

    /// Makes a record of the suspended session, and tells it.
    async fn suspended(mut self) {
        self.snapshot().await;
        // A cancel that comes before the record is out leaves nothing to resume.
        if self.is_canceled() {
            return match self.heed_cancel() {
                Ok(()) => self.over().await,
                Err(refused) => self.out.emit(impossible(&refused)).await,
            };
        }
        match self.request() {
            Ok(request) => {
                self.conclude(RunOutcome::Suspended(Box::new(request.clone())));
                self.out.emit(AgentEvent::UserInputRequested(request)).await;
            }
            Err(error) => {
                self.conclude(RunOutcome::Failed(error.to_string()));
                self.out.emit(impossible(&error)).await;
            }
        }
    }

    fn request(&self) -> Result<UserInputRequested, PayloadError> {
        let (key, messages) = (self.inner.keys.current(), self.entries.take());
        let parked = self.session.exportable()?;
        let lifetime = self.inner.record_lifetime;
        let expires_at = lifetime.map(|lifetime| parked.suspended_at.after(lifetime));
        let suspension_record =
            SuspensionRecord::seal_parts(key, &self.spec, &self.session, &messages, expires_at)?;
        let pause = &parked.pause;
        Ok(match &pause.wait {
            Wait::Question(question) => {
                let kind = question.originating_failure_kind.as_deref();
                UserInputRequested {
                    question: question.question.clone(),
                    context: question.context.clone(),
                    choices: Some(question.choices.clone()).filter(|choices| !choices.is_empty()),
                    suspension_record,
                    originating_failure_kind: kind.and_then(FailureKind::parse),
                    conditions: None,
                }
            }
            Wait::Open => UserInputRequested {
                question: match pause.limit {
                    Some(limit) => limits::question(&self.session, limit),
                    None => pause.reason.clone().unwrap_or_default(),
                },
                context: pause.summary.clone(),
                choices: None,
                suspension_record,
                originating_failure_kind: pause.limit.and_then(|l| FailureKind::parse(l.as_str())),
                conditions: pause.conditions.clone(),
            },
        })
    }

    /// Tells how the run ended.
    async fn over(mut self) {
        self.pass_on().await;
        self.snapshot().await;
        let last = self.session.last_run.clone();
        let outcome = last.as_ref().map(|last| last.outcome);
        let error = last.and_then(|last| last.error).unwrap_or_default();
        let (outcome, event) = match (outcome, self.given_up.take()) {
            (Some(Outcome::Canceled), _) => {
                let reason = self.cancellation.as_ref().map(CancellationRequest::reason);
                let (message, reason) = ("the run was cancelled", reason.unwrap_or_default());
                let cancelled = RunCancelled { message: message.to_owned(), reason };
                let event = AgentEvent::RunCancelled(cancelled.clone());
                (RunOutcome::Cancelled(cancelled), Some(event))
            }
            (_, Some(AgentEvent::Handoff(handoff))) => {
                (RunOutcome::HandedOff(handoff.clone()), Some(AgentEvent::Handoff(handoff)))
            }
            (_, Some(AgentEvent::PartialRunSummary(summary))) => {
                let event = AgentEvent::PartialRunSummary(summary.clone());
                (RunOutcome::Stopped(summary), Some(event))
            }
            (Some(Outcome::Completed), _) => (RunOutcome::Completed, None),
            (Some(Outcome::Failed | Outcome::Rejected) | None, _) => {
                let event = AgentEvent::Error(AgentError {
                    message: error.clone(),
                    failure: None,
                    recoverable: false,
                    error_type: Some("failed".to_owned()),
                });
                (RunOutcome::Failed(error), Some(event))
            }
        };
        self.conclude(outcome);
        if let Some(event) = event {
            self.out.emit(event).await;
        }
    }

    /// Takes note of what came of the run.
    fn conclude(&self, outcome: RunOutcome) {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.outcome = outcome;
        result.totals = self.session.totals;
        result.iteration_count = Counts::read(&self.session).iterations;
    }
}
