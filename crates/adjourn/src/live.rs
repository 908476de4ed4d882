//! Live text: words of a step as they come, for those in this process who watch its session.
//!
//! It is a preview of the journal, which is the truth: a delta that a watcher misses comes with the
//! entry that has it, and one that never comes there was broken off.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::id::SessionId;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

pub use crate::drive::Delta;

/// How many deltas a watcher may be behind; what it misses, it gets from the journal.
const BEHIND: usize = 64;

/// Words of a session as they come; none if the session is not watched.
pub type LiveWords = Option<broadcast::Receiver<Arc<Delta>>>;

/// Waits for words, or for the news that some were missed; for ever, if the session is not watched.
///
/// # Cancel safety
/// Nothing is lost.
pub async fn next_words(live: &mut LiveWords) -> Result<Arc<Delta>, Missed> {
    loop {
        match live {
            Some(words) => match words.recv().await {
                Ok(delta) => return Ok(delta),
                Err(RecvError::Lagged(_)) => return Err(Missed),
                Err(RecvError::Closed) => *live = None,
            },
            None => std::future::pending().await,
        }
    }
}

/// Returns words that have come already, or the news that some were missed; nothing if there are
/// none.
pub fn more_words(live: &mut LiveWords) -> Option<Result<Arc<Delta>, Missed>> {
    match live.as_mut()?.try_recv() {
        Ok(delta) => Some(Ok(delta)),
        Err(TryRecvError::Lagged(_)) => Some(Err(Missed)),
        Err(TryRecvError::Empty | TryRecvError::Closed) => None,
    }
}

/// Words came faster than they were taken; they are told when they are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed;

/// The sessions of this process whose words are watched.
#[derive(Debug, Clone, Default)]
pub struct Live(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    senders: HashMap<SessionId, broadcast::Sender<Arc<Delta>>>,
    /// How many there may be before those without a watcher are dropped.
    most: usize,
}

impl Live {
    /// Watches the words of a session from now on.
    pub fn watch(&self, session: SessionId) -> broadcast::Receiver<Arc<Delta>> {
        let mut watched = self.watched();
        let Watched { senders, most } = &mut *watched;
        // Senders without a watcher are dropped when there are twice as many as there were watched
        // sessions, so that a watcher costs the same beside ten others as beside a thousand.
        if senders.len() >= *most {
            senders.retain(|_, sender| sender.receiver_count() > 0);
            *most = (2 * senders.len()).max(BEHIND);
        }
        senders.entry(session).or_insert_with(|| broadcast::channel(BEHIND).0).subscribe()
    }

    /// Hands words to those who watch the session.
    pub(crate) fn tell(&self, session: SessionId, delta: Delta) {
        if let Some(sender) = self.watched().senders.get(&session) {
            // Without a watcher it goes nowhere.
            let _ = sender.send(Arc::new(delta));
        }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        // Nothing that is done with it can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
