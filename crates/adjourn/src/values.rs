//! Values that sessions are given in this process, and that are stored nowhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::id::SessionId;
use adjourn_driver::Environment;
use serde_json::Value;

/// The values that sessions are given in this process. Cheap to clone.
///
/// The feed tells when a session is over, whichever process has ended or removed it.
#[derive(Clone, Default)]
pub(crate) struct Values(Arc<Mutex<HashMap<SessionId, Given>>>);

#[derive(Default)]
struct Given {
    values: Environment,
    /// Whether the session has been heard of: values may be given before it is created.
    is_created: bool,
}

impl Values {
    /// Adds values of a session, which hold from its next claim on; returns whether it has other MCP
    /// servers with them, or servers that are given other values. `stored` are the servers that the
    /// session was created with: naming them again changes nothing.
    pub(crate) fn provide(
        &self,
        session: SessionId,
        values: Environment,
        stored: &[Value],
    ) -> bool {
        let mut all = self.all();
        let known = &mut all.entry(session).or_default().values;
        let before = known.clone();
        *known = std::mem::take(known).with(values);
        let were = before.servers.as_deref().unwrap_or(stored);
        known.servers.as_deref().unwrap_or(stored) != were
            || known.mcp_servers != before.mcp_servers
    }

    /// Returns the values of a session.
    pub(crate) fn of(&self, session: SessionId) -> Environment {
        self.all().get(&session).map(|given| given.values.clone()).unwrap_or_default()
    }

    /// Takes note that a session is there; returns whether it has values.
    pub(crate) fn is_created(&self, session: SessionId) -> bool {
        match self.all().get_mut(&session) {
            Some(given) => {
                given.is_created = true;
                true
            }
            None => false,
        }
    }

    /// Returns the sessions that have values and have been heard of.
    pub(crate) fn created(&self) -> Vec<SessionId> {
        let all = self.all();
        all.iter().filter(|(_, given)| given.is_created).map(|(id, _)| *id).collect()
    }

    /// Drops the values of a session that is over.
    pub(crate) fn forget(&self, session: SessionId) {
        self.all().remove(&session);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Given>> {
        // Nothing that is done with it can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use adjourn_core::driver::DriverSpec;
    use tempfile::TempDir;

    use super::*;
    use crate::adjourn::Adjourn;

    fn secret() -> Environment {
        let variables = [("TOKEN".to_owned(), "secret".to_owned())].into();
        Environment { variables, ..Environment::default() }
    }

    #[tokio::test]
    async fn values_go_with_their_session_whichever_process_ends_it() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("store.db");
        let here = Adjourn::open(path.clone()).await.unwrap();
        let elsewhere = Adjourn::open(path).await.unwrap();
        let kept = here.create_with(DriverSpec::script("{}")).await.unwrap();
        kept.provide(secret());
        for (by, removes) in
            [(&here, false), (&here, true), (&elsewhere, false), (&elsewhere, true)]
        {
            let session = here.create_with(DriverSpec::script("{}")).await.unwrap();
            session.provide(secret());
            let values = &here.process().values;
            let ended = by.session(session.id());
            assert_eq!(values.of(session.id()), secret());
            match removes {
                true => drop(ended.remove().await.unwrap()),
                false => drop(ended.close().await.unwrap()),
            }
            here.feed().catch_up().unwrap();
            assert_eq!(values.of(session.id()), Environment::default(), "{removes}");
            assert_eq!(values.of(kept.id()), secret());
            if !removes {
                session.provide(secret());
                assert_eq!(values.of(session.id()), Environment::default(), "it is over");
            }
        }
    }
}
