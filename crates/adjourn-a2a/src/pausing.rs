//! Pausing and waking tasks.

use adjourn::core::Rejected;
use adjourn::core::command::Suspend;
use adjourn::core::facts::{Answer, SpanLinks};
use adjourn::core::session::{Initiator, Phase, Resumption};
use adjourn::driver::Message as Entry;
use adjourn::store::Store;
use adjourn::{Accepted, Suspension};
use serde_json::Value;

use crate::arrived::Given;
use crate::error::Error;
use crate::face::{Asked, Face, Found, REST_PATIENCE, to_json};
use crate::fold::Runs;
use crate::params::{self, Params, Resume};
use crate::pause::{self, Paused, Resumed};
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
        let (accepted, in_force) = self.suspend(asked, &found, suspend).await?;
        Ok(match in_force {
            Some(Suspension { parked, .. }) => {
                to_json(&Paused::new(task, &parked, Standing::Paused(Initiator::Client)))
            }
            None => {
                let pending = accepted.commit.session.pending_pause();
                pause::quiescing(task, accepted.handle, pending).to_string()
            }
        })
    }

    /// Pauses the task that a message names, and says nothing to its agent.
    pub(crate) async fn pause_by_message(
        &self,
        asked: &Asked<'_>,
        task: &str,
        suspend: Suspend,
    ) -> Result<Found<S>, Error> {
        self.check_pausable(asked.method.family)?;
        if !asked.caller.may(crate::caller::Scope::Pause) {
            return Err(Error::forbidden(crate::caller::Scope::Pause));
        }
        let found = self.find(asked, task).await?;
        self.suspend(asked, &found, suspend).await?;
        self.find(asked, task).await
    }

    /// Asks for a pause, and waits until it is in force for as long as there is patience.
    async fn suspend(
        &self,
        asked: &Asked<'_>,
        found: &Found<S>,
        suspend: Suspend,
    ) -> Result<(Accepted, Option<Suspension>), Error> {
        let (task, family) = (found.run.to_string(), asked.method.family);
        let of = |error| Error::of(error, &task, family);
        let spans = spans(asked, suspend.meta.as_ref());
        let pause = found.session.suspend_as(suspend).of_run(found.run).spans(spans);
        // A person has to look at a task that lost its host, and the pause would hide that.
        let accepted = pause.unless_interrupted().accepted();
        let accepted = accepted.await.map_err(|error| match error {
            adjourn::Error::Refused(Rejected::NotSuspendable { phase: Phase::Suspended }) => {
                let problem = "the task lost its host, and waits for a person to look at it";
                let refused = Error::not_pausable("TASK_NOT_PAUSABLE", problem, family);
                refused.with("taskId", task.as_str())
            }
            error => of(error),
        })?;
        let in_force = found.session.in_force(&accepted);
        match asked.wait_for(REST_PATIENCE, in_force).await {
            Some(suspension) => Ok((accepted, Some(suspension.map_err(of)?))),
            None => Ok((accepted, None)),
        }
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
        let Found { session, run, .. } = self.find_now(asked, task).await?;
        let spans = spans(asked, wait.meta.as_ref());
        let park = session.await_as(wait).of_run(run).spans(spans);
        let accepted = park.accepted().await.map_err(of)?;
        match asked.wait_for(REST_PATIENCE, session.in_force(&accepted)).await {
            Some(suspension) => {
                let Suspension { parked, .. } = suspension.map_err(of)?;
                Ok(to_json(&Paused::new(task, &parked, Standing::Paused(Initiator::Agent))))
            }
            None => {
                let pending = accepted.commit.session.agents_pause();
                Ok(pause::quiescing(task, accepted.handle, pending).to_string())
            }
        }
    }

    /// `tasks/resume`.
    pub(crate) async fn resume(
        &self,
        asked: &Asked<'_>,
        params: Params<'_>,
    ) -> Result<String, Error> {
        let (task, family) = (params.task_id()?, asked.method.family);
        let resume = Resume::read(params)?;
        let found = self.find_now(asked, task).await?;
        let spans = spans(asked, resume.metadata.as_ref());
        let wake = found.session.resume().handle(resume.handle).spans(spans);
        // A question is answered by a message.
        let mut wake = wake.of_run(found.run).of_pause();
        if let Some(input) = resume.input {
            wake = wake.input(Entry::user_value(input));
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
        let woken = wake.await.map_err(of)?;
        Ok(match woken.answer {
            Answer::Resumed(resumption) => {
                let follows = match woken.repeated {
                    true => self.stood_behind(&found, &resumption).await.map_err(of)?,
                    false => Runs::now(&woken.commit.session).standing(found.run),
                };
                let paused = State::paused_by(resumption.initiator);
                to_json(&Resumed::new(task, paused, follows.literal(), &resumption))
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

/// Returns the trace that a request belongs to: its metadata says it, or else a header.
fn spans(asked: &Asked<'_>, metadata: Option<&Value>) -> SpanLinks {
    let inner = metadata.and_then(|metadata| metadata.get("traceparent")?.as_str());
    SpanLinks::of_traceparent(inner.or(asked.trace))
}
