//! Taking back a suspend that is pending.

use std::future::IntoFuture;

use adjourn_core::Command;
use adjourn_core::actor::Actor;
use adjourn_core::command::Withdraw;
use adjourn_core::id::RequestId;
use adjourn_store::{Done, Request, Sqlite, Store};

use crate::committing::Committing;
use crate::error::Error;
use crate::session_ref::SessionRef;

/// A suspend that is about to be taken back; see [`SessionRef::withdraw`].
///
/// Awaited, it resolves at the commit that takes it back. It is refused if the pause is in force by
/// then, or the request has none.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the suspend is taken back all the same.
#[must_use = "nothing happens before it is awaited"]
pub struct WithdrawBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    request: RequestId,
}

/// A suspend that was taken back.
#[derive(Debug, Clone)]
pub struct Withdrawn {
    /// Whether the session will be paused all the same, because others want it, too.
    pub still_pending: bool,
    /// The commit that took it back.
    pub commit: Done,
}

impl<S: Store> WithdrawBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>, request: RequestId) -> Self {
        Self { by: session.by(), session, request }
    }

    /// Names who takes it back, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    async fn commit(self) -> Result<Withdrawn, Error> {
        let Self { session, by, request } = self;
        let withdraw = Command::Withdraw(Withdraw { request });
        let commit = session.adjourn().give(Request::new(session.id(), by, withdraw)).await?;
        Ok(Withdrawn { still_pending: commit.session.pending_pause().is_some(), commit })
    }
}

impl<S: Store> IntoFuture for WithdrawBuilder<S> {
    type Output = Result<Withdrawn, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(self.commit())
    }
}
