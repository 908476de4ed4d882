//! Drivers that are kept warm while their sessions are parked or idle, so that a wake or the next
//! prompt need not load them.
//!
//! Nothing depends on it: a session whose driver is kept nowhere is driven by a new one. Other
//! hosts leave a session that wakes to the host that keeps its driver, for a moment, as they do for
//! one that a client of that host sees.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjourn_core::id::{Epoch, SessionId};
use adjourn_driver::Driver;

use crate::feed::Place;
use crate::shown::Showing;

/// The drivers that a host keeps warm.
#[derive(Clone)]
pub(crate) struct Warm {
    kept: Arc<Mutex<Keeping>>,
    at_most: usize,
    keep_for: Duration,
}

/// What is kept, and how many drivers have been kept before.
#[derive(Default)]
struct Keeping {
    drivers: HashMap<SessionId, Kept>,
    next: u64,
}

/// A driver that is kept.
struct Kept {
    driver: Box<dyn Driver>,
    /// Grows with each driver that is kept: the oldest one goes first when there is no room.
    order: u64,
    /// The claim under which its session came to rest.
    epoch: Epoch,
    /// When its time is over, as [`Clock::elapsed`](crate::clock::Clock::elapsed) shows it.
    until: Duration,
    /// Tells other hosts, as long as it is held, that the session is this host's to wake.
    _showing: Showing,
    /// Wakes the host when another process has done something with the session.
    _followed: Place,
}

impl Warm {
    pub(crate) fn new(at_most: usize, keep_for: Duration) -> Self {
        Self { kept: Arc::default(), at_most, keep_for }
    }

    /// Returns whether any driver is kept at all.
    pub(crate) const fn has_room(&self) -> bool {
        self.at_most > 0 && !self.keep_for.is_zero()
    }

    /// Keeps a driver; returns the one that there is no room for.
    pub(crate) fn keep(
        &self,
        id: SessionId,
        epoch: Epoch,
        driver: Box<dyn Driver>,
        (showing, followed): (Showing, Place),
        now: Duration,
    ) -> Option<Box<dyn Driver>> {
        let until = now.saturating_add(self.keep_for);
        let mut keeping = self.kept();
        let order = keeping.next;
        keeping.next += 1;
        let held = &mut keeping.drivers;
        let oldest = held.iter().min_by_key(|(_, kept)| kept.order).map(|(id, _)| *id);
        let full = held.len() >= self.at_most && !held.contains_key(&id);
        let surplus = oldest.filter(|_| full).and_then(|oldest| held.remove(&oldest));
        let kept = Kept { driver, order, epoch, until, _showing: showing, _followed: followed };
        held.insert(id, kept).or(surplus).map(|kept| kept.driver)
    }

    /// Takes the driver that was kept for a session which has been claimed: one to go on with, or
    /// one of no use, because its time is over or the session was driven elsewhere meanwhile.
    pub(crate) fn take(
        &self,
        id: SessionId,
        claimed: Epoch,
        now: Duration,
    ) -> Option<Result<Box<dyn Driver>, Box<dyn Driver>>> {
        let Kept { driver, epoch, until, .. } = self.kept().drivers.remove(&id)?;
        let is_next_claim = claimed.0 == epoch.0.saturating_add(1);
        Some(if is_next_claim && now < until { Ok(driver) } else { Err(driver) })
    }

    /// Takes out the drivers whose time is over, or whose session has been claimed since or is
    /// over: `epoch` returns the last claim of a session.
    pub(crate) fn stale(
        &self,
        epoch: impl Fn(SessionId) -> Option<Epoch>,
        now: Duration,
    ) -> Vec<Box<dyn Driver>> {
        let held = &mut self.kept().drivers;
        let stale = held.iter().filter(|(id, kept)| {
            kept.until <= now || epoch(**id).is_none_or(|epoch| epoch != kept.epoch)
        });
        let stale: Vec<_> = stale.map(|(id, _)| *id).collect();
        stale.iter().filter_map(|id| held.remove(id)).map(|kept| kept.driver).collect()
    }

    /// Takes out all of them.
    pub(crate) fn clear(&self) -> Vec<Box<dyn Driver>> {
        self.kept().drivers.drain().map(|(_, kept)| kept.driver).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept().drivers.is_empty()
    }

    fn kept(&self) -> MutexGuard<'_, Keeping> {
        // Nothing that is done with it can leave it half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
