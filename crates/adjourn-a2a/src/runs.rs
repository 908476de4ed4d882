//! The runs of sessions, folded once and kept for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adjourn::core::Session;
use adjourn::core::id::{RunId, SessionId};
use adjourn::store::Store;
use adjourn::{Error, Moment, Moments, SessionRef};

use crate::fold::Runs;

/// How many sessions are kept at least; as many again may be kept that were not asked for since.
const KEPT: usize = 512;
/// How many runs are kept with the sessions that they belong to; all are dropped when there are more.
const KNOWN: usize = 16 * 1024;

/// Sessions whose journals were folded. What is kept is brought up to the journal when it is asked
/// for, so that nothing depends on it but the time that takes.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    kept: Mutex<Generations>,
    sessions: Mutex<HashMap<RunId, SessionId>>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<SessionId, Arc<Runs>>,
    old: HashMap<SessionId, Arc<Runs>>,
}

impl Folded {
    /// Returns the runs of a session as they are now.
    ///
    /// # Errors
    /// There is no such session, or the store fails.
    pub(crate) async fn runs<S: Store>(&self, session: &SessionRef<S>) -> Result<Arc<Runs>, Error> {
        let now = session.load().await?;
        self.runs_at(session, &now).await
    }

    /// Returns the runs of a session, at least as far as the state in which it was seen.
    ///
    /// # Errors
    /// There is no such session, or the store fails.
    pub(crate) async fn runs_at<S: Store>(
        &self,
        session: &SessionRef<S>,
        seen: &Arc<Session>,
    ) -> Result<Arc<Runs>, Error> {
        let known = self.get(session.id());
        if let Some(known) = &known
            && known.revision() >= seen.revision
        {
            return Ok(Arc::clone(known));
        }
        let mut runs = known.map(Arc::unwrap_or_clone).unwrap_or_default();
        let mut moments = match runs.session() {
            Some(state) => session.watch().after(state).await?,
            None => session.watch().await?,
        };
        catch_up(&mut runs, &mut moments, u64::MAX, |_| {}).await?;
        if runs.revision() < seen.revision {
            runs.jump(seen);
        }
        let runs = Arc::new(runs);
        self.put(session.id(), Arc::clone(&runs));
        Ok(runs)
    }

    /// Returns the session that a run belongs to, if it was asked for before.
    pub(crate) fn session_of(&self, run: RunId) -> Option<SessionId> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(&run).copied()
    }

    /// Remembers the session that a run belongs to.
    pub(crate) fn know(&self, run: RunId, session: SessionId) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= KNOWN {
            sessions.clear();
        }
        sessions.insert(run, session);
    }

    fn get(&self, id: SessionId) -> Option<Arc<Runs>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runs) = kept.young.get(&id) {
            return Some(Arc::clone(runs));
        }
        let runs = kept.old.remove(&id)?;
        kept.young.insert(id, Arc::clone(&runs));
        Some(runs)
    }

    fn put(&self, id: SessionId, runs: Arc<Runs>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.young.len() >= KEPT && !kept.young.contains_key(&id) {
            kept.old = std::mem::take(&mut kept.young);
        }
        kept.young.insert(id, runs);
    }
}

/// Folds what has happened before a revision, and shows each moment of it.
pub(crate) async fn catch_up<S: Store>(
    runs: &mut Runs,
    moments: &mut Moments<S>,
    before: u64,
    mut show: impl FnMut(&Moment) + Send,
) -> Result<(), Error> {
    loop {
        let page = moments.page_before(before).await?;
        let read = page.len();
        for moment in page {
            if moment.revision != runs.revision() + 1
                && let Some(now) = moments.session().await?
            {
                // What lies between was erased.
                runs.jump(&now);
                return Ok(());
            }
            runs.apply(&moment);
            show(&moment);
        }
        if read == 0 || (!moments.is_behind() && before == u64::MAX) {
            return Ok(());
        }
    }
}
