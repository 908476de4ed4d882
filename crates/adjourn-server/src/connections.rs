//! How many connections there are, and which of them makes room for another.
//!
//! A slow caller must not keep others out, and a stranger must not push out those who are known: when
//! there is no room, a connection is closed that nothing is known of, then one of a caller who is
//! known and asks for nothing, and last one that is at work; among these the one that has been waited
//! for longest. One whose events are being stored is not closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The connections of a listener.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
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

/// What a connection is worth when there is no room, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its caller has not shown who it is.
    Stranger,
    /// Its caller is known, and asks for nothing.
    Idle,
    /// A request of a known caller is under way, or a stream.
    AtWork,
}

impl Held {
    const fn rank(&self) -> Rank {
        match (self.known, self.at_work) {
            (_, 1..) => Rank::AtWork,
            (true, 0) => Rank::Idle,
            (false, 0) => Rank::Stranger,
        }
    }
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    number: u64,
    hang_up: Arc<Notify>,
    connections: Connections,
}

impl Connections {
    /// Takes a place among `most`, if need be that of a connection which is only waited for.
    pub(crate) fn admit(&self, most: usize) -> Option<Arc<ConnectionSlot>> {
        let mut open = self.open();
        if open.slots.len() >= most && !open.make_room() {
            return None;
        }
        let hang_up = Arc::new(Notify::new());
        open.last += 1;
        open.heard += 1;
        let (number, heard) = (open.last, open.heard);
        let held =
            Held { heard, storing: false, known: false, at_work: 0, hang_up: Arc::clone(&hang_up) };
        open.slots.insert(number, held);
        Some(Arc::new(ConnectionSlot { number, hang_up, connections: self.clone() }))
    }

    /// Hangs up on the connection that is worth least, if there is one.
    pub(crate) fn make_room(&self) -> bool {
        self.open().make_room()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn make_room(&mut self) -> bool {
        let waits = self.slots.iter().filter(|(_, held)| !held.storing);
        let least = waits.min_by_key(|(_, held)| (held.rank(), held.heard));
        let Some(number) = least.map(|(number, _)| *number) else { return false };
        if let Some(held) = self.slots.remove(&number) {
            held.hang_up.notify_one();
        }
        true
    }
}

impl ConnectionSlot {
    /// Waits until the connection has to make room for another.
    pub(crate) async fn given_away(&self) {
        self.hang_up.notified().await;
    }

    /// Takes note that something was heard of it.
    pub(crate) fn heard(&self) {
        self.note(false);
    }

    /// Takes note that its events are being stored, from now on until the next that is heard.
    pub(crate) fn stores(&self) {
        self.note(true);
    }

    /// Takes note that a request or a stream of a caller who is known is under way, as long as what
    /// is returned is kept.
    pub(crate) fn work(self: &Arc<Self>) -> Work {
        if let Some(held) = self.connections.open().slots.get_mut(&self.number) {
            held.known = true;
            held.at_work += 1;
        }
        Work(Arc::clone(self))
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
        self.connections.open().slots.remove(&self.number);
    }
}
