//! One session, from its claim until it is parked, idle, ended or given back.
//!
//! What to do next is read off the state after every commit. A refusal is never a surprise: it
//! means that the state has moved on, so the state is read again.

mod calls;
mod failure;
mod news;
mod open_message;
mod options;
mod speech;
mod step;

pub use open_message::Delta;

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::{Limit, Notes};
use adjourn_core::command::{
    AbortStep, FinishRun, FinishStep, Mode, Owned, Requester, RunEnd, StartStep, StepEnd, Suspend,
};
use adjourn_core::id::{Epoch, HostId};
use adjourn_core::ledger::CallState;
use adjourn_core::session::Outcome;
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Rejected, Session};
use adjourn_driver::told::{digests, fates, told_first};
use adjourn_driver::{BoxFuture, Client, Driver, Environment, Fate, Message};
use adjourn_store::{CommandError, Error, Request, Store};
use tokio::sync::watch;
use tracing::Instrument as _;
use tracing::field::display;

use crate::clock::Clock;
use crate::ending::keeps;
use crate::failures::Failures;
use crate::host::patiently;
use crate::live::Live;
use crate::shown::Showing;
use crate::trace::{self, Ids};
use crate::warm::Warm;
use calls::Calls;
use speech::excerpt;

/// How long a host that stops still tries to give a session back when its time is over and the
/// store takes nothing: then it ends as if it had died.
const LAST_WORD: Duration = Duration::from_secs(2);

/// What the host tells the task of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Signal {
    /// The last revision of the session that is known of.
    pub(crate) revision: u64,
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
    /// Where words go as they come.
    pub(crate) live: Live,
    /// What a client that sees the session can be asked.
    pub(crate) client: Arc<dyn Client>,
    /// Values that are never stored.
    pub(crate) environment: Arc<Environment>,
    /// What is done about steps that fail.
    pub(crate) failures: Arc<Failures>,
    /// When a step that failed is tried again, as [`Clock::elapsed`] shows it.
    pub(crate) retry_at: Option<Duration>,
    /// How many steps in a row have left nothing behind.
    pub(crate) empty_steps: u32,
    /// Held by each task of it, so that it is known when all are gone.
    pub(crate) driven: watch::Receiver<()>,
    /// Where other hosts read which drivers are there.
    pub(crate) warm: Warm,
    /// Held from before the first commit on with which the session may come to rest, if its driver
    /// is one to be kept or ended then.
    pub(crate) showing: Option<Showing>,
}

/// Whether there is more to do under this claim.
enum Next {
    GoOn,
    Over,
}

/// What most steps never come to. It lies on the heap, so that a step that does not come to it is
/// no larger for it: the future of a step is moved several times before it is polled.
type Rare<'a> = BoxFuture<'a, Result<Next, Error>>;

impl<S: Store> Drive<S> {
    /// Drives until the claim is over, and returns where the session stands.
    ///
    /// # Errors
    /// The store fails; another host will find the session.
    pub(crate) async fn run(&mut self, driver: &mut dyn Driver) -> Result<Arc<Session>, Error> {
        // Dropped at the end, and with it whatever has no session left to answer to.
        let mut calls = Calls::default();
        while self.owned() {
            if let Next::Over = self.next(driver, &mut calls).await? {
                break;
            }
        }
        Ok(Arc::clone(&self.session))
    }

    /// Tells other hosts of the driver, before a commit with which the session may come to rest: one
    /// that claims it then waits until the driver is kept or has ended.
    ///
    /// A driver whose loop is ours and that has nothing to keep has nothing outside, and its
    /// session comes to rest without a list being written.
    fn show_driver(&mut self, driver: &mut dyn Driver) {
        if self.showing.is_none() && (keeps(driver) || driver.ends_steps_itself()) {
            self.showing = Some(self.warm.show(self.session.id));
        }
    }

    fn owned(&self) -> bool {
        let owner = self.session.owner();
        owner.is_some_and(|owner| owner.host == self.host && owner.epoch == self.epoch)
    }

    /// Does the next thing that the state asks for.
    async fn next(&mut self, driver: &mut dyn Driver, calls: &mut Calls) -> Result<Next, Error> {
        let Some(step) = self.session.run().map(|run| run.step) else { return Ok(Next::Over) };
        if let Some(step) = step.filter(|step| step.model_in_flight) {
            let run = self.session.run().map(|run| display(run.id));
            let span = tracing::debug_span!("step", run, number = step.number);
            return Box::pin(self.run_step(driver, step)).instrument(span).await;
        }
        self.show_driver(driver);
        if self.withdraws() {
            calls.withdraw();
        }
        if self.session.calls.any(CallState::Dispatched) || calls.is_asking() {
            return self.wait_for_calls(driver, calls).await;
        }
        let asked = self.session.calls.at(CallState::Asked);
        match step {
            _ if self.drain_by().is_some() => self.drain().await,
            Some(_) if !asked.is_empty() => self.dispatch(driver, asked, calls).await,
            Some(_) => {
                let ends = driver.finish(&self.session);
                let said = fates(&self.session);
                let step = StepEnd { entries: digests(&said), ..StepEnd::default() };
                self.finish(step, ends, said).await
            }
            None if self.retry_at.is_some() => self.wait_to_retry().await,
            None => self.start_step().await,
        }
    }

