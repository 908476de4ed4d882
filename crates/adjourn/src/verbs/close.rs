//! Closing: what ends a session.

use std::future::IntoFuture;

use adjourn_core::Command;
use adjourn_core::actor::Actor;
use adjourn_core::command::Close;
use adjourn_store::{Done, Request, Sqlite, Store};

use crate::committing::Committing;
use crate::error::Error;
use crate::session_ref::SessionRef;

/// A session that is about to be ended; see [`SessionRef::close`].
///
/// Awaited, it resolves at the commit that ends it, whatever it was doing.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the session is ended all the same.
#[must_use = "nothing happens before it is awaited"]
pub struct CloseBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    close: Close,
}

/// A session that was ended.
#[derive(Debug, Clone)]
pub struct Closed {
    /// The commit that ended it.
    pub commit: Done,
}

impl<S: Store> CloseBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>, close: Close) -> Self {
        Self { by: session.by(), session, close }
    }

    /// Says why.
    pub fn reason(mut self, reason: impl Into<Option<String>>) -> Self {
        self.close.reason = reason.into();
        self
    }

    /// Names who ends it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    async fn commit(self) -> Result<Closed, Error> {
        let Self { session, by, close } = self;
        let request = Request::new(session.id(), by, Command::Close(close));
        let commit = session.adjourn().give(request).await?;
        Ok(Closed { commit })
    }
}

impl<S: Store> IntoFuture for CloseBuilder<S> {
    type Output = Result<Closed, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(self.commit())
    }
}
