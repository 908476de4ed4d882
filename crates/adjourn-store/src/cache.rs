//! Sessions that were folded lately, so that most commands need not fold again.
//!
//! An optimisation: what is here is used only up to the revision that the transaction sees, and
//! folded on from there if another process went further.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::Session;

use crate::rows::SessionNo;

/// How many sessions are kept: at one or two KiB each, a few MiB.
const SESSIONS: usize = 4096;

/// A bounded set of folded sessions.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    sessions: Mutex<HashMap<SessionNo, Arc<Session>>>,
}

impl Cache {
    pub(crate) fn get(&self, no: SessionNo) -> Option<Arc<Session>> {
        self.lock().get(&no).cloned()
    }

    pub(crate) fn put(&self, no: SessionNo, session: &Arc<Session>) {
        let mut sessions = self.lock();
        // Which of them are in use cannot be told cheaply; those that are come back at once.
        if sessions.len() >= SESSIONS && !sessions.contains_key(&no) {
            sessions.clear();
        }
        sessions.insert(no, Arc::clone(session));
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionNo, Arc<Session>>> {
        // A panic elsewhere leaves whole sessions here, never half of one.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
