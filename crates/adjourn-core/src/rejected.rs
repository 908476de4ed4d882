//! Why a command was refused. A refused command changes nothing.

use serde_json::{Value, json};

use crate::actor::Actor;
use crate::carry::{Limit, UsedUp};
use crate::conditions::{Conditions, Invalid};
use crate::id::{Epoch, GateId, Handle, SessionId};
use crate::session::{Cause, Phase};
use crate::time::Timestamp;

/// Why a command was refused.
///
/// Each variant is one word on every wire ([`Rejected::reason`]); adapters map the variants to
/// their codes in one `match` each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// A field is missing, malformed or out of range.
    #[error("{path}: {problem}")]
    Invalid {
        /// Where, in the caller's spelling.
        path: String,
        /// What was expected.
        problem: String,
    },
    /// The session cannot be suspended as it stands.
    #[error("a session that is {phase} cannot be suspended")]
    NotSuspendable {
        /// The phase that the session is in.
        phase: Phase,
    },
    /// There is no suspension to resume.
    #[error("the session is {phase}, not suspended")]
    NotSuspended {
        /// The phase that the session is in.
        phase: Phase,
    },
    /// The handle names no suspension of this session.
    #[error("handle {given} does not name the suspension of this session")]
    HandleMismatch {
        /// The handle that was given.
        given: Handle,
    },
    /// The suspension was resumed before.
    #[error("suspension {handle} was resumed at {at} ({cause}) by {by}")]
    AlreadyResumed {
        /// The suspension.
        handle: Handle,
        /// When it was resumed.
        at: Timestamp,
        /// What woke it.
        cause: Cause,
        /// The actor who resumed it.
        by: Actor,
    },
    /// The pending suspension was withdrawn before it took effect.
    #[error("suspension {handle} was withdrawn at {at} by {by}")]
    Withdrawn {
        /// The suspension.
        handle: Handle,
        /// When it was withdrawn.
        at: Timestamp,
        /// The actor who withdrew it.
        by: Actor,
    },
    /// A client's hold lies over the agent's own wait.
    #[error("held by {0}")]
    Held(Box<Paused>),
    /// A panic is in force over a scope that includes the session.
    #[error(
        "stopped by {}{}; nothing in the scope of {gate} may start",
        by.who(), because(reason.as_deref())
    )]
    Gated {
        /// The gate.
        gate: GateId,
        /// Who laid it.
        by: Actor,
        /// The reason that was given for it.
        reason: Option<String>,
    },
    /// A pause that this caller's message does not end.
    #[error("paused by {0}")]
    PausedByAnother(Box<Paused>),
    /// The actor may not do this.
    #[error("a paused agent cannot lift its own pause")]
    NotPermitted,
    /// The session has ended.
    #[error("the session ended at {at}")]
    Ended {
        /// The time at which it ended.
        at: Timestamp,
    },
    /// Another suspend is pending or in force, with other conditions.
    #[error("suspension {handle} has other conditions")]
    ConditionsDiffer {
        /// The suspension that is there.
        handle: Handle,
        /// Its conditions.
        current: Option<Box<Conditions>>,
    },
    /// A run is under way; nothing queues.
    #[error("the session is busy ({phase})")]
    Busy {
        /// The phase that the session is in.
        phase: Phase,
    },
    /// A question wants an answer that says something.
    #[error("a question is answered with a text that is not blank")]
    EmptyReply,
    /// A question is answered by a caller who shows which question they mean.
    #[error(
        "a question is answered with its handle, an idempotency key, or a message id not seen before"
    )]
    HandleRequired {
        /// The question's handle.
        handle: Handle,
    },
    /// The budget that stopped the session is still used up.
    #[error("the budget is used up; resume with more of it")]
    BudgetNotRaised {
        /// The session.
        session: SessionId,
        /// What is used up also with what was added.
        used_up: Vec<UsedUp>,
    },
    /// A limit stops the next step.
    #[error("the next step is stopped by {}", limit.as_str())]
    LimitReached {
        /// The limit.
        limit: Limit,
    },
    /// The idempotency key was used for something else.
    #[error("idempotency key {key:?} was used for something else")]
    IdempotencyKeyReused {
        /// The key.
        key: String,
    },
    /// The message was taken before.
    #[error("message {message_id:?} was taken before, by session {session}")]
    DuplicateMessage {
        /// The message's id.
        message_id: String,
        /// The session that took it.
        session: SessionId,
    },
    /// The host does not drive the session, or no longer.
    #[error("the claim of epoch {given} is over: the session is {phase} in epoch {current}")]
    NotOwner {
        /// The epoch of the claim.
        given: Epoch,
        /// The epoch of the session's last claim.
        current: Epoch,
        /// The phase that the session is in.
        phase: Phase,
    },
    /// The session is not ready to be claimed.
    #[error("the session is {phase}, not ready")]
    NotReady {
        /// The phase that the session is in.
        phase: Phase,
    },
    /// The owner may not start this: a suspend, await, ask or cancel is pending.
    #[error("nothing new may start: the session is {phase}")]
    Stopping {
        /// The phase that the session is in.
        phase: Phase,
    },
    /// The owner's command does not fit the step it is in.
    #[error("out of step: {problem}")]
    OutOfStep {
        /// What does not fit.
        problem: String,
    },
    /// There is no run to cancel.
    #[error("the session is {phase}; there is nothing to cancel")]
    NothingToCancel {
        /// The phase that the session is in.
        phase: Phase,
    },
    /// An open session of the tenant has the name that a new one is to have, or the label that is to
    /// be the new one's alone.
    #[error("session {session} is called {name:?}")]
    NameTaken {
        /// The name, or the value of the label.
        name: String,
        /// The session that has it.
        session: SessionId,
    },
    /// No portable record can be made of the session as it stands.
    #[error("no record can be made of the session: {why}")]
    NotExportable {
        /// The session.
        session: SessionId,
        /// What is in the way.
        why: NotExportable,
    },
    /// The record was taken in before, or the session has gone on from there: it goes on once.
    #[error("suspension {handle} was used before, by session {session}")]
    AlreadyConsumed {
        /// The suspension that the record is of.
        handle: Handle,
        /// The session that goes on with it.
        session: SessionId,
    },
    /// The session that a record was made of is open in the store that is to take it in: one of the
    /// two would repeat what the other does.
    #[error("the record of {handle} goes on with session {session}, which is open here")]
    OpenHere {
        /// The suspension that the record is of.
        handle: Handle,
        /// The session.
        session: SessionId,
    },
    /// There is no such request to withdraw.
    #[error("there is no pending suspend of that caller to withdraw")]
    NothingToWithdraw,
}

