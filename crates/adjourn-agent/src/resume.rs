//! Resuming: what is checked before a run goes on, and in which order.

use std::time::Duration;

use adjourn_core::Rejected;
use adjourn_core::id::Handle;
use adjourn_core::time::Timestamp;
use adjourn_driver::payload::MalformedPayload;
use adjourn_record::keys::KeyId;
use adjourn_record::portable::{CLOCK_SKEW, Header, Limit, OpenError};

use crate::consumed::{End, LedgerError};

/// Why a record is not resumed. Nothing has changed then; in particular, the record is not consumed,
/// unless the ledger failed ([`ResumeError::Ledger`]): it cannot say whether it took note before that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The reply is empty or only white space.
    #[error("the reply is empty")]
    EmptyReply,
    /// The text is no record, or says something that cannot be: a time is missing or is none.
    #[error("the record is malformed: {problem}")]
    Malformed {
        /// What is wrong with it, and where.
        problem: String,
    },
    /// The record is of a version that this program does not know.
    #[error("the record has the unknown version {found}")]
    UnknownVersion {
        /// The version.
        found: u64,
    },
    /// The record was signed with a key that the agent does not have.
    #[error("the record is signed with the unknown key {key}")]
    UnknownKey {
        /// The key's id.
        key: KeyId,
    },
    /// The signature does not fit: the record was changed, or signed with another secret.
    #[error("the record was changed, or not signed with the secret of key {key}")]
    SuspensionTokenMismatch {
        /// The id of the key that should have signed it.
        key: KeyId,
    },
    /// The key that signed the record was revoked: anybody may have signed it.
    #[error("the record is signed with key {key}, which was revoked: {reason}")]
    RevokedKey {
        /// The key's id.
        key: KeyId,
        /// The reason for its revocation.
        reason: String,
    },
    /// The record is too old.
    #[error("{what} has expired: {limit}")]
    SuspensionExpired {
        /// The suspension and its session.
        what: String,
        /// The limit that it passed.
        limit: Limit,
    },
    /// The record is from the future, by this machine's clock.
    #[error("the record is from {suspended_at}, and it is {now}")]
    FromTheFuture {
        /// When the record says that the run was suspended.
        suspended_at: Timestamp,
        /// What the clock of this machine shows.
        now: Timestamp,
    },
    /// The record belongs to another tenant, agent, session or model than this agent does.
    #[error("the record is for {what} {record:?}, and this agent is for {agent:?}")]
    OtherOwner {
        /// What differs: `tenant`, `agent`, `session` or `model`.
        what: &'static str,
        /// What the record says.
        record: String,
        /// What the agent says.
        agent: String,
    },
    /// The session of the record is run by something else than the native agent.
    #[error(
        "the record is of a session that is run by the driver {kind:?}; import it into a store"
    )]
    OtherDriver {
        /// The kind of its driver.
        kind: String,
    },
    /// The suspension was resumed before, or its record was revoked.
    #[error("suspension {handle} was {} before", how.as_str())]
    AlreadyConsumed {
        /// The suspension.
        handle: Handle,
        /// Whether it was resumed or revoked.
        how: End,
    },
    /// The run stopped because its budget was used up, and the resume does not raise it.
    #[error("the budget of the run is used up, and is not raised with `add_budget`")]
    BudgetNotRaised,
    /// The session refuses to go on.
    #[error("the session refuses to go on: {0}")]
    Refused(Rejected),
    /// The ledger cannot say whether the record was used before.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl From<OpenError> for ResumeError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Version { found } => Self::UnknownVersion { found },
            OpenError::UnknownKey { key } => Self::UnknownKey { key },
            OpenError::TokenMismatch { key } => Self::SuspensionTokenMismatch { key },
            OpenError::RevokedKey { key, revocation } => {
                Self::RevokedKey { key, reason: revocation.reason }
            }
            OpenError::Expired { handle, limit } => {
                Self::SuspensionExpired { what: format!("suspension {handle}"), limit }
            }
            malformed => Self::Malformed { problem: malformed.to_string() },
        }
    }
}

impl From<MalformedPayload> for ResumeError {
    fn from(error: MalformedPayload) -> Self {
        Self::Malformed { problem: error.to_string() }
    }
}

impl From<Rejected> for ResumeError {
    fn from(refused: Rejected) -> Self {
        match refused {
            Rejected::BudgetNotRaised { .. } => Self::BudgetNotRaised,
            Rejected::EmptyReply => Self::EmptyReply,
            refused => Self::Refused(refused),
        }
    }
}

/// Refuses a record that is too old, or from the future.
pub(crate) fn check_age(
    header: &Header,
    now: Timestamp,
    max_age: Option<Duration>,
) -> Result<(), ResumeError> {
    let Header { suspended_at, expires_at, .. } = *header;
    let expired =
        |limit| Err(ResumeError::SuspensionExpired { what: crate::record::named(header), limit });
    if let Some(at) = expires_at
        && now >= at
    {
        return expired(Limit::ExpiresAt(at));
    }
    if let Some(max_age) = max_age
        && now.since(suspended_at) > max_age
    {
        return expired(Limit::MaxAge { suspended_at, max_age });
    }
    if suspended_at.since(now) > CLOCK_SKEW {
        return Err(ResumeError::FromTheFuture { suspended_at, now });
    }
    Ok(())
}
