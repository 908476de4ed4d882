//! The file beside the log that says for which file the log was written.
//!
//! SQLite takes any log of the right name for the file's own. One that was left by another file (an
//! earlier one, over which a backup was copied) would be replayed into it and ruin it. So the file
//! and the sidecar both name an incarnation, and before SQLite opens the file the two are compared.
//! A log that was not written for this very file is set aside.
//!
//! The sidecar is written after a complete checkpoint: from then on the file's own bytes say which
//! it is. Until then it is empty, and a log is taken for the file's own.
//!
//! A process that opens a store that no other has open, and whose log is empty, draws a new
//! incarnation for it: a plain copy of the file that was made before is another file from then on,
//! for which no later log was written.
//!
//! While a backup is put in the place of a file whose sidecar is empty, the sidecar says for which
//! file the log was not written: for the backup.
//!
//! Every process that has the store open holds a shared lock on the sidecar; it takes an exclusive
//! one to set a log aside, or to put another file in place.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::holder::Holder;
use super::identity::{self, Incarnation, Own};
use super::turnstile::beside;
use crate::error::{Error, is_read_only};

/// How often a lock is tried.
const RETRY: Duration = Duration::from_millis(2);
/// How long to wait for others who use the file that was there before: a host notices within a
/// second that it is gone, and ends.
const OTHERS_END: Duration = Duration::from_secs(5);

/// What stands before the incarnation that the log was not written for.
const EXCLUDED: &str = "not ";

/// The sidecar of a store, and this process's lock on it.
#[derive(Debug)]
pub(super) struct Sidecar {
    file: File,
    /// Whether it names the incarnation of the file.
    settled: bool,
}

/// A log that was not written for the file it lay beside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Where it was.
    pub log: PathBuf,
    /// Where it is.
    pub now: PathBuf,
}

/// What a process that only reads has found beside a store.
pub(super) struct Looked {
    /// The lock, if there was something to lock.
    pub(super) sidecar: Option<Sidecar>,
    pub(super) set_aside: Option<SetAside>,
    /// Whether the log that is there was written for the file.
    pub(super) log_is_own: bool,
}

/// Returns where the sidecar of a store is.
pub(super) fn path(store: &Path) -> PathBuf {
    beside(store, "-incarnation")
}

impl Sidecar {
    /// Makes sure that the log beside a file is the file's own, and locks it against being replaced.
    ///
    /// # Errors
    /// The file is no store, other processes use the file that was there before, or the directory
    /// cannot be written.
    pub(super) fn enter(
        store: &Path,
        patience: Duration,
    ) -> Result<(Self, Option<SetAside>), Error> {
        // Nothing is left beside a file that turns out to be somebody else's.
        if !path(store).exists() && identity::own(store)? == Own::Foreign {
            return Err(foreign(store));
        }
        let mut sidecar = Self { file: open(store)?, settled: false };
        let mut set_aside = None;
        loop {
            sidecar.lock(store, patience, File::try_lock_shared)?;
            if sidecar.compare(store)? {
                return Ok((sidecar, set_aside));
            }
            // Nobody may have the file open whose log is to be taken away.
            sidecar.unlock();
            sidecar.lock(store, patience.min(OTHERS_END), File::try_lock)?;
            if !sidecar.compare(store)? {
                set_aside = sidecar.set_aside(store)?.or(set_aside);
            }
            sidecar.unlock();
        }
    }

