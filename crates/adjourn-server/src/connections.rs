//! How many connections there are, and which of them makes room for another.
//!
//! A slow caller must not keep others out, and a stranger must not push out those who are known. So
//! some places are for strangers alone, callers who have not shown who they are: a connection takes
//! the place of a stranger, if there is no other, and leaves it when its caller shows who it is. Where
//! there is no place among the known then, one of these is closed: one that asks for nothing, and else
//! one that is at work; among these the one that has been waited for longest. One whose events are
//! being stored is not closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Which part of all places is for strangers alone.
const OF_STRANGERS: usize = 16;

/// The connections of a listener.
#[derive(Debug, Clone)]
pub(crate) struct Connections(Arc<Mutex<Open>>);

#[derive(Debug)]
struct Open {
    /// How many there may be.
    most: usize,
    /// How many of them may be of callers who are known.
    most_known: usize,
    /// How many of them are.
    known: usize,
    /// How often a connection was heard of; orders them without a clock.
    heard: u64,
    last: u64,
    slots: BTreeMap<u64, Held>,
}

#[derive(Debug)]
struct Held {
    /// When something was last heard of it.
    heard: u64,
    /// Whether its events are being stored.
    storing: bool,
    /// Whether its caller has shown who it is.
    known: bool,
    /// How many requests and streams of its caller are under way.
    at_work: usize,
    hang_up: Arc<Notify>,
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    number: u64,
    hang_up: Arc<Notify>,
    connections: Connections,
}

impl Connections {
    /// Makes room for so many, of which at least one is for a stranger and one for a caller who is
    /// known.
    pub(crate) fn new(most: usize) -> Self {
        let most = most.max(2);
        let most_known = most - (most / OF_STRANGERS).max(1);
        let (known, heard, last, slots) = (0, 0, 0, BTreeMap::new());
        Self(Arc::new(Mutex::new(Open { most, most_known, known, heard, last, slots })))
    }

    /// Takes a place, if need be that of a stranger: where all are taken, some are taken by strangers.
    pub(crate) fn admit(&self) -> Arc<ConnectionSlot> {
        let mut open = self.open();
        if open.slots.len() >= open.most {
            open.close_stranger();
        }
        let hang_up = Arc::new(Notify::new());
        open.last += 1;
        open.heard += 1;
        let (number, heard) = (open.last, open.heard);
        let held =
            Held { heard, storing: false, known: false, at_work: 0, hang_up: Arc::clone(&hang_up) };
        open.slots.insert(number, held);
        Arc::new(ConnectionSlot { number, hang_up, connections: self.clone() })
    }

    /// Hangs up on a stranger, if there is one.
    pub(crate) fn make_room(&self) {
        self.open().close_stranger();
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes the connection of a stranger, if there is one.
    fn close_stranger(&mut self) {
        let strangers = self.slots.iter().filter(|(_, held)| !held.known);
        let longest = strangers.min_by_key(|(_, held)| held.heard).map(|(number, _)| *number);
        self.close(longest);
    }

    /// Closes the connection of a known caller that is worth least, if there is one that may be closed.
    fn close_known(&mut self) -> bool {
        let known = self.slots.iter().filter(|(_, held)| held.known && !held.storing);
        let least = known.min_by_key(|(_, held)| (held.at_work > 0, held.heard));
        let least = least.map(|(number, _)| *number);
        self.close(least)
    }

    fn close(&mut self, number: Option<u64>) -> bool {
        let closed = number.and_then(|number| self.remove(number));
        closed.inspect(|held| held.hang_up.notify_one()).is_some()
    }

    fn remove(&mut self, number: u64) -> Option<Held> {
        let removed = self.slots.remove(&number)?;
        self.known -= usize::from(removed.known);
        Some(removed)
    }

    /// Has a connection counted among those of known callers; returns whether there is room for it.
    fn make_known(&mut self, number: u64) -> bool {
        if self.slots.get(&number).is_none_or(|held| held.known) {
            return true;
        }
        if self.known >= self.most_known && !self.close_known() {
            return false;
        }
        if let Some(held) = self.slots.get_mut(&number) {
            held.known = true;
            self.known += 1;
        }
        true
    }
}

impl ConnectionSlot {
    /// Waits until the connection has to make room for another.
    pub(crate) async fn given_away(&self) {
        self.hang_up.notified().await;
    }

    /// Closes the connection, whatever is under way there.
    pub(crate) fn hang_up(&self) {
        self.hang_up.notify_one();
    }

    /// Takes note that something was heard of it.
    pub(crate) fn heard(&self) {
        self.note(false);
    }

    /// Takes note that its events are being stored, from now on until the next that is heard.
    pub(crate) fn stores(&self) {
        self.note(true);
    }

    /// Takes note that a request of a caller who is known is under way, as long as what is returned is
    /// kept; there is nothing if there is no room for one more who is known.
    pub(crate) fn work(self: &Arc<Self>) -> Option<Work> {
        let mut open = self.connections.open();
        if !open.make_known(self.number) {
            return None;
        }
        if let Some(held) = open.slots.get_mut(&self.number) {
            held.at_work += 1;
        }
        Some(Work(Arc::clone(self)))
    }

    fn note(&self, storing: bool) {
        let mut open = self.connections.open();
        open.heard += 1;
        let heard = open.heard;
        if let Some(held) = open.slots.get_mut(&self.number) {
            (held.heard, held.storing) = (heard, storing);
        }
    }
}

/// Something of a connection that is under way.
#[derive(Debug)]
pub(crate) struct Work(Arc<ConnectionSlot>);

impl Drop for Work {
    fn drop(&mut self) {
        let Self(slot) = self;
        if let Some(held) = slot.connections.open().slots.get_mut(&slot.number) {
            held.at_work = held.at_work.saturating_sub(1);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.open().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_leave_places_to_strangers_and_one_more_is_refused_while_all_of_them_are_stored() {
        let connections = Connections::new(32);
        let known: Vec<_> = (0..30).map(|_| connections.admit()).collect();
        let work: Vec<_> = known.iter().map(|slot| slot.work().unwrap()).collect();
        known.iter().for_each(|slot| slot.stores());
        let (stranger, late) = (connections.admit(), connections.admit());
        assert!(late.work().is_none(), "none of the known can be closed");
        known[7].heard();
        assert!(late.work().is_some());
        let is_open = |slot: &ConnectionSlot| connections.open().slots.contains_key(&slot.number);
        assert!(!is_open(&known[7]) && is_open(&stranger));
        // One that asks for nothing goes before one that is at work.
        known.iter().for_each(|slot| slot.heard());
        drop(work);
        let busy: Vec<_> = known.iter().skip(1).map(ConnectionSlot::work).collect();
        assert!(stranger.work().is_some() && !is_open(&late));
        drop(busy);
    }

    #[test]
    fn without_descriptors_strangers_are_closed_and_none_of_the_known() {
        let connections = Connections::new(2);
        let (known, stranger) = (connections.admit(), connections.admit());
        let _work = known.work().unwrap();
        connections.make_room();
        connections.make_room();
        let open: Vec<_> = connections.open().slots.keys().copied().collect();
        assert_eq!((open, stranger.number), (vec![known.number], 2));
    }
}
