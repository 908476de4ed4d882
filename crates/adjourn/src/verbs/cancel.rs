//! Cancels: what ends a run.

use std::future::IntoFuture;
use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::actor::Actor;
use adjourn_core::command::Cancel;
use adjourn_core::event::{RunEnded, What};
use adjourn_core::id::RunId;
use adjourn_store::{Done, Request, Sqlite, Store};

use crate::committing::Committing;
use crate::error::Error;
use crate::finished::FinishedRun;
use crate::session_ref::SessionRef;

/// A cancel that is about to be asked for; see [`SessionRef::cancel`].
///
/// Awaited, it resolves at the commit that accepts it: with it nothing new starts. A session that
/// rests is at its end with the same commit; one that runs has its grace for what is in flight.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the run is canceled all the same.
#[must_use = "nothing happens before it is awaited"]
pub struct CancelBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    cancel: Cancel,
    run: Option<RunId>,
}

/// A cancel that was accepted.
#[derive(Debug, Clone)]
pub struct Canceled {
    /// The run, if the same commit ended it.
    pub ended: Option<FinishedRun>,
    /// The commit that accepted it.
    pub commit: Done,
}

impl<S: Store> CancelBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>, cancel: Cancel) -> Self {
        Self { by: session.by(), session, cancel, run: None }
    }

    /// Says why.
    pub fn reason(mut self, reason: impl Into<Option<String>>) -> Self {
        self.cancel.reason = reason.into();
        self
    }

    /// Says how long calls in flight may go on; then they are abandoned, and their outcome is
    /// unknown.
    pub fn grace(mut self, grace: impl Into<Option<Duration>>) -> Self {
        let millis = |grace: Duration| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.cancel.grace_ms = grace.into().map(millis);
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

    async fn commit(self) -> Result<Canceled, Error> {
        let Self { session, by, cancel, run } = self;
        let request = Request::new(session.id(), by, Command::Cancel(cancel)).of_run(run);
        let commit = session.adjourn().give(request).await?;
        let ended = commit.events.iter().find_map(|event| match &event.what {
            What::RunEnded(ended) => Some((ended.clone(), event.at)),
            _ => None,
        });
        let ended = match ended {
            Some((RunEnded { run, end }, at)) => {
                // The run is canceled, whether or not its transcript can be read.
                let said = session.last_words(run, commit.session.transcript.length).await;
                Some(FinishedRun { id: run, end, at, last_words: said.unwrap_or_default() })
            }
            None => None,
        };
        Ok(Canceled { ended, commit })
    }
}

impl<S: Store> IntoFuture for CancelBuilder<S> {
    type Output = Result<Canceled, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(self.commit())
    }
}
