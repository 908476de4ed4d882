//! Ledgers: which suspensions were resumed or revoked, so that none is resumed twice.
//!
//! A record alone cannot say whether it was used before. Exactly one resume needs something that all
//! who may resume share, and that decides for one of them.

use std::collections::HashMap;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use adjourn_core::id::Handle;
use adjourn_driver::BoxFuture;

/// Remembers which suspensions are over.
///
/// # Contract
/// Of all calls of [`consume`](ConsumedLedger::consume) and [`revoke`](ConsumedLedger::revoke) for
/// one handle, whatever process makes them, one is told [`Consumption::First`]; and what it was told
/// holds however the process ends.
pub trait ConsumedLedger: Send + Sync + 'static {
    /// Takes note that a suspension is resumed.
    fn consume(&self, handle: Handle) -> BoxFuture<'static, Result<Consumption, LedgerError>>;

    /// Takes note that a suspension is not to be resumed any more.
    fn revoke(&self, handle: Handle) -> BoxFuture<'static, Result<Consumption, LedgerError>>;
}

/// What a ledger knows of a suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consumption {
    /// Nothing: this call was the first.
    First,
    /// The suspension was over before.
    Already(End),
}

/// How a suspension ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// It was resumed.
    Resumed,
    /// Its record was revoked.
    Revoked,
}

impl End {
    /// Returns the word for this end.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::Revoked => "revoked",
        }
    }
}

/// A ledger that cannot say anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the ledger of consumed suspensions cannot be used: {0}")]
pub struct LedgerError(pub String);

/// A ledger in memory.
///
/// The one [of this process](MemoryLedger::of_process), which agents have unless they are given
/// another, covers one process: a record that is resumed in another one, or in this one once it was
/// restarted, is resumed again. Agents that share records between processes share a ledger, too.
#[derive(Debug, Default)]
pub struct MemoryLedger(Mutex<HashMap<Handle, End>>);

impl MemoryLedger {
    /// Knows of no suspension.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the ledger that all agents of this process share which are given no other, so that a
    /// program may make an agent for each request.
    pub fn of_process() -> Arc<Self> {
        static SHARED: OnceLock<Arc<MemoryLedger>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(Arc::default))
    }

    fn end(
        &self,
        handle: Handle,
        end: End,
    ) -> BoxFuture<'static, Result<Consumption, LedgerError>> {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let consumption = match ends.get(&handle) {
            Some(earlier) => Consumption::Already(*earlier),
            None => {
                ends.insert(handle, end);
                Consumption::First
            }
        };
        Box::pin(std::future::ready(Ok(consumption)))
    }
}

impl ConsumedLedger for MemoryLedger {
    fn consume(&self, handle: Handle) -> BoxFuture<'static, Result<Consumption, LedgerError>> {
        self.end(handle, End::Resumed)
    }

    fn revoke(&self, handle: Handle) -> BoxFuture<'static, Result<Consumption, LedgerError>> {
        self.end(handle, End::Revoked)
    }
}

/// A ledger in a directory that processes share, with one small file for each suspension that is
/// over.
///
/// The process that gives the file its name is the first; the system lets only one do so. The file is
/// whole and synced before it has that name, so that no record is used up where a disk is full, and
/// the directory is synced before an answer. It is written on the caller's thread, which takes as
/// long as the disk does. The file system must know hard links. Files are never removed by it; those
/// older than every record may be.
#[derive(Debug, Clone)]
pub struct FileLedger {
    directory: PathBuf,
}

impl FileLedger {
    /// Uses a directory, which is made if it is not there.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, LedgerError> {
        let directory = directory.into();
        std::fs::create_dir_all(&directory).map_err(|error| problem(&directory, &error))?;
        Ok(Self { directory })
    }

    fn end(&self, handle: Handle, end: End) -> Result<Consumption, LedgerError> {
        let path = self.directory.join(handle.to_string());
        let passing = self.directory.join(format!(".{handle}.{}~", uuid::Uuid::now_v7().simple()));
        let written = write(&passing, end).and_then(|()| std::fs::hard_link(&passing, &path));
        // It may be that it cannot be taken away; nothing reads it.
        let _ = std::fs::remove_file(&passing);
        let consumption = match written {
            Ok(()) => Consumption::First,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let revoked = text == End::Revoked.as_str();
                Consumption::Already(if revoked { End::Revoked } else { End::Resumed })
            }
            Err(error) => return Err(problem(&path, &error)),
        };
        // Also behind another's file: its answer may not have come that far.
        let synced = std::fs::File::open(&self.directory).and_then(|dir| dir.sync_all());
        synced.map_err(|error| problem(&self.directory, &error))?;
        Ok(consumption)
    }
}

/// Writes how a suspension ended to a file of its own, and syncs it.
fn write(path: &Path, end: End) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(end.as_str().as_bytes())?;
    file.sync_all()
}

fn problem(path: &Path, error: &std::io::Error) -> LedgerError {
    LedgerError(format!("{}: {error}", path.display()))
}

impl ConsumedLedger for FileLedger {
    fn consume(&self, handle: Handle) -> BoxFuture<'static, Result<Consumption, LedgerError>> {
        Box::pin(std::future::ready(self.end(handle, End::Resumed)))
    }

    fn revoke(&self, handle: Handle) -> BoxFuture<'static, Result<Consumption, LedgerError>> {
        Box::pin(std::future::ready(self.end(handle, End::Revoked)))
    }
}