    /// Draws a new incarnation for a file whose log is empty and which no process has open; leaves
    /// any other as it is, and one that cannot be written.
    ///
    /// # Errors
    /// The file is no store, or the sidecar cannot be written.
    pub(super) fn renew(store: &Path) -> Result<(), Error> {
        let log = beside(store, "-wal");
        let empty = || !log.metadata().is_ok_and(|about| about.len() > 0);
        if !path(store).exists() || !empty() {
            return Ok(());
        }
        let mut sidecar = Self { file: open(store)?, settled: false };
        // Those who have it open know it by the incarnation that it has.
        if sidecar.file.try_lock().is_err() {
            return Ok(());
        }
        let Some(old) = sidecar.names(store)? else { return Ok(()) };
        // Another process may have written one until the lock was had.
        if !sidecar.compare(store)? || !sidecar.settled || !empty() {
            return Ok(());
        }
        // Until the file's own bytes name the new one, the log is the file's own whatever they say.
        sidecar.put(store, &format!("{:-<32}\n", ""))?;
        let names = identity::renew_alone(store).unwrap_or(old);
        match identity::own(store)? {
            Own::Is(own) if own == names && empty() => sidecar.write(store, Some(names)),
            // The log may name another; the process that opens the store carries it into the file.
            _ => Ok(()),
        }
    }

    /// Makes sure, as far as the directory can be written, that the log beside a file is the file's
    /// own, for a process that only reads; returns whether it is.
    ///
    /// # Errors
    /// The file is no store.
    pub(super) fn look(store: &Path, patience: Duration) -> Result<Looked, Error> {
        // One that nobody has written to needs none, and looking leaves nothing behind.
        if !path(store).exists() {
            return Ok(Looked { sidecar: None, set_aside: None, log_is_own: true });
        }
        let unwritable = match Self::enter(store, patience) {
            Ok((sidecar, set_aside)) => {
                return Ok(Looked { sidecar: Some(sidecar), set_aside, log_is_own: true });
            }
            Err(error) => error,
        };
        match &unwritable {
            Error::InUse { .. } => {}
            Error::Io { source, .. } if is_read_only(source) => {}
            _ => return Err(unwritable),
        }
        let Ok(file) = File::open(path(store)) else {
            return Ok(Looked { sidecar: None, set_aside: None, log_is_own: true });
        };
        let mut sidecar = Self { file, settled: false };
        sidecar.lock(store, patience, File::try_lock_shared)?;
        let log_is_own = sidecar.compare(store)?;
        Ok(Looked { sidecar: Some(sidecar), set_aside: None, log_is_own })
    }

    /// Takes the sidecar for this process alone, to put another file in place of the store.
    ///
    /// # Errors
    /// Another process has the store open.
    pub(super) fn alone(store: &Path) -> Result<Self, Error> {
        let sidecar = Self { file: open(store)?, settled: false };
        sidecar.lock(store, Duration::ZERO, File::try_lock)?;
        Ok(sidecar)
    }

    /// Names the incarnation of the file, once its own bytes say it.
    ///
    /// # Errors
    /// The store fails, or the sidecar cannot be written.
    pub(super) fn settle(&mut self, store: &Path, connection: &Connection) -> Result<(), Error> {
        if self.settled {
            return Ok(());
        }
        let Some(incarnation) = identity::incarnation(connection)? else { return Ok(()) };
        let sql = "PRAGMA wal_checkpoint(PASSIVE)";
        let (log, done): (i64, i64) =
            connection.query_row(sql, [], |row| Ok((row.get(1)?, row.get(2)?)))?;
        // A checkpoint that others keep from its end does not reach the disk; the next process that
        // opens the store tries again.
        if log == done && identity::own(store)? == Own::Is(incarnation) {
            self.write(store, Some(incarnation))?;
            self.settled = true;
        }
        Ok(())
    }

    /// Returns what the sidecar names; nothing if it was never written, or not whole.
    pub(super) fn names(&self, store: &Path) -> Result<Option<Incarnation>, Error> {
        Ok(Incarnation::parse(&self.text(store)?))
    }

    /// Returns the incarnation that a log without a name was not written for, if that is known.
    fn excludes(&self, store: &Path) -> Result<Option<Incarnation>, Error> {
        Ok(self.text(store)?.strip_prefix(EXCLUDED).and_then(Incarnation::parse))
    }

    fn text(&self, store: &Path) -> Result<String, Error> {
        let mut text = String::new();
        let mut file = &self.file;
        let read = file.rewind().and_then(|()| file.take(64).read_to_string(&mut text));
        read.map_err(|error| failed("read", store, error))?;
        Ok(text)
    }

