//! Values that sessions are given in this process, and that are stored nowhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::id::SessionId;
use adjourn_driver::Environment;

/// The values that sessions are given in this process. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Values(Arc<Mutex<HashMap<SessionId, Environment>>>);

impl Values {
    /// Adds values of a session, which hold from its next claim on.
    pub(crate) fn provide(&self, session: SessionId, values: Environment) {
        let mut all = self.all();
        let known = all.remove(&session).unwrap_or_default();
        all.insert(session, known.with(values));
    }

    /// Returns the values of a session.
    pub(crate) fn of(&self, session: SessionId) -> Environment {
        self.all().get(&session).cloned().unwrap_or_default()
    }

    /// Drops the values of a session that is over.
    pub(crate) fn forget(&self, session: SessionId) {
        self.all().remove(&session);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Environment>> {
        // Nothing that is done with it can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
