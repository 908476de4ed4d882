//! Watching a session: its journal and transcript as they grow, page by page.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::event::Event;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::transcript::Head;
use adjourn_store::rows::EntryNo;
use adjourn_store::{Error, Store};

use crate::clock::Clock;
use crate::doorbell::{Hosts, Presence};
use crate::said::Said;

/// How often somebody who watches looks without being rung.
const LOOK: Duration = Duration::from_millis(250);
/// Entries read at a time.
const PAGE: usize = 64;

/// Something that happened, and the words that came with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// Its place in the journal.
    pub revision: u64,
    /// What happened.
    pub event: Event,
    /// Whether it is the first event of its commit.
    pub begins: bool,
    /// The number of the first of its words in the transcript.
    pub from: u64,
    /// What was said with it.
    pub said: Vec<Said>,
}

/// A reader of one session's journal, in order and without gaps.
///
/// It holds the places of what it has not read yet, and one page of it: a journal of any length
/// is read in little memory.
#[derive(Debug, Clone)]
pub struct Watcher<S> {
    store: S,
    id: SessionId,
    /// The next revision to look for.
    revision: u64,
    /// The next transcript entry.
    said: u64,
    ahead: VecDeque<EntryNo>,
}

impl<S: Store> Watcher<S> {
    /// Watches a session from its beginning.
    pub const fn from_start(store: S, id: SessionId) -> Self {
        Self { store, id, revision: 1, said: 0, ahead: VecDeque::new() }
    }

    /// Watches what happens to a session after the state it is seen in.
    pub const fn after(store: S, session: &Session) -> Self {
        let Head { length, .. } = session.transcript;
        Self {
            store,
            id: session.id,
            revision: session.revision + 1,
            said: length,
            ahead: VecDeque::new(),
        }
    }

    /// Returns the session as it is now.
    ///
    /// # Errors
    /// The store fails.
    pub fn session(&self) -> Result<Option<Arc<Session>>, Error> {
        self.store.session(self.id)
    }

    /// Returns whether more pages were found than were read.
    pub fn is_behind(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Returns the next page of what has happened, at once; it is empty if nothing has, or if it
    /// was pruned.
    ///
    /// # Errors
    /// The store fails.
    pub fn page(&mut self) -> Result<Vec<Moment>, Error> {
        self.page_before(u64::MAX)
    }

    /// Returns the next revision that it would read.
    pub const fn next_revision(&self) -> u64 {
        self.revision
    }

    /// Returns the next page of what has happened before a revision.
    ///
    /// # Errors
    /// The store fails.
    pub fn page_before(&mut self, until: u64) -> Result<Vec<Moment>, Error> {
        if self.ahead.is_empty() {
            // Most looks find nothing, and cost one indexed read.
            match self.store.session(self.id)? {
                Some(session) if session.revision >= self.revision => {}
                _ => return Ok(Vec::new()),
            }
            self.ahead = self.store.places(self.id, self.revision)?.into();
        }
        let wanted = usize::try_from(until.saturating_sub(self.revision)).unwrap_or(usize::MAX);
        let page: Vec<_> = self.ahead.drain(..self.ahead.len().min(PAGE).min(wanted)).collect();
        let entries = self.store.entries(self.id, &page)?;
        // Also over what was pruned: revisions are dense.
        self.revision += page.len() as u64;
        let end = entries.iter().filter_map(|entry| entry.event.transcript()).next_back();
        let missing = end.map_or(0, |end| end.length.saturating_sub(self.said));
        let mut words = match usize::try_from(missing).unwrap_or(usize::MAX) {
            0 => Vec::new().into_iter(),
            missing => self.store.transcript(self.id, self.said, missing)?.into_iter(),
        };
        let mut moments = Vec::with_capacity(entries.len());
        for entry in entries {
            let from = self.said;
            let to = entry.event.transcript().map_or(from, |head| head.length.max(from));
            let own = words.by_ref().take(usize::try_from(to - from).unwrap_or(usize::MAX));
            let said = own.filter_map(|bytes| Said::decode(&bytes).ok()).collect();
            self.said = to;
            let begins = entry.begins_decision();
            let (revision, event) = (entry.revision, entry.event);
            moments.push(Moment { revision, event, begins, from, said });
        }
        Ok(moments)
    }

    /// Returns everything that has happened and was not read yet.
    ///
    /// # Errors
    /// The store fails.
    pub fn rest(&mut self) -> Result<Vec<Moment>, Error> {
        let mut all = self.page()?;
        while !self.ahead.is_empty() {
            all.extend(self.page()?);
        }
        Ok(all)
    }
}

/// Rings when somebody has committed something; whoever only watches has one.
#[derive(Debug)]
pub struct Bell(Option<Presence>);

impl Bell {
    /// Hangs up a bell among those of the hosts.
    pub fn new(hosts: &Hosts, clock: &dyn Clock) -> Self {
        // Watchers end by Ctrl-C, and no host may be there that clears away after them.
        hosts.sweep();
        // Where none can be hung up, one looks a few times a second.
        Self(hosts.join(HostId::new(clock.uuid())).ok())
    }

    /// Waits until there may be something new.
    pub async fn rung(&self) {
        let rung = async {
            match &self.0 {
                Some(presence) => presence.rung().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = rung => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
