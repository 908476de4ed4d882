//! Sessions whose recipients are to be looked at.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use adjourn_core::id::SessionId;
use tokio::sync::Notify;

/// Sessions that something has happened to, for one who tells recipients of it.
#[derive(Debug, Default)]
pub(crate) struct Rung {
    sessions: Mutex<HashSet<SessionId>>,
    rings: Notify,
}

impl Rung {
    /// Takes note that something has happened to a session.
    pub(crate) fn ring(&self, id: SessionId) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        self.rings.notify_one();
    }

    /// Returns the sessions that something has happened to since the last time.
    pub(crate) fn take(&self) -> HashSet<SessionId> {
        std::mem::take(&mut *self.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something has happened.
    pub(crate) async fn rings(&self) {
        self.rings.notified().await;
    }
}
