//! What everything in one process shares that works on one store.

use std::sync::Arc;

use adjourn_store::{Error, Store};

use crate::clock::Clock;
use crate::doorbell::Hosts;
use crate::feed::Feed;
use crate::live::Live;
use crate::values::Values;

/// What hosts, watchers and those who give commands share in one process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Process<S: Clone> {
    /// The store that they work on.
    pub(crate) store: S,
    /// The hosts of all processes that work on it.
    pub(crate) hosts: Hosts,
    /// The clock, which deadlines and graces go by.
    pub(crate) clock: Arc<dyn Clock>,
    /// What is committed, for those of this process who wait for it.
    pub(crate) feed: Feed<S>,
    /// The words of this process's steps, as they come.
    pub(crate) live: Live,
    /// Values that sessions are given here, and that are stored nowhere.
    pub(crate) values: Values,
}

impl<S: Store> Process<S> {
    /// Begins to share a store that is open already, with the hosts that work on it.
    pub(crate) fn new(store: S, hosts: Hosts, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let (live, values) = (Live::default(), Values::default());
        let feed = Feed::new(store.clone(), hosts.clone(), values.clone())?;
        Ok(Self { store, hosts, clock, feed, live, values })
    }
}
