//! A step: the driver's stream is polled, and what comes of it is committed.

use std::any::Any;
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::carry::Limit;
use adjourn_core::command::{AbortStep, Ask, AskCalls, Await, Mode, Progress, StepEnd};
use adjourn_core::event::What;
use adjourn_core::ledger::CallId;
use adjourn_core::session::{self, Quiescing, State, Stopping};
use adjourn_core::{Rejected, Session};
use adjourn_driver::told::{digests, fates};
use adjourn_driver::{
    BoxStream, Continuation, Driver, Message, Opening, Park, Part, Role, Step, Stop, StopWatch,
    Transcript, breakable,
};
use adjourn_store::{Error, Request, Store};

use super::options::OptionsTold;
use super::speech::{Speech, Taken};
use super::{Drive, Late, Next, encoded};
use crate::ending::{caught, end};
use crate::transcript::StoredTranscript;

/// Entries of the journal that are read at a time to find where a broken step began.
const JOURNAL_PAGE: u64 = 64;

/// How many steps in a row may leave nothing behind.
const EMPTY_STEPS: u32 = 3;

/// How a step is to come to its end, and by when.
type StopAsked = (Mode, Option<Duration>);

/// What ends a wait for the next part.
enum Woken {
    Part(Option<Part>),
    Panicked(Box<dyn Any + Send>),
    Signal,
    Replied,
    Commit,
    Late(Late),
}

impl<S: Store> Drive<S> {
    /// Runs a step whose beginning is committed.
    pub(super) async fn run_step(
        &mut self,
        driver: &mut dyn Driver,
        step: session::Step,
    ) -> Result<Next, Error> {
        let (stop, watch) = StopWatch::new();
        let mut speech = Box::new(Speech::new(step.number, &self.session));
        let mut stop_told = self.stop_asked();
        if let Some(asked) = stop_told {
            stop.send_replace(Some(self.stop(asked)));
        }
        let stream = driver.step(self.given(step, watch.clone())?);
        // What a model says can be dropped at any word.
        let mut stream = if driver.ends_steps_itself() { stream } else { breakable(watch, stream) };
        let mut options = OptionsTold::new(&self.session.options);
        let mut signal = self.signal.clone();
        loop {
            // A stream that is never pending must not keep others of its thread from running.
            tokio::task::consume_budget().await;
            options.tell(driver, &self.session.options, &mut speech.own_mode);
            let late = self.late();
            let commit = self.until(speech.commit_at());
            let woken = tokio::select! {
                // A stream that always has something more must not keep a stop from being heard.
                biased;
                _ = signal.changed() => Woken::Signal,
                late = late => Woken::Late(late),
                () = options.replied() => Woken::Replied,
                part = caught(next_part(&mut stream)) => match part {
                    Ok(part) => Woken::Part(part),
                    Err(panic) => Woken::Panicked(panic),
                },
                () = commit => Woken::Commit,
            };
            let taken = match woken {
                Woken::Part(Some(part)) => {
                    let (live, id) = (&self.live, self.session.id);
                    let taken =
                        speech.take(part, self.clock.elapsed(), |delta| live.tell(id, delta));
                    // What was used is checked against the budget as it comes.
                    let counts = speech.usage() != Default::default() && self.has_budget();
                    if counts && taken == Taken::GoOn { Taken::Commit } else { taken }
                }
                Woken::Part(None) => Taken::Over,
                Woken::Panicked(panic) => {
                    drop(stream);
                    // The words so far are kept. The task that drives the session ends the driver.
                    let _ = self.progress(&mut speech).await;
                    resume_unwind(panic)
                }
                Woken::Replied => Taken::GoOn,
                Woken::Commit => Taken::Commit,
                Woken::Signal => {
                    if let Next::Over = self.look()? {
                        drop(stream);
                        end(driver, self.clock.as_ref()).await;
                        return Ok(Next::Over);
                    }
                    let asked = self.stop_asked();
                    if std::mem::replace(&mut stop_told, asked) != asked {
                        stop.send_replace(asked.map(|asked| self.stop(asked)));
                    }
                    Taken::GoOn
                }
                Woken::Late(late) => {
                    drop(stream);
                    self.show_driver(driver);
                    end(driver, self.clock.as_ref()).await;
                    // The words so far are kept; if that is refused, the state has moved on.
                    let _ = self.progress(&mut speech).await?;
                    return self.give_up(late).await;
                }
            };
            match taken {
                Taken::GoOn => {}
                Taken::Commit => {
                    if let Err((refused, said)) = self.progress(&mut speech).await? {
                        drop(stream);
                        self.show_driver(driver);
                        end(driver, self.clock.as_ref()).await;
                        // No more of the message comes: its stream is gone.
                        let (step, rest) = speech.break_off();
                        let said = said.into_iter().chain(rest).collect();
                        return self.refused(refused, step, said).await;
                    }
                }
                Taken::Over => break,
            }
        }
        drop(stream);
        self.show_driver(driver);
        self.end_step(speech).await
    }

