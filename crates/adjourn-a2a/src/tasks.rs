//! Reading, listing and ending tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjourn::store::Store;
use adjourn::{Cursor, Filter, Query, SessionRef, Sort};
use serde_json::{Value, json};

use crate::error::{Error, TASK_NOT_CANCELABLE, UNSUPPORTED_OPERATION};
use crate::face::{Asked, Face, Found, REST_PATIENCE};
use crate::fold::{Run, Runs};
use crate::params::{List, Params};
use crate::projection::{CONTEXT, Wanted};
use crate::standing::Standing;
use crate::stream::TaskStream;
use crate::task::Task;

/// How many sessions of a context are found at once.
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
        let found = self.wait(found, REST_PATIENCE, over).await?;
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
            && let Some(stream) = TaskStream::go_on(asked, &found, seen).await?
        {
            return Ok(stream);
        }
        if let Standing::Over(outcome) = found.standing() {
            let problem = format!("the task is {}; read it with tasks/get", outcome.as_str());
            let error = Error::new(UNSUPPORTED_OPERATION, "UNSUPPORTED_OPERATION", problem);
            return Err(error.with("taskId", id));
        }
        let task = self.show(asked, &found, Wanted::ALL).await?;
        TaskStream::begin(asked, found, task, false).await
    }

    /// `tasks/list`.
    pub(crate) async fn list(&self, asked: &Asked<'_>, params: Params<'_>) -> Result<Value, Error> {
        let list = List::read(params)?;
        let place =
            list.page_token.as_deref().map(ListPlace::read).transpose()?.unwrap_or_default();
        let (found, next, total) = match &list.context {
            Some(context) => self.list_context(asked, &list, context, place.told).await?,
            None => self.list_all(asked, &list, place).await?,
        };
        let mut tasks = Vec::with_capacity(found.len());
        for found in &found {
            let task = self.show(asked, found, list.wanted).await?;
            tasks.push(task.to_value(asked.method.version));
        }
        Ok(json!({
            "tasks": tasks,
            "nextPageToken": next.map(|place| place.to_string()).unwrap_or_default(),
            "pageSize": list.page_size,
            "totalSize": total,
        }))
    }

    /// Lists the tasks of one context, those first that came last to where they stand.
    async fn list_context(
        &self,
        asked: &Asked<'_>,
        list: &List,
        context: &str,
        told: usize,
    ) -> Result<Listing<S>, Error> {
        let of = |error| Error::of(error, "", asked.method.family);
        let adjourn = self.as_caller(asked.caller);
        let mut sessions: Vec<_> = self.first_of(asked, context).await?.into_iter().collect();
        let labels = BTreeMap::from([(CONTEXT.to_owned(), context.to_owned())]);
        let tenant = Some(asked.caller.tenant.to_string());
        let mut query = Query::new(Filter { tenant, labels, ..Filter::default() }, PAGE);
        loop {
            let page = adjourn.query(query.clone()).await.map_err(of)?;
            let ids = page.sessions.iter().filter_map(|listed| Some(listed.as_ref().ok()?.id));
            sessions.extend(ids.map(|id| adjourn.session(id)));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        sessions.sort_by_key(SessionRef::id);
        sessions.dedup_by_key(|session| session.id());
        let mut found = Vec::new();
        for session in sessions {
            let runs = self.readable_runs(&session).await.map_err(of)?;
            let wanted = runs.all().iter().filter(|run| is_wanted(run, list, asked));
            found.extend(wanted.map(|run| (run.since, self.found_run(&session, &runs, run))));
        }
        found.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
        let total = found.len();
        let page = found.into_iter().skip(told).take(list.page_size).map(|(_, found)| found);
        let page: Vec<_> = page.collect();
        let told = told.saturating_add(page.len());
        let next = (told < total).then_some(ListPlace { after: None, told });
        Ok((page, next, total as u64))
    }

    /// Lists the tasks of one session after the other, the sessions first that changed last.
    async fn list_all(
        &self,
        asked: &Asked<'_>,
        list: &List,
        mut place: ListPlace,
    ) -> Result<Listing<S>, Error> {
        let of = |error| Error::of(error, "", asked.method.family);
        let adjourn = self.as_caller(asked.caller);
        let tenant = Some(asked.caller.tenant.to_string());
        let filter = Filter { tenant, prompted: true, ..Filter::default() };
        let total = adjourn.count(filter.clone()).await.map_err(of)?;
        let total = total.states.values().map(|standing| standing.count).sum();
        // One session at a time, so that a page can end behind each of them.
        let mut query = Query { sort: Sort::Freshest, ..Query::new(filter, 1) };
        let mut page = Vec::new();
        loop {
            query.after = place.after;
            let sessions = adjourn.query(query.clone()).await.map_err(of)?;
            if let Some(Ok(state)) = sessions.sessions.first() {
                let session = adjourn.session(state.id);
                let runs = self.readable_runs(&session).await.map_err(of)?;
                for run in runs.all().iter().rev().skip(place.told) {
                    if is_wanted(run, list, asked) {
                        if page.len() == list.page_size {
                            return Ok((page, Some(place), total));
                        }
                        page.push(self.found_run(&session, &runs, run));
                    }
                    place.told += 1;
                }
            }
            match sessions.next {
                Some(after) => place = ListPlace { after: Some(after), told: 0 },
                None => return Ok((page, None, total)),
            }
        }
    }

    fn found_run(&self, session: &SessionRef<S>, runs: &Arc<Runs>, run: &Run) -> Found<S> {
        Found { session: session.clone(), runs: Arc::clone(runs), run: run.id }
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

/// A page of tasks, where the next one begins, and how many tasks there are.
type Listing<S> = (Vec<Found<S>>, Option<ListPlace>, u64);

fn is_wanted(run: &Run, list: &List, asked: &Asked<'_>) -> bool {
    let shown = run.standing.shown(asked.activated);
    list.state.is_none_or(|state| state == shown)
        && list.since.is_none_or(|since| run.since >= since)
}

/// Where a page of tasks ended: behind which session, and how many tasks of the next one are on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ListPlace {
    after: Option<Cursor>,
    told: usize,
}

impl ListPlace {
    fn read(token: &str) -> Result<Self, Error> {
        let wrong = || Error::invalid("pageToken", "expected the token of the page before");
        let (told, after) = token.split_once('-').ok_or_else(wrong)?;
        let after = match after {
            "" => None,
            cursor => Some(cursor.parse().map_err(|_| wrong())?),
        };
        Ok(Self { after, told: told.parse().map_err(|_| wrong())? })
    }
}

impl std::fmt::Display for ListPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-", self.told)?;
        self.after.iter().try_for_each(|cursor| write!(f, "{cursor}"))
    }
}
