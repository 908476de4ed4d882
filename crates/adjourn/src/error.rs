//! Why something could not be done, without the types of any back end.

use std::sync::Arc;

use adjourn_core::Rejected;
use adjourn_core::actor::Actor;
use adjourn_core::id::{Handle, RunId, SessionId};
use adjourn_record::keys;
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
            Self::Store(error) => error.hint().map(str::to_owned),
            Self::Unexpected(_) => Some(
                "this is a defect of adjourn and not of the store: please report it".to_owned(),
            ),
            Self::NotFound(_) | Self::NoRun(_) | Self::NotSuspended { .. } | Self::HostPanicked => {
                None
            }
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