    /// Commits what a step has said and done so far, and stops the session if that used up its
    /// budget.
    ///
    /// What is refused is returned: a driver that asks for something impossible does not take back
    /// what it said.
    async fn progress(
        &mut self,
        speech: &mut Speech,
    ) -> Result<Result<(), (Rejected, Vec<Message>)>, Error> {
        let Some(unsaved) = speech.unsaved() else { return Ok(Ok(())) };
        let progress = Progress {
            epoch: self.epoch,
            entries: digests(&unsaved.entries),
            asked: unsaved.asked,
            started: unsaved.started,
            returned: unsaved.returned,
            usage: unsaved.usage,
            notes: unsaved.notes,
            last_words: unsaved.last_words,
            driver_state: unsaved.driver_state,
        };
        let said = unsaved.entries;
        let committed = self.commit(Command::Progress(progress), &said).await?;
        let Session { budget, totals, state, .. } = &*self.session;
        if committed.is_ok() && budget.is_spent(totals) && matches!(state, State::Running(_)) {
            self.stop_by_limit(Limit::BudgetExceeded).await?;
        }
        Ok(committed.map_err(|refused| (refused, said)))
    }

    /// Commits the end of a step.
    async fn end_step(&mut self, mut speech: Box<Speech>) -> Result<Next, Error> {
        if speech.ending.is_broken {
            let (step, said) = speech.break_off();
            let StepEnd { entries, usage, notes, last_words, .. } = step.clone();
            let abort = AbortStep { epoch: self.epoch, entries, usage, notes, last_words };
            return self.try_commit(Command::AbortStep(abort), step, said).await;
        }
        if let Some(failure) = speech.ending.failure.take() {
            return Box::pin(self.failed(failure, speech)).await;
        }
        self.not_failed(&mut speech);
        let park = speech.ending.park.take();
        if !speech.ending.calls.is_empty() {
            return Box::pin(self.ask_calls(speech)).await;
        }
        let ends = speech.ending.ends.take();
        let began = speech.since();
        let (step, said) = self.step_end(&mut speech);
        let mut nothing = StepEnd::default();
        // That no model has spoken is nothing that was done.
        nothing.notes.model_silent = step.notes.model_silent;
        let is_empty =
            park.is_none() && ends.is_none() && began == self.session.revision && step == nothing;
        self.empty_steps = if is_empty { self.empty_steps + 1 } else { 0 };
        if self.empty_steps == EMPTY_STEPS {
            // The next one would find all as this one did.
            let why = format!("the agent neither said nor did anything in {EMPTY_STEPS} steps");
            return self.fail(why, step, said).await;
        }
        match park {
            Some(park) => self.park(park, step, said).await,
            None => self.finish(step, ends, said).await,
        }
    }

