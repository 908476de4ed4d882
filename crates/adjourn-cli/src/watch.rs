//! Staying with a session: what it says and does, as it happens.

use std::sync::Arc;

use adjourn::watch::{Bell, Moment, Watcher};
use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_store::{Error, Sqlite};

use crate::place::Place;

/// A reader of one session that is rung when something is committed.
pub struct Watch {
    watcher: Watcher<Sqlite>,
    bell: Bell,
}

/// What has come since the last look.
pub struct Seen {
    pub session: Arc<Session>,
    pub moments: Vec<Moment>,
}

impl Watch {
    /// Watches a session from its beginning.
    pub fn from_start(place: &Place, id: SessionId) -> Self {
        Self::new(place, Watcher::from_start(place.store.clone(), id))
    }

    /// Watches what happens to a session from now on.
    pub fn after(place: &Place, session: &Session) -> Self {
        Self::new(place, Watcher::after(place.store.clone(), session))
    }

    /// Watches a session from a revision on, and returns the session before it; nothing where that
    /// cannot be.
    pub fn at(
        place: &Place,
        id: SessionId,
        revision: u64,
    ) -> Result<Option<(Session, Self)>, Error> {
        let watcher = Watcher::at(place.store.clone(), id, revision)?;
        Ok(watcher.map(|(session, watcher)| (session, Self::new(place, watcher))))
    }

    fn new(place: &Place, watcher: Watcher<Sqlite>) -> Self {
        Self { watcher, bell: Bell::new(&place.hosts, &*place.clock) }
    }

    /// Returns what has come since the last look, at once; nothing if there is no such session.
    pub fn look(&mut self) -> Result<Option<Seen>, Error> {
        // The journal is read after the session: nothing that led to this state is missed.
        let Some(session) = self.watcher.session()? else { return Ok(None) };
        Ok(Some(Seen { session, moments: self.watcher.rest()? }))
    }

    /// Returns the next page of what has come, and the session as it was before that was read.
    pub fn page(&mut self) -> Result<Option<Seen>, Error> {
        let Some(session) = self.watcher.session()? else { return Ok(None) };
        Ok(Some(Seen { session, moments: self.watcher.page()? }))
    }

    /// Returns whether there are more pages at once.
    pub fn is_behind(&self) -> bool {
        self.watcher.is_behind()
    }

    /// Waits until there may be something new.
    pub async fn wait(&self) {
        self.bell.rung_of(self.watcher.id()).await;
    }
}
