//! What everything in one process shares that works on one store.

use std::sync::Arc;

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
