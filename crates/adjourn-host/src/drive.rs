//! One session, from its claim until it is parked, idle, ended or given back.
//!
//! What to do next is read off the state after every commit. A refusal is never a surprise: it
//! means that the state has moved on, so the state is read again.

mod calls;

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::Usage;
use adjourn_core::command::{
    AbortStep, Ask, AskCalls, Await, FinishStep, Mode, Owned, Requester, RunEnd, StartStep,
    StepEnd, Suspend,
};
use adjourn_core::id::{Epoch, HostId};
use adjourn_core::ledger::{CallState, OpenCall};
use adjourn_core::session::{
    Cause, Initiator, Opening, Outcome, Quiescing, Resumption, State, Stopping, WakeReport,
};
use adjourn_core::time::Timestamp;
use adjourn_core::transcript::Digest;
use adjourn_core::{Command, MARK, Rejected, Session, json, limits};
use adjourn_driver::Message;
use adjourn_store::{CommandError, Error, Request, Store};
use serde_json::Value;
use tokio::sync::watch;

use crate::clock::{BoxFuture, Clock};
use crate::driver::{Driver, Thought, Wish};
use crate::host::patiently;
use calls::Calls;

/// How long a host that stops still tries to give a session back when its time is over and the
/// store takes nothing: then it ends as if it had died.
const LAST_WORD: Duration = Duration::from_secs(2);

/// What the host tells the task of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Signal {
    /// Grows when the session may have changed.
    pub(crate) changes: u64,
    /// When the host stops: by then, as [`Clock::elapsed`] shows it, everything must be given back.
    pub(crate) drain_by: Option<Duration>,
}

/// A grace for what is in flight, as this process measures it.
///
/// It begins when the process first sees that there is one, which is right after the commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grace {
    /// The time by which the state knows it.
    abandon_at: Timestamp,
    /// When it is over, as [`Clock::elapsed`] shows it.
    over_at: Duration,
}

/// Why what is in flight is not waited for any longer.
#[derive(Debug, Clone, Copy)]
enum Late {
    /// The grace of a cancel or a suspend is over.
    Grace,
    /// The host stops, and has waited long enough.
    Drain,
    /// What should be in flight is not to be found in this process.
    Lost,
}

/// One claim of one session.
pub(crate) struct Drive<S> {
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) host: HostId,
    /// The claim. The session may be claimed again, even by the same host: that is another's work.
    pub(crate) epoch: Epoch,
    pub(crate) session: Arc<Session>,
    /// How long what is in flight may go on, if there is a limit to it.
    pub(crate) grace: Option<Grace>,
    pub(crate) signal: watch::Receiver<Signal>,
    /// Called after every commit, for those who wait for it.
    pub(crate) ring: Arc<dyn Fn() + Send + Sync>,
}

/// Whether there is more to do under this claim.
enum Step {
    GoOn,
    Over,
}

impl<S: Store> Drive<S> {
    /// Drives until the claim is over.
    ///
    /// # Errors
    /// The store fails; another host will find the session.
    pub(crate) async fn run(mut self, mut driver: Box<dyn Driver>) -> Result<(), Error> {
        // Dropped at the end, and with it whatever has nobody left to answer to.
        let mut calls = Calls::default();
        while self.owned() {
            if let Step::Over = self.step(driver.as_mut(), &mut calls).await? {
                break;
            }
        }
        Ok(())
    }

    fn owned(&self) -> bool {
        let owner = self.session.owner();
        owner.is_some_and(|owner| owner.host == self.host && owner.epoch == self.epoch)
    }

    /// Does the next thing that the state asks for.
    async fn step(&mut self, driver: &mut dyn Driver, calls: &mut Calls) -> Result<Step, Error> {
        let Some(run) = self.session.run() else { return Ok(Step::Over) };
        if self.withdraws() {
            calls.withdraw();
        }
        if self.session.calls.any(CallState::Dispatched) || calls.is_asking() {
            return self.wait_for_calls(driver, calls).await;
        }
        let asked = self.session.calls.at(CallState::Asked);
        match run.step {
            Some(step) if step.model_in_flight => self.think(driver).await,
            _ if self.drain_by().is_some() => self.drain().await,
            Some(_) if !asked.is_empty() => self.dispatch(driver, asked, calls).await,
            Some(_) => {
                let ends = driver.finish(&self.session);
                let said = self.fates();
                let step = StepEnd { entries: digests(&said), ..StepEnd::default() };
                self.finish(step, ends, &said).await
            }
            None => self.start_step().await,
        }
    }

