//! Taking a session from its host.

use std::future::IntoFuture;
use std::sync::Arc;

use adjourn_core::actor::Actor;
use adjourn_core::command::{Loss, Recover};
use adjourn_core::id::HostId;
use adjourn_core::{Command, Session};
use adjourn_store::{CommandError, Done, Request, Sqlite, Store, Transaction};

use crate::committing::Committing;
use crate::error::Error;
use crate::session_ref::SessionRef;

/// A session that is about to be taken from its host; see [`SessionRef::take_over`].
///
/// Awaited, it resolves at the commit that takes it. Whose it is, is found in that commit.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the session is taken all the same.
#[must_use = "nothing happens before it is awaited"]
pub struct TakeoverBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
}

/// What came of taking a session from its host.
#[derive(Debug, Clone)]
pub enum TakenOver {
    /// It was taken.
    From {
        /// The host that had it.
        host: HostId,
        /// The commit that took it.
        commit: Done,
    },
    /// No host had it, and nothing has changed.
    Nobody(Arc<Session>),
}

impl<S: Store> TakeoverBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>) -> Self {
        Self { by: session.by(), session }
    }

    /// Names who takes it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    async fn commit(self) -> Result<TakenOver, Error> {
        let Self { session, by } = self;
        let id = session.id();
        let take = move |tx: &mut Transaction<'_>| -> Result<TakenOver, CommandError> {
            let session = tx.session(id)?.ok_or(CommandError::NotFound(id))?;
            let Some(owner) = session.owner() else { return Ok(TakenOver::Nobody(session)) };
            let recover = Recover { host: owner.host, epoch: owner.epoch, how: Loss::Takeover };
            let commit = tx.command(Request::new(id, by, Command::Recover(recover)))?;
            Ok(TakenOver::From { host: owner.host, commit })
        };
        Ok(session.adjourn().transact(take).await?)
    }
}

impl<S: Store> IntoFuture for TakeoverBuilder<S> {
    type Output = Result<TakenOver, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(self.commit())
    }
}
