//! How many connections there are, and which of them makes room for another.
//!
//! A slow caller must not keep others out: when there is no room, the connection that has been
//! waited for longest is closed. One whose events are being stored is not.

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
        open.slots.insert(number, Held { heard, storing: false, hang_up: Arc::clone(&hang_up) });
        Some(Arc::new(ConnectionSlot { number, hang_up, connections: self.clone() }))
    }

    /// Hangs up on the connection that has been waited for longest, if there is one.
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
        let Some(number) = waits.min_by_key(|(_, held)| held.heard).map(|(number, _)| *number)
        else {
            return false;
        };
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

    fn note(&self, storing: bool) {
        let mut open = self.connections.open();
        open.heard += 1;
        let heard = open.heard;
        if let Some(held) = open.slots.get_mut(&self.number) {
            (held.heard, held.storing) = (heard, storing);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.open().slots.remove(&self.number);
    }
}
