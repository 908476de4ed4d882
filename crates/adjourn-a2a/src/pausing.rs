//! Pausing and waking tasks.

use adjourn::core::command::Suspend;
use adjourn::core::facts::{Answer, SpanLinks};
use adjourn::core::id::RunId;
use adjourn::core::session::{Initiator, Phase, Resumption, Suspended};
use adjourn::core::{Rejected, Session};
use adjourn::driver::Message as Entry;
use adjourn::store::{Done, Store};
use adjourn::{Accepted, SessionRef, SuspendBuilder, Suspension};
use serde_json::Value;

use crate::arrived::Given;
use crate::error::{Error, Source};
use crate::face::{Asked, Face, Found, REST_PATIENCE, to_json};
use crate::fold::{Run, Runs};
use crate::message::Sent;
use crate::method::Family;
use crate::moved::TAKEN_IN;
use crate::params::{self, Params, Resume};
use crate::pause::{self, Paused, Resumed};
use crate::send::Taken;
use crate::standing::Standing;
use crate::task::State;

impl<S: Store> Face<S> {
    /// `tasks/pause`: answers when the pause is in force, or when calls in flight take too long. A
    /// peer that goes away takes nothing back.
    pub(crate) async fn pause(&self, asked: &Asked<'_>, given: Given) -> Result<String, Error> {
        let params = given.params()?;
        let (task, suspend) = (&params.task_id()?.to_owned(), params::pause(params)?);
        drop(given);
        let found = self.find_now(asked, task).await?;
        let accepted = suspending(asked, &found, suspend).accepted().await;
        let accepted =
            accepted.map_err(|error| not_suspended(asked, &found, error, Source::Parameters))?;
        Ok(match in_force(asked, (&found.session, found.run), &accepted).await? {
            Some(Suspension { parked, .. }) => {
                to_json(&Paused::new(task, &parked, Standing::Paused(Initiator::Client)))
            }
            None => {
                let pending = accepted.commit.session.pending_pause();
                pause::quiescing(task, accepted.handle, pending).to_string()
            }
        })
    }

    /// Asks for a pause of the task that a message names, and says nothing to its agent. The same message
    /// again pauses nothing, and is told of the last pause by a client: its own, or a later one.
    pub(crate) async fn pause_by_message(
        &self,
        asked: &Asked<'_>,
        task: &str,
        (message, suspend): (&Sent, Suspend),
    ) -> Result<Taken<S>, Error> {
        self.check_pausable(asked.method.family)?;
        if !asked.caller.may(crate::caller::Scope::Pause) {
            return Err(Error::forbidden(crate::caller::Scope::Pause));
        }
        let found = self.find(asked, task).await?;
        found.check_context(message)?;
        let pause = suspending(asked, &found, suspend).once(message.pause_key(asked.caller));
        let accepted = match pause.accepted().await {
            Err(adjourn::Error::Refused(Rejected::DuplicateMessage { .. })) => {
                let found = self.find(asked, task).await?;
                // What is not in force yet is told when it is.
                let now = found.runs.revision();
                let behind = match is_to_be_paused(&found.runs, found.run) {
                    true => now,
                    false => found.before_its_pause(now),
                };
                return Ok(Taken { found, behind, pause: None });
            }
            accepted => {
                accepted.map_err(|error| not_suspended(asked, &found, error, Source::Tunnel))?
            }
        };
        let Done { session, events, .. } = &accepted.commit;
        let behind = session.revision - events.len() as u64;
        let found = self.find(asked, task).await?;
        let behind = match found.standing() {
            // It may go on in another session by now.
            _ if found.session.id() != session.id => TAKEN_IN,
            // It was paused already.
            Standing::Paused(Initiator::Client) => behind.min(found.before_its_pause(behind)),
            _ => behind,
        };
        Ok(Taken { found, behind, pause: Some(accepted) })
    }

