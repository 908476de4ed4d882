//! The sessions that a host drives, by the slots that they take: there are `max_running` of them.
//!
//! A slot is reserved before a session is claimed, by the host itself or by a face of its process,
//! and is free again when the task that drives the session ends.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjourn_core::id::SessionId;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// How long a claim waits for the task of the session's last claim to end. The last commit of that
/// task is what made this claim possible, so it ends within moments, unless it hangs.
const LET_GO: Duration = Duration::from_millis(100);

/// How many sessions a host drives at once, and which.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    by: HashSet<SessionId>,
    /// Whether the host stops and takes no further session.
    closed: bool,
}

/// Room for one session; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    id: SessionId,
}

/// Why there is no slot for a session.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// A task of this host has not let go of the session.
    Driven,
    /// As many sessions are driven as may be, or the host stops.
    NoRoom,
}

impl Slots {
    /// Makes room for `most` sessions.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default(), freed: Notify::new() })
    }

    /// Reserves a slot for a session that this host does not drive, if there is room at once.
    pub(crate) fn reserve(self: &Arc<Self>, id: SessionId) -> Option<Slot> {
        self.try_reserve(id).ok()
    }

    /// Reserves a slot, and gives the task that drove the session before a moment to let go of it.
    pub(crate) async fn reserve_after_last(self: &Arc<Self>, id: SessionId) -> Option<Slot> {
        let give_up = Instant::now() + LET_GO;
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // Before the look: what is freed in between is not missed.
            freed.as_mut().enable();
            match self.try_reserve(id) {
                Ok(slot) => return Some(slot),
                Err(Refused::NoRoom) => return None,
                Err(Refused::Driven) => timeout_at(give_up, freed).await.ok()?,
            }
        }
    }

    /// Returns whether a task of this host drives a session, or is about to.
    pub(crate) fn holds(&self, id: SessionId) -> bool {
        self.taken().by.contains(&id)
    }

    /// Returns how many slots are free.
    pub(crate) fn free(&self) -> usize {
        let taken = self.taken();
        if taken.closed { 0 } else { self.most.saturating_sub(taken.by.len()) }
    }

    /// Reserves nothing from now on: the host stops.
    pub(crate) fn close(&self) {
        self.taken().closed = true;
    }

    /// Returns whether the host stops.
    pub(crate) fn is_closed(&self) -> bool {
        self.taken().closed
    }

    fn try_reserve(self: &Arc<Self>, id: SessionId) -> Result<Slot, Refused> {
        let mut taken = self.taken();
        if taken.by.contains(&id) {
            return Err(Refused::Driven);
        }
        if taken.closed || taken.by.len() >= self.most {
            return Err(Refused::NoRoom);
        }
        taken.by.insert(id);
        Ok(Slot { slots: Arc::clone(self), id })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Nothing that is done with it can leave it half done.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.taken().by.remove(&self.id);
        self.slots.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use adjourn_store::Environment as _;

    use super::*;
    use crate::clock::Machine;

    fn session() -> SessionId {
        SessionId::new(Machine.uuid())
    }

    #[test]
    fn there_are_as_many_slots_as_sessions_may_run() {
        let slots = Slots::new(2);
        let first = slots.reserve(session()).unwrap();
        let _second = slots.reserve(session()).unwrap();
        assert!(slots.reserve(session()).is_none());
        drop(first);
        assert_eq!(slots.free(), 1);
        assert!(slots.reserve(session()).is_some());
        slots.close();
        assert_eq!(slots.free(), 0);
        assert!(slots.reserve(session()).is_none(), "a host that stops takes nothing");
    }

    #[tokio::test]
    async fn the_next_claim_of_a_session_waits_until_the_last_one_lets_go() {
        let (slots, id) = (Slots::new(1), session());
        let last = slots.reserve(id).unwrap();
        assert!(slots.reserve(id).is_none());
        let next = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.reserve_after_last(id).await }
        });
        tokio::task::yield_now().await;
        drop(last);
        assert!(next.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn the_next_claim_does_not_wait_for_a_task_that_hangs() {
        let (slots, id) = (Slots::new(2), session());
        let _hangs = slots.reserve(id).unwrap();
        assert!(slots.reserve_after_last(id).await.is_none());
        assert!(slots.reserve_after_last(session()).await.is_some(), "others do not wait");
    }
}
