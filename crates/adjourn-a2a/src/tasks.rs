//! Reading, watching and ending tasks.

use adjourn::store::Store;

use crate::arrived::Given;
use crate::error::{Error, TASK_NOT_CANCELABLE, UNSUPPORTED_OPERATION};
use crate::face::{Asked, Face, Found, REST_PATIENCE};
use crate::fold::Runs;
use crate::params::Params;
use crate::projection::Wanted;
use crate::standing::Standing;
use crate::stream::TaskStream;
use crate::task::Task;

impl<S: Store> Face<S> {
    /// `tasks/get`.
    pub(crate) async fn get(&self, asked: &Asked<'_>, params: Params<'_>) -> Result<Task, Error> {
        let (id, wanted) = (params.id()?, params.wanted()?);
        let found = self.find(asked, id).await?;
        self.show(asked, &found, wanted).await
    }

    /// `tasks/cancel`: answers when the task is at its end, or when calls in flight take too long.
    pub(crate) async fn cancel(&self, asked: &Asked<'_>, given: Given) -> Result<Task, Error> {
        let id = given.params()?.id()?.to_owned();
        drop(given);
        let found = self.find(asked, &id).await?;
        if let Standing::Over(outcome) = found.standing() {
            let problem = format!("the task is {}", outcome.as_str());
            let error = Error::new(TASK_NOT_CANCELABLE, "TASK_NOT_CANCELABLE", problem);
            return Err(error.with("taskId", id));
        }
        let Found { session, run, .. } = found;
        let family = asked.method.family;
        let canceled = session.cancel().of_run(run).await;
        let canceled = canceled.map_err(|error| Error::of(error, &id, family))?;
        let found = self.after(session, run, &canceled.commit.session, family).await?;
        let over = |runs: &Runs| matches!(runs.standing(run), Standing::Over(_));
        let found = self.wait(asked, found, REST_PATIENCE, over).await?;
        self.show(asked, &found, Wanted::ALL).await
    }

    /// `tasks/resubscribe`.
    pub(crate) async fn subscribe(
        &self,
        asked: &Asked<'_>,
        params: Params<'_>,
    ) -> Result<TaskStream<S>, Error> {
        let id = params.id()?;
        let found = self.find(asked, id).await?;
        if let Some(seen) = asked.last_event.and_then(crate::stream::Place::read)
            && let Some(stream) = TaskStream::go_on(asked, &found, &seen, &self.shared).await?
        {
            return Ok(stream);
        }
        if let Standing::Over(outcome) = found.standing() {
            let problem = format!("the task is {}; read it with tasks/get", outcome.as_str());
            let error = Error::new(UNSUPPORTED_OPERATION, "UNSUPPORTED_OPERATION", problem);
            return Err(error.with("taskId", id));
        }
        let task = self.show(asked, &found, Wanted::ALL).await?;
        TaskStream::begin(asked, found, task, false, &self.shared).await
    }
}
