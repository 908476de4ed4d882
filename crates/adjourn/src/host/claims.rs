//! Which sessions a host takes, and which it leaves to others.

use std::collections::HashSet;
use std::time::Duration;

use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_store::rows::SessionNo;
use adjourn_store::{Error, Store};
use tokio::time::Instant;

use super::{Host, about};
use crate::claimant::{Equipment, Prepared};
use crate::config::Claims;
use crate::declined::Declined;
use crate::trace::{self, Ids};

/// How many ready sessions are looked at to find those this host can run.
const CANDIDATES: usize = 256;
/// How many sessions a host remembers that it will not try again.
const DECLINED: usize = 4096;
/// How long a session is left to another host whose client sees it, or which keeps its driver.
const LEAVE_FOR: Duration = Duration::from_millis(100);

/// A session that is left to the host whose client sees it, or which keeps its driver.
pub(super) struct Left {
    /// Where it stands: if it moves on and is ready again, it is left to that host again.
    revision: u64,
    until: Instant,
}

impl<S: Store> Host<S> {
    /// Claims what is ready and can be run here, and tells others what cannot.
    pub(super) async fn claim(&mut self) -> Result<(), Error> {
        match self.config.claims {
            Claims::All => {
                self.starved = false;
                self.claim_as_there_is_room().await?;
                self.starved |= self.claimant.slots().free() == 0;
            }
            Claims::Only(id) => self.claim_only(id).await?,
        }
        self.say_what_is_declined().await
    }

    /// Claims the one session that this host is for.
    async fn claim_only(&mut self, id: SessionId) -> Result<(), Error> {
        let session = self.store.session(id)?;
        if !session.is_some_and(|session| matches!(session.state, State::Ready(_))) {
            self.declined.clear();
            self.left.clear();
            return Ok(());
        }
        let elsewhere = self.shown_elsewhere();
        if self.is_left(id, &elsewhere)? {
            return Ok(());
        }
        self.left.clear();
        match self.prepare(id)? {
            Some(prepared) => self.claim_all(vec![prepared]).await,
            None => Ok(()),
        }
    }

    /// Claims whatever is ready, as far as there is room.
    async fn claim_as_there_is_room(&mut self) -> Result<(), Error> {
        let mut after = SessionNo(0);
        let mut declined = HashSet::new();
        let mut seen = HashSet::new();
        let mut elsewhere = None;
        while self.claimant.slots().free() > 0 {
            let ready = self.store.ready(after, CANDIDATES)?;
            let Some((last, _)) = ready.last() else {
                // All were looked at: a session that is not among them has moved on.
                self.declined.retain(|id, known| known.is_final() || declined.contains(id));
                self.left.retain(|id, _| seen.contains(id));
                break;
            };
            after = *last;
            let mut prepared = Vec::new();
            let elsewhere = elsewhere.get_or_insert_with(|| self.shown_elsewhere());
            for (_, id) in ready {
                if self.is_left(id, elsewhere)? {
                    seen.insert(id);
                    continue;
                }
                prepared.extend(self.prepare(id)?);
                if self.declined.contains_key(&id) {
                    declined.insert(id);
                }
            }
            self.claim_all(prepared).await?;
        }
        Ok(())
    }

    /// Returns the sessions that clients of other living hosts see, and those whose drivers these
    /// hosts keep warm.
    fn shown_elsewhere(&self) -> HashSet<SessionId> {
        let lists = |host| self.hosts.shown_by(host).into_iter().chain(self.hosts.kept_by(host));
        self.others.iter().copied().flat_map(lists).collect()
    }

