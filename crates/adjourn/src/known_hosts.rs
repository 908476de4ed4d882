//! The hosts of a store, of all processes, as others see them.

use std::collections::HashSet;
use std::time::SystemTime;

use adjourn_core::id::{HostId, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_store::Store;
use adjourn_store::rows::HostRow;

use crate::about::About;
use crate::adjourn::Adjourn;
use crate::error::Error;

/// A host that was announced, alive or not.
#[derive(Debug, Clone)]
pub struct KnownHost {
    /// Its id.
    pub id: HostId,
    /// Since when it is announced.
    pub since: Timestamp,
    /// What it says about itself.
    pub about: About,
    /// The sessions that it drives.
    pub drives: Vec<SessionId>,
    /// The sessions whose drivers it keeps warm.
    pub keeps: HashSet<SessionId>,
    /// Whether it holds its lock. One whose lock cannot be looked at does not count as alive.
    pub alive: bool,
    /// When it gave its last sign of life, by the clock of the files; nothing if that is not known.
    pub last_sign: Option<SystemTime>,
}

impl<S: Store> Adjourn<S> {
    /// Returns the hosts that were announced, of all processes, also those that died and were not
    /// found out yet.
    ///
    /// # Errors
    /// The store fails.
    pub async fn known_hosts(&self) -> Result<Vec<KnownHost>, Error> {
        let rows = self.process().store.hosts()?;
        rows.into_iter().map(|row| self.known(row)).collect()
    }

    /// Returns a host, if it was announced.
    ///
    /// # Errors
    /// The store fails.
    pub async fn known_host(&self, id: HostId) -> Result<Option<KnownHost>, Error> {
        let rows = self.process().store.hosts()?;
        rows.into_iter().find(|row| row.id == id).map(|row| self.known(row)).transpose()
    }

    fn known(&self, row: HostRow) -> Result<KnownHost, Error> {
        let HostRow { id, since, about } = row;
        let hosts = self.hosts();
        let drives = self.process().store.driven_by(id)?;
        // Its list names sessions that it drives, too, if their drivers will be kept.
        let mut keeps = hosts.kept_by(id);
        keeps.retain(|session| !drives.contains(session));
        Ok(KnownHost {
            id,
            since,
            about: About::parse(&about),
            drives,
            keeps,
            alive: hosts.is_alive(id).unwrap_or(false),
            last_sign: hosts.last_sign(id).ok(),
        })
    }
}