    /// Returns what a step leaves behind, with what became of the agent's calls that are open.
    pub(super) fn step_end(&self, speech: &mut Speech) -> (StepEnd, Vec<Message>) {
        let (mut step, mut said) = speech.end();
        let fates = fates(&self.session);
        if !fates.is_empty() {
            said.extend(fates);
            step.entries = digests(&said);
        }
        (step, said)
    }

    /// Commits the calls that a step ends with, and the park that one of them asks for.
    async fn ask_calls(&mut self, mut speech: Box<Speech>) -> Result<Next, Error> {
        let parks = speech.ending.calls.iter_mut();
        let park =
            parks.filter_map(|call| Some((call.content.id.clone(), call.parks.take()?))).next();
        let checked = speech.check_calls();
        let (calls, epoch) = (speech.ask(), self.epoch);
        let (step, said) = speech.end();
        if let Err(refused) = checked {
            return self.refused(refused, step, said).await;
        }
        let StepEnd { entries, last_words, usage, notes, driver_state } = step.clone();
        let parks = false;
        let ask = AskCalls { epoch, calls, parks, entries, usage, notes, last_words, driver_state };
        let Some((call, park)) = park else {
            return self.try_commit(Command::AskCalls(ask), step, said).await;
        };
        // A call that parks is never dispatched, also not by another host after a crash.
        let request = |command| Request::new(self.session.id, self.agent(), command);
        let parking = Command::AskCalls(AskCalls { parks: true, ..ask.clone() });
        let first = request(parking).saying(encoded(&said));
        // The park ends the step: the agent's own calls that are open are heard of no more.
        let left = fates(&self.session);
        let end = StepEnd { entries: digests(&left), ..StepEnd::default() };
        let then = request(self.parked(park, Some(call), end)).saying(encoded(&left));
        match self.commit_both(first, Some(then)).await? {
            // Its run is being cancelled, and ends with the calls: nothing of the batch runs.
            Err(Rejected::Stopping { .. }) => {
                self.try_commit(Command::AskCalls(ask), step, said).await
            }
            committed => self.after_park(committed, step, said).await,
        }
    }

    /// Parks the session as its agent wants it.
    pub(super) async fn park(
        &mut self,
        park: Park,
        step: StepEnd,
        said: Vec<Message>,
    ) -> Result<Next, Error> {
        let command = self.parked(park, None, step.clone());
        let committed = self.commit(command, &said).await?;
        self.after_park(committed, step, said).await
    }

    fn parked(&self, park: Park, call: Option<CallId>, step: StepEnd) -> Command {
        let epoch = self.epoch;
        match park {
            Park::Await { reason, conditions, summary } => {
                let (limit, meta) = (None, None);
                let wait = Await { epoch, step, reason, conditions, summary, call, limit, meta };
                Command::Await(wait)
            }
            Park::Ask(question) => Command::Ask(Ask { epoch, step, question, call, meta: None }),
        }
    }

    /// An agent that asks for something impossible fails its run, and is told why.
    async fn after_park(
        &mut self,
        committed: Result<(), Rejected>,
        step: StepEnd,
        said: Vec<Message>,
    ) -> Result<Next, Error> {
        match committed {
            Ok(()) => Ok(Next::GoOn),
            Err(refused) => self.refused(refused, step, said).await,
        }
    }