    /// Starts a step, with whatever the model has to be told first.
    async fn start_step(&mut self) -> Result<Step, Error> {
        let said = self.told_first()?;
        let start = StartStep { epoch: self.epoch, entries: digests(&said) };
        let (by, suspend) = match self.commit(Command::StartStep(start), &said).await? {
            Ok(()) => return Ok(Step::GoOn),
            Err(Rejected::LimitReached { limit }) => {
                let reason = Some(limit.as_str().to_owned());
                let suspend = Suspend { reason, limit: Some(limit), ..Suspend::default() };
                (Actor::new(Face::Policy, "budget").on(self.host), suspend)
            }
            Err(Rejected::Gated { gate, by, reason }) => {
                let requester = Some(Requester::Gate(gate));
                (by, Suspend { reason, requester, ..Suspend::default() })
            }
            Err(refused) => return self.refused(refused).await,
        };
        // Nothing runs, so it takes effect at once; if it is refused, the state has moved on.
        let _ = self.commit_by(by, Command::Suspend(suspend), &[]).await?;
        self.reload()
    }

    /// Returns what stands between the last thing the model saw and its next answer.
    fn told_first(&self) -> Result<Vec<Message>, Error> {
        let mut said = Vec::new();
        let Some(run) = self.session.run() else { return Ok(said) };
        if let Opening::Wake(report) = &run.opening
            && !run.told
        {
            if !report.resumption.continue_transcript {
                said.push(Message { digest: true, ..Message::host(self.session.digest()) });
            }
            if !is_silent(report) {
                let call = self.session.calls.at(CallState::Waiting).into_iter().next();
                let report_text = report.text(&self.session.status().unknown_calls);
                let text = format!("{report_text}{}", self.event_data(report)?);
                said.push(Message::host(text).answering(call));
            }
        }
        said.extend(self.fates());
        Ok(said)
    }

    /// Returns what became of calls that have no result: the model is told before it speaks again,
    /// or with the end of the step that asked for them.
    fn fates(&self) -> Vec<Message> {
        let fate = |open: &OpenCall| {
            let fate = match open.state {
                CallState::NotRun => "not run: it was stopped before it started",
                CallState::Unknown => "its outcome is unknown: it was cut off while it ran",
                CallState::Asked
                | CallState::Dispatched
                | CallState::Waiting
                | CallState::Deferred => return None,
            };
            let text = format!("{MARK} {}: {fate}", open.call.tool);
            Some(Message::host(text).answering(Some(open.call.id.clone())))
        };
        self.session.calls.iter().filter_map(fate).collect()
    }

    /// Returns what the event that woke the session carries, as a line of its own.
    fn event_data(&self, report: &WakeReport) -> Result<String, Error> {
        let earlier = report.earlier.as_ref().and_then(|earlier| earlier.arrival.as_ref());
        let Some(arrival) = report.arrival.as_ref().or(earlier) else { return Ok(String::new()) };
        let data = self.store.event_data(arrival.seq)?;
        // On one line and quoted, so that no event can be taken for further words of the host's.
        let line = |data: String| {
            let value = json::stored(data.as_bytes()).unwrap_or(Value::String(data));
            format!("\nIts data: {value}")
        };
        Ok(data.map(line).unwrap_or_default())
    }

    /// Calls the model, unless somebody breaks it off.
    async fn think(&mut self, driver: &mut dyn Driver) -> Result<Step, Error> {
        let asked = Arc::clone(&self.session);
        let mut signal = self.signal.clone();
        let mut thinking = driver.think(&asked);
        let thought = loop {
            let late = self.late();
            tokio::select! {
                thought = &mut thinking => break thought,
                _ = signal.changed() => {
                    if let Step::Over = self.reload()? {
                        return Ok(Step::Over);
                    }
                    if self.interrupts() {
                        return self.abort().await;
                    }
                }
                late = late => return self.give_up(late).await,
            }
        };
        drop(thinking);
        self.take(thought).await
    }

