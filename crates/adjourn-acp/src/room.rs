//! How much of what a client asks for is kept at once, over all sessions of its connection.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::refusal::BUSY;
use crate::rpc::Error;

/// Some of the largest requests there can be. A session takes what is asked of it at once, unless
/// its client does not read what it is told.
const WAITING_BYTES: usize = 64 * 1024 * 1024;

/// The room of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(WAITING_BYTES)))
    }
}

impl Room {
    /// Makes room for a request of that length.
    ///
    /// # Errors
    /// There is none; the client may try again when earlier requests are answered.
    pub(crate) fn take(&self, bytes: usize) -> Result<Taken, Error> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Arc::clone(&self.0).try_acquire_many_owned(bytes).map(Taken).map_err(|_| {
            let problem = format!("requests of {WAITING_BYTES} bytes wait already");
            Error::new(BUSY, problem).with(json!({ "reason": "TASK_BUSY" }))
        })
    }
}

/// Room that was taken.
#[derive(Debug)]
pub(crate) struct Taken(OwnedSemaphorePermit);

impl Taken {
    /// Keeps a value in it.
    pub(crate) fn keep<T>(self, value: T) -> Kept<T> {
        Kept { value, _room: self.0 }
    }
}

/// A value that takes room on its connection as long as it is kept.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    value: T,
    _room: OwnedSemaphorePermit,
}

impl<T> Kept<T> {
    /// Returns the value, which is about to be used.
    pub(crate) fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_takes_room_until_it_is_used() {
        let room = Room::default();
        let half = || room.take(WAITING_BYTES / 2);
        let (one, other) = (half().unwrap().keep(1), half().unwrap().keep(2));
        let refused = room.take(1).unwrap_err();
        assert!(refused.is("TASK_BUSY"), "{refused:?}");
        assert_eq!((*one, other.into_inner()), (1, 2));
        assert!(half().is_ok());
        assert!(room.take(WAITING_BYTES / 2 + 1).is_err());
    }
}