    /// Returns how the step is to come to its end, and by when as [`Clock::elapsed`] shows it.
    ///
    /// [`Clock::elapsed`]: crate::clock::Clock::elapsed
    fn stop_asked(&self) -> Option<StopAsked> {
        let asked = match &self.session.state {
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                let worker = parking.worker().map(|_| Mode::FinishStep);
                parking.client.as_ref().map(|client| client.mode).max(worker)
            }
            // The answer is not wanted any more.
            State::Quiescing(Quiescing { stopping: Stopping::Canceling(_), .. }) => {
                Some(Mode::InterruptImmediate)
            }
            _ => None,
        };
        let asked = asked.filter(|mode| *mode > Mode::WaitForCompletion);
        let mode = asked.max(self.drain_by().map(|_| Mode::FinishStep))?;
        Some((mode, self.late_at().map(|(at, _)| at)))
    }

    /// Returns what the step is told about its end.
    fn stop(&self, (mode, by): StopAsked) -> Stop {
        let now = self.clock.elapsed();
        Stop { mode, within: by.map(|by| by.saturating_sub(now)) }
    }

    /// Returns what the driver is given for a step.
    fn given(&self, step: session::Step, stop: StopWatch) -> Result<Step, Error> {
        let source = StoredTranscript { store: self.store.clone(), session: self.session.id };
        let transcript = Transcript::new(Arc::new(source), self.session.transcript.length);
        let opening = match self.session.run().map(|run| &run.opening) {
            Some(session::Opening::Wake(report)) if step.opens => Opening::Wake(report.clone()),
            _ if step.opens => Opening::Prompt,
            _ => Opening::Next,
        };
        let continues = match step.continues {
            true => Some(self.continuation(&transcript)?),
            false => None,
        };
        Ok(Step {
            session: Arc::clone(&self.session),
            opening,
            continues,
            transcript,
            stop,
            client: Arc::clone(&self.client),
            environment: Arc::clone(&self.environment),
        })
    }

    /// Reads what became of the calls of the steps that were broken off right before this one.
    ///
    /// A wake may lie between, with an input and a report: what was broken off is found by where
    /// the journal says that it began, and the fates of its calls come up to this step's beginning.
    fn continuation(&self, transcript: &Transcript) -> Result<Continuation, Error> {
        let entries = match self.broken_off_at()? {
            Some(from) => {
                let count = transcript.len().saturating_sub(from);
                transcript.before(transcript.len(), usize::try_from(count).unwrap_or(usize::MAX))
            }
            // It was pruned. The turn is all that can be known.
            None => transcript.since(|message| match message.role {
                Role::User => true,
                Role::Host => message.answers.is_none(),
                Role::Agent | Role::Tool => false,
            }),
        };
        let session = self.session.id;
        let entries =
            entries.map_err(|error| Error::Unreadable { session, problem: error.to_string() })?;
        Ok(Continuation::of(&entries))
    }

    /// Returns how long the transcript was when the first of the steps began that were broken off
    /// right before this one.
    fn broken_off_at(&self) -> Result<Option<u64>, Error> {
        let mut began = None;
        let mut is_this_step = true;
        let mut until = self.session.revision;
        while until > 0 {
            let first = until.saturating_sub(JOURNAL_PAGE).max(1);
            let count = usize::try_from(until - first + 1).unwrap_or(usize::MAX);
            let entries = self.store.journal(self.session.id, first, count)?;
            for entry in entries.iter().rev() {
                match &entry.event.what {
                    What::StepStarted(_) if is_this_step => is_this_step = false,
                    What::StepStarted(started) => began = Some(started.transcript.length),
                    What::StepFinished(_) | What::CallsAsked(_) | What::RunStarted(_) => {
                        return Ok(began);
                    }
                    _ => {}
                }
            }
            if entries.len() < count {
                break;
            }
            until = first - 1;
        }
        Ok(began)
    }

    fn has_budget(&self) -> bool {
        let budget = &self.session.budget;
        budget.cost_micro_usd.is_some() || budget.tokens.is_some()
    }

    /// Waits until a time, as [`Clock::elapsed`] shows it; for ever if there is none.
    pub(super) fn until(&self, at: Option<Duration>) -> impl Future<Output = ()> + use<S> {
        let sleep = at.map(|at| self.clock.sleep(at.saturating_sub(self.clock.elapsed())));
        async move {
            match sleep {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        }
    }
}

async fn next_part(stream: &mut BoxStream<'static, Part>) -> Option<Part> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}
