//! Options: how a client chooses how an agent works.

use std::future::IntoFuture;

use adjourn_core::Command;
use adjourn_core::actor::Actor;
use adjourn_core::command::SetOption;
use adjourn_store::{Done, Request, Sqlite, Store};

use crate::committing::Committing;
use crate::error::Error;
use crate::session_ref::SessionRef;

/// A choice that is about to be made; see [`SessionRef::set_option`].
///
/// Awaited, it resolves at the commit that makes it.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the option is set all the same.
#[must_use = "nothing happens before it is awaited"]
pub struct SetOptionBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    set: SetOption,
}

impl<S: Store> SetOptionBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>, set: SetOption) -> Self {
        Self { by: session.by(), session, set }
    }

    /// Names who asks for it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    async fn commit(self) -> Result<Done, Error> {
        let Self { session, by, set } = self;
        let request = Request::new(session.id(), by, Command::SetOption(set));
        session.adjourn().give(request).await
    }
}

impl<S: Store> IntoFuture for SetOptionBuilder<S> {
    type Output = Result<Done, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(self.commit())
    }
}
