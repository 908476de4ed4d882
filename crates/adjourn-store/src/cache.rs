//! Sessions that were folded lately, so that most commands need not fold again.
//!
//! An optimisation: what is here is used only where the journal that a transaction sees goes
//! through the very entry it was folded up to, and is folded on from there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::Session;
use adjourn_record::Hash;

use crate::rows::SessionNo;

/// How many sessions are kept: at one or two KiB each, a few MiB.
const SESSIONS: usize = 4096;

/// A session, and the link of the entry it was folded up to.
///
/// The link tells it from a session of the same revision that never came to be, because the
/// commit it was part of failed.
#[derive(Debug, Clone)]
pub(crate) struct Folded {
    pub(crate) link: Hash,
    pub(crate) session: Arc<Session>,
}

/// A bounded set of folded sessions.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    sessions: Mutex<HashMap<SessionNo, Folded>>,
}

impl Cache {
    pub(crate) fn get(&self, no: SessionNo) -> Option<Folded> {
        self.lock().get(&no).cloned()
    }

    pub(crate) fn put(&self, no: SessionNo, folded: Folded) {
        let mut sessions = self.lock();
        // Which of them are in use cannot be told cheaply; those that are come back at once.
        if sessions.len() >= SESSIONS && !sessions.contains_key(&no) {
            sessions.clear();
        }
        sessions.insert(no, folded);
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionNo, Folded>> {
        // A panic elsewhere leaves whole sessions here, never half of one.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
