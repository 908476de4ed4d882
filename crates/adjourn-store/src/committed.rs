//! What commits have changed, for those who wait for it: the commits of this process as they were
//! made, those of other processes as they are found in the journal.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use adjourn_core::{Event, Session};

use crate::rows::EntryNo;

/// What one decision did to a session.
#[derive(Debug)]
pub struct Change {
    /// The session as the decision left it.
    pub session: Arc<Session>,
    /// What happened, in order; the last event has the session's revision.
    pub events: Arc<[Event]>,
    /// What was said with it: the last entries of the session's transcript.
    pub said: Vec<Vec<u8>>,
}

impl Change {
    /// Returns the revision of its first event.
    pub fn first_revision(&self) -> u64 {
        (self.session.revision + 1).saturating_sub(self.events.len() as u64)
    }
}

/// What one commit of this process has changed; it is durable.
#[derive(Debug, Default)]
pub struct Committed {
    /// The first and the last of its entries in the journal; nothing if it has none.
    pub entries: Option<(EntryNo, EntryNo)>,
    /// What it did to sessions, in order.
    pub changes: Vec<Arc<Change>>,
    /// Whether it may have left work for a host that no session's state shows: an event that is to
    /// be delivered, or a gate that is open again.
    pub leaves_work: bool,
}

impl Committed {
    /// Adds the entries that were appended behind those that it has.
    pub(crate) fn extend(&mut self, later: Self) {
        self.entries = match (self.entries, later.entries) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (entries, None) | (None, entries) => entries,
        };
        self.changes.extend(later.changes);
        self.leaves_work |= later.leaves_work;
    }
}

/// An entry that some process has appended, and where its session stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The entry's place in the journal of all sessions.
    pub no: EntryNo,
    /// Its session; nothing if that was removed since.
    pub session: Option<SessionId>,
    /// The entry's revision.
    pub revision: u64,
    /// Whether the session waits to be claimed now.
    pub is_ready: bool,
    /// When a deadline of the session acts.
    pub due: Option<Timestamp>,
}

/// Whoever is told of the commits of this process.
pub trait Listener: Send + Sync {
    /// Takes note of a commit, before those are answered whose commands are in it. It is called on
    /// the thread that writes or on the one that tells, so it must not wait.
    fn committed(&self, committed: &Committed);
}

/// Those who are told of commits, as long as they are there.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<Weak<dyn Listener>>>);

impl Listeners {
    pub(crate) fn add(&self, listener: Weak<dyn Listener>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|listener| listener.strong_count() > 0);
        all.push(listener);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(crate) fn tell(&self, committed: &Committed) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in all.iter().filter_map(Weak::upgrade) {
            listener.committed(committed);
        }
    }
}
