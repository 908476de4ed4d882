//! The face: what a peer asks for, given to the library and answered in the peer's words.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use adjourn::core::Session;
use adjourn::core::actor::{self, Actor};
use adjourn::core::carry::Budget;
use adjourn::core::driver::DriverSpec;
use adjourn::core::id::RunId;
use adjourn::core::session::{Ended, SessionEnd, State};
use adjourn::store::Store;
use adjourn::{Adjourn, SessionRef};
use serde::Serialize;
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use crate::arrived::Given;
use crate::caller::{Caller, Scope};
use crate::error::{Error, METHOD_NOT_FOUND};
use crate::fold::{Run, Runs};
use crate::listing::{self, Listed};
use crate::method::{Family, Method, Verb};
use crate::projection::{self, Viewer, Wanted};
use crate::pushing::Receivers;
use crate::runs::Folded;
use crate::shared::Shared;
use crate::standing::Standing;
use crate::stopping::Stopping;
use crate::stream::TaskStream;
use crate::task::Task;
use crate::trace;
use crate::version::{Activated, Profile, Version};

/// How long a send that waits is kept waiting.
pub(crate) const SEND_PATIENCE: Duration = Duration::from_secs(60);
/// How long a pause or a cancel is kept waiting.
pub(crate) const REST_PATIENCE: Duration = Duration::from_secs(20);

/// The agent that peers talk to.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its name, as its card has it.
    pub name: String,
    /// What it does, as its card has it.
    pub description: String,
    /// What its sessions are made from.
    pub driver: DriverSpec,
    /// What each of its sessions may use.
    pub budget: Budget,
    /// Whether its tasks can be paused.
    pub pausable: bool,
}

/// An A2A server's side: tasks of one store, and one agent that takes new ones.
pub struct Face<S: Store> {
    /// The store.
    pub adjourn: Adjourn<S>,
    /// The agent.
    pub agent: Agent,
    /// In whose words peers are told of pauses.
    pub profile: Profile,
    folded: Folded,
    /// Who may receive push notifications; nothing where there are none.
    pub(crate) receivers: Option<Arc<dyn Receivers>>,
    /// Where tasks stand, for lists.
    pub(crate) listed: Listed,
    /// What watchers of the same task share.
    pub(crate) shared: Arc<Shared>,
    /// The turns of lists to put a page together.
    pub(crate) pages: Semaphore,
}

/// What a request is made with.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// The peer that asks, with what its token allows.
    pub caller: &'a Caller,
    /// What is asked for.
    pub method: Method,
    /// What the peer has activated.
    pub activated: Activated,
    /// The last event that the peer has seen of a stream.
    pub last_event: Option<&'a str>,
    /// The trace that the request belongs to, as `traceparent` has it.
    pub trace: Option<&'a str>,
    /// The URL under which a peer that has shown a token reaches the agent; nothing where everybody
    /// is let in.
    pub url: Option<&'a str>,
    /// Tells that the server stops; nothing if it never does.
    pub stopping: Option<&'a Stopping>,
}

impl Asked<'_> {
    /// Waits for something as long as there is patience, and no longer than the server is there for
    /// it; returns nothing if that was not long enough.
    pub(crate) async fn wait_for<T>(
        &self,
        patience: Duration,
        something: impl Future<Output = T>,
    ) -> Option<T> {
        let stops = async {
            match self.stopping {
                Some(stopping) => stopping.begun().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What has come is told, also by a server that stops.
            biased;
            done = something => Some(done),
            () = stops => None,
            () = tokio::time::sleep(patience) => None,
        }
    }
}

/// What a peer is answered.
pub enum Answer<S: Store> {
    /// A result, as JSON.
    Result(String),
    /// What happens to a task, as it happens.
    Stream(Box<TaskStream<S>>),
}

/// A task that was found.
pub(crate) struct Found<S: Store> {
    pub(crate) session: SessionRef<S>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) run: RunId,
}

