//! Tools that have to be looked for: those of servers, which each driver has for itself.

use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use adjourn_core::Session;
use adjourn_driver::{BoxFuture, Environment};

use super::place::SourceId;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::tool::{ToolError, ToolSource, Toolbox};

/// What one source has, or why it has nothing.
pub(super) type Found = Result<Arc<Toolbox>, ToolError>;

/// The sources of one driver. Clones are the same.
#[derive(Clone)]
pub(super) struct Sources {
    all: Arc<[Arc<dyn ToolSource>]>,
    /// What the agent was told of failures in this turn: it is not told twice.
    told: Arc<Mutex<BTreeSet<String>>>,
    /// Which source had a tool when the model was told of it last, by the tool's name.
    owners: Arc<Mutex<HashMap<String, usize>>>,
}

/// What sources are asked for beside one another, and what they have answered so far.
struct Looking {
    asked: Vec<BoxFuture<'static, Found>>,
    found: Vec<Option<Found>>,
}

impl Looking {
    fn at(
        sources: &[Arc<dyn ToolSource>],
        session: &Arc<Session>,
        environment: &Arc<Environment>,
    ) -> Self {
        let tools = |source: &Arc<dyn ToolSource>| {
            source.tools(Arc::clone(session), Arc::clone(environment))
        };
        let asked: Vec<_> = sources.iter().map(tools).collect();
        let found = asked.iter().map(|_| None).collect();
        Self { asked, found }
    }

    /// Waits for every source.
    fn poll_all(&mut self, context: &mut Context<'_>) -> Poll<()> {
        for (asked, found) in self.asked.iter_mut().zip(&mut self.found) {
            if found.is_none()
                && let Poll::Ready(ready) = asked.as_mut().poll(context)
            {
                *found = Some(ready);
            }
        }
        if self.found.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits for the first source that has a tool, and for all before it; for none behind it.
    fn poll_first(&mut self, context: &mut Context<'_>, tool: &str) -> Poll<Option<Arc<Toolbox>>> {
        let _ = self.poll_all(context);
        for found in &self.found {
            match found {
                Some(Ok(toolbox)) if toolbox.get(tool).is_some() => {
                    return Poll::Ready(Some(Arc::clone(toolbox)));
                }
                Some(_) => {}
                None => return Poll::Pending,
            }
        }
        Poll::Ready(None)
    }
}

impl Sources {
    /// Takes the sources of an agent for one driver.
    pub(super) fn new(sources: &[Arc<dyn ToolSource>]) -> Self {
        let own =
            |source: &Arc<dyn ToolSource>| source.instance().unwrap_or_else(|| Arc::clone(source));
        let all = sources.iter().map(own).collect();
        Self { all, told: Arc::default(), owners: Arc::default() }
    }

    /// Returns which source the one at a place is.
    pub(super) fn id(&self, place: usize) -> SourceId {
        let name = self.all.get(place).and_then(|source| source.name());
        name.map_or(SourceId::Place(place), SourceId::Name)
    }

    /// Looks for tools everywhere at once, for as long as the most patient source is waited for. What was
    /// found comes in the order of the sources.
    pub(super) async fn look(
        &self,
        session: &Arc<Session>,
        environment: &Arc<Environment>,
        clock: &dyn Clock,
    ) -> Vec<Found> {
        let within = self.all.iter().map(|source| source.patience()).max().unwrap_or_default();
        let mut looking = Looking::at(&self.all, session, environment);
        tokio::select! {
            biased;
            () = poll_fn(|context| looking.poll_all(context)) => {}
            () = clock.sleep(within) => {}
        }
        let why = || ToolError::new(format!("its tools did not come in {} s", within.as_secs()));
        let found: Vec<Found> =
            looking.found.into_iter().map(|found| found.unwrap_or_else(|| Err(why()))).collect();
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.clear();
        for (place, toolbox) in found.iter().enumerate() {
            for spec in toolbox.iter().flat_map(|toolbox| toolbox.specs()) {
                owners.entry(spec.name.clone()).or_insert(place);
            }
        }
        drop(owners);
        found
    }

    /// Looks for the toolbox with a tool, in the source that had it when the model was told of it, or
    /// else in all that may have it: then the first of them counts, and those behind it are not waited
    /// for. Without one, it returns the failure of the first source that failed, and which it is.
    pub(super) async fn find(
        &self,
        session: &Arc<Session>,
        environment: &Arc<Environment>,
        tool: &str,
    ) -> Result<Option<Arc<Toolbox>>, (SourceId, ToolError)> {
        let owner = self.owners.lock().unwrap_or_else(PoisonError::into_inner).get(tool).copied();
        let asked: Vec<(usize, Arc<dyn ToolSource>)> = match owner {
            Some(place) => {
                self.all.get(place).map(|own| (place, Arc::clone(own))).into_iter().collect()
            }
            None => {
                let all = self.all.iter().cloned().enumerate();
                all.filter(|(_, source)| source.may_have(tool)).collect()
            }
        };
        let sources: Vec<_> = asked.iter().map(|(_, source)| Arc::clone(source)).collect();
        let mut looking = Looking::at(&sources, session, environment);
        let found = poll_fn(|context| looking.poll_first(context, tool)).await;
        if found.is_some() {
            return Ok(found);
        }
        let mut failures = asked.iter().zip(looking.found);
        let failure =
            failures.find_map(|((place, _), found)| Some((self.id(*place), found?.err()?)));
        failure.map_or(Ok(None), Err)
    }

    /// Takes note of a failure, and returns whether the agent was not told of it in this turn.
    pub(super) fn is_untold(&self, failure: &Failure) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(failure.to_string())
    }

    /// Takes note that a turn begins: what failed before is tried again, and told again.
    pub(super) async fn begin_turn(&self) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let closed = self.all.iter().filter(|source| !source.is_open());
        all(closed.map(|source| source.close()).collect()).await;
    }

    /// Returns whether one of them has something that is worth keeping.
    pub(super) fn are_open(&self) -> bool {
        self.all.iter().any(|source| source.is_open())
    }

    /// Ends what they have outside of this process.
    pub(super) fn close(&self) -> BoxFuture<'static, ()> {
        let closing = self.all.iter().map(|source| source.close()).collect();
        Box::pin(async move {
            all(closing).await;
        })
    }
}

/// Runs futures beside one another to their ends.
async fn all<T>(mut futures: Vec<BoxFuture<'static, T>>) -> Vec<T> {
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *result = Some(ready);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