    /// Returns whether a session is left to the host whose client sees it, because permissions are
    /// asked there, or to the host that keeps its driver warm. If that host does not take it soon,
    /// this one does.
    fn is_left(&mut self, id: SessionId, elsewhere: &HashSet<SessionId>) -> Result<bool, Error> {
        let own = self.claimant.shows_or_keeps(id) || self.declined.contains_key(&id);
        if own || !elsewhere.contains(&id) {
            return Ok(false);
        }
        let session = match self.store.session(id) {
            Ok(Some(session)) => session,
            // It is found out about when it is claimed.
            Ok(None) => return Ok(false),
            Err(error) if error.is_of_a_session() => return Ok(false),
            Err(error) => return Err(error),
        };
        let (now, revision) = (Instant::now(), session.revision);
        if self.left.get(&id).is_none_or(|left| left.revision != revision) {
            self.left.insert(id, Left { revision, until: now + LEAVE_FOR });
        }
        Ok(self.left.get(&id).is_some_and(|left| now < left.until))
    }

    /// Returns when this host no longer leaves the next session to another, if it has room for it.
    pub(super) fn waited_for_others(&self) -> Option<Instant> {
        let next = self.left.values().map(|left| left.until).min();
        next.filter(|_| self.claimant.slots().free() > 0)
    }

    /// Tells others what this host cannot run, if that has changed.
    async fn say_what_is_declined(&mut self) -> Result<(), Error> {
        let declined = self.declined.iter().map(|(id, declined)| (*id, declined.why.as_str()));
        let about = about(&self.config).declining(declined).to_text();
        if self.claimant.row().about == about {
            return Ok(());
        }
        self.claimant.row().about = about;
        self.announce().await
    }

    /// Reserves a slot for a session and makes its driver, if it can be run here.
    fn prepare(&mut self, id: SessionId) -> Result<Option<Prepared>, Error> {
        // One that was taken from this host is claimed again when its task has let go.
        let Some(slot) = self.claimant.slots().reserve(id) else {
            self.starved = true;
            return Ok(None);
        };
        match self.try_driver(id) {
            // A session that cannot be read must not hold up the others.
            Err(error) if error.is_of_a_session() => {
                self.decline(&Ids::unread(id, self.id), Declined::unreadable(&error));
                Ok(None)
            }
            made => Ok(made?.map(|equipment| self.claimant.prepared(id, slot, equipment))),
        }
    }

    fn try_driver(&mut self, id: SessionId) -> Result<Option<Equipment>, Error> {
        let now = self.clock.now();
        if let Some(known) = self.declined.get(&id)
            && let Some(session) = self.store.session(id)?
            && known.holds(&session, now)
        {
            return Ok(None);
        }
        match self.claimant.driver(id)? {
            None => Ok(None),
            Some(Ok(equipment)) => {
                self.declined.remove(&id);
                Ok(Some(equipment))
            }
            Some(Err((why, again))) => {
                if let Some(session) = self.store.session(id)? {
                    let ids = Ids::of(&session, self.id);
                    self.decline(&ids, Declined::by_driver(why, &session, again));
                }
                Ok(None)
            }
        }
    }

    /// Claims sessions in one commit, and drives those that no other host was faster with.
    async fn claim_all(&mut self, prepared: Vec<Prepared>) -> Result<(), Error> {
        if prepared.is_empty() {
            return Ok(());
        }
        let ids = prepared.iter().map(|prepared| prepared.id).collect();
        let ((), claims) = self.claimant.commit(ids, |_| Ok::<_, Error>(())).await?;
        for (prepared, claimed) in prepared.into_iter().zip(claims) {
            match claimed {
                Some(session) => {
                    let driving = self.claimant.drive(session, prepared);
                    self.supervise(driving);
                }
                None => self.claimant.discard(prepared),
            }
        }
        Ok(())
    }

    /// Leaves a session to others, for a while or for good.
    pub(super) fn decline(&mut self, ids: &Ids, declined: Declined) {
        let id = ids.session;
        if self.declined.get(&id).is_none_or(|known| known.why != declined.why) {
            trace::left_to_others(ids, &declined);
        }
        // Which of them are still there cannot be told cheaply; those that are come back at once.
        if self.declined.len() >= DECLINED {
            self.declined.clear();
        }
        self.declined.insert(id, declined);
    }
}
