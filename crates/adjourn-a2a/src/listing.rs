//! Listing tasks, those first that came last to where they stand.
//!
//! Where the runs of a session stand, and since when, is found by folding its journal; that is kept for
//! every session as of one revision, so that a list folds the journals of those sessions alone that
//! have changed since the list before, and shows only tasks of its page. Nothing depends on what is
//! kept but the time that takes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn::core::Session;
use adjourn::core::id::{RunId, SessionId};
use adjourn::core::time::Timestamp;
use adjourn::store::Store;
use adjourn::{Filter, Query};

use crate::error::Error;
use crate::face::{Asked, Face, Found, is_exported, to_json};
use crate::fold::{Run, Runs};
use crate::params::{List, Params};
use crate::projection::{BYTES, CONTEXT};
use crate::standing::Standing;

/// How many sessions are found at once: few enough that their states take some megabytes.
const PAGE: usize = 256;
/// How many sessions are kept with where their runs stand, of all tenants: some 40 MB if each has had
/// one run. The journals of those beyond are folded for each list.
const KEPT: usize = 256 * 1024;
/// How many pages are put together at once: each may have as much as a long task.
pub(crate) const PAGES: usize = 16;

impl<S: Store> Face<S> {
    /// `tasks/list`.
    pub(crate) async fn list(
        &self,
        asked: &Asked<'_>,
        params: Params<'_>,
    ) -> Result<String, Error> {
        let list = List::read(params)?;
        let of = |error| Error::of(error, "", asked.method.family);
        let behind = list.page_token.as_deref().map(Place::read).transpose()?;
        let mut chosen = Chosen::new(&list, behind, asked);
        self.choose(asked, &list, &mut chosen).await.map_err(of)?;
        // It is never closed.
        let _turn = self.pages.acquire().await;
        self.show_page(chosen).await
    }

    /// Shows the tasks of a page as they are now. What was chosen may have changed since: one that is
    /// not wanted any more is left out, and the others are in the order in which they came to where
    /// they are shown. The next page goes on behind the last place that was chosen.
    async fn show_page(&self, chosen: Chosen<'_>) -> Result<String, Error> {
        let Chosen { list, asked, total, front, .. } = chosen;
        let of = |error| Error::of(error, "", asked.method.family);
        let mut is_last = front.len() <= list.page_size;
        let (mut tasks, mut last, mut room) = (Vec::new(), None, BYTES);
        let adjourn = self.as_caller(asked.caller);
        for Reverse((place, session)) in front.into_iter().take(list.page_size) {
            let session = adjourn.session(session);
            let behind = last.replace(place);
            let runs = match self.runs_of(&session).await {
                // It was removed meanwhile, or cannot be read any more.
                Err(adjourn::Error::NotFound(_)) => continue,
                Err(error) if error.is_of_a_session() => continue,
                runs => runs.map_err(of)?,
            };
            let found = Found { session, runs, run: place.run };
            let Some(run) = found.run().map(ListedRun::of) else { continue };
            if !is_wanted(&run, list, asked) {
                continue;
            }
            let task = self.show(asked, &found, list.wanted).await?;
            let task = to_json(&task.written(asked.method.version));
            if task.len() > room && !tasks.is_empty() {
                // It is the first one of the next page.
                (last, is_last) = (behind, false);
                break;
            }
            room = room.saturating_sub(task.len());
            tasks.push((Reverse(Place::of(&run)), task));
        }
        tasks.sort_unstable_by_key(|(place, _)| *place);
        let tasks: Vec<_> = tasks.into_iter().map(|(_, task)| task).collect();
        let next = last.filter(|_| !is_last);
        let next = next.map(|place| place.to_string()).unwrap_or_default();
        let (tasks, size) = (tasks.join(","), list.page_size);
        Ok(format!(
            r#"{{"tasks":[{tasks}],"nextPageToken":"{next}","pageSize":{size},"totalSize":{total}}}"#
        ))
    }

