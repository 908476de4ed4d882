//! Why something could not be done, without the types of any back end.

use std::sync::Arc;

use adjourn_core::Rejected;
use adjourn_core::actor::Actor;
use adjourn_core::id::{Handle, RunId, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_driver::payload::MalformedPayload;
use adjourn_record::keys;
use adjourn_record::portable::{Limit, OpenError, SealError};
use adjourn_store::CommandError;

/// What can go wrong with a store, in sentences that say what to do.
pub use adjourn_store::Error as StoreError;

/// Why something could not be done.
///
/// Cheap to clone: one failed commit is the answer to every command that was in it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The lifecycle refuses it, and nothing has changed.
    #[error(transparent)]
    Refused(#[from] Rejected),
    /// There is no such session, or it was removed.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// The session on whose behalf another was to be made is not there, or another tenant has it.
    #[error("there is no session {0} to make another for")]
    UnknownParent(SessionId),
    /// The session has no such run, or what happened in it was removed.
    #[error("there is no run {0} in this session")]
    NoRun(RunId),
    /// A suspend was accepted, and something else came before it was in force.
    #[error("suspension {handle} is not in force: {why}")]
    NotSuspended {
        /// The suspension that was pending.
        handle: Handle,
        /// What came instead.
        why: NotSuspended,
    },
    /// No portable record can be made, or one is not taken in; nothing has changed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The keys that commits are signed with cannot be read or made.
    #[error(transparent)]
    Keys(#[from] Arc<keys::Error>),
    /// The store cannot be opened, read or written. Whether a command has taken effect is not
    /// known only if a commit failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A commit is durable and did not do what its command says, which is a defect of this library.
    #[error("a commit did something unexpected: {0}")]
    Unexpected(String),
    /// The task of a host panicked; other hosts find what it had.
    #[error("the host panicked")]
    HostPanicked,
}

/// Why no portable record is made, or one is not taken in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The store was opened without keys.
    #[error("the store was opened without keys to seal and open records with")]
    NoKeys,
    /// The record was changed, is too old, or was sealed with a key that is not believed here.
    #[error(transparent)]
    NotOpened(#[from] OpenError),
    /// The record is from the future, by this machine's clock.
    #[error("the record is from {suspended_at}, and it is {now} here")]
    FromTheFuture {
        /// When the record says that the session was suspended.
        suspended_at: Timestamp,
        /// What the clock of this machine shows.
        now: Timestamp,
    },
    /// The record is of a session of another tenant.
    #[error("the record is of a session of the tenant {record:?}, and this is {here:?}")]
    OtherTenant {
        /// The tenant that the record names.
        record: String,
        /// The tenant that it was to be taken in for.
        here: String,
    },
    /// The record is genuine, and what it holds cannot be read here.
    #[error(transparent)]
    Malformed(#[from] MalformedPayload),
    /// The record cannot be sealed.
    #[error(transparent)]
    NotSealed(#[from] SealError),
}

impl RecordError {
    /// Returns the word for this refusal, for programs.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoKeys => "NO_KEYS",
            Self::NotOpened(OpenError::Version { .. }) => "UNKNOWN_VERSION",
            Self::NotOpened(OpenError::UnknownKey { .. }) => "UNKNOWN_KEY",
            Self::NotOpened(OpenError::TokenMismatch { .. }) => "SUSPENSION_TOKEN_MISMATCH",
            Self::NotOpened(OpenError::RevokedKey { .. }) => "REVOKED_KEY",
            Self::NotOpened(OpenError::Expired { .. }) => "SUSPENSION_EXPIRED",
            Self::NotOpened(_) | Self::Malformed(_) => "MALFORMED_RECORD",
            Self::FromTheFuture { .. } => "FROM_THE_FUTURE",
            Self::OtherTenant { .. } => "OTHER_TENANT",
            Self::NotSealed(_) => "NOT_SEALED",
        }
    }

    /// Returns what a person can do about it, if there is something to say.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotOpened(OpenError::Version { .. }) => {
                "a newer version of this program wrote it"
            }
            Self::NotOpened(OpenError::UnknownKey { .. }) => {
                "where it was exported, `adjourn keys share FILE` writes the key that opens it; \
                 `adjourn keys accept FILE` takes that here"
            }
            Self::NotOpened(OpenError::TokenMismatch { .. }) => {
                "it was changed on the way: `adjourn export`, where it comes from, gives it again"
            }
            Self::NotOpened(OpenError::RevokedKey { .. }) => {
                "where it comes from, `adjourn export` seals it again with a key that is good"
            }
            Self::NotOpened(OpenError::Expired { limit: Limit::MaxAge { .. }, .. }) => {
                "--max-age takes older ones, and `--max-age none` those of any age"
            }
            Self::NotOpened(OpenError::Malformed { .. }) => {
                "it is no record, or only part of one: `adjourn export` gives it again"
            }
            Self::FromTheFuture { .. } => {
                "set the clock of this machine, or of the one that it comes from"
            }
            Self::OtherTenant { .. } => "set `tenant` to the one that it is of",
            Self::NoKeys | Self::NotOpened(_) | Self::Malformed(_) | Self::NotSealed(_) => {
                return None;
            }
        })
    }
}

/// What came before a suspension that was pending.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotSuspended {
    /// All who wanted it have taken it back.
    #[error("{0} took it back")]
    Withdrawn(Actor),
    /// The run was canceled.
    #[error("{0} canceled its run")]
    Canceled(Actor),
    /// The session was ended.
    #[error("{0} ended the session")]
    Ended(Actor),
    /// The step under way, which an await lets come to its end, was the last one of its run, or ended
    /// with a park or a question of the agent's own.
    #[error("its run came to an end, or its agent parked itself first")]
    Overtaken,
}

impl Error {
    /// Returns whether nothing has happened, and the same may work later: the store was locked by
    /// another process, or full.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Store(error) if error.passes())
    }

    /// Returns whether one session is in trouble and not the store: another program wrote what
    /// this one cannot read.
    pub const fn is_of_a_session(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_of_a_session())
    }

    /// Returns what a person can do about it, if there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(refused) => refused.remedy(),
            Self::Keys(error) => error.hint(),
            Self::Record(error) => error.hint().map(str::to_owned),
            Self::Store(error) => error.hint().map(str::to_owned),
            Self::Unexpected(_) => Some(
                "this is a defect of adjourn and not of the store: please report it".to_owned(),
            ),
            Self::NotFound(_)
            | Self::UnknownParent(_)
            | Self::NoRun(_)
            | Self::NotSuspended { .. }
            | Self::HostPanicked => None,
        }
    }
}

impl From<CommandError> for Error {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Rejected(refused) => Self::Refused(refused),
            CommandError::NotFound(id) => Self::NotFound(id),
            CommandError::Store(error) => Self::Store(error),
        }
    }
}

impl From<keys::Error> for Error {
    fn from(error: keys::Error) -> Self {
        Self::Keys(Arc::new(error))
    }
}
