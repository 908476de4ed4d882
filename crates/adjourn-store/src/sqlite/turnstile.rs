//! Fairness between processes that write to one file.
//!
//! SQLite's write lock goes to whoever tries at the right moment. A process that begins its next
//! transaction right after the last one keeps all others out for seconds (measured). So a process
//! that waits says so, by a shared lock on a file beside the store, and one that has just
//! committed looks, and leaves a gap if somebody waits. Locks of dead processes vanish.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::holder::Holder;
use crate::error::Error;

/// How often a waiting process tries; well below [`GAP`], so that it cannot miss one.
const RETRY: Duration = Duration::from_micros(100);
/// How long a process that has just committed leaves the lock alone while others wait.
const GAP: Duration = Duration::from_millis(2);
/// How often the one in the gap looks whether the others have got their turn.
const LOOK: Duration = Duration::from_micros(200);
/// How long a process tries before it gives up; no transaction of ours takes a hundredth of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One process's place at the write lock.
#[derive(Debug)]
pub(crate) struct Turnstile {
    store: PathBuf,
    queue: File,
    /// How long to try before giving up.
    pub(crate) patience: Duration,
    /// How often the lock was found taken.
    pub(crate) retries: u64,
}

impl Turnstile {
    pub(crate) fn new(store: &Path) -> Result<Self, Error> {
        let path = beside(store, "-queue");
        let queue = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| Error::io(format!("cannot open {}", path.display()), error))?;
        Ok(Self { store: store.to_owned(), queue, patience: PATIENCE, retries: 0 })
    }

    /// Begins a write transaction as soon as the lock is free.
    pub(crate) fn begin(&mut self, connection: &Connection) -> Result<(), Error> {
        if try_begin(connection)? {
            return Ok(());
        }
        let mut announced = false;
        let result = self.wait(connection, &mut announced);
        if announced {
            let failed = |error| Error::io("cannot leave the queue for the write lock", error);
            self.queue.unlock().map_err(failed)?;
        }
        result
    }

    fn wait(&mut self, connection: &Connection, announced: &mut bool) -> Result<(), Error> {
        let start = Instant::now();
        while start.elapsed() < self.patience {
            // Never waited for: a process that was stopped while it looked into the queue has it
            // for itself, and that is no reason not to write.
            *announced = *announced || self.queue.try_lock_shared().is_ok();
            self.retries += 1;
            std::thread::sleep(RETRY);
            if try_begin(connection)? {
                return Ok(());
            }
        }
        Err(Error::Locked { patience: self.patience, holder: Holder::of(&self.store) })
    }

    /// Leaves others a gap to begin in, if any wait.
    pub(crate) fn after_commit(&self) {
        let start = Instant::now();
        while self.others_wait() && start.elapsed() < GAP {
            std::thread::sleep(LOOK);
        }
    }

    fn others_wait(&self) -> bool {
        match self.queue.try_lock() {
            Ok(()) => {
                // Nobody waits. Failing to unlock would be failing to unlock an open file.
                let _ = self.queue.unlock();
                false
            }
            Err(TryLockError::WouldBlock) => true,
            // Without the lock there is no telling; leaving no gap is the old behaviour.
            Err(TryLockError::Error(_)) => false,
        }
    }
}

fn try_begin(connection: &Connection) -> Result<bool, Error> {
    match connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]) {
        Ok(_) => Ok(true),
        Err(error) if is_busy(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Tries something while others keep it locked, where SQLite does not wait by itself.
pub(crate) fn patiently<T>(
    mut attempt: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let start = Instant::now();
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && start.elapsed() < PATIENCE => {
                std::thread::sleep(RETRY);
            }
            result => return result,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// Returns the path of a companion of the store file.
pub(crate) fn beside(store: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
