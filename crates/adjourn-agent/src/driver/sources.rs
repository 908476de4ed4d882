//! Tools that have to be looked for: those of servers, which each driver has for itself.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use adjourn_core::Session;
use adjourn_driver::{BoxFuture, Environment};

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
}

impl Sources {
    /// Takes the sources of an agent for one driver.
    pub(super) fn new(sources: &[Arc<dyn ToolSource>]) -> Self {
        let own =
            |source: &Arc<dyn ToolSource>| source.instance().unwrap_or_else(|| Arc::clone(source));
        Self { all: sources.iter().map(own).collect(), told: Arc::default() }
    }

    /// Looks for tools everywhere at once. What was found comes in the order of the sources.
    pub(super) async fn look(
        &self,
        session: &Arc<Session>,
        environment: &Arc<Environment>,
    ) -> Vec<Found> {
        let tools = |source: &Arc<dyn ToolSource>| {
            source.tools(Arc::clone(session), Arc::clone(environment))
        };
        all(self.all.iter().map(tools).collect()).await
    }

    /// Looks everywhere at once for a toolbox that is `wanted`, and no longer than until one is found.
    /// Without one, it returns the first failure in the order of the sources, if there was any.
    pub(super) async fn find(
        &self,
        session: &Arc<Session>,
        environment: &Arc<Environment>,
        wanted: impl Fn(&Toolbox) -> bool,
    ) -> Result<Option<Arc<Toolbox>>, ToolError> {
        let tools = |source: &Arc<dyn ToolSource>| {
            Some(source.tools(Arc::clone(session), Arc::clone(environment)))
        };
        let mut looking: Vec<_> = self.all.iter().map(tools).collect();
        let mut failures: Vec<Option<ToolError>> = looking.iter().map(|_| None).collect();
        let found = poll_fn(|context| {
            for (looked, failed) in looking.iter_mut().zip(&mut failures) {
                let Some(source) = looked else { continue };
                let Poll::Ready(found) = source.as_mut().poll(context) else { continue };
                *looked = None;
                match found {
                    Ok(toolbox) if wanted(&toolbox) => return Poll::Ready(Some(toolbox)),
                    Ok(_) => {}
                    Err(error) => *failed = Some(error),
                }
            }
            if looking.iter().all(Option::is_none) { Poll::Ready(None) } else { Poll::Pending }
        });
        match (found.await, failures.into_iter().flatten().next()) {
            (None, Some(failure)) => Err(failure),
            (found, _) => Ok(found),
        }
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
