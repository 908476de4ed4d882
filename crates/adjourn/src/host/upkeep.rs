//! What hosts do for the store as a whole, beside driving: sessions that could not be read are
//! tried again, what is kept no longer is dropped, and the list that queries answer from follows the
//! journal.
//!
//! What there is to do is found by reading. The write lock is taken only where there is something to do, and for
//! a few milliseconds at a time.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use adjourn_core::id::{HostId, SessionId};
use adjourn_store::rows::SessionNo;
use adjourn_store::{CommandError, Error, Store};

use super::{Host, store_error};
use crate::trace::{self, Ids};

/// How many marked sessions are looked at in one read.
const PAGE: usize = 256;
/// How long a session that cannot be read is left alone: mending a store takes longer.
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// How often a host looks whether there is something to drop.
const RETAIN: Duration = Duration::from_secs(60);
/// How long it lets others write between two portions.
const REST: Duration = Duration::from_millis(50);
/// How much of each kind goes in one transaction, which takes a few milliseconds.
const PORTION: usize = 256;
/// How many sessions that were never prompted are ended in one transaction.
const UNPROMPTED: usize = 64;

/// How often a host looks how far the list of sessions is behind the journal.
const FOLLOW: Duration = Duration::from_secs(1);
/// How long it rests between two batches, and how many times as long as a batch takes while it
/// drives sessions: suspensions go first, and a query that cannot wait brings the list up itself.
const FOLLOW_ON: Duration = Duration::from_millis(50);
const BESIDE_WORK: u32 = 200;
/// How many entries are left to a query, which looks at them by itself.
const LEFT_TO_QUERIES: u64 = 2048;

/// What a host has to remember for it.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// When to look next for what may be dropped.
    retain_at: Instant,
    /// When to look next how far the list of sessions is behind.
    follow_at: Instant,
    /// Sessions that this program cannot read, and when it tried.
    unreadable: HashMap<SessionId, Instant>,
}

impl Upkeep {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { retain_at: now, follow_at: now, unreadable: HashMap::new() }
    }

    /// Returns how long there is nothing to look after, but for what others ring for.
    pub(super) fn rest(&self) -> Duration {
        self.retain_at.min(self.follow_at).saturating_duration_since(Instant::now())
    }
}

impl<S: Store> Host<S> {
    /// Tries sessions again that some program could not read: another one, or an older one than
    /// this. They are shown what came meanwhile with the next delivery.
    pub(super) async fn mend(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let mut still = HashMap::new();
        let mut after = SessionNo(0);
        loop {
            // Most of the time there are none, and this is one read of an empty table.
            let page = self.store.unreadable(after, PAGE)?;
            for (no, id) in &page {
                after = *no;
                let tried = self.upkeep.unreadable.get(id).copied();
                if let Some(tried) = tried.filter(|tried| now.duration_since(*tried) < TRY_AGAIN) {
                    still.insert(*id, tried);
                    continue;
                }
                match self.store.session(*id) {
                    Ok(session) => {
                        let owner = session.as_ref().and_then(|session| session.owner());
                        // A host whose lock cannot be looked at is neither alive nor dead.
                        match owner.map(|owner| self.drives(*id, owner.host)).transpose() {
                            Ok(drives) => {
                                let gone = owner.filter(|_| drives == Some(false));
                                let ids = match &session {
                                    Some(session) => Ids::of(session, self.id),
                                    None => Ids::unread(*id, self.id),
                                };
                                self.mend_one(&ids, gone.map(|owner| owner.host)).await?;
                            }
                            Err(_) => drop(still.insert(*id, now)),
                        }
                    }
                    Err(error) if error.is_of_a_session() => {
                        if tried.is_none() {
                            let kept = format!("{error}; what it waits for is kept");
                            trace::came_across(&Ids::unread(*id, self.id), &kept);
                        }
                        still.insert(*id, now);
                    }
                    Err(error) => return Err(error),
                }
            }
            if page.len() < PAGE {
                break;
            }
        }
        self.upkeep.unreadable = still;
        Ok(())
    }

