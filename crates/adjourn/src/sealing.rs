//! The keys that portable records are sealed and opened with.

use adjourn_record::keys::{KeyDir, Keys};
use adjourn_store::Store;

use crate::adjourn::Adjourn;
use crate::error::{Error, RecordError};

/// Where the keys are.
pub(crate) enum Sealing {
    /// In a directory, which is read each time: what was accepted or revoked there since counts.
    In(KeyDir),
    /// Those that the store was opened with.
    With(Box<Keys>),
}

impl<S: Store> Adjourn<S> {
    /// Returns the keys that records are sealed and opened with: those that commits are signed with.
    pub(crate) async fn sealing_keys(&self) -> Result<Keys, Error> {
        let found = match self.sealing() {
            Some(Sealing::In(directory)) => {
                let directory = directory.clone();
                let read = tokio::task::spawn_blocking(move || directory.existing()).await;
                read.unwrap_or(Ok(None))?
            }
            Some(Sealing::With(keys)) => Some(Keys::clone(keys)),
            None => None,
        };
        Ok(found.ok_or(RecordError::NoKeys)?)
    }
}