impl<S: Store> Found<S> {
    /// Returns the run, as the journal tells it.
    pub(crate) fn run(&self) -> Option<&Run> {
        self.runs.get(self.run)
    }

    /// Returns where the task stands.
    pub(crate) fn standing(&self) -> Standing {
        self.runs.standing(self.run)
    }

    /// Returns the session.
    pub(crate) fn state(&self) -> Option<&Session> {
        self.runs.session()
    }
}

impl<S: Store> Face<S> {
    /// Makes the face of an agent on a store.
    pub fn new(adjourn: Adjourn<S>, agent: Agent, profile: Profile) -> Self {
        let (folded, listed) = (Folded::default(), Listed::default());
        let (receivers, shared) = (None, Arc::default());
        let pages = Semaphore::new(listing::PAGES);
        Self { adjourn, agent, profile, folded, receivers, listed, shared, pages }
    }

    /// Does what is asked for. What is given for it is dropped before anything is waited for.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn ask(&self, asked: &Asked<'_>, given: Given) -> Result<Answer<S>, Error> {
        let span = trace::span(asked);
        // It has room for whatever can be asked for, and all around it would be as large and be moved
        // with it.
        let answer = Box::pin(self.fulfil(asked, given)).instrument(span.clone()).await;
        span.in_scope(|| trace::answered(&answer));
        answer
    }

    async fn fulfil(&self, asked: &Asked<'_>, given: Given) -> Result<Answer<S>, Error> {
        let Method { verb, version, .. } = asked.method;
        if matches!(verb, Verb::Pause | Verb::Resume | Verb::Await) {
            self.check_pausable(asked.method.family)?;
        }
        if matches!(verb, Verb::SetPush | Verb::GetPush | Verb::ListPushes | Verb::DeletePush) {
            self.check_pushes()?;
        }
        if let Some(scope) = verb.scope()
            && !asked.caller.may(scope)
        {
            return Err(Error::forbidden(scope));
        }
        let params = given.params()?;
        if params.tenant()?.is_some_and(|tenant| tenant != &*asked.caller.tenant) {
            // That another tenant is there is not told.
            let task = params.id().or_else(|_| params.task_id()).unwrap_or_default();
            return Err(match task {
                "" => Error::invalid("tenant", "there is no such tenant"),
                task => Error::no_task(task, asked.method.family),
            });
        }
        let result = match verb {
            Verb::Send => self.send(asked, given).await?,
            Verb::Get => to_json(&self.get(asked, params).await?.written(version)),
            Verb::List => self.list(asked, params).await?,
            Verb::Cancel => to_json(&self.cancel(asked, given).await?.written(version)),
            Verb::Pause => self.pause(asked, given).await?,
            Verb::Resume => self.resume(asked, params).await?,
            Verb::Await => self.await_resumption(asked, given).await?,
            Verb::SetPush => self.set_push(asked, given).await?.to_string(),
            Verb::GetPush => self.get_push(asked, params).await?.to_string(),
            Verb::ListPushes => self.list_pushes(asked, params).await?.to_string(),
            Verb::DeletePush => self.delete_push(asked, params).await?.to_string(),
            Verb::Card => {
                let url = asked.url.ok_or_else(|| Error::no_extended_card(version))?;
                self.extended_card(url, asked.caller).to_string()
            }
            Verb::Stream => {
                return Ok(Answer::Stream(Box::new(self.send_and_watch(asked, given).await?)));
            }
            Verb::Subscribe => {
                return Ok(Answer::Stream(Box::new(self.subscribe(asked, params).await?)));
            }
        };
        Ok(Answer::Result(result))
    }

    /// Returns what a peer activates with the values of `A2A-Extensions` and `X-A2A-Extensions`:
    /// nothing that the card does not declare.
    pub fn activated<'a>(&self, headers: impl IntoIterator<Item = &'a str>) -> Activated {
        match self.agent.pausable {
            true => Activated::read(headers, self.profile),
            false => Activated::default(),
        }
    }

    /// Refuses pauses if tasks of the agent cannot be paused.
    pub(crate) fn check_pausable(&self, family: Family) -> Result<(), Error> {
        if self.agent.pausable {
            return Ok(());
        }
        let problem = format!("tasks of {} cannot be paused", self.agent.name);
        Err(match family {
            Family::Standard => Error::not_pausable("TASK_NOT_PAUSABLE", problem, family),
            Family::Proposal | Family::Alias => {
                Error::new(METHOD_NOT_FOUND, "METHOD_NOT_FOUND", problem)
            }
        })
    }

    /// Returns the store as a caller works on it.
    pub(crate) fn as_caller(&self, caller: &Caller) -> Adjourn<S> {
        let actor = Actor::new(actor::Face::A2a, caller.name.to_string());
        self.adjourn.clone().in_tenant(Arc::clone(&caller.tenant)).acting_as(actor)
    }

    /// Finds a task of the caller's tenant.
    pub(crate) async fn find(&self, asked: &Asked<'_>, task: &str) -> Result<Found<S>, Error> {
        let (session, state, run) = self.find_session(asked, task).await?;
        trace::concerns(session.id(), run);
        let runs = self.folded.runs_at(&session, &state).await;
        let runs = runs.map_err(|error| Error::of(error, task, asked.method.family))?;
        match runs.get(run) {
            Some(_) => Ok(Found { session, runs, run }),
            None => Err(Error::no_task(task, asked.method.family)),
        }
    }

    /// Finds a task of the caller's tenant, to do something to it. One that is under way stands where
    /// its session says, and its journal is not read.
    pub(crate) async fn find_now(&self, asked: &Asked<'_>, task: &str) -> Result<Found<S>, Error> {
        let (session, state, run) = self.find_session(asked, task).await?;
        match state.run().is_some_and(|under_way| under_way.id == run) {
            true => {
                trace::concerns(session.id(), run);
                Ok(Found { session, runs: Arc::new(Runs::now(&state)), run })
            }
            false => self.find(asked, task).await,
        }
    }

    /// Finds the session of a task of the caller's tenant.
    async fn find_session(
        &self,
        asked: &Asked<'_>,
        task: &str,
    ) -> Result<(SessionRef<S>, Arc<Session>, RunId), Error> {
        let family = asked.method.family;
        let unknown = || Error::no_task(task, family);
        let run: RunId = task.parse().map_err(|_| unknown())?;
        let found = self.session_with(&self.as_caller(asked.caller), run).await;
        let found = found.map_err(|error| Error::of(error, task, family))?;
        let (session, state) = found.ok_or_else(unknown)?;
        match state.tenant == *asked.caller.tenant {
            true => Ok((session, state, run)),
            false => Err(unknown()),
        }
    }

    /// Returns the session that a run belongs to, as it is.
    pub(crate) async fn session_with(
        &self,
        adjourn: &Adjourn<S>,
        run: RunId,
    ) -> Result<Option<(SessionRef<S>, Arc<Session>)>, adjourn::Error> {
        if let Some(known) = self.folded.session_of(run) {
            let session = adjourn.session(known);
            match session.load().await {
                Ok(state) if !is_exported(&state) => return Ok(Some((session, state))),
                // It may go on in another session by now.
                Ok(_) | Err(adjourn::Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(session) = adjourn.session_of(run).await? else { return Ok(None) };
        self.folded.know(run, session.id());
        let state = session.load().await?;
        Ok(Some((session, state)))
    }

    /// Returns a task that a commit has changed, as of that commit or later.
    pub(crate) async fn after(
        &self,
        session: SessionRef<S>,
        run: RunId,
        seen: &Arc<Session>,
        family: Family,
    ) -> Result<Found<S>, Error> {
        let runs = self.folded.runs_at(&session, seen).await;
        let runs = runs.map_err(|error| Error::of(error, &run.to_string(), family))?;
        Ok(Found { session, runs, run })
    }

    /// Waits until a task is as it is to be, for as long as there is patience and a server.
    pub(crate) async fn wait(
        &self,
        asked: &Asked<'_>,
        found: Found<S>,
        patience: Duration,
        is_there: impl Fn(&Runs) -> bool,
    ) -> Result<Found<S>, Error> {
        if is_there(&found.runs) {
            return Ok(found);
        }
        let Found { session, runs, run } = found;
        let mut runs = Arc::unwrap_or_clone(runs);
        let waited = asked.wait_for(patience, async {
            let Some(state) = runs.session() else { return Ok(()) };
            let mut moments = session.watch().after(state).await?;
            while let Some(moment) = moments.next().await? {
                runs.apply(&moment);
                // What a commit passes through is not where it leaves the task.
                if moment.ends && (runs.get(run).is_none() || is_there(&runs)) {
                    break;
                }
            }
            Ok(())
        });
        // With patience at its end, the task is where it is.
        if let Some(Err(error)) = waited.await {
            return Err(Error::of(error, &run.to_string(), Family::Standard));
        }
        Ok(Found { session, runs: Arc::new(runs), run })
    }

    /// Shows a task to a peer.
    pub(crate) async fn show(
        &self,
        asked: &Asked<'_>,
        found: &Found<S>,
        wanted: Wanted,
    ) -> Result<Task, Error> {
        let (task, family) = (found.run.to_string(), asked.method.family);
        let Some(run) = found.run() else { return Err(Error::no_task(&task, family)) };
        let viewer = viewer(asked);
        let shown = projection::task(&found.session, &found.runs, run, wanted, viewer).await;
        shown
            .map_err(|error| Error::of(error, &task, family))?
            .ok_or_else(|| Error::no_task(&task, family))
    }

    /// Returns the runs of a session.
    pub(crate) async fn runs_of(
        &self,
        session: &SessionRef<S>,
    ) -> Result<Arc<Runs>, adjourn::Error> {
        self.folded.runs(session).await
    }

    /// Returns the runs of the session that one was before it was taken in, if that is in this store.
    pub(crate) async fn runs_before(
        &self,
        session: &SessionRef<S>,
        runs: &Runs,
    ) -> Result<Option<Arc<Runs>>, adjourn::Error> {
        self.folded.before(session, runs).await
    }

    /// Returns the runs of a session, at least as far as the state in which it was seen.
    pub(crate) async fn runs_at(
        &self,
        session: &SessionRef<S>,
        seen: &Arc<Session>,
    ) -> Result<Arc<Runs>, adjourn::Error> {
        self.folded.runs_at(session, seen).await
    }
}

/// Returns whether a session goes on elsewhere; that may be in another session of the same store.
pub(crate) const fn is_exported(session: &Session) -> bool {
    matches!(session.state, State::Ended(Ended { how: SessionEnd::Exported, .. }))
}

/// Returns to whom tasks are shown.
pub(crate) fn viewer(asked: &Asked<'_>) -> Viewer {
    Viewer { activated: asked.activated, may_resume: asked.caller.may(Scope::Resume) }
}

/// Puts a task into the result of a send, or the message that answers it.
pub(crate) fn sent(task: &Task, version: Version) -> String {
    let (name, sent) = match task.direct_answer() {
        Some(answer) => {
            let mut answer = answer.written(&task.id, &task.context, version);
            // The task is over, and no message to it would be taken.
            answer.task_id = None;
            ("message", to_json(&answer))
        }
        None => ("task", to_json(&task.written(version))),
    };
    match version {
        Version::V03 => sent,
        Version::V03Proto | Version::V10 => format!(r#"{{"{name}":{sent}}}"#),
    }
}

/// Writes JSON.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    // Nothing that is written here has anything but texts as keys, and so it cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}