    /// Waits until the pause of a message is in force, for as long as there is patience: the one that was
    /// accepted or, if the message was taken before, the one that is pending.
    pub(crate) async fn until_paused(
        &self,
        asked: &Asked<'_>,
        found: Found<S>,
        accepted: Option<Accepted>,
    ) -> Result<Found<S>, Error> {
        let run = found.run;
        let Some(accepted) = accepted else {
            let is_settled = |runs: &Runs| !is_to_be_paused(runs, run);
            return self.wait(asked, found, REST_PATIENCE, is_settled).await;
        };
        // The task may go on in another session by now.
        let session = self.as_caller(asked.caller).session(accepted.commit.session.id);
        in_force(asked, (&session, run), &accepted).await?;
        self.find(asked, &run.to_string()).await
    }

    /// `tasks/await_resumption`: a worker outside of the host parks the task. It is answered as a pause
    /// is.
    pub(crate) async fn await_resumption(
        &self,
        asked: &Asked<'_>,
        given: Given,
    ) -> Result<String, Error> {
        let (params, family) = (given.params()?, asked.method.family);
        let (task, wait) = (&params.task_id()?.to_owned(), params::await_resumption(params)?);
        drop(given);
        let of = |error| Error::of(error, task, family);
        let found = self.find_now(asked, task).await?;
        check_not_over(&found, family)?;
        let spans = spans(asked, wait.meta.as_ref());
        let park = found.session.await_as(wait).of_run(found.run).spans(spans);
        let accepted = park.accepted().await.map_err(of)?;
        Ok(match in_force(asked, (&found.session, found.run), &accepted).await? {
            Some(Suspension { handle, parked, .. }) => {
                // A client's pause may lie over it.
                let now = found.session.load().await.map_err(of)?;
                let there = now.suspended().filter(|there| there.park.pause.handle == handle);
                let standing = there.map(Standing::of_suspended);
                let standing = standing.unwrap_or(Standing::Paused(Initiator::Agent));
                to_json(&Paused::new(task, &parked, standing))
            }
            None => {
                let pending = accepted.commit.session.agents_pause();
                pause::quiescing(task, accepted.handle, pending).to_string()
            }
        })
    }

    /// `tasks/resume`.
    pub(crate) async fn resume(
        &self,
        asked: &Asked<'_>,
        params: Params<'_>,
    ) -> Result<String, Error> {
        let (task, family) = (params.task_id()?, asked.method.family);
        // A handle that is none is not that of any task, and says nothing of one that is not there.
        let found = self.find_now(asked, task).await?;
        let resume = Resume::read(params).map_err(|error| error.with("taskId", task))?;
        let spans = spans(asked, resume.metadata.as_ref());
        let wake = found.session.resume().handle(resume.handle).spans(spans);
        let mut wake = wake.of_run(found.run).of_pause();
        if let Some(input) = resume.input {
            wake = wake.input(Entry::plain_value(input));
        }
        if !resume.continue_transcript {
            wake = wake.fresh();
        }
        if let Some(key) = resume.key {
            wake = wake.key(key);
        }
        if let Some(budget) = resume.budget {
            wake = wake.add_budget(budget);
        }
        let of = |error| Error::of(error, task, family);
        let woken = wake.await.map_err(|error| match (&error, found.standing()) {
            (adjourn::Error::Refused(Rejected::NotSuspended { .. }), Standing::Over(outcome)) => {
                let problem = format!("the task is {}", outcome.as_str());
                let refused = Error::not_pausable("TASK_NOT_PAUSED", problem, family);
                refused.with("taskId", task)
            }
            _ => of(error),
        })?;
        Ok(match woken.answer {
            Answer::Resumed(resumption) => {
                let (before, follows) = match woken.repeated {
                    true => self.stood_around(&found, &resumption).await.map_err(of)?,
                    false => {
                        let parked = found.state().and_then(Session::suspended);
                        let woken_one =
                            |parked: &&Suspended| parked.shown().pause.handle == resumption.handle;
                        let before = parked.filter(woken_one).map(Standing::of_suspended);
                        (before, Runs::now(&woken.commit.session).standing(found.run))
                    }
                };
                // A question that asks for more of a budget is resumed, too.
                let before = before.unwrap_or(Standing::Paused(resumption.initiator));
                to_json(&Resumed::new(task, before.literal(), follows.literal(), &resumption))
            }
            // The pause was not in force yet.
            Answer::Withdrawn { handle, at } => {
                let taken_back = Resumption {
                    handle,
                    cause: adjourn::core::session::Cause::ExplicitResume,
                    had_resume_input: false,
                    continue_transcript: true,
                    resumed_at: at,
                    initiator: Initiator::Client,
                    then: Phase::Running,
                };
                to_json(&Resumed::new(task, State::Working, State::Working, &taken_back))
            }
        })
    }
}