/// What keeps a session from being exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotExportable {
    /// It is not parked.
    #[error("it is {0}, not parked")]
    NotParked(Phase),
    /// A hold lies over its agent's own wait.
    #[error("a pause lies over its agent's own wait")]
    Held,
    /// It lost its host, and the outcome of a call is unknown.
    #[error("it lost its host, and the outcome of a call is unknown")]
    HostInterrupted,
}

/// The pause that is in the way: whose it is, why, and of which session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// The session.
    pub session: SessionId,
    /// The suspension, or the hold.
    pub handle: Handle,
    /// Who paused it.
    pub by: Actor,
    /// The reason that was given for it.
    pub reason: Option<String>,
    /// What is used up of the budget, if the pause is for that.
    pub used_up: Vec<UsedUp>,
}

impl std::fmt::Display for Paused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.by.who(), because(self.reason.as_deref()))
    }
}

impl Rejected {
    /// Returns the word for this refusal, the same on every face.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "INVALID",
            Self::NotSuspendable { .. } => "TASK_NOT_PAUSABLE",
            Self::NotSuspended { .. } => "TASK_NOT_PAUSED",
            Self::HandleMismatch { .. } => "SUSPENSION_HANDLE_MISMATCH",
            Self::AlreadyResumed { .. } => "ALREADY_RESUMED",
            Self::Withdrawn { .. } => "WITHDRAWN",
            Self::Held { .. } => "HELD",
            Self::Gated { .. } => "GATED",
            Self::PausedByAnother { .. } => "TASK_PAUSED",
            Self::NotPermitted => "NOT_PERMITTED",
            Self::Ended { .. } => "ENDED",
            Self::ConditionsDiffer { .. } => "CONDITIONS_DIFFER",
            Self::Busy { .. } => "TASK_BUSY",
            Self::EmptyReply => "EMPTY_REPLY",
            Self::HandleRequired { .. } => "HANDLE_REQUIRED",
            Self::BudgetNotRaised { .. } => "BUDGET_NOT_RAISED",
            Self::LimitReached { .. } => "LIMIT_REACHED",
            Self::IdempotencyKeyReused { .. } => "IDEMPOTENCY_KEY_REUSED",
            Self::DuplicateMessage { .. } => "DUPLICATE_MESSAGE",
            Self::NotOwner { .. } => "NOT_OWNER",
            Self::NotReady { .. } => "NOT_READY",
            Self::Stopping { .. } => "STOPPING",
            Self::OutOfStep { .. } => "OUT_OF_STEP",
            Self::NothingToCancel { .. } => "NOTHING_TO_CANCEL",
            Self::NameTaken { .. } => "NAME_TAKEN",
            Self::NotExportable { .. } => "NOT_EXPORTABLE",
            Self::AlreadyConsumed { .. } => "ALREADY_CONSUMED",
            Self::OpenHere { .. } => "OPEN_HERE",
            Self::NothingToWithdraw => "NOTHING_TO_WITHDRAW",
        }
    }

    /// Returns what a program may want to know besides the word, the same on every face.
    pub fn details(&self) -> serde_json::Map<String, Value> {
        let details = match self {
            Self::Invalid { path, .. } => json!({ "path": path }),
            Self::AlreadyResumed { handle, at, cause, by } => json!({
                "handle": handle, "at": at.to_string(), "cause": cause, "by": by.to_string(),
            }),
            Self::Withdrawn { handle, at, by } => {
                json!({ "handle": handle, "at": at.to_string(), "by": by.to_string() })
            }
            Self::ConditionsDiffer { handle, current } => {
                json!({ "handle": handle, "current": current })
            }
            Self::Held(paused) | Self::PausedByAnother(paused) => {
                let Paused { handle, by, reason, .. } = &**paused;
                json!({ "handle": handle, "by": by.to_string(), "why": reason })
            }
            Self::Gated { gate, by, reason } => {
                json!({ "gate": gate, "by": by.to_string(), "why": reason })
            }
            Self::HandleRequired { handle } => json!({ "handle": handle }),
            Self::HandleMismatch { given } => json!({ "handle": given }),
            Self::Ended { at } => json!({ "at": at.to_string() }),
            Self::DuplicateMessage { session, .. } => json!({ "session": session }),
            Self::NameTaken { name, session } => json!({ "name": name, "session": session }),
            Self::AlreadyConsumed { handle, session } | Self::OpenHere { handle, session } => {
                json!({ "handle": handle, "session": session })
            }
            _ => Value::Null,
        };
        match details {
            Value::Object(details) => details,
            _ => serde_json::Map::new(),
        }
    }

    /// Returns what a person can type to get past this refusal, where one command does it.
    pub fn remedy(&self) -> Option<String> {
        let (what, session) = match self {
            Self::BudgetNotRaised { session, used_up } => return Some(raise(*session, used_up)),
            Self::Held(paused) | Self::PausedByAnother(paused) if !paused.used_up.is_empty() => {
                return Some(raise(paused.session, &paused.used_up));
            }
            Self::NotExportable { session, why: NotExportable::NotParked(_) } => {
                return Some(format!("park it first with: adjourn suspend {}", session.short()));
            }
            Self::AlreadyConsumed { session, .. } => {
                return Some(format!(
                    "see what became of it with: adjourn show {}",
                    session.short()
                ));
            }
            Self::OpenHere { session, .. } => {
                let id = session.short();
                return Some(format!("go on with it here, or end it with: adjourn close {id}"));
            }
            Self::NotExportable { session, why: NotExportable::Held } => {
                ("lift the hold", *session)
            }
            Self::NotExportable { session, why: NotExportable::HostInterrupted } => {
                ("see with `adjourn log` what became of the call, and go on here", *session)
            }
            Self::Held(paused) => ("lift the hold", paused.session),
            Self::PausedByAnother(paused) => ("resume it", paused.session),
            _ => return None,
        };
        Some(format!("{what} with: adjourn resume {}", session.short()))
    }

    /// Returns the refusal and its remedy as one text, for faces that show only one.
    pub fn told(&self) -> String {
        let Some(remedy) = self.remedy() else { return self.to_string() };
        let (first, rest) = remedy.split_at(1);
        format!("{self}. {}{rest}", first.to_uppercase())
    }

    pub(crate) fn invalid(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { path: path.into(), problem: problem.into() }
    }

    pub(crate) fn too_large(path: impl Into<String>, limit: usize) -> Self {
        Self::invalid(path, format!("longer than {limit} bytes"))
    }

    pub(crate) fn out_of_step(problem: impl Into<String>) -> Self {
        Self::OutOfStep { problem: problem.into() }
    }
}

/// Returns what a person can type to raise a budget that is used up, and by how much it must be.
fn raise(session: SessionId, used_up: &[UsedUp]) -> String {
    let joined = |each: fn(&UsedUp) -> String, between: &str| {
        used_up.iter().map(each).collect::<Vec<_>>().join(between)
    };
    let (what, amounts) = match used_up {
        [] => ("the budget".to_owned(), "AMOUNTS".to_owned()),
        _ => (
            joined(UsedUp::to_string, " and "),
            joined(|amount| format!("{}=…", amount.unit.as_str()), ","),
        ),
    };
    format!("raise {what} with: adjourn resume {} --add-budget {amounts}", session.short())
}

/// Returns a reason as it follows the name of the actor who gave it.
fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

impl From<Invalid> for Rejected {
    fn from(invalid: Invalid) -> Self {
        // The root of conditions that were given alone has no name of its own.
        let path = if invalid.path.is_empty() { "conditions".to_owned() } else { invalid.path };
        Self::Invalid { path, problem: invalid.problem }
    }
}
