//! The file that was opened: whether it is still the one at its path, with the contents it had.
//!
//! A file that is moved or replaced has another number. One that is copied over keeps it, and its
//! log would be carried into the other's pages: so the file's own bytes are asked which copy they
//! are before anything is committed, and before the last connection carries the log into it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::connection::{self, FileId};
use super::identity::{self, Incarnation, Own};
use crate::error::Error;

/// When a file was last changed, and how long it is: nothing was written to it while both stand.
type Stamp = (i64, i64, u64);

/// A file that is open, and which copy of the store it is.
#[derive(Debug)]
pub(super) struct Opened {
    path: PathBuf,
    file: FileId,
    incarnation: Option<Incarnation>,
    /// Whether the file's own bytes named the incarnation when it was opened.
    named: bool,
    /// How the file was when its bytes were last found to be its own.
    seen: Mutex<Option<Stamp>>,
    /// Whether another file was copied over it: it does not become the old one again.
    overwritten: AtomicBool,
}

impl Opened {
    /// Takes down which copy of a store was opened.
    pub(super) fn new(path: PathBuf, file: FileId, incarnation: Option<Incarnation>) -> Self {
        let named = incarnation.is_some_and(|known| is_own(&path, known));
        let (seen, overwritten) = (Mutex::new(None), AtomicBool::new(false));
        Self { path, file, incarnation, named, seen, overwritten }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn file(&self) -> FileId {
        self.file
    }

    /// Makes sure that the file is still there. Its bytes are read only if they were written to
    /// since: this is done for every commit.
    ///
    /// # Errors
    /// Another file is in its place, or was copied over it.
    pub(super) fn still_there(&self) -> Result<(), Error> {
        self.file.still_at(&self.path)?;
        if self.overwritten.load(Ordering::Relaxed) {
            return Err(self.copied_over());
        }
        // Taken before the bytes are read: what is written meanwhile is looked at the next time.
        let stamp = stamp(&self.path);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp.is_some() && *seen == stamp {
            return Ok(());
        }
        let Some(known) = self.incarnation else { return Ok(()) };
        let replaced = match identity::own(&self.path) {
            Ok(Own::Is(own)) => own != known,
            // Another process may be carrying the log into it just now.
            Ok(Own::Unknown) => return Ok(()),
            // Before the first checkpoint, the log alone says what the file is.
            Ok(Own::Nothing | Own::Foreign) | Err(_) => self.named,
        };
        if replaced {
            self.overwritten.store(true, Ordering::Relaxed);
            return Err(self.copied_over());
        }
        *seen = stamp;
        Ok(())
    }

    /// Lets connections carry the log into the file when they are closed, if it is certain that the
    /// log is the file's own; a log that stays is read by the next process that opens the store.
    pub(super) fn close<'a>(&self, connections: impl IntoIterator<Item = &'a Connection>) {
        let certain = self.file.still_at(&self.path).is_ok()
            && !self.overwritten.load(Ordering::Relaxed)
            && self.incarnation.is_some_and(|known| is_own(&self.path, known));
        if certain {
            connections.into_iter().for_each(connection::carry_log);
        }
    }

    fn copied_over(&self) -> Error {
        let problem = "another file was copied over it";
        Error::Replaced { path: self.path.clone(), problem }
    }
}

fn is_own(path: &Path, known: Incarnation) -> bool {
    matches!(identity::own(path), Ok(Own::Is(own)) if own == known)
}

/// Returns how a file is; by the time of its inode, which a copy cannot set.
fn stamp(path: &Path) -> Option<Stamp> {
    let about = path.metadata().ok()?;
    Some((about.ctime(), about.ctime_nsec(), about.len()))
}