    /// Looks at the sessions of the caller's tenant that were prompted, or at those of one context.
    async fn choose(
        &self,
        asked: &Asked<'_>,
        list: &List,
        chosen: &mut Chosen<'_>,
    ) -> Result<(), adjourn::Error> {
        let tenant = &asked.caller.tenant;
        let mut filter =
            Filter { tenant: Some(tenant.to_string()), prompted: true, ..Filter::default() };
        let mut first = None;
        if let Some(context) = &list.context {
            first = self.named(asked, context).await?;
            filter.labels = BTreeMap::from([(CONTEXT.to_owned(), context.clone())]);
        }
        let walk = self.listed.begin();
        // It bears its own name; the others of the context have a label.
        if let Some((_, state)) = &first {
            let runs = self.standings(asked, state, walk).await?;
            chosen.take(state.id, &self.remaining(state, runs).await?);
        }
        let first = first.map(|(session, _)| session.id());
        let mut query = Query::new(filter, PAGE);
        loop {
            // It is made on another thread.
            let page = self.adjourn.query(query.clone()).await?;
            let readable = page.sessions.iter().flatten();
            for state in readable.filter(|state| Some(state.id) != first) {
                let runs = self.standings(asked, state, walk).await?;
                chosen.take(state.id, &self.remaining(state, runs).await?);
            }
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        if list.context.is_none() {
            self.listed.end(tenant, walk);
        }
        Ok(())
    }

    /// Returns where the runs of a session stand; none if it was removed, or cannot be read.
    async fn standings(
        &self,
        asked: &Asked<'_>,
        state: &Arc<Session>,
        walk: u64,
    ) -> Result<Arc<[ListedRun]>, adjourn::Error> {
        let tenant = &asked.caller.tenant;
        if let Some(kept) = self.listed.get(tenant, state, walk) {
            return Ok(kept);
        }
        let session = self.as_caller(asked.caller).session(state.id);
        match self.runs_at(&session, state).await {
            Ok(runs) => Ok(self.listed.put(tenant, state.id, &runs, walk)),
            Err(adjourn::Error::NotFound(_)) => Ok(Arc::default()),
            Err(error) if error.is_of_a_session() => Ok(Arc::default()),
            Err(error) => Err(error),
        }
    }

    /// Returns those of a session's runs that do not go on in another session of the store.
    async fn remaining(
        &self,
        state: &Session,
        runs: Arc<[ListedRun]>,
    ) -> Result<Arc<[ListedRun]>, adjourn::Error> {
        if !is_exported(state) {
            return Ok(runs);
        }
        let mut remaining = Vec::new();
        for run in runs.iter() {
            let session = self.adjourn.session_of(run.id).await?;
            if session.is_some_and(|session| session.id() == state.id) {
                remaining.push(*run);
            }
        }
        Ok(remaining.into())
    }
}

/// The tasks of a list that come first behind a place, and how many there are in all.
struct Chosen<'a> {
    list: &'a List,
    asked: &'a Asked<'a>,
    behind: Option<Place>,
    total: usize,
    /// As many as a page has, and one more, which says that there is a next one.
    front: BTreeSet<Reverse<(Place, SessionId)>>,
}

impl<'a> Chosen<'a> {
    const fn new(list: &'a List, behind: Option<Place>, asked: &'a Asked<'a>) -> Self {
        Self { list, asked, behind, total: 0, front: BTreeSet::new() }
    }

    fn take(&mut self, session: SessionId, runs: &[ListedRun]) {
        for run in runs.iter().filter(|run| is_wanted(run, self.list, self.asked)) {
            self.total += 1;
            let place = Place::of(run);
            if self.behind.is_some_and(|seen| place >= seen) {
                continue;
            }
            self.front.insert(Reverse((place, session)));
            if self.front.len() > self.list.page_size + 1 {
                self.front.pop_last();
            }
        }
    }
}

fn is_wanted(run: &ListedRun, list: &List, asked: &Asked<'_>) -> bool {
    let shown = run.standing.shown(asked.activated);
    list.status.includes(shown) && list.since.is_none_or(|since| run.since >= since)
}

/// What a list has to know of a run.
#[derive(Debug, Clone, Copy)]
struct ListedRun {
    id: RunId,
    standing: Standing,
    since: Timestamp,
}

impl ListedRun {
    const fn of(run: &Run) -> Self {
        Self { id: run.id, standing: run.standing, since: run.since }
    }
}

/// Where the runs of sessions stand, as of the revision at which they were last listed.
#[derive(Debug, Default)]
pub(crate) struct Listed(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// How many lists were begun.
    walks: u64,
    tenants: HashMap<Arc<str>, HashMap<SessionId, KeptSession>>,
}

#[derive(Debug)]
struct KeptSession {
    revision: u64,
    /// The last list that came by.
    walk: u64,
    runs: Arc<[ListedRun]>,
}

impl Listed {
    /// Begins a list, and returns its number.
    fn begin(&self) -> u64 {
        let mut kept = self.kept();
        kept.walks += 1;
        kept.walks
    }

    /// Ends a list that came by all sessions of a tenant: those that it did not see are gone.
    fn end(&self, tenant: &str, walk: u64) {
        if let Some(sessions) = self.kept().tenants.get_mut(tenant) {
            sessions.retain(|_, session| session.walk >= walk);
        }
    }

    fn get(&self, tenant: &str, state: &Session, walk: u64) -> Option<Arc<[ListedRun]>> {
        let mut kept = self.kept();
        let session = kept.tenants.get_mut(tenant)?.get_mut(&state.id)?;
        session.walk = session.walk.max(walk);
        (session.revision >= state.revision).then(|| Arc::clone(&session.runs))
    }

    fn put(&self, tenant: &Arc<str>, id: SessionId, runs: &Runs, walk: u64) -> Arc<[ListedRun]> {
        let revision = runs.revision();
        let runs: Arc<[_]> = runs.all().iter().map(|run| ListedRun::of(run)).collect();
        let mut kept = self.kept();
        let count: usize = kept.tenants.values().map(HashMap::len).sum();
        let sessions = kept.tenants.entry(Arc::clone(tenant)).or_default();
        if count < KEPT || sessions.contains_key(&id) {
            sessions.insert(id, KeptSession { revision, walk, runs: Arc::clone(&runs) });
        }
        runs
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a task is in a list: by the time at which it came to where it stands, and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    since: Timestamp,
    run: RunId,
}

impl Place {
    const fn of(run: &ListedRun) -> Self {
        Self { since: run.since, run: run.id }
    }

