//! Removing a session: its end, and the erasure of what happened in it.

use std::future::IntoFuture;

use adjourn_core::actor::Actor;
use adjourn_core::command::Close;
use adjourn_core::session::State;
use adjourn_core::{Command, Rejected};
use adjourn_store::{CommandError, Erased, Request, Sqlite, Store, Transaction};

use crate::committing::Committing;
use crate::error::{Error, StoreError};
use crate::session_ref::SessionRef;

/// A session that is about to be removed; see [`SessionRef::remove`].
///
/// Awaited, it resolves when everything is erased: the first commit ends the session, so that it is
/// gone for everyone, and further ones erase what a long session has left. If one of these fails, it
/// says that there is [more](Erased::more), which a host erases later. A session that is at work or
/// parked is refused as busy, unless that is said not to matter.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the session is removed all the same.
#[must_use = "nothing happens before it is awaited"]
pub struct RemoveBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    even_at_work: bool,
    even_unreadable: bool,
}

impl<S: Store> RemoveBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>) -> Self {
        Self { by: session.by(), session, even_at_work: false, even_unreadable: false }
    }

    /// Removes it also while it is at work or parked.
    pub const fn even_at_work(mut self) -> Self {
        self.even_at_work = true;
        self
    }

    /// Removes it also if it cannot be read.
    pub const fn even_unreadable(mut self) -> Self {
        self.even_unreadable = true;
        self
    }

    /// Names who removes it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    async fn commit(self) -> Result<Erased, Error> {
        let Self { session, by, even_at_work, even_unreadable } = self;
        let (adjourn, id) = (session.adjourn(), session.id());
        let first = adjourn.transact(move |tx: &mut Transaction<'_>| match tx.session(id) {
            Ok(None) => Err(CommandError::NotFound(id)),
            Ok(Some(session)) => {
                let rests = matches!(session.state, State::Idle | State::Ended(_));
                if !rests && !even_at_work {
                    return Err(Rejected::Busy { phase: session.phase() }.into());
                }
                let close = Close { reason: Some("removed".to_owned()) };
                tx.command(Request::new(id, by, Command::Close(close)))?;
                Ok(tx.erase(id)?)
            }
            Err(error) if error.is_of_a_session() && even_unreadable => {
                Ok(tx.remove_unreadable(by, id)?)
            }
            Err(error) => Err(error.into()),
        });
        let mut erased = first.await?;
        adjourn.process().values.forget(id);
        while erased.more {
            match adjourn.transact(move |tx| tx.erase(id)).await {
                Ok(next) => erased = erased.and(next),
                // The session is gone all the same, and on the list of those that hosts erase.
                Err::<Erased, StoreError>(_) => break,
            }
        }
        Ok(erased)
    }
}

impl<S: Store> IntoFuture for RemoveBuilder<S> {
    type Output = Result<Erased, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(self.commit())
    }
}