    /// Commits what the agent said and wants.
    async fn take(&mut self, thought: Thought) -> Result<Step, Error> {
        let Thought { said, wish, usage, notes, place } = thought;
        let said: Vec<_> = said.into_iter().map(Message::agent).collect();
        let epoch = self.epoch;
        let entries = digests(&said);
        let last_words = said.last().map(|said| excerpt(&said.text()));
        let step = StepEnd { entries, last_words, usage, notes, driver_state: place };
        let parks = match wish {
            Wish::Calls(calls) => {
                let StepEnd { entries, driver_state, .. } = step;
                let ask = AskCalls { epoch, calls, entries, usage, driver_state };
                return self.try_commit(Command::AskCalls(ask), &said).await;
            }
            Wish::Nothing(ends) => return self.finish(step, ends, &said).await,
            Wish::Await { reason, conditions, summary } => {
                let (call, limit, meta) = (None, None, None);
                let wait = Await { epoch, step, reason, conditions, summary, call, limit, meta };
                Command::Await(wait)
            }
            Wish::Ask(question) => {
                Command::Ask(Ask { epoch, step, question, call: None, meta: None })
            }
        };
        match self.commit(parks, &said).await? {
            // An agent that asks for something impossible fails its run, and is told why.
            Err(refused @ Rejected::Invalid { .. }) => self.fail(&refused).await,
            Err(refused) => self.refused(refused).await,
            Ok(()) => Ok(Step::GoOn),
        }
    }

    /// Gives up what is in flight.
    async fn give_up(&mut self, late: Late) -> Result<Step, Error> {
        let abandon = match late {
            Late::Grace => Command::Abandon(Owned { epoch: self.epoch }),
            Late::Drain | Late::Lost => return self.drain().await,
        };
        match self.commit(abandon, &[]).await? {
            Ok(()) => Ok(Step::GoOn),
            // Somebody took back what limited these calls, and they are lost all the same.
            Err(_) => self.drain().await,
        }
    }

    async fn finish(
        &mut self,
        step: StepEnd,
        ends: Option<RunEnd>,
        said: &[Message],
    ) -> Result<Step, Error> {
        let finish = FinishStep { epoch: self.epoch, step, ends, next: false };
        self.try_commit(Command::FinishStep(finish), said).await
    }

    async fn abort(&mut self) -> Result<Step, Error> {
        let (entries, usage) = (Vec::new(), Usage::default());
        let abort = AbortStep { epoch: self.epoch, entries, usage };
        self.try_commit(Command::AbortStep(abort), &[]).await
    }

    async fn drain(&mut self) -> Result<Step, Error> {
        let drain = Command::Drain(Owned { epoch: self.epoch });
        // The host stops, not the agent. It is refused only if the session is no longer this
        // host's, which is all that is wanted.
        let by = Actor::new(Face::Host, "").on(self.host);
        let _ = self.commit_by(by, drain, &[]).await?;
        Ok(Step::Over)
    }

    /// Fails the run, with the refusal as the reason.
    async fn fail(&mut self, refused: &Rejected) -> Result<Step, Error> {
        let error = Some(excerpt(&refused.to_string()));
        let end = RunEnd { outcome: Outcome::Failed, error, ends_session: false };
        let finish = FinishStep {
            epoch: self.epoch,
            step: StepEnd::default(),
            ends: Some(end),
            next: false,
        };
        let _ = self.commit(Command::FinishStep(finish), &[]).await?;
        self.reload()
    }

    /// The state has moved on: it is read again, and what is pending is let happen.
    async fn refused(&mut self, refused: Rejected) -> Result<Step, Error> {
        match refused {
            Rejected::Stopping { .. } => {
                if let Step::Over = self.reload()? {
                    return Ok(Step::Over);
                }
                // Nothing is in flight and nothing may start: the step ends here.
                self.finish_where_it_is().await
            }
            Rejected::NotOwner { .. } | Rejected::Ended { .. } => Ok(Step::Over),
            other => self.fail(&other).await,
        }
    }

    async fn finish_where_it_is(&mut self) -> Result<Step, Error> {
        let said = self.fates();
        let step = StepEnd { entries: digests(&said), ..StepEnd::default() };
        let finish = FinishStep { epoch: self.epoch, step, ends: None, next: false };
        match self.commit(Command::FinishStep(finish), &said).await? {
            Ok(()) => Ok(Step::GoOn),
            Err(_) => self.reload(),
        }
    }

