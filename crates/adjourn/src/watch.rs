//! Staying with a session: its journal and transcript as they grow.

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::event::Event;
use adjourn_core::id::{HostId, SessionId};
use adjourn_host::doorbell::Presence;
use adjourn_host::said::Said;
use adjourn_store::{Error, Store as _};

use crate::place::Place;

/// How often a watcher looks without being rung.
const LOOK: Duration = Duration::from_millis(250);
/// Entries read at a time.
const PAGE: usize = 256;

/// A reader of one session that is rung when something is committed.
pub struct Watcher {
    place: Place,
    id: SessionId,
    revision: u64,
    said: u64,
    bell: Option<Presence>,
}

/// What has come since the last look.
pub struct Seen {
    pub session: Arc<Session>,
    pub events: Vec<Event>,
    pub said: Vec<Said>,
}

impl Watcher {
    /// Watches from the revision and the transcript entry given on.
    pub fn new(place: &Place, id: SessionId, revision: u64, said: u64) -> Self {
        // Without a bell it looks a few times a second.
        let bell = place.hosts.join(HostId::new(place.clock.uuid())).ok();
        Self { place: place.clone(), id, revision, said, bell }
    }

    /// Returns what has come since the last look, at once.
    pub fn look(&mut self) -> Result<Option<Seen>, Error> {
        let store = &self.place.store;
        let Some(session) = store.session(self.id)? else { return Ok(None) };
        let mut events = Vec::new();
        while self.revision <= session.revision {
            let page = store.journal(self.id, self.revision, PAGE)?;
            let Some(last) = page.last() else { break };
            self.revision = last.revision + 1;
            events.extend(page.into_iter().map(|entry| entry.event));
        }
        let mut said = Vec::new();
        while self.said < session.transcript.length {
            let page = store.transcript(self.id, self.said, PAGE)?;
            if page.is_empty() {
                break;
            }
            self.said += page.len() as u64;
            said.extend(page.iter().filter_map(|bytes| Said::decode(bytes).ok()));
        }
        Ok(Some(Seen { session, events, said }))
    }

    /// Waits until there may be something new.
    pub async fn wait(&self) {
        let rung = async {
            match &self.bell {
                Some(bell) => bell.rung().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = rung => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