    /// Starts a step, with whatever the model has to be told first.
    async fn start_step(&mut self) -> Result<Next, Error> {
        let said = told_first(&self.session, |seq| self.store.event_data(seq))?;
        let start = StartStep { epoch: self.epoch, entries: digests(&said) };
        match self.commit(Command::StartStep(start), &said).await? {
            Ok(()) => Ok(Next::GoOn),
            Err(Rejected::LimitReached { limit }) => {
                self.stop_by_limit(limit).await?;
                self.reload()
            }
            Err(refused) => self.refused(refused, StepEnd::default(), Vec::new()).await,
        }
    }

    /// Suspends the session because it has reached a limit; if that is refused, the state has
    /// moved on.
    async fn stop_by_limit(&mut self, limit: Limit) -> Result<(), Error> {
        let reason = Some(limit.as_str().to_owned());
        let suspend = Suspend { reason, limit: Some(limit), ..Suspend::default() };
        let by = Actor::new(Face::Policy, "budget").on(self.host);
        let _ = self.commit_by(by, Command::Suspend(suspend), &[]).await?;
        Ok(())
    }

    /// Gives up what is in flight.
    fn give_up(&mut self, late: Late) -> Rare<'_> {
        Box::pin(async move {
            let abandon = match late {
                Late::Grace => Command::Abandon(Owned { epoch: self.epoch }),
                Late::Drain | Late::Lost => return self.drain().await,
            };
            match self.commit(abandon, &[]).await? {
                Ok(()) => Ok(Next::GoOn),
                // What limited these calls was taken back, and they are lost all the same.
                Err(_) => self.drain().await,
            }
        })
    }

    /// Ends a step, and begins the next one with the same commit if the run goes on.
    async fn finish(
        &mut self,
        step: StepEnd,
        ends: Option<RunEnd>,
        said: Vec<Message>,
    ) -> Result<Next, Error> {
        // A turn that went on with calls of the step before it has not been told why it woke.
        let told = self.session.run().is_none_or(|run| run.told);
        let next = ends.is_none() && self.drain_by().is_none() && told;
        let finish = FinishStep { epoch: self.epoch, step: step.clone(), ends, next };
        self.try_commit(Command::FinishStep(finish), step, said).await
    }

    async fn drain(&mut self) -> Result<Next, Error> {
        let drain = Command::Drain(Owned { epoch: self.epoch });
        // The host stops, not the agent. It is refused only if the session is no longer this
        // host's, which is all that is wanted.
        let by = Actor::new(Face::Host, "").on(self.host);
        let _ = self.commit_by(by, drain, &[]).await?;
        Ok(Next::Over)
    }

    /// Fails the run.
    fn fail(&mut self, why: String, step: StepEnd, said: Vec<Message>) -> Rare<'_> {
        Box::pin(async move {
            let (epoch, error) = (self.epoch, Some(excerpt(&why)));
            let end = RunEnd { outcome: Outcome::Failed, error, ends_session: false };
            let finish = FinishStep { epoch, step, ends: Some(end.clone()), next: false };
            let failed = self.commit(Command::FinishStep(finish), &said).await?;
            if let Err(Rejected::Invalid { .. }) = failed {
                // What the step leaves behind finds no room. Its words do, and the run fails with
                // them.
                let abort = AbortStep { epoch, entries: digests(&said), ..AbortStep::default() };
                if self.commit(Command::AbortStep(abort), &said).await?.is_ok() {
                    let _ = self.commit(Command::FinishRun(FinishRun { epoch, end }), &[]).await?;
                }
            }
            self.reload()
        })
    }

    /// The state has moved on: it is read again, and what is pending is let happen. Otherwise the
    /// driver wants something impossible, and its run fails.
    ///
    /// Either way, what the step has said and leaves behind is kept.
    fn refused(&mut self, refused: Rejected, step: StepEnd, said: Vec<Message>) -> Rare<'_> {
        Box::pin(async move {
            if matches!(refused, Rejected::NotOwner { .. } | Rejected::Ended { .. }) {
                return Ok(Next::Over);
            }
            if let Next::Over = self.reload()? {
                return Ok(Next::Over);
            }
            match refused {
                // Nothing is in flight and nothing may start: the step ends here.
                Rejected::Stopping { .. } => self.finish_where_it_is(step, said).await,
                // Neither a step nor a call begins. The session is stopped as the panic is about
                // to stop it; if that is refused, the state has moved on.
                Rejected::Gated { gate, by, reason } => {
                    let (requester, mode) = (Some(Requester::Gate(gate)), Mode::InterruptImmediate);
                    let suspend = Suspend { reason, requester, mode, ..Suspend::default() };
                    let _ = self.commit_by(by, Command::Suspend(suspend), &[]).await?;
                    self.reload()
                }
                other => {
                    let (step, said) = self.with_fates(step, said);
                    // What the driver wants to leave behind may be what was refused.
                    let step = StepEnd { driver_state: None, notes: Notes::default(), ..step };
                    self.fail(other.to_string(), step, said).await
                }
            }
        })
    }

    /// Adds to what is said what became of calls that will not be heard of any more: those of the
    /// ledger, and those that never came there.
    fn with_fates(&self, step: StepEnd, mut said: Vec<Message>) -> (StepEnd, Vec<Message>) {
        let mut fates = fates(&self.session);
        for call in said.iter().flat_map(|said| &said.calls) {
            let answered = said.iter().any(|said| said.answers.as_ref() == Some(&call.id));
            if !answered && self.session.calls.get(&call.id).is_none() {
                fates.push(Message::fate(call.id.clone(), &call.tool, Fate::NotRun));
            }
        }
        said.retain(|said| {
            // What is said already is not said again.
            said.fate.is_none() || !fates.iter().any(|fate| fate.answers == said.answers)
        });
        said.extend(fates);
        (StepEnd { entries: digests(&said), ..step }, said)
    }

    async fn finish_where_it_is(
        &mut self,
        step: StepEnd,
        said: Vec<Message>,
    ) -> Result<Next, Error> {
        let (step, said) = self.with_fates(step, said);
        let finish = FinishStep { epoch: self.epoch, step, ends: None, next: false };
        match self.commit(Command::FinishStep(finish), &said).await? {
            Ok(()) => Ok(Next::GoOn),
            Err(_) => self.reload(),
        }
    }

    /// Waits until what is in flight is to be given up; for ever if it may take for ever.
    fn late(&self) -> BoxFuture<'static, Late> {
        let Some((at, late)) = self.late_at() else {
            return Box::pin(std::future::pending());
        };
        let sleep = self.clock.sleep(at.saturating_sub(self.clock.elapsed()));
        Box::pin(async move {
            sleep.await;
            late
        })
    }

    /// Returns when what is in flight is to be given up, and why, if it ever is.
    fn late_at(&self) -> Option<(Duration, Late)> {
        let grace = self.grace.map(|grace| (grace.over_at, Late::Grace));
        let drain = self.drain_by().map(|by| (by, Late::Drain));
        grace.into_iter().chain(drain).min_by_key(|(at, _)| *at)
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

    /// Returns whether permissions are not waited for any more.
    fn withdraws(&self) -> bool {
        self.drain_by().is_some() || self.session.withdraws_permissions()
    }

    /// Commits a command with what is said; if it is refused, what the step leaves behind is kept
    /// as [`Drive::refused`] has it.
    async fn try_commit(
        &mut self,
        command: Command,
        step: StepEnd,
        said: Vec<Message>,
    ) -> Result<Next, Error> {
        match self.commit(command, &said).await? {
            Ok(()) => Ok(Next::GoOn),
            Err(refused) => self.refused(refused, step, said).await,
        }
    }

    async fn commit(
        &mut self,
        command: Command,
        said: &[Message],
    ) -> Result<Result<(), Rejected>, Error> {
        self.commit_by(self.agent(), command, said).await
    }

    async fn commit_by(
        &mut self,
        by: Actor,
        command: Command,
        said: &[Message],
    ) -> Result<Result<(), Rejected>, Error> {
        let request = Request::new(self.session.id, by, command).saying(encoded(said));
        self.commit_both(request, None).await
    }

    /// Commits one command, or two as one: both of them, or none.
    async fn commit_both(
        &mut self,
        first: Request,
        then: Option<Request>,
    ) -> Result<Result<(), Rejected>, Error> {
        // A host that stops does not wait for ever for a store that takes nothing.
        let is_late = || {
            let by = self.drain_by().map(|by| by.saturating_add(LAST_WORD));
            by.is_some_and(|by| by <= self.clock.elapsed())
        };
        let held_up = || {
            trace::came_across(
                &Ids::of(&self.session, self.host),
                "held up: the store has no room for what it does",
            );
        };
        match patiently(&self.store, &first, then.as_ref(), is_late, held_up).await {
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

    /// Returns the agent, as the one who asks for something.
    fn agent(&self) -> Actor {
        Actor::new(Face::Agent, "").on(self.host).for_session(self.session.id)
    }

    /// Reads the session again if others have changed it.
    fn look(&mut self) -> Result<Next, Error> {
        if self.signal.borrow().revision > self.session.revision {
            return self.reload();
        }
        Ok(if self.owned() { Next::GoOn } else { Next::Over })
    }

    fn reload(&mut self) -> Result<Next, Error> {
        if let Some(session) = self.store.session(self.session.id)? {
            self.stands(session);
        }
        Ok(if self.owned() { Next::GoOn } else { Next::Over })
    }
}

fn encoded(said: &[Message]) -> Vec<Vec<u8>> {
    said.iter().map(Message::encode).collect()
}
