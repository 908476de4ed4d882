//! What one task that follows a session has yet to take.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::Session;
use adjourn_store::Change;
use tokio::sync::Notify;

/// Changes that are kept for a task that follows a session; with more of them it reads the journal.
const KEPT: usize = 64;

/// What there is to tell of a session.
pub(super) enum News<'a> {
    /// What this process has committed.
    Change(&'a Arc<Change>),
    /// The revision that another process has brought it to.
    Revision(u64),
}

impl News<'_> {
    pub(super) fn revision(&self) -> u64 {
        match self {
            Self::Change(change) => change.session.revision,
            Self::Revision(revision) => *revision,
        }
    }
}

/// What a task that follows a session has yet to take.
#[derive(Default)]
pub(crate) struct Inbox {
    kept: Mutex<Kept>,
    changed: Notify,
}

#[derive(Default)]
struct Kept {
    /// The last revision that was told.
    revision: u64,
    /// The session at that revision, if this process has brought it there.
    session: Option<Arc<Session>>,
    /// What led there, as far as it was told whole.
    changes: VecDeque<Arc<Change>>,
    /// Whether the store was looked at since this is there.
    looked: bool,
}

/// Where a task finds what comes after a revision.
pub(crate) enum Found {
    /// There is nothing.
    Nothing,
    /// Here, without a gap.
    Here(VecDeque<Arc<Change>>),
    /// In the store.
    InStore,
}

impl Inbox {
    pub(super) fn put(&self, news: &News<'_>) {
        let mut kept = self.kept();
        if let News::Change(change) = news {
            // A task that takes nothing for so long reads the journal when it does.
            if kept.changes.len() >= KEPT {
                kept.changes.clear();
            }
            kept.changes.push_back(Arc::clone(change));
        }
        if news.revision() <= kept.revision {
            return;
        }
        kept.revision = news.revision();
        kept.session = match news {
            News::Change(change) => Some(Arc::clone(&change.session)),
            News::Revision(_) => None,
        };
        drop(kept);
        self.changed.notify_one();
    }

    /// Returns where to find what happened from a revision on.
    pub(crate) fn from(&self, revision: u64) -> Found {
        let mut kept = self.kept();
        if !kept.looked {
            kept.looked = true;
            kept.changes.clear();
            return Found::InStore;
        }
        if kept.revision < revision {
            kept.changes.clear();
            return Found::Nothing;
        }
        let mut changes = std::mem::take(&mut kept.changes);
        while changes.front().is_some_and(|change| change.session.revision < revision) {
            changes.pop_front();
        }
        let mut next = revision;
        let whole = changes.iter().all(|change| {
            let fits = change.first_revision() == next;
            next = change.session.revision + 1;
            fits
        });
        if whole && next == kept.revision + 1 { Found::Here(changes) } else { Found::InStore }
    }

    /// Returns whether the store was looked at, so that what is told is all that there is.
    pub(crate) fn has_looked(&self) -> bool {
        self.kept().looked
    }

    /// The store could not be read: it is looked at again.
    pub(crate) fn look_again(&self) {
        self.kept().looked = false;
    }

    /// Returns the session at the last revision that was told, if this process has brought it there.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        self.kept().session.clone()
    }

    /// Waits until the session has changed since the last time it had.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