    fn read(token: &str) -> Result<Self, Error> {
        let wrong = || Error::invalid("pageToken", "expected the token of the page before");
        let (since, run) = token.split_once('.').ok_or_else(wrong)?;
        let since = Timestamp::from_millis(since.parse().map_err(|_| wrong())?);
        Ok(Self { since, run: run.parse().map_err(|_| wrong())? })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.since.as_millis(), self.run)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use adjourn::core::carry::Budget;
    use adjourn::core::driver::DriverSpec;
    use adjourn::store::Sqlite;
    use adjourn_testkit::host::Fixture;
    use adjourn_testkit::store::TENANT;
    use serde_json::{Value, json};

    use super::*;
    use crate::arrived::Given;
    use crate::caller::{Caller, Scope};
    use crate::face::{Agent, Answer};
    use crate::method::Method;
    use crate::version::{Activated, Profile};

    fn face(fixture: &Fixture) -> Face<Sqlite> {
        let agent = Agent {
            name: "worker".to_owned(),
            description: "Works".to_owned(),
            driver: DriverSpec::script(r#"{"steps": [{"say": "done"}]}"#),
            budget: Budget::default(),
            pausable: true,
        };
        Face::new(fixture.adjourn(), agent, Profile::Adjourn)
    }

    fn asked<'a>(caller: &'a Caller, method: &str) -> Asked<'a> {
        Asked {
            caller,
            method: Method::named(method).unwrap(),
            activated: Activated { pause: true, states: true },
            last_event: None,
            trace: None,
            url: None,
            stopping: None,
        }
    }

    /// Asks for something that is granted.
    async fn result(face: &Face<Sqlite>, asked: &Asked<'_>, params: Value) -> Value {
        match face.ask(asked, Given::new(params, None)).await.unwrap() {
            Answer::Result(json) => adjourn::core::json::stored_text(&json).unwrap(),
            Answer::Stream(_) => panic!("a stream"),
        }
    }

    #[tokio::test]
    async fn a_page_shows_the_tasks_that_match_when_they_are_shown_in_their_order_then() {
        let fixture = Fixture::new();
        let face = face(&fixture);
        let scopes = Scope::ALL.into_iter().collect();
        let caller = Caller { name: "ann".into(), tenant: TENANT.into(), scopes };
        let mut begun = Vec::new();
        for number in 0..5 {
            fixture.clock.advance(Duration::from_secs(1));
            let message = json!({ "messageId": format!("m{number}"), "role": "ROLE_USER",
                                  "parts": [{ "text": "go" }] });
            let params = json!({ "message": message, "configuration": { "blocking": false } });
            let sent = result(&face, &asked(&caller, "message/send"), params).await;
            begun.push(sent["id"].as_str().unwrap().to_owned());
        }
        let params = json!({ "status": "TASK_STATE_WORKING", "pageSize": 3 });
        let (list, lists) =
            (List::read(Params::read(&params).unwrap()).unwrap(), asked(&caller, "ListTasks"));
        let mut chosen = Chosen::new(&list, None, &lists);
        face.choose(&lists, &list, &mut chosen).await.unwrap();

        // Of the three of the page, one is paused and one is paused and resumed before it is shown.
        let (pause, resume) = (asked(&caller, "PauseTask"), asked(&caller, "ResumeTask"));
        for (task, goes_on) in [(&begun[3], false), (&begun[2], true)] {
            fixture.clock.advance(Duration::from_secs(1));
            result(&face, &pause, json!({ "taskId": task })).await;
            if goes_on {
                result(&face, &resume, json!({ "taskId": task })).await;
            }
        }
        let page = face.show_page(chosen).await.unwrap();
        let page: Value = adjourn::core::json::stored_text(&page).unwrap();
        let shown: Vec<_> = page["tasks"].as_array().unwrap().iter().collect();
        assert!(shown.iter().all(|task| task["status"]["state"] == "TASK_STATE_WORKING"), "{page}");
        let ids: Vec<_> = shown.iter().map(|task| task["id"].as_str().unwrap()).collect();
        assert_eq!(ids, [&begun[2], &begun[4]], "the one that changed last comes first");
        let times: Vec<_> = shown.iter().map(|task| &task["status"]["timestamp"]).collect();
        assert!(times.is_sorted_by_key(|time| Reverse(time.as_str())), "{times:?}");
        // The next page goes on behind the last that was chosen.
        let params = json!({ "status": "TASK_STATE_WORKING", "pageSize": 3,
                             "pageToken": page["nextPageToken"] });
        let next = result(&face, &lists, params).await;
        let next: Vec<_> = next["tasks"].as_array().unwrap().iter().collect();
        let ids: Vec<_> = next.iter().map(|task| task["id"].as_str().unwrap()).collect();
        assert_eq!(ids, [&begun[1], &begun[0]]);
    }
}
