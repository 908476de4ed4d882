//! Values that sessions are given in this process, and that are stored nowhere.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_driver::Environment;
use adjourn_store::Error;
use serde_json::Value;

/// The values that sessions are given in this process. Cheap to clone.
///
/// The feed tells when a session is over, whichever process has ended or removed it.
#[derive(Clone, Default)]
pub(crate) struct Values(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    given: HashMap<SessionId, Given>,
    /// Sessions that may be over: they could not be read when they were looked at.
    unread: BTreeSet<SessionId>,
}

#[derive(Default)]
struct Given {
    values: Environment,
    /// How often the session was given other MCP servers, or other values for them: a driver is
    /// made with those of its time.
    servers: u64,
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
        let Given { values: known, servers, .. } = all.given.entry(session).or_default();
        let before = known.clone();
        *known = std::mem::take(known).with(values);
        let were = before.servers.as_deref().unwrap_or(stored);
        let changed = known.servers.as_deref().unwrap_or(stored) != were
            || known.mcp_servers != before.mcp_servers;
        *servers += u64::from(changed);
        changed
    }

    /// Returns the values of a session, and how often it was given other MCP servers.
    pub(crate) fn of(&self, session: SessionId) -> (Environment, u64) {
        let all = self.all();
        all.given
            .get(&session)
            .map(|given| (given.values.clone(), given.servers))
            .unwrap_or_default()
    }

    /// Returns how often a session was given other MCP servers, or other values for them.
    pub(crate) fn servers(&self, session: SessionId) -> u64 {
        self.all().given.get(&session).map_or(0, |given| given.servers)
    }

    /// Takes note that a session is there; returns whether it has values.
    pub(crate) fn is_created(&self, session: SessionId) -> bool {
        match self.all().given.get_mut(&session) {
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
        all.given.iter().filter(|(_, given)| given.is_created).map(|(id, _)| *id).collect()
    }

    /// Drops the values of a session that is over.
    pub(crate) fn forget(&self, session: SessionId) {
        let mut all = self.all();
        all.given.remove(&session);
        all.unread.remove(&session);
    }

    /// Drops the values of those sessions that another process has ended or removed; `read` reads
    /// one.
    ///
    /// A session that cannot be read because the store fails is looked at again the next time, and
    /// keeps its values until then. The log says so once. One that is damaged is there, and keeps
    /// them.
    pub(crate) fn forget_those_over(
        &self,
        sessions: Vec<SessionId>,
        read: impl Fn(SessionId) -> Result<Option<Arc<Session>>, Error>,
    ) {
        let unread = std::mem::take(&mut self.all().unread);
        let sessions: BTreeSet<_> = sessions.into_iter().chain(unread.iter().copied()).collect();
        for id in sessions {
            match read(id) {
                Ok(Some(session)) if !matches!(session.state, State::Ended(_)) => {}
                Ok(_) => self.forget(id),
                Err(error) if error.is_of_a_session() => {}
                Err(error) => {
                    if !unread.contains(&id) {
                        let session = tracing::field::display(id);
                        tracing::warn!(
                            session,
                            "the values of a session that may be over are kept until it can be \
                             read: {error}"
                        );
                    }
                    self.all().unread.insert(id);
                }
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        // Nothing that is done with it can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use adjourn_core::driver::DriverSpec;
    use tempfile::TempDir;

    use super::*;
    use crate::adjourn::Adjourn;

    fn secret() -> Environment {
        let variables = [("TOKEN".to_owned(), "secret".to_owned())].into();
        Environment { variables, ..Environment::default() }
    }

    #[tokio::test]
    async fn values_of_a_session_that_could_not_be_read_go_when_it_can_be() {
        let directory = TempDir::new().unwrap();
        let adjourn = Adjourn::open(directory.path().join("store.db")).await.unwrap();
        let mut sessions = Vec::new();
        for ends in [true, false] {
            let session = adjourn.create_with(DriverSpec::script("{}")).await.unwrap();
            let stands = match ends {
                true => session.close().await.unwrap().commit.session,
                false => session.load().await.unwrap(),
            };
            sessions.push((session.id(), stands));
        }
        let values = Values::default();
        let ids: Vec<_> = sessions.iter().map(|(id, _)| *id).collect();
        for id in &ids {
            values.provide(*id, secret(), &[]);
        }
        let given = || ids.iter().map(|id| values.of(*id).0 == secret()).collect::<Vec<_>>();
        values
            .forget_those_over(ids.clone(), |_| Err(Error::Damaged("as the test says".to_owned())));
        assert_eq!(given(), [true, true], "none is forgotten that may go on");
        let read = |id| Ok(sessions.iter().find(|(known, _)| *known == id).map(|(_, s)| s.clone()));
        values.forget_those_over(Vec::new(), read);
        assert_eq!(given(), [false, true], "the one that is over is forgotten with the next look");
        let asked = std::cell::Cell::new(0);
        values.forget_those_over(Vec::new(), |_| {
            asked.set(asked.get() + 1);
            Ok(None)
        });
        assert_eq!(asked.get(), 0, "what was read is not looked at again");
    }

    #[tokio::test]
    async fn values_whose_giving_is_dropped_are_given_if_it_was_polled() {
        let directory = TempDir::new().unwrap();
        let adjourn = Adjourn::open(directory.path().join("store.db")).await.unwrap();
        let session = adjourn.create_with(DriverSpec::script("{}")).await.unwrap();
        let values = &adjourn.process().values;
        drop(session.provide(secret()));
        assert_eq!(values.of(session.id()).0, Environment::default());
        let mut given = Box::pin(session.provide(secret()));
        let _ = given.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(given);
        assert_eq!(values.of(session.id()).0, secret());
        // They are forgotten like others: the process knows that the session is there.
        session.close().await.unwrap();
        adjourn.feed().catch_up().unwrap();
        assert_eq!(values.of(session.id()).0, Environment::default());
    }

    #[tokio::test]
    async fn values_go_with_their_session_whichever_process_ends_it() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("store.db");
        let here = Adjourn::open(path.clone()).await.unwrap();
        let elsewhere = Adjourn::open(path).await.unwrap();
        let kept = here.create_with(DriverSpec::script("{}")).await.unwrap();
        kept.provide(secret()).await;
        for (by, removes) in
            [(&here, false), (&here, true), (&elsewhere, false), (&elsewhere, true)]
        {
            let session = here.create_with(DriverSpec::script("{}")).await.unwrap();
            session.provide(secret()).await;
            let values = &here.process().values;
            let ended = by.session(session.id());
            assert_eq!(values.of(session.id()).0, secret());
            match removes {
                true => drop(ended.remove().await.unwrap()),
                false => drop(ended.close().await.unwrap()),
            }
            here.feed().catch_up().unwrap();
            assert_eq!(values.of(session.id()).0, Environment::default(), "{removes}");
            assert_eq!(values.of(kept.id()).0, secret());
            if !removes {
                session.provide(secret()).await;
                assert_eq!(values.of(session.id()).0, Environment::default(), "it is over");
            }
        }
    }
}
