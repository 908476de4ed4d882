//! Refusals of the lifecycle as JSON-RPC errors: one code each, outside the reserved ranges.

use adjourn::core::Rejected;
use serde_json::Value;

use crate::rpc::{Error, INTERNAL_ERROR, INVALID_PARAMS};

/// The session cannot be suspended as it stands.
pub const NOT_SUSPENDABLE: i64 = 4001;
/// The handle names no suspension of this session.
pub const HANDLE_MISMATCH: i64 = 4002;
/// The suspension was resumed before.
pub const ALREADY_RESUMED: i64 = 4003;
/// A question wants an answer that says something.
pub const EMPTY_REPLY: i64 = 4006;
/// The suspend was taken back before it took effect.
pub const WITHDRAWN: i64 = 4007;
/// Another actor holds the session, or a gate does.
pub const HELD: i64 = 4008;
/// The actor may not do this.
pub const NOT_PERMITTED: i64 = 4009;
/// The session is over.
pub const ENDED: i64 = 4010;
/// Another suspend is there, with other conditions.
pub const CONDITIONS_DIFFER: i64 = 4011;
/// A run is under way.
pub const BUSY: i64 = 4012;
/// The budget that stopped the session is still used up.
pub const BUDGET_NOT_RAISED: i64 = 4013;
/// The idempotency key was used for something else.
pub const IDEMPOTENCY_KEY_REUSED: i64 = 4014;
/// An open session of the tenant has the name.
pub const NAME_TAKEN: i64 = 4015;

const fn code(refused: &Rejected) -> i64 {
    match refused {
        Rejected::Invalid { .. } => INVALID_PARAMS,
        Rejected::NotSuspendable { .. } => NOT_SUSPENDABLE,
        Rejected::HandleMismatch { .. } | Rejected::HandleRequired { .. } => HANDLE_MISMATCH,
        // A resume of what does not wait any more came too late.
        Rejected::AlreadyResumed { .. } | Rejected::NotSuspended { .. } => ALREADY_RESUMED,
        Rejected::EmptyReply => EMPTY_REPLY,
        Rejected::Withdrawn { .. } => WITHDRAWN,
        Rejected::Held { .. } | Rejected::Gated { .. } | Rejected::PausedByAnother { .. } => HELD,
        Rejected::NotPermitted => NOT_PERMITTED,
        Rejected::Ended { .. } => ENDED,
        Rejected::ConditionsDiffer { .. } => CONDITIONS_DIFFER,
        Rejected::Busy { .. } => BUSY,
        Rejected::BudgetNotRaised { .. } => BUDGET_NOT_RAISED,
        Rejected::IdempotencyKeyReused { .. } | Rejected::DuplicateMessage { .. } => {
            IDEMPOTENCY_KEY_REUSED
        }
        Rejected::NameTaken { .. } => NAME_TAKEN,
        _ => INTERNAL_ERROR,
    }
}

impl From<Rejected> for Error {
    fn from(refused: Rejected) -> Self {
        let mut data = refused.details();
        data.insert("reason".to_owned(), refused.reason().into());
        Self::new(code(&refused), refused.told()).with(Value::Object(data))
    }
}

impl From<adjourn::Error> for Error {
    fn from(error: adjourn::Error) -> Self {
        match error {
            adjourn::Error::Refused(refused) => refused.into(),
            adjourn::Error::NotFound(id) => Self::no_session(&id.to_string()),
            adjourn::Error::UnknownParent(_) => Self::new(INVALID_PARAMS, error.to_string()),
            adjourn::Error::NotSuspended { .. } => Self::new(WITHDRAWN, error.to_string()),
            // The store, its keys, or a host: nothing that a client can mend.
            error => Self::new(INTERNAL_ERROR, error.to_string()),
        }
    }
}