    /// Waits until what is in flight is to be given up; for ever if it may take for ever.
    fn late(&self) -> BoxFuture<'static, Late> {
        let grace = self.grace.map(|grace| (grace.over_at, Late::Grace));
        let drain = self.drain_by().map(|by| (by, Late::Drain));
        let Some((at, late)) = grace.into_iter().chain(drain).min_by_key(|(at, _)| *at) else {
            return Box::pin(std::future::pending());
        };
        let sleep = self.clock.sleep(at.saturating_sub(self.clock.elapsed()));
        Box::pin(async move {
            sleep.await;
            late
        })
    }

    /// Takes note of where the session stands, and begins to measure a grace that it has not seen.
    fn stands(&mut self, session: Arc<Session>) {
        let known = self.grace.map(|grace| grace.abandon_at);
        if known != session.abandon_at() {
            let begun = session.abandon_at().zip(session.grace());
            self.grace = begun.map(|(abandon_at, grace)| {
                let over_at = self.clock.elapsed().saturating_add(grace);
                Grace { abandon_at, over_at }
            });
        }
        self.session = session;
    }

    fn drain_by(&self) -> Option<Duration> {
        self.signal.borrow().drain_by
    }

    /// Whether nobody waits for permissions any more.
    fn withdraws(&self) -> bool {
        self.drain_by().is_some() || self.session.withdraws_permissions()
    }

    /// Whether a model call is to be broken off.
    fn interrupts(&self) -> bool {
        match &self.session.state {
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                let client = parking.client.as_ref();
                client.is_some_and(|client| client.mode == Mode::InterruptImmediate)
            }
            // Nobody wants its answer any more.
            State::Quiescing(Quiescing { stopping: Stopping::Canceling(_), .. }) => true,
            _ => false,
        }
    }

    async fn try_commit(&mut self, command: Command, said: &[Message]) -> Result<Step, Error> {
        match self.commit(command, said).await? {
            Ok(()) => Ok(Step::GoOn),
            Err(refused) => self.refused(refused).await,
        }
    }

    async fn commit(
        &mut self,
        command: Command,
        said: &[Message],
    ) -> Result<Result<(), Rejected>, Error> {
        let by = Actor::new(Face::Agent, "").on(self.host).for_session(self.session.id);
        self.commit_by(by, command, said).await
    }

    async fn commit_by(
        &mut self,
        by: Actor,
        command: Command,
        said: &[Message],
    ) -> Result<Result<(), Rejected>, Error> {
        let said = said.iter().map(Message::encode).collect();
        let request = Request::new(self.session.id, by, command).saying(said);
        // A host that stops does not wait for ever for a store that takes nothing.
        let is_late = || {
            let by = self.drain_by().map(|by| by.saturating_add(LAST_WORD));
            by.is_some_and(|by| by <= self.clock.elapsed())
        };
        match patiently(&self.store, &request, is_late).await {
            Ok(done) => {
                self.stands(done.session);
                (self.ring)();
                Ok(Ok(()))
            }
            Err(CommandError::Rejected(refused)) => Ok(Err(refused)),
            Err(CommandError::Store(error)) => Err(error),
            Err(CommandError::NotFound(_)) => Ok(Err(Rejected::Ended { at: self.clock.now() })),
        }
    }

    fn reload(&mut self) -> Result<Step, Error> {
        if let Some(session) = self.store.session(self.session.id)? {
            self.stands(session);
        }
        Ok(if self.owned() { Step::GoOn } else { Step::Over })
    }
}

/// Whether a turn goes on as if there had been no pause: somebody outside made it and lifted it,
/// and the transcript shows no trace of either.
fn is_silent(report: &WakeReport) -> bool {
    let Resumption { initiator, cause, continue_transcript, .. } = report.resumption;
    initiator == Initiator::Client
        && cause == Cause::ExplicitResume
        && continue_transcript
        && !report.host_interrupted
        && report.earlier.is_none()
}

fn digests(said: &[Message]) -> Vec<Digest> {
    said.iter().map(|said| Digest::of(&said.encode())).collect()
}

/// Cuts a text to what the core takes as an excerpt.
fn excerpt(text: &str) -> String {
    let mut bytes = 0;
    let fits = |character: &char| {
        bytes += character.len_utf8();
        bytes <= limits::EXCERPT_BYTES
    };
    text.chars().take_while(fits).collect()
}
