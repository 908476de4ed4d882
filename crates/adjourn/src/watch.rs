//! Staying with a session: what it says and does, as it happens.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::event::Event;
use adjourn_core::id::SessionId;
use adjourn_host::said::Said;
use adjourn_host::watch::{Bell, Watcher};
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
    pub events: Vec<Event>,
    pub said: Vec<Said>,
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

    fn new(place: &Place, watcher: Watcher<Sqlite>) -> Self {
        Self { watcher, bell: Bell::new(&place.hosts, &*place.clock) }
    }

    /// Returns what has come since the last look, at once; nothing if there is no such session.
    pub fn look(&mut self) -> Result<Option<Seen>, Error> {
        // The journal is read after the session: nothing that led to this state is missed.
        let Some(session) = self.watcher.session()? else { return Ok(None) };
        let moments = self.watcher.rest()?;
        let (events, said): (Vec<_>, Vec<_>) =
            moments.into_iter().map(|moment| (moment.event, moment.said)).unzip();
        Ok(Some(Seen { session, events, said: said.into_iter().flatten().collect() }))
    }

    /// Waits until there may be something new.
    pub async fn wait(&self) {
        self.bell.rung().await;
    }
}
