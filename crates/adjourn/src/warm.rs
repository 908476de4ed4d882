//! Drivers that are kept warm while their sessions are parked or idle, so that a wake or the next
//! prompt need not load them.
//!
//! Nothing depends on it: a session whose driver is kept nowhere is driven by a new one. Other
//! hosts leave a session that wakes to the host that keeps its driver, for a moment, as they do for
//! one that a client of that host sees. One that claims it all the same waits, for a moment again,
//! until the kept driver has ended: the list that names the session names it until then, and from
//! before the commit on with which the session comes to rest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjourn_core::id::{Epoch, SessionId};
use adjourn_driver::Driver;

use crate::feed::Place;
use crate::shown::{Showing, Shown};

/// The drivers that a host keeps warm.
#[derive(Clone)]
pub(crate) struct Warm {
    kept: Arc<Mutex<Keeping>>,
    /// The sessions whose drivers are kept or being ended, where other hosts can read them.
    list: Shown,
    at_most: usize,
    keep_for: Duration,
}

/// What is kept, and how many drivers have been kept before.
#[derive(Default)]
struct Keeping {
    drivers: HashMap<SessionId, Kept>,
    next: u64,
    /// Whether the host stops, and keeps nothing from now on.
    closed: bool,
}

/// A driver that is kept.
struct Kept {
    driver: Box<dyn Driver>,
    /// Grows with each driver that is kept: the oldest one goes first when there is no room.
    order: u64,
    /// The claim under which its session came to rest.
    epoch: Epoch,
    /// Which MCP servers it was made with, as [`Values`](crate::values::Values) counts them.
    servers: u64,
    /// When its time is over, as [`Clock::elapsed`](crate::clock::Clock::elapsed) shows it.
    until: Duration,
    /// Tells other hosts, as long as it is held, that the driver is there.
    showing: Showing,
    /// Wakes the host when something has happened to the session.
    _followed: Place,
}

/// A driver that was kept, and is to go on or to be ended.
pub(crate) struct Released {
    pub(crate) driver: Box<dyn Driver>,
    /// Tells other hosts that the driver is there, until its session is at rest again or it has
    /// ended.
    pub(crate) showing: Showing,
}

impl From<Kept> for Released {
    fn from(kept: Kept) -> Self {
        Self { driver: kept.driver, showing: kept.showing }
    }
}

impl Warm {
    pub(crate) fn new(list: Shown, at_most: usize, keep_for: Duration) -> Self {
        Self { kept: Arc::default(), list, at_most, keep_for }
    }

    /// Returns whether any driver is kept at all.
    pub(crate) const fn has_room(&self) -> bool {
        self.at_most > 0 && !self.keep_for.is_zero()
    }

    /// Keeps the driver of a session that came to rest under a claim; returns the one that there is
    /// no room for.
    pub(crate) fn keep(
        &self,
        (id, epoch): (SessionId, Epoch),
        Released { driver, showing }: Released,
        servers: u64,
        followed: Place,
        now: Duration,
    ) -> Option<Released> {
        let until = now.saturating_add(self.keep_for);
        let mut keeping = self.kept();
        if keeping.closed {
            return Some(Released { driver, showing });
        }
        let order = keeping.next;
        keeping.next += 1;
        let held = &mut keeping.drivers;
        let oldest = held.iter().min_by_key(|(_, kept)| kept.order).map(|(id, _)| *id);
        let full = held.len() >= self.at_most && !held.contains_key(&id);
        let surplus = oldest.filter(|_| full).and_then(|oldest| held.remove(&oldest));
        let kept = Kept { driver, order, epoch, servers, until, showing, _followed: followed };
        held.insert(id, kept).or(surplus).map(Released::from)
    }

    /// Takes the driver that was kept for a session which has been claimed: one to go on with, or
    /// one of no use, because its time is over, or the session was driven elsewhere or was given
    /// other MCP servers meanwhile.
    pub(crate) fn take(
        &self,
        id: SessionId,
        claimed: Epoch,
        servers: u64,
        now: Duration,
    ) -> Option<Result<Released, Released>> {
        let kept = self.kept().drivers.remove(&id)?;
        let is_next_claim = claimed.0 == kept.epoch.0.saturating_add(1);
        let is_of_use = is_next_claim && kept.servers == servers && now < kept.until;
        Some(if is_of_use { Ok(kept.into()) } else { Err(kept.into()) })
    }

    /// Takes out the driver of a session if its time is over, or if the session has been claimed
    /// since or is over; `last_claim` is nothing for one that is over.
    pub(crate) fn take_stale(
        &self,
        id: SessionId,
        last_claim: Option<Epoch>,
        now: Duration,
    ) -> Option<Released> {
        let mut keeping = self.kept();
        let kept = keeping.drivers.get(&id)?;
        let is_stale = kept.until <= now || last_claim.is_none_or(|last| last > kept.epoch);
        if is_stale { keeping.drivers.remove(&id).map(Released::from) } else { None }
    }

    /// Takes out the driver of a session, because what it was made with has changed.
    pub(crate) fn take_outdated(&self, id: SessionId) -> Option<Released> {
        self.kept().drivers.remove(&id).map(Released::from)
    }

    /// Takes out all of them, and keeps none from now on.
    pub(crate) fn close(&self) -> Vec<Released> {
        let mut keeping = self.kept();
        keeping.closed = true;
        keeping.drivers.drain().map(|(_, kept)| kept.into()).collect()
    }

    /// Returns the sessions whose drivers are kept.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.kept().drivers.keys().copied().collect()
    }

    /// Tells other hosts, as long as what it returns is held, that a driver of a session is there.
    pub(crate) fn show(&self, id: SessionId) -> Showing {
        self.list.show(id)
    }

    /// Returns whether a driver of a session is kept here, is about to be, or is being ended.
    pub(crate) fn shows(&self, id: SessionId) -> bool {
        self.list.contains(id)
    }

    /// Writes the list for other hosts anew, if it was cleared away.
    pub(crate) fn renew_list(&self) {
        self.list.renew();
    }

    fn kept(&self) -> MutexGuard<'_, Keeping> {
        // Nothing that is done with it can leave it half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
