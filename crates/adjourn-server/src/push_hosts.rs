//! How many receivers are told at once at one host.
//!
//! A host has a bounded number of places, so that one that is slow does not keep the receivers at
//! others waiting, and some of these alone are for receivers that have failed, so that they do not keep
//! the others at the same host waiting. Who finds no place waits in the order of coming for one that
//! becomes free.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many receivers are told at once at one host.
const AT_ONE_HOST: usize = 8;
/// How many of these may be receivers that have failed.
const FAILED_AT_ONE_HOST: usize = 4;
/// How many more may wait for a place there.
const WAITING: usize = 128;
/// How many of these may be receivers that have failed, so that there is room for others.
const FAILED_WAITING: usize = 64;

/// The hosts of receivers that are told, or wait for that.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Mutex<HashMap<String, Places>>);

/// The places at one host.
#[derive(Debug, Clone)]
struct Places {
    all: Arc<Semaphore>,
    /// Those that receivers may have which have failed.
    failed: Arc<Semaphore>,
    /// How many are there, or wait.
    guests: usize,
    /// How many of these have failed.
    failed_guests: usize,
}

impl Places {
    fn new() -> Self {
        let all = Arc::new(Semaphore::new(AT_ONE_HOST));
        Self {
            all,
            failed: Arc::new(Semaphore::new(FAILED_AT_ONE_HOST)),
            guests: 0,
            failed_guests: 0,
        }
    }
}

/// One of those that are at a host, or wait for a place there.
#[derive(Debug)]
pub(crate) struct Guest {
    hosts: Arc<Hosts>,
    host: String,
    all: Arc<Semaphore>,
    /// The places that it needs one of, too, if it has failed.
    failed: Option<Arc<Semaphore>>,
}

/// A place at a host, as long as this is there.
#[derive(Debug)]
pub(crate) struct Visit {
    _place: OwnedSemaphorePermit,
    _failed: Option<OwnedSemaphorePermit>,
    _guest: Guest,
}

impl Hosts {
    /// Comes to a host; nothing if too many wait there already.
    pub(crate) fn come(self: &Arc<Self>, host: &str, has_failed: bool) -> Option<Guest> {
        let mut hosts = self.open();
        let places = hosts.entry(host.to_owned()).or_insert_with(Places::new);
        let too_many_failed = places.failed_guests >= FAILED_AT_ONE_HOST + FAILED_WAITING;
        if places.guests >= AT_ONE_HOST + WAITING || (has_failed && too_many_failed) {
            return None;
        }
        places.guests += 1;
        places.failed_guests += usize::from(has_failed);
        let failed = has_failed.then(|| Arc::clone(&places.failed));
        let (hosts, host, all) = (Arc::clone(self), host.to_owned(), Arc::clone(&places.all));
        Some(Guest { hosts, host, all, failed })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Places>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    /// Takes a place that is free, ahead of none who waits; otherwise it is still outside.
    pub(crate) fn try_enter(self) -> Result<Visit, Self> {
        let place = Arc::clone(&self.all).try_acquire_owned();
        let failed = self.failed.clone().map(Semaphore::try_acquire_owned).transpose();
        match (place, failed) {
            (Ok(place), Ok(failed)) => Ok(Visit { _place: place, _failed: failed, _guest: self }),
            _ => Err(self),
        }
    }

    /// Waits for a place, behind those who have waited for longer.
    ///
    /// # Cancel safety
    /// Dropped, it waits no longer.
    pub(crate) async fn enter(self) -> Option<Visit> {
        let failed = match &self.failed {
            Some(failed) => Some(Arc::clone(failed).acquire_owned().await.ok()?),
            None => None,
        };
        // It is never closed.
        let place = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Visit { _place: place, _failed: failed, _guest: self })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut hosts = self.hosts.open();
        if let Some(places) = hosts.get_mut(&self.host) {
            places.guests -= 1;
            places.failed_guests -= usize::from(self.failed.is_some());
            if places.guests == 0 {
                hosts.remove(&self.host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::JoinSet;
    use tokio::time::Instant;

    use super::*;

    /// How long it takes to tell a receiver.
    const TELLING: Duration = Duration::from_millis(20);

    /// Takes a place that is free.
    fn entered(hosts: &Arc<Hosts>, host: &str, has_failed: bool) -> Option<Visit> {
        hosts.come(host, has_failed)?.try_enter().ok()
    }

    #[test]
    fn those_that_have_failed_leave_places_to_others_and_have_their_own() {
        let hosts = Arc::<Hosts>::default();
        let enter = |count: usize, has_failed: bool| -> Vec<_> {
            (0..count).filter_map(|_| entered(&hosts, "a", has_failed)).collect()
        };
        let healthy = enter(FAILED_AT_ONE_HOST, false);
        let failed = enter(AT_ONE_HOST, true);
        assert_eq!((healthy.len(), failed.len()), (4, FAILED_AT_ONE_HOST));
        assert!(enter(1, false).is_empty(), "all are taken");
        drop(healthy);
        assert!(enter(1, true).is_empty(), "there is none for one more that has failed");
        assert_eq!(enter(AT_ONE_HOST, false).len(), AT_ONE_HOST - FAILED_AT_ONE_HOST);
        assert!(entered(&hosts, "b", true).is_some());
        drop(failed);
        assert!(hosts.open().is_empty(), "places are given back");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_finds_no_place_is_let_in_as_soon_as_one_is_free() {
        let (hosts, start) = (Arc::<Hosts>::default(), Instant::now());
        let mut told = JoinSet::new();
        for number in 0..20 {
            let guest = hosts.come("a", number % 4 == 0).unwrap();
            told.spawn(async move {
                let _visit = guest.enter().await.unwrap();
                tokio::time::sleep(TELLING).await;
            });
        }
        told.join_all().await;
        assert_eq!(start.elapsed(), TELLING * 3, "20 at 8 places");
        assert!(hosts.open().is_empty());
    }

    #[test]
    fn so_many_may_wait_and_one_that_goes_away_leaves_its_place_in_the_queue() {
        let hosts = Arc::<Hosts>::default();
        let mut guests: Vec<_> = std::iter::from_fn(|| hosts.come("a", false)).collect();
        assert_eq!(guests.len(), AT_ONE_HOST + WAITING);
        assert!(hosts.come("b", false).is_some());
        guests.pop();
        assert!(hosts.come("a", false).is_some());
        drop(guests);
        assert!(hosts.open().is_empty());
    }

    #[test]
    fn however_many_wait_that_have_failed_others_find_room() {
        let hosts = Arc::<Hosts>::default();
        let mut failed: Vec<_> = std::iter::from_fn(|| hosts.come("a", true)).collect();
        assert_eq!(failed.len(), FAILED_AT_ONE_HOST + FAILED_WAITING);
        assert!(entered(&hosts, "a", false).is_some());
        failed.pop();
        assert!(hosts.come("a", true).is_some());
    }
}
