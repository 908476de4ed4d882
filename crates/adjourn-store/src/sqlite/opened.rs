//! The file that was opened: whether it is still the one at its path, with the contents it had.
//!
//! A file that is moved or replaced has another number. One that is copied over keeps it, and its
//! log would be carried into the other's pages: so the file's own bytes are asked which copy they
//! are before anything is committed, and before the last connection carries the log into it.
//!
//! The log and its index must be those that were opened, too: SQLite writes on into files that have
//! no name any more, and the next process makes others, which hold none of it and lock nothing. They
//! are looked at only if something in their directory has got or lost a name. On Linux, a look at the
//! times of a file lets the next write to it set them anew, and the sync of a log that was looked at
//! after each commit would write its inode, too.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;

use super::connection::{self, FileId};
use super::identity::{self, Incarnation, Own};
use super::turnstile::beside;
use crate::error::Error;

/// When a file was last changed, and how long it is: nothing was written to it while both stand.
type Stamp = (i64, i64, u64);

/// How long ago a change must be to be told from the next by its time: some systems count by ticks.
const TICKS: Duration = Duration::from_millis(50);

/// A file that is open, and which copy of the store it is.
#[derive(Debug)]
pub(super) struct Opened {
    path: PathBuf,
    file: FileId,
    /// The log and its index, which stay as long as a connection is open; none if there was none
    /// that is looked after.
    log: Vec<(PathBuf, FileId)>,
    incarnation: Option<Incarnation>,
    /// Whether the file's own bytes named the incarnation when it was opened.
    named: bool,
    /// How the file was when its bytes were last found to be its own.
    seen: Mutex<Option<Stamp>>,
    /// How the directory was when the log was last found in it.
    listed: Mutex<Option<Stamp>>,
    /// Whether another file was copied over it: it does not become the old one again.
    overwritten: AtomicBool,
}

impl Opened {
    /// Takes down which copy of a store was opened.
    pub(super) fn new(path: PathBuf, file: FileId, incarnation: Option<Incarnation>) -> Self {
        let named = incarnation.is_some_and(|known| is_own(&path, known));
        let (seen, listed, overwritten) = <(Mutex<_>, Mutex<_>, AtomicBool)>::default();
        Self { path, file, log: Vec::new(), incarnation, named, seen, listed, overwritten }
    }

    /// Takes down which log the file was opened with, once SQLite has it open.
    ///
    /// # Errors
    /// It is gone already.
    pub(super) fn with_log(mut self) -> Result<Self, Error> {
        for suffix in ["-wal", "-shm"] {
            let path = beside(&self.path, suffix);
            let file = FileId::at(&path)?;
            self.log.push((path, file));
        }
        Ok(self)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn file(&self) -> FileId {
        self.file
    }

    /// Makes sure that the file and its log are still there.
    ///
    /// # Errors
    /// Another file is in its place or in that of its log, or was copied over it.
    pub(super) fn still_there(&self) -> Result<(), Error> {
        self.file_still_there()?;
        self.log_still_there()
    }

    /// Makes sure that the file is still there. Its bytes are read only if they were written to
    /// since: this is done more than once for every commit.
    ///
    /// # Errors
    /// Another file is in its place, or was copied over it.
    pub(super) fn file_still_there(&self) -> Result<(), Error> {
        let about = self.file.still_at(&self.path)?;
        if self.overwritten.load(Ordering::Relaxed) {
            return Err(self.copied_over());
        }
        // Taken before the bytes are read: what is written meanwhile is looked at the next time.
        let stamp = Some(stamp(&about));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == stamp {
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

    /// Returns whether the log can be carried into the file: the file's own bytes do not say that it is
    /// another one, nor that a process is writing to it just now.
    pub(super) fn takes_log(&self) -> bool {
        let Some(known) = self.incarnation else { return true };
        match identity::own(&self.path) {
            Ok(Own::Is(own)) => own == known,
            // Before the first checkpoint, the log alone says what the file is.
            Ok(Own::Nothing | Own::Foreign) => !self.named,
            Ok(Own::Unknown) | Err(_) => false,
        }
    }

    /// Lets connections carry the log into the file when they are closed, if it is certain that the
    /// log is the file's own; a log that stays is read by the next process that opens the store.
    pub(super) fn close<'a>(&self, connections: impl IntoIterator<Item = &'a Connection>) {
        let certain = self.file.still_at(&self.path).is_ok()
            && self.log_still_there().is_ok()
            && !self.overwritten.load(Ordering::Relaxed)
            && self.incarnation.is_some_and(|known| is_own(&self.path, known));
        if certain {
            connections.into_iter().for_each(connection::carry_log);
        }
    }

    /// Makes sure that the log and its index are those that were opened.
    fn log_still_there(&self) -> Result<(), Error> {
        // Taken before they are looked at: what changes meanwhile is looked at the next time.
        let directory = self.path.parent().and_then(|directory| directory.metadata().ok());
        let stamp = directory.as_ref().filter(|about| is_settled(about)).map(stamp);
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp.is_some() && *listed == stamp {
            return Ok(());
        }
        *listed = None;
        self.log.iter().try_for_each(|(path, file)| file.still_at(path).map(drop))?;
        *listed = stamp;
        Ok(())
    }

    fn copied_over(&self) -> Error {
        let problem = "another file was copied over it";
        Error::Replaced { path: self.path.clone(), problem }
    }
}

fn is_own(path: &Path, known: Incarnation) -> bool {
    matches!(identity::own(path), Ok(Own::Is(own)) if own == known)
}

/// Returns whether the last change to a file is long enough ago.
fn is_settled(about: &Metadata) -> bool {
    let nanos = u32::try_from(about.ctime_nsec()).unwrap_or_default();
    let changed = Duration::new(about.ctime().cast_unsigned(), nanos);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.checked_sub(changed).is_some_and(|past| past > TICKS)
}

/// Returns how a file is; by the time of its inode, which a copy cannot set.
fn stamp(about: &Metadata) -> Stamp {
    (about.ctime(), about.ctime_nsec(), about.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a file with a log, and looks until the directory alone says that nothing has changed.
    fn settled(directory: &Path) -> Opened {
        let path = directory.join("store.db");
        for suffix in ["", "-wal", "-shm"] {
            std::fs::write(beside(&path, suffix), "something").unwrap();
        }
        let file = FileId::at(&path).unwrap();
        let opened = Opened::new(path, file, None).with_log().unwrap();
        while opened.listed.lock().unwrap().is_none() {
            opened.still_there().unwrap();
        }
        opened
    }

    #[test]
    fn a_log_is_missed_as_soon_as_its_name_is_gone() {
        for suffix in ["-wal", "-shm"] {
            let directory = tempfile::tempdir().unwrap();
            let opened = settled(directory.path());
            let log = beside(opened.path(), suffix);
            std::fs::write(&log, "something else").unwrap();
            opened.still_there().unwrap();
            std::fs::rename(&log, beside(opened.path(), "-elsewhere")).unwrap();
            opened.still_there().unwrap_err();
            std::fs::write(&log, "something").unwrap();
            opened.still_there().unwrap_err();
            opened.still_there().unwrap_err();
        }
    }

    #[test]
    fn what_else_happens_in_the_directory_does_not_matter() {
        let directory = tempfile::tempdir().unwrap();
        let opened = settled(directory.path());
        std::fs::write(directory.path().join("else"), "").unwrap();
        opened.still_there().unwrap();
        std::fs::remove_file(directory.path().join("else")).unwrap();
        opened.still_there().unwrap();
    }
}
