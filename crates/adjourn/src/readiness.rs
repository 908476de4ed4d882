//! Whether a process can do its part now, for those who send it work.

use adjourn_store::Store;

use crate::adjourn::Adjourn;
use crate::error::StoreError;

/// Why a process cannot do its part now; see [`Adjourn::ready`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotReady {
    /// The store cannot be read, or what is at its path is another file.
    #[error("the store cannot be used: {0}")]
    Store(#[from] StoreError),
    /// The store takes nothing now: it is full, or another process keeps it locked.
    #[error("the host cannot work now: {0}")]
    Hindered(StoreError),
    /// A host of this process stops, and gives its sessions back.
    #[error("the host is stopping")]
    Stopping,
}

impl<S: Store> Adjourn<S> {
    /// Returns whether this process can do its part now: its store can be read, none of its hosts
    /// is stopping, and none was kept from its work when it last tried. Nothing is written for it.
    ///
    /// # Errors
    /// It cannot, and the error says why.
    pub async fn ready(&self) -> Result<(), NotReady> {
        self.process().store.still_there()?;
        self.process().store.last_entry()?;
        for host in self.claimants().iter() {
            if host.slots().is_closed() {
                return Err(NotReady::Stopping);
            }
            if let Some(error) = host.hindrance().clone() {
                return Err(NotReady::Hindered(error));
            }
        }
        Ok(())
    }
}