    /// Returns whether a host drives a session that is its own, as far as that can be seen.
    fn drives(&self, id: SessionId, host: HostId) -> io::Result<bool> {
        if host == self.id {
            Ok(self.claimant.slots().holds(id))
        } else {
            self.hosts.is_alive(host)
        }
    }

    /// Takes a session back among those that can be read, and from a host that is gone.
    async fn mend_one(&self, ids: &Ids, gone: Option<HostId>) -> Result<(), Error> {
        let id = ids.session;
        let by = self.by();
        let mended = self.store.transact(move |tx| tx.mend(&by, id, gone)).await;
        if mended.map_err(store_error)?.is_some() {
            trace::came_across(ids, &format!("session {id} can be read again"));
        }
        Ok(())
    }

    /// Drops a portion of what is kept no longer.
    pub(super) async fn retain(&mut self) -> Result<(), Error> {
        if Instant::now() < self.upkeep.retain_at {
            return Ok(());
        }
        let more = match self.drop_a_portion().await {
            Ok(more) => more,
            // What could not go now goes later; nothing depends on it.
            Err(error) if error.passes() => false,
            Err(error) => return Err(error),
        };
        self.upkeep.retain_at = Instant::now() + if more { REST } else { RETAIN };
        Ok(())
    }

    /// Lets the list that queries answer from follow the journal, by a batch.
    pub(super) async fn follow(&mut self) -> Result<(), Error> {
        if Instant::now() < self.upkeep.follow_at {
            return Ok(());
        }
        let start = Instant::now();
        let more = match self.follow_a_batch().await {
            Ok(more) => more,
            // Queries answer without it, if more slowly.
            Err(error) if error.passes() => false,
            Err(error) => return Err(error),
        };
        let rest = match (more, self.running.is_empty()) {
            (false, _) => FOLLOW,
            (true, true) => FOLLOW_ON,
            (true, false) => FOLLOW_ON.max(start.elapsed() * BESIDE_WORK),
        };
        self.upkeep.follow_at = Instant::now() + rest;
        Ok(())
    }

    /// Follows the journal by a batch, if it is far ahead; returns whether there is more.
    async fn follow_a_batch(&self) -> Result<bool, Error> {
        if self.store.unlisted()? < LEFT_TO_QUERIES {
            return Ok(false);
        }
        let Some(_alone) = self.alone("listing") else { return Ok(false) };
        self.store.follow().await
    }

    /// Drops what one transaction may; returns whether there is more.
    async fn drop_a_portion(&self) -> Result<bool, Error> {
        let retention = self.config.retention;
        if !self.store.prunable(&retention)? {
            return Ok(false);
        }
        let Some(_alone) = self.alone("retention") else { return Ok(false) };
        let by = self.by();
        // A session that a client has open is not taken away from it.
        let alive: Vec<_> = self.others.iter().copied().chain([self.id]).collect();
        let hosts = self.hosts.clone();
        let dropped = self.store.transact(move |tx| -> Result<bool, CommandError> {
            // As late as can be: a client may open one at any time.
            let spared: Vec<_> = alive.iter().flat_map(|host| hosts.shown_by(*host)).collect();
            let unprompted = match retention.unprompted {
                Some(kept) => tx.drop_unprompted(&by, kept, &spared, UNPROMPTED)?,
                None => 0,
            };
            let pruned = tx.prune(&retention, PORTION)?;
            Ok(pruned.more || unprompted > 0)
        });
        dropped.await.map_err(store_error)
    }

    /// Takes the lock of the one host that does something for the store; one is enough.
    fn alone(&self, what: &str) -> Option<File> {
        let path = self.hosts.directory().join(what);
        let mut private = File::options();
        private.create(true).truncate(false).write(true).mode(0o600);
        let lock = private.open(path).ok()?;
        lock.try_lock().ok()?;
        Some(lock)
    }
}
