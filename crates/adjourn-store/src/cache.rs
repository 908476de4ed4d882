//! Sessions that were folded lately, so that most commands need not fold again.
//!
//! An optimisation: what is here is used only where the journal that a transaction sees goes
//! through the very entry it was folded up to, and is folded on from there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::Session;
use adjourn_record::Hash;
use adjourn_record::chain::Tip;

use crate::rows::SessionNo;

/// A session, and the link of the entry it was folded up to.
///
/// The link tells it from a session of the same revision that never came to be, because the
/// commit it was part of failed.
#[derive(Debug, Clone)]
pub(crate) struct Folded {
    pub(crate) link: Hash,
    pub(crate) session: Arc<Session>,
}

impl Folded {
    /// Returns the end of the journal that it was folded from.
    pub(crate) fn tip(&self) -> Tip {
        Tip { revision: self.session.revision, link: self.link }
    }
}

/// A bounded set of folded sessions.
#[derive(Debug)]
pub(crate) struct Cache {
    most: usize,
    sessions: Mutex<HashMap<SessionNo, Folded>>,
}

impl Cache {
    /// A cache of at most some sessions.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, sessions: Mutex::default() }
    }

    pub(crate) fn get(&self, no: SessionNo) -> Option<Folded> {
        self.lock().get(&no).cloned()
    }

    pub(crate) fn put(&self, no: SessionNo, folded: Folded) {
        let mut sessions = self.lock();
        // Which of them are in use cannot be told cheaply; those that are come back at once.
        if sessions.len() >= self.most && !sessions.contains_key(&no) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_kept_than_was_said() {
        let born = r#"{"at":0,"by":{"face":"cli"},"session_created/1":{
            "id":"sess-01a1df44-c97b-7076-bba7-8d66d49eebf9","tenant":"local",
            "driver":{"kind":{"script":{"source":"{}"}}}}}"#;
        let session = Session::born(&serde_json::from_str(born).unwrap()).unwrap();
        let folded = Folded { link: Hash::ZERO, session: Arc::new(session) };
        let cache = Cache::new(3);
        for no in 1..=100 {
            cache.put(SessionNo(no), folded.clone());
            assert!(cache.get(SessionNo(no)).is_some(), "the last one is there");
            assert!(cache.lock().len() <= 3);
        }
    }
}
