//! Requests of ours that a client has not answered, and the session that each is for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use adjourn_core::id::SessionId;

use crate::rpc::Id;

/// What a connection asks its client. An answer goes to the session that asked, and to no other.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The number of the last request.
    last: AtomicU64,
    open: Mutex<HashMap<Id, SessionId>>,
}

impl Asked {
    /// Returns the id of a request that a session is about to make.
    pub(crate) fn by(&self, session: SessionId) -> Id {
        let id = Id::number(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        self.open().insert(id.clone(), session);
        id
    }

    /// Returns the session that made a request, once: it is answered, or taken back.
    pub(crate) fn over(&self, id: &Id) -> Option<SessionId> {
        self.open().remove(id)
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<Id, SessionId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
