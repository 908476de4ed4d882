//! The runs of sessions, folded once and kept for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use adjourn::core::Session;
use adjourn::core::id::{RunId, SessionId};
use adjourn::store::Store;
use adjourn::{Error, Moment, Moments, SessionRef};
use tokio::sync::Mutex as Turn;

use crate::fold::Runs;
use crate::making::Making;

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
    /// Sessions whose journals are folded now: those who come meanwhile wait for what is found.
    folding: Mutex<HashMap<SessionId, Weak<Turn<()>>>>,
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
        let reaches = |known: &Arc<Runs>| known.revision() >= seen.revision;
        if let Some(known) = self.get(session.id()).filter(reaches) {
            return Ok(known);
        }
        let turn = self.turn(session.id());
        let _folding = turn.lock().await;
        let known = self.get(session.id());
        if let Some(known) = known.as_ref().filter(|known| reaches(known)) {
            return Ok(Arc::clone(known));
        }
        let mut runs = known.map(Arc::unwrap_or_clone).unwrap_or_default();
        let mut moments = match runs.session() {
            Some(state) => session.watch().after(state).await?,
            None => session.watch().await?,
        };
        let is_begun = runs.session().is_some();
        catch_up(&mut runs, &mut moments, u64::MAX, |_| {}).await?;
        if !is_begun && let Some(before) = self.before(session, &runs).await? {
            runs.counts_on(before.generation(0));
        }
        if runs.revision() < seen.revision {
            runs.jump(seen);
        }
        let runs = Arc::new(runs);
        self.put(session.id(), Arc::clone(&runs));
        Ok(runs)
    }

    /// Returns the runs of the session that one was before it was taken in, if that is in this store.
    ///
    /// # Errors
    /// The store fails.
    pub(crate) async fn before<S: Store>(
        &self,
        session: &SessionRef<S>,
        runs: &Runs,
    ) -> Result<Option<Arc<Runs>>, Error> {
        let Some(origin) = runs.origin() else { return Ok(None) };
        let origin = session.adjourn().session(origin);
        // It may have been taken in itself.
        match Box::pin(self.runs(&origin)).await {
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) if error.is_of_a_session() => Ok(None),
            runs => runs.map(Some),
        }
    }

    /// Returns what is waited for by those who want the same journal folded.
    fn turn(&self, session: SessionId) -> Arc<Turn<()>> {
        let mut folding = self.folding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = folding.get(&session).and_then(Weak::upgrade) {
            return turn;
        }
        folding.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        folding.insert(session, Arc::downgrade(&turn));
        turn
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
async fn catch_up<S: Store>(
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
        // Others are not kept waiting for the end of a long journal.
        tokio::task::yield_now().await;
    }
}

/// A place in the journal of a session: what was known there, what the agent was making, and what
/// happens from there on.
pub(crate) struct At<S: Store> {
    /// The runs, as of the revision before.
    pub(crate) runs: Runs,
    /// The artifacts that were being made.
    pub(crate) making: Making,
    /// What happens from there on.
    pub(crate) moments: Moments<S>,
}

impl<S: Store> At<S> {
    /// Finds a place by the revision that comes next. What is known of the runs by now, which is folded
    /// once for all, leaves a short stretch before the place to be read.
    ///
    /// # Errors
    /// There is no such session, or the store fails.
    pub(crate) async fn find(
        session: &SessionRef<S>,
        known: &Runs,
        revision: u64,
    ) -> Result<Self, Error> {
        if let Some((before, moments)) = Moments::at(session, revision).await? {
            let mut said = session.unfinished_message(&before).await?;
            // A step that has said nothing yet may lie behind one that was broken off.
            let silent = known.silent_at(before.revision);
            said.retain(|(number, _)| *number >= silent);
            let runs = known.as_of(before, &said);
            return Ok(Self { runs, making: Making::within(&said), moments });
        }
        // It is near the beginning, or what lies before it was erased.
        let (mut runs, mut making) = (Runs::default(), Making::default());
        let mut moments = session.watch().await?;
        let told = |moment: &Moment| drop(making.take(moment));
        catch_up(&mut runs, &mut moments, revision, told).await?;
        runs.counts_as(known);
        Ok(Self { runs, making, moments })
    }
}