    /// Keeps the log, whichever file it was written for, from a file that is about to take the place
    /// of that one.
    pub(super) fn exclude(&self, store: &Path, next: Incarnation) -> Result<(), Error> {
        match self.names(store)? {
            // It was written for the file that is named.
            Some(_) => Ok(()),
            None => self.put(store, &format!("{EXCLUDED}{next}\n")),
        }
    }

    /// Writes in place: the file is also what others have locked.
    pub(super) fn write(&self, store: &Path, names: Option<Incarnation>) -> Result<(), Error> {
        self.put(store, &names.map(|names| format!("{names}\n")).unwrap_or_default())
    }

    fn put(&self, store: &Path, text: &str) -> Result<(), Error> {
        let mut file = &self.file;
        file.rewind()
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64))
            .and_then(|()| file.sync_all())
            .map_err(|error| failed("write", store, error))
    }

    /// Returns whether the log beside the file may be taken for its own.
    fn compare(&mut self, store: &Path) -> Result<bool, Error> {
        let names = self.names(store)?;
        let own = identity::own(store)?;
        self.settled = matches!((own, names), (Own::Is(own), Some(names)) if own == names);
        Ok(match (own, names) {
            (Own::Foreign, _) => return Err(foreign(store)),
            (Own::Is(own), None) => self.excludes(store)? != Some(own),
            (_, None) | (Own::Unknown, _) => true,
            (Own::Nothing, Some(_)) => false,
            (Own::Is(_), Some(_)) => self.settled,
        })
    }

    /// Takes a log away that was written for another file; the sidecar is as if it never was.
    fn set_aside(&self, store: &Path) -> Result<Option<SetAside>, Error> {
        let log = beside(store, "-wal");
        let there = log.metadata().is_ok_and(|about| about.len() > 0);
        let moved = if there {
            let now = unused(store, self.names(store)?);
            std::fs::rename(&log, &now).map_err(|error| {
                let what = format!(
                    "{} was not written for {} and cannot be set aside",
                    log.display(),
                    store.display()
                );
                Error::io(what, error)
            })?;
            sync_directory(store)?;
            Some(SetAside { log, now })
        } else {
            None
        };
        self.write(store, None)?;
        Ok(moved)
    }

    fn lock(
        &self,
        store: &Path,
        patience: Duration,
        attempt: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            match attempt(&self.file) {
                // Where there are no such locks, the comparison still holds.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                    std::thread::sleep(RETRY);
                }
                Err(TryLockError::WouldBlock) => {
                    let holder = Holder::of_flock(&path(store));
                    return Err(Error::InUse { path: store.to_owned(), holder });
                }
            }
        }
    }

    fn unlock(&self) {
        // Failing to unlock would be failing to unlock an open file.
        let _ = self.file.unlock();
    }
}

fn open(store: &Path) -> Result<File, Error> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).mode(0o600);
    options.open(path(store)).map_err(|error| failed("open", store, error))
}

/// Returns a name for a log that is set aside: by whose it was, and one that nothing has.
fn unused(store: &Path, names: Option<Incarnation>) -> PathBuf {
    let whose = names.map(|names| names.to_string()).unwrap_or_default();
    let short = whose.get(..8).unwrap_or("unknown");
    let first = beside(store, &format!("-wal.of-{short}"));
    let more = (2_u32..).map(|number| beside(store, &format!("-wal.of-{short}.{number}")));
    std::iter::once(first.clone()).chain(more).find(|name| !name.exists()).unwrap_or(first)
}

/// Makes the names in a store's directory durable.
pub(super) fn sync_directory(store: &Path) -> Result<(), Error> {
    let directory = store.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| Error::io(format!("cannot sync {}", directory.display()), error))
}

fn foreign(store: &Path) -> Error {
    let problem = "it is the database of another program".to_owned();
    Error::NotAStore { path: store.to_owned(), problem }
}

fn failed(what: &str, store: &Path, error: std::io::Error) -> Error {
    Error::io(format!("cannot {what} {}", path(store).display()), error)
}