impl<S: Store> Found<S> {
    /// Returns the revision before a client last paused the task, or another one if none ever did.
    fn before_its_pause(&self, otherwise: u64) -> u64 {
        let paused = self.run().and_then(Run::paused_at);
        paused.map_or(otherwise, |revision| revision.saturating_sub(1))
    }
}

/// Asks for a pause of a task.
fn suspending<S: Store>(
    asked: &Asked<'_>,
    found: &Found<S>,
    suspend: Suspend,
) -> SuspendBuilder<S> {
    let spans = spans(asked, suspend.meta.as_ref());
    let pause = found.session.suspend_as(suspend).of_run(found.run).spans(spans);
    // A person has to look at a task that lost its host, and the pause would hide that.
    pause.unless_interrupted()
}

/// Says why a task was not paused.
fn not_suspended<S: Store>(
    asked: &Asked<'_>,
    found: &Found<S>,
    error: adjourn::Error,
    source: Source,
) -> Error {
    let (task, family) = (found.run.to_string(), asked.method.family);
    if let Err(over) = check_not_over(found, family) {
        return over;
    }
    match error {
        adjourn::Error::Refused(Rejected::NotSuspendable { phase: Phase::Suspended }) => {
            let problem = "the task lost its host, and waits for a person to look at it";
            let refused = Error::not_pausable("TASK_NOT_PAUSABLE", problem, family);
            refused.with("taskId", task)
        }
        error => Error::of_source(error, &task, family, source),
    }
}

/// Waits until a pause is in force, for as long as there is patience.
async fn in_force<S: Store, Id>(
    asked: &Asked<'_>,
    (session, run): (&SessionRef<S>, RunId),
    accepted: &Accepted<Id>,
) -> Result<Option<Suspension>, Error> {
    let of = |error| Error::of(error, &run.to_string(), asked.method.family);
    let in_force = asked.wait_for(REST_PATIENCE, session.in_force(accepted)).await;
    in_force.transpose().map_err(of)
}

/// Returns whether a client has asked for a pause of a task that is not in force yet.
fn is_to_be_paused(runs: &Runs, run: RunId) -> bool {
    let is_under_way = |session: &&Session| session.run().is_some_and(|now| now.id == run);
    let pending = runs.session().filter(is_under_way).and_then(Session::pending_pause);
    pending.is_some_and(|pause| pause.initiator == Initiator::Client)
}

/// Refuses to pause a task that is over, whatever its session does by now.
fn check_not_over<S: Store>(found: &Found<S>, family: Family) -> Result<(), Error> {
    let Standing::Over(outcome) = found.standing() else { return Ok(()) };
    let problem = format!("the task is {}", outcome.as_str());
    let refused = Error::not_pausable("TASK_NOT_PAUSABLE", problem, family);
    Err(refused.with("taskId", found.run.to_string()))
}

/// Returns the trace that a request belongs to: its metadata says it, or else a header.
fn spans(asked: &Asked<'_>, metadata: Option<&Value>) -> SpanLinks {
    let inner = metadata.and_then(|metadata| metadata.get("traceparent")?.as_str());
    SpanLinks::of_traceparent(inner.or(asked.trace))
}
