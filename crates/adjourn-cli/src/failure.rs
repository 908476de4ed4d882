//! What goes wrong, as people and scripts are told: a sentence, a hint, an exit code.

use std::borrow::Cow;

use adjourn::StoreError as Error;
use adjourn::core::Rejected;
use adjourn::core::id::SessionId;
use adjourn::core::session::Phase;
use serde_json::{Map, Value, json};

use crate::terminal::one_line;
use crate::usage_error::typed_as;

/// The exit code of a mistake in usage.
pub const USAGE: u8 = 2;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
    details: Box<Map<String, Value>>,
    /// Whether the same may work later: the store was locked or full.
    passes: bool,
}

#[derive(Debug)]
enum Kind {
    Usage,
    Refused(Cow<'static, str>),
    NotFound,
    Store,
    /// What was waited for did not come in time.
    Late,
    /// A person has to go on with a session where there is none: its agent asks something, or has
    /// come to a limit.
    Unanswered,
    /// A signal, as its exit code.
    Interrupted(u8),
    Other,
}

impl Failure {
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// A refusal that no rule of the lifecycle makes, with its word for programs.
    pub fn refused(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Kind::Refused(reason.into()), message)
    }

    /// The store, or what it needs, cannot be made or used.
    pub fn store(message: impl Into<String>) -> Self {
        Self::new(Kind::Store, message)
    }

    /// What was waited for did not come in time.
    pub fn late(message: impl Into<String>) -> Self {
        Self::new(Kind::Late, message)
    }

    /// A person has to go on with a session where there is none.
    pub fn unanswered(message: impl Into<String>) -> Self {
        Self::new(Kind::Unanswered, message)
    }

    pub fn other(message: impl Into<String>) -> Self {
        Self::new(Kind::Other, message)
    }

    pub fn no_session(id: SessionId) -> Self {
        Self::not_found(format!("there is no session {id}"))
            .hint("`adjourn ls --all` lists all there are")
    }

