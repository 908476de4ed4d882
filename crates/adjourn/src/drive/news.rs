//! What calls tell of themselves while they run, until it is durable.
//!
//! It is committed as whatever else a step emits: within [`COMMIT_AFTER`], as entries that show
//! something. Until then the updates of one call are one update, in which the last value of each
//! field holds.

use std::time::Duration;

use adjourn_core::ledger::CallId;
use adjourn_driver::{Message, Shown};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::speech::COMMIT_AFTER;

/// How many updates wait to be taken. A call that has told so many waits until they are.
const WAITING: usize = 16;

/// The fields of a call's update, and the call.
pub(super) type Update = (CallId, Map<String, Value>);

/// What the calls of a session have told, and what of it is not committed.
pub(super) struct News {
    sender: mpsc::Sender<Update>,
    receiver: mpsc::Receiver<Update>,
    unsaved: Vec<Update>,
    /// When that is to be committed, as [`Clock::elapsed`](crate::clock::Clock::elapsed) shows it.
    commit_at: Option<Duration>,
}

impl Default for News {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self { sender, receiver, unsaved: Vec::new(), commit_at: None }
    }
}

impl News {
    /// Returns what a call tells its updates through.
    pub(super) fn sender(&self) -> mpsc::Sender<Update> {
        self.sender.clone()
    }

    /// Waits for the next update.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> Update {
        match self.receiver.recv().await {
            Some(update) => update,
            // It holds a sender itself, so this never comes.
            None => std::future::pending().await,
        }
    }

    /// Takes an update.
    pub(super) fn take(&mut self, (call, update): Update, now: Duration) {
        match self.unsaved.iter_mut().find(|(known, _)| *known == call) {
            Some((_, fields)) => fields.extend(update),
            None => self.unsaved.push((call, update)),
        }
        self.commit_at.get_or_insert(now.saturating_add(COMMIT_AFTER));
    }

    /// Returns when what was told is to be committed.
    pub(super) const fn commit_at(&self) -> Option<Duration> {
        self.commit_at
    }

    /// Hands out what is not committed, with what waits to be taken, as entries of a step.
    pub(super) fn unsaved(&mut self, step: Option<u64>) -> Vec<Message> {
        while let Ok(update) = self.receiver.try_recv() {
            self.take(update, Duration::ZERO);
        }
        self.commit_at = None;
        let shown = |(id, update)| {
            Some(Message::showing(Shown::Call { id, update }.bounded()?).in_step(step))
        };
        std::mem::take(&mut self.unsaved).into_iter().filter_map(shown).collect()
    }
}
