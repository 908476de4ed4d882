//! Reading, listing and ending tasks.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use adjourn::core::id::RunId;
use adjourn::core::time::Timestamp;
use adjourn::store::Store;
use adjourn::{Filter, Query, SessionRef};
use serde_json::{Value, json};

use crate::error::{Error, TASK_NOT_CANCELABLE, UNSUPPORTED_OPERATION};
use crate::face::{Asked, Face, Found, REST_PATIENCE};
use crate::fold::{Run, Runs};
use crate::params::{List, Params};
use crate::projection::{CONTEXT, Wanted};
use crate::standing::Standing;
use crate::stream::TaskStream;
use crate::task::Task;

/// How many sessions are found at once.
const PAGE: usize = 100;

impl<S: Store> Face<S> {
    /// `tasks/get`.
    pub(crate) async fn get(&self, asked: &Asked<'_>, params: Params<'_>) -> Result<Task, Error> {
        let (id, wanted) = (params.id()?, params.wanted()?);
        let found = self.find(asked, id).await?;
        self.show(asked, &found, wanted).await
    }

    /// `tasks/cancel`: answers when the task is at its end, or when calls in flight take too long.
    pub(crate) async fn cancel(
        &self,
        asked: &Asked<'_>,
        params: Params<'_>,
    ) -> Result<Task, Error> {
        let id = params.id()?;
        let found = self.find(asked, id).await?;
        if let Standing::Over(outcome) = found.standing() {
            let problem = format!("the task is {}", outcome.as_str());
            let error = Error::new(TASK_NOT_CANCELABLE, "TASK_NOT_CANCELABLE", problem);
            return Err(error.with("taskId", id));
        }
        let Found { session, run, .. } = found;
        let family = asked.method.family;
        let canceled = session.cancel().of_run(run).await;
        let canceled = canceled.map_err(|error| Error::of(error, id, family))?;
        let found = self.after(session, run, &canceled.commit.session, family).await?;
        let over = |standing| matches!(standing, Standing::Over(_));
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
            && let Some(stream) = TaskStream::go_on(asked, &found, seen, &self.shared).await?
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

    /// `tasks/list`: those first that came last to where they stand.
    pub(crate) async fn list(&self, asked: &Asked<'_>, params: Params<'_>) -> Result<Value, Error> {
        let list = List::read(params)?;
        let of = |error| Error::of(error, "", asked.method.family);
        let behind = list.page_token.as_deref().map(ListPlace::read).transpose()?;
        let mut found = Vec::new();
        for session in self.sessions(asked, list.context.as_deref()).await.map_err(of)? {
            let runs = self.readable_runs(&session).await.map_err(of)?;
            let wanted = runs.all().iter().filter(|run| is_wanted(run, &list, asked));
            let place = |run: &Run| ListPlace { since: run.since, run: run.id };
            found.extend(wanted.map(|run| (place(run), session.id())));
        }
        found.sort_by_key(|(place, _)| Reverse(*place));
        let total = found.len();
        let rest = found.into_iter().filter(|(place, _)| behind.is_none_or(|seen| *place < seen));
        let mut rest = rest.peekable();
        let (mut tasks, mut last) = (Vec::new(), None);
        let adjourn = self.as_caller(asked.caller);
        while tasks.len() < list.page_size
            && let Some((place, session)) = rest.next()
        {
            let session = adjourn.session(session);
            let runs = self.readable_runs(&session).await.map_err(of)?;
            let found = Found { session, runs, run: place.run };
            // It was removed meanwhile.
            if found.run().is_none() {
                continue;
            }
            let task = self.show(asked, &found, list.wanted).await?;
            tasks.push(task.to_value(asked.method.version));
            last = Some(place);
        }
        let next = last.filter(|_| rest.peek().is_some());
        Ok(json!({
            "tasks": tasks,
            "nextPageToken": next.map(|place| place.to_string()).unwrap_or_default(),
            "pageSize": list.page_size,
            "totalSize": total,
        }))
    }

    /// Finds the sessions of the caller's tenant that were prompted, or those of one context.
    async fn sessions(
        &self,
        asked: &Asked<'_>,
        context: Option<&str>,
    ) -> Result<Vec<SessionRef<S>>, adjourn::Error> {
        let adjourn = self.as_caller(asked.caller);
        let tenant = Some(asked.caller.tenant.to_string());
        let mut filter = Filter { tenant, prompted: true, ..Filter::default() };
        let mut sessions = Vec::new();
        if let Some(context) = context {
            // The first one bears its own name.
            sessions.extend(self.first_of(asked, context).await?);
            filter.labels = BTreeMap::from([(CONTEXT.to_owned(), context.to_owned())]);
        }
        let mut query = Query::new(filter, PAGE);
        loop {
            let page = adjourn.query(query.clone()).await?;
            let ids = page.sessions.iter().filter_map(|listed| Some(listed.as_ref().ok()?.id));
            sessions.extend(ids.map(|id| adjourn.session(id)));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        sessions.sort_by_key(SessionRef::id);
        sessions.dedup_by_key(|session| session.id());
        Ok(sessions)
    }

    /// Returns the runs of a session; none if it was removed, or cannot be read.
    async fn readable_runs(&self, session: &SessionRef<S>) -> Result<Arc<Runs>, adjourn::Error> {
        match self.runs_of(session).await {
            Err(adjourn::Error::NotFound(_)) => Ok(Arc::default()),
            Err(error) if error.is_of_a_session() => Ok(Arc::default()),
            runs => runs,
        }
    }
}

fn is_wanted(run: &Run, list: &List, asked: &Asked<'_>) -> bool {
    let shown = run.standing.shown(asked.activated);
    list.status.includes(shown) && list.since.is_none_or(|since| run.since >= since)
}

/// Where a task is in a list: by the time at which it came to where it stands, and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ListPlace {
    since: Timestamp,
    run: RunId,
}

impl ListPlace {
    fn read(token: &str) -> Result<Self, Error> {
        let wrong = || Error::invalid("pageToken", "expected the token of the page before");
        let (since, run) = token.split_once('.').ok_or_else(wrong)?;
        let since = Timestamp::from_millis(since.parse().map_err(|_| wrong())?);
        Ok(Self { since, run: run.parse().map_err(|_| wrong())? })
    }
}

impl std::fmt::Display for ListPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.since.as_millis(), self.run)
    }
}
