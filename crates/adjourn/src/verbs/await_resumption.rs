//! Awaits of workers outside a host: the agent's own parks, asked for by a program that holds no claim.

use std::future::IntoFuture;
use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::actor::Actor;
use adjourn_core::command::AwaitResumption;
use adjourn_core::conditions::Conditions;
use adjourn_core::facts::SpanLinks;
use adjourn_core::id::RunId;
use adjourn_driver::BoxFuture;
use adjourn_store::{Request, Sqlite, Store};
use serde_json::Value;

use super::suspend::{self, Accepted, Suspension};
use super::unheard_of;
use crate::committing::Committing;
use crate::error::Error;
use crate::session_ref::SessionRef;

/// A park that a worker is about to ask for; see [`SessionRef::await_resumption`].
///
/// Awaited, it resolves at the commit with which the agent is parked: at once between two steps, and
/// else when the step under way is over. [`AwaitBuilder::accepted`] resolves earlier. If the run ends
/// with that step, or its agent parks itself, nothing comes of it
/// ([`NotSuspended::Overtaken`](crate::NotSuspended::Overtaken)).
///
/// A worker that tries again joins what it has asked for before: it gets the same handle.
///
/// # Cancel safety
/// Dropped before it was polled, nothing has happened. Dropped later, the park is asked for all the
/// same, and nothing takes it back.
#[must_use = "nothing happens before it is awaited"]
pub struct AwaitBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    wait: AwaitResumption,
    on_event: Option<String>,
    timeout: Option<Duration>,
    spans: SpanLinks,
    run: Option<RunId>,
}

impl<S: Store> AwaitBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>, wait: AwaitResumption) -> Self {
        let (by, spans) = (session.by(), SpanLinks { prior: None, pipeline: None });
        Self { session, by, wait, on_event: None, timeout: None, spans, run: None }
    }

    /// Lets an event end it: `ci.passed`, `ci.*`, or `ci.passed:pr/12` with the subject.
    pub fn on_event(mut self, pattern: impl Into<String>) -> Self {
        self.on_event = Some(pattern.into());
        self
    }

    /// Ends it after so much time, counted from when it is in force.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Says what ends it, besides a resume; [`AwaitBuilder::on_event`] and [`AwaitBuilder::timeout`]
    /// add to it.
    pub fn conditions(mut self, conditions: impl Into<Option<Conditions>>) -> Self {
        self.wait.conditions = conditions.into();
        self
    }

    /// Says what to show meanwhile.
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.wait.summary = Some(summary.into());
        self
    }

    /// Adds what is kept with it, and told with it.
    pub fn meta(mut self, meta: impl Into<Option<Value>>) -> Self {
        self.wait.meta = meta.into();
        self
    }

    /// Names the traces it belongs to.
    pub fn spans(mut self, spans: SpanLinks) -> Self {
        self.spans = spans;
        self
    }

    /// Names the run that is meant: if another is under way by then, or none, it is refused.
    pub const fn of_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Names who asks for it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    /// Asks for the park, and does not wait until it is in force.
    ///
    /// Resolves at the commit that accepts it; [`SessionRef::in_force`] waits for the rest.
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, the park is asked for all the same.
    pub fn accepted(self) -> Committing<Result<Accepted<()>, Error>> {
        Committing::new(self.ask())
    }

    async fn ask(self) -> Result<Accepted<()>, Error> {
        let Self { session, by, mut wait, on_event, timeout, spans, run } = self;
        wait.conditions = suspend::conditions(wait.conditions, on_event, timeout)?;
        let command = Command::AwaitResumption(wait);
        let mut request = Request::new(session.id(), by, command).of_run(run);
        request.spans = spans;
        let commit = session.adjourn().give(request).await?;
        // A commit without events has joined what is there.
        let there = || commit.session.agents_pause().map(|pause| pause.handle);
        let handle = suspend::asked(&commit).or_else(there);
        let handle = handle.ok_or_else(|| unheard_of(&commit, "an await asked for no park"))?;
        let suspension = suspend::begun(&commit, handle);
        Ok(Accepted { request: (), handle, suspension, commit })
    }
}

impl<S: Store> IntoFuture for AwaitBuilder<S> {
    type Output = Result<Suspension, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let session = self.session.clone();
            let accepted = self.accepted().await?;
            session.in_force(&accepted).await
        })
    }
}