    /// A signal ended the command; it is told, but it is no error.
    pub fn interrupted(code: u8, message: impl Into<String>) -> Self {
        Self::new(Kind::Interrupted(code), message)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says what helps besides.
    #[must_use]
    pub fn hint_too(self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        let both = match &self.hint {
            Some(first) => format!("{first}; {hint}"),
            None => hint,
        };
        self.hint(both)
    }

    /// Says the same in other words.
    #[must_use]
    pub fn rewritten(self, words: impl Fn(&str) -> String) -> Self {
        let (message, hint) = (words(&self.message), self.hint.as_deref().map(words));
        Self { message, hint, ..self }
    }

    /// Adds what programs are told besides.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Returns whether it is a refusal with this word for programs.
    pub fn is_refused(&self, reason: &str) -> bool {
        matches!(&self.kind, Kind::Refused(refused) if refused == reason)
    }

    fn new(kind: Kind, message: impl Into<String>) -> Self {
        let (message, details) = (message.into(), Box::default());
        Self { kind, message, hint: None, details, passes: false }
    }

    /// Returns what went wrong, if the same may work later.
    pub fn passing(&self) -> Option<&str> {
        self.passes.then_some(&self.message)
    }

    /// Returns what is wrong and what helps as one text, for those who are shown only one.
    pub fn told(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns the exit code.
    pub const fn code(&self) -> u8 {
        match self.kind {
            Kind::Usage => USAGE,
            Kind::Refused(_) => 3,
            Kind::NotFound => 4,
            Kind::Store => 5,
            Kind::Late => 6,
            Kind::Unanswered => 7,
            Kind::Interrupted(code) => code,
            Kind::Other => 1,
        }
    }

    /// Returns the failure as people read it: lines, and the word that each begins with.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let word = if matches!(self.kind, Kind::Interrupted(_)) { "" } else { "error" };
        let hint = self.hint.iter().map(|hint| ("hint", one_line(hint)));
        std::iter::once((word, one_line(&self.message))).chain(hint).collect()
    }

    /// Returns the failure as scripts read it.
    pub fn json(&self) -> Value {
        let reason = match &self.kind {
            Kind::Usage => "USAGE",
            Kind::Refused(reason) => reason,
            Kind::NotFound => "TASK_NOT_FOUND",
            Kind::Store => "STORE",
            Kind::Late => "LATE",
            Kind::Unanswered => "UNANSWERED",
            Kind::Interrupted(_) => "INTERRUPTED",
            Kind::Other => "OTHER",
        };
        let mut error = json!({ "reason": reason, "message": self.message });
        if let Some(error) = error.as_object_mut() {
            error.extend(Map::clone(&self.details));
            error.extend(self.hint.iter().map(|hint| ("hint".to_owned(), hint.as_str().into())));
        }
        json!({ "error": error })
    }
}

impl From<Rejected> for Failure {
    fn from(refused: Rejected) -> Self {
        let details = Box::new(refused.details());
        let hint = match &refused {
            Rejected::HandleRequired { handle } => Some(format!("add --handle {handle}")),
            Rejected::Held { .. }
            | Rejected::PausedByAnother { .. }
            | Rejected::BudgetNotRaised { .. }
            | Rejected::NotExportable { .. }
            | Rejected::AlreadyConsumed { .. }
            | Rejected::OpenHere { .. } => refused.remedy(),
            Rejected::ConditionsDiffer { .. } => {
                Some("suspend without conditions to join it, or resume it first".to_owned())
            }
            Rejected::NotSuspendable { phase: Phase::Canceling }
            | Rejected::Busy { phase: Phase::Canceling }
            | Rejected::NotSuspended { phase: Phase::Canceling } => {
                Some("wait until it is idle".to_owned())
            }
            Rejected::Busy { phase: Phase::Ready }
            | Rejected::NotSuspended { phase: Phase::Ready } => {
                Some("`adjourn resume` goes on with it here, `adjourn serve` as a host".to_owned())
            }
            Rejected::NotSuspendable { .. } => Some(
                "`adjourn show` says how it is answered, `adjourn cancel` ends its run".to_owned(),
            ),
            Rejected::EmptyReply => Some("answer with `adjourn prompt`".to_owned()),
            Rejected::HandleMismatch { .. } | Rejected::AlreadyResumed { .. } => {
                Some("`adjourn show` has the handle that is open, if there is one".to_owned())
            }
            Rejected::IdempotencyKeyReused { .. } => {
                Some("a key stands for one request; take another for this one".to_owned())
            }
            Rejected::NothingToCancel { .. } => {
                Some("`adjourn close` ends the session itself".to_owned())
            }
            Rejected::Ended { .. } => Some("`adjourn run` makes another".to_owned()),
            Rejected::Busy { .. } => Some("wait until it is idle, or suspend it".to_owned()),
            Rejected::NameTaken { name, .. } => {
                Some(format!("`adjourn close {name}` ends it and frees the name"))
            }
            Rejected::NotSuspended { .. } => Some("`adjourn ls` shows what is parked".to_owned()),
            _ => None,
        };
        let (kind, message) = match &refused {
            Rejected::Invalid { path, problem } => (Kind::Usage, typed_as(path, problem)),
            other => (Kind::Refused(other.reason().into()), other.to_string()),
        };
        Self { kind, message, hint, details, passes: false }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self { passes: error.passes(), ..Self::new(Kind::Store, error.to_string()) };
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<adjourn::keys::Error> for Failure {
    fn from(error: adjourn::keys::Error) -> Self {
        Self::keys(&error)
    }
}

impl Failure {
    fn keys(error: &adjourn::keys::Error) -> Self {
        let failure = Self::store(match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        });
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<adjourn::Error> for Failure {
    fn from(error: adjourn::Error) -> Self {
        use adjourn::Error::{
            HostPanicked, Keys, NotFound, NotSuspended, Record, Refused, Store, UnknownParent,
        };
        match error {
            Refused(refused) => refused.into(),
            NotFound(id) | UnknownParent(id) => Self::no_session(id),
            NotSuspended { why, .. } => Self::refused("WITHDRAWN", format!("not suspended: {why}")),
            Keys(error) => Self::keys(&error),
            Record(error) => {
                let failure = Self::refused(error.reason(), error.to_string());
                match error.hint() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
            Store(error) => error.into(),
            HostPanicked => Self::other(error.to_string()),
            other => Self::other(other.to_string()),
        }
    }
}
