//! Requests of this agent that its client has not answered, and the session that made each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use adjourn::core::id::SessionId;

use crate::rpc::Id;

/// The open requests of a connection. An answer goes to the session that asked, and to no other.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    /// The number of the last request.
    last: AtomicU64,
    open: Mutex<HashMap<Id, SessionId>>,
}

impl PendingRequests {
    /// Registers a request that a session is about to make, and returns its id.
    pub(crate) fn register(&self, session: SessionId) -> Id {
        let id = Id::number(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        self.open().insert(id.clone(), session);
        id
    }

    /// Removes a request that is answered or taken back, and returns the session that made it.
    pub(crate) fn settle(&self, id: &Id) -> Option<SessionId> {
        self.open().remove(id)
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<Id, SessionId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
