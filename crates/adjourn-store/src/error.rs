//! What can go wrong with a store, in sentences that say what to do.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use adjourn_core::Rejected;
use adjourn_core::id::SessionId;
use adjourn_record::keys::KeyId;

use crate::sqlite::Holder;

/// What a back end said, in its own words; which back end it was is none of the caller's business.
pub type Problem = Arc<dyn std::error::Error + Send + Sync>;

/// Why a store could not be opened, read or written.
///
/// Cheap to clone: one failed commit is the answer to every command that was in it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is something else at the path.
    #[error("{} is not a store: {problem}", path.display())]
    NotAStore {
        /// The path that was to be opened as a store.
        path: PathBuf,
        /// What is there instead.
        problem: String,
    },
    /// The file could not be opened.
    #[error("cannot open {}: {problem}", path.display())]
    CannotOpen {
        /// The path of the file.
        path: PathBuf,
        /// Why it could not be opened, as the system says it.
        problem: String,
    },
    /// A newer program has migrated the file.
    #[error("the store has version {found}, this program knows versions up to {known}")]
    Newer {
        /// The file's version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// The disk, or what the file may take of it, is full.
    #[error("the store is full: {0}")]
    Full(Problem),
    /// The file or its directory cannot be written.
    #[error("the store is read-only: {0}")]
    ReadOnly(Problem),
    /// The file is damaged.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// One session cannot be read: what is stored of it was written by a newer program, or is
    /// damaged. The others can.
    #[error("session {session} cannot be read: {problem}")]
    Unreadable {
        /// The session that cannot be read.
        session: SessionId,
        /// What is wrong with it, or what this program does not know.
        problem: String,
    },
    /// Another process kept the store locked; nothing happened.
    #[error("{holder} kept the store locked for {patience:?}")]
    Locked {
        /// How long this one waited.
        patience: std::time::Duration,
        /// The process that has the lock, as far as the system tells.
        holder: Holder,
    },
    /// The file at the path is not the one that was opened; nothing was acknowledged into it.
    #[error("{} is not the file that was opened: {problem}", path.display())]
    Replaced {
        /// The path that the store was opened at.
        path: PathBuf,
        /// What became of the file there.
        problem: &'static str,
    },
    /// The file has a second name, under which it would have a second log and a second lock.
    #[error("{} has a second name{}", path.display(), named(other.as_ref()))]
    TwoNames {
        /// The file.
        path: PathBuf,
        /// Its other name, if that is in the same directory.
        other: Option<PathBuf>,
    },
    /// Another process has the store open, and what was asked for needs it alone.
    #[error("{holder} has {} open", path.display())]
    InUse {
        /// The path of the store.
        path: PathBuf,
        /// Which process, as far as the system tells.
        holder: Holder,
    },
    /// The keys that are here are not those that the store was written with.
    #[error("the last commit is signed with key {0}, which is not among the keys here")]
    UnknownSigner(KeyId),
    /// The back end said no.
    #[error("the store failed: {0}")]
    Failed(Problem),
    /// The writer has stopped, after an error or because the store was closed.
    #[error("the store is closed")]
    Closed,
    /// A caller's code panicked inside its transaction; nothing of it was kept.
    #[error("the transaction panicked")]
    Panicked,
    /// What a caller said does not fit the digests its command names.
    #[error("the transcript entries do not fit the command: {0}")]
    Unsaid(&'static str),
    /// A query is to go on from a cursor that another list, or another store, has given.
    #[error("the cursor is not of this list: {0}")]
    ForeignCursor(&'static str),
    /// A file operation failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: Arc<std::io::Error>,
    },
}

impl Error {
    /// Returns what to do about it, if there is something to say.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotAStore { .. } => Some("name another file with --store or ADJOURN_STORE"),
            Self::Newer { .. } => Some("use the newer program, or a copy of the file from before"),
            Self::Full(_) => Some("free some space; nothing that was acknowledged is lost"),
            Self::ReadOnly(_) => Some("check the permissions of the file and its directory"),
            Self::Damaged(_) => Some("restore a backup"),
            Self::Unreadable { .. } => Some(
                "if a newer program wrote it, use that one; otherwise restore a backup, or remove \
                 the session with `adjourn rm --force`",
            ),
            Self::Locked { .. } => Some(
                "look at that process: one that is stopped goes on with `kill -CONT`, one that \
                 hangs can be killed; nothing that was acknowledged is lost",
            ),
            Self::Replaced { .. } => Some(
                "start again to use what is at the path; stop hosts before a store is moved, and \
                 put a backup in place with `adjourn restore`",
            ),
            Self::TwoNames { .. } => Some(
                "remove one of the names, with all that lies beside it under that name; `ln -s` \
                 makes a second way to a store, and `find DIRECTORY -samefile FILE` lists its names",
            ),
            Self::InUse { .. } => Some("stop that process first"),
            Self::ForeignCursor(_) => Some("ask as for the page before, or begin without a cursor"),
            Self::Io { source, .. } if is_read_only(source) => {
                Some("check the permissions of the file and its directory")
            }
            Self::UnknownSigner(_) => Some(
                "put its file back into the key directory, which `adjourn keys list` names; if it \
                 is lost, `adjourn keys rotate` goes on with a new key",
            ),
            _ => None,
        }
    }

    /// Returns whether it is one session that cannot be read, and not the store.
    pub const fn is_of_a_session(&self) -> bool {
        matches!(self, Self::Unreadable { .. })
    }

    /// Tells damage that was met while something of one session was read as that session's.
    ///
    /// A page of the file that is broken may hold one session or many; what else is on it shows when
    /// it is read.
    pub(crate) fn of(self, session: SessionId) -> Self {
        match self {
            Self::Damaged(problem) => Self::Unreadable { session, problem },
            other => other,
        }
    }

    /// Returns whether nothing has happened, and it can be tried again: somebody else kept the
    /// write lock, or the disk is full.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Locked { .. } | Self::Full(_))
    }

    /// Finds the store's error in whatever a caller's work failed with.
    pub(crate) fn within(error: &dyn Any) -> Option<Self> {
        match error.downcast_ref() {
            Some(CommandError::Store(error)) => Some(error.clone()),
            Some(_) => None,
            None => error.downcast_ref::<Self>().cloned(),
        }
    }

    pub(crate) fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { what: what.into(), source: Arc::new(source) }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(Arc::new(error)),
            // A write beyond the limit on file sizes ends as an I/O error, and so does one that makes
            // a file longer.
            Some(ErrorCode::SystemIoFailure) if is_write_failure(&error) => {
                Self::Full(Arc::new(error))
            }
            Some(ErrorCode::ReadOnly) => Self::ReadOnly(Arc::new(error)),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Failed(Arc::new(error)),
        }
    }
}

fn named(other: Option<&PathBuf>) -> String {
    other.map(|other| format!(", {}", other.display())).unwrap_or_default()
}

pub(crate) fn is_read_only(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

fn is_write_failure(error: &rusqlite::Error) -> bool {
    const SQLITE_IOERR_WRITE: i32 = 10 | (3 << 8);
    const SQLITE_IOERR_TRUNCATE: i32 = 10 | (6 << 8);
    const SQLITE_IOERR_SHMSIZE: i32 = 10 | (19 << 8);
    let codes = [SQLITE_IOERR_WRITE, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_SHMSIZE];
    error.sqlite_error().is_some_and(|inner| codes.contains(&inner.extended_code))
}

/// Why a command had no effect.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    /// The lifecycle refused it.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// The store failed; whether it is durable is not known only if this is a failed commit.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<rusqlite::Error> for CommandError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}
