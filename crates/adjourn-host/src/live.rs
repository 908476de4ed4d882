//! Live text: words of a step as they come, for those in this process who watch its session.
//!
//! It is a preview of the journal, which is the truth: a delta that a watcher misses comes with the
//! entry that has it, and one that never comes there was broken off.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::id::SessionId;
use tokio::sync::broadcast;

pub use crate::drive::Delta;

/// How many deltas a watcher may be behind; what it misses, it gets from the journal.
const BEHIND: usize = 256;

/// The sessions of this process whose words are watched.
#[derive(Debug, Clone, Default)]
pub struct Live(Arc<Mutex<HashMap<SessionId, broadcast::Sender<Arc<Delta>>>>>);

impl Live {
    /// Watches the words of a session from now on.
    pub fn watch(&self, session: SessionId) -> broadcast::Receiver<Arc<Delta>> {
        let mut watched = self.watched();
        // Senders without a watcher are dropped here, so that their number stays that of watchers.
        watched.retain(|_, sender| sender.receiver_count() > 0);
        watched.entry(session).or_insert_with(|| broadcast::channel(BEHIND).0).subscribe()
    }

    /// Hands words to those who watch the session.
    pub(crate) fn tell(&self, session: SessionId, delta: Delta) {
        if let Some(sender) = self.watched().get(&session) {
            // Without a watcher it goes nowhere.
            let _ = sender.send(Arc::new(delta));
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<SessionId, broadcast::Sender<Arc<Delta>>>> {
        // Nothing that is done with it can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
