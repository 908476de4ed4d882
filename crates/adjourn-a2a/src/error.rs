//! Why a request is refused: a code, and one word that is the same on every face.

use adjourn::NotSuspended;
use adjourn::core::Rejected;
use adjourn::core::json::Unreadable;
use serde_json::{Map, Value, json};

use crate::caller::Scope;
use crate::method::Family;
use crate::version::Version;

/// The text is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is no request.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method, or this agent does not have it.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// A parameter is missing or malformed.
pub const INVALID_PARAMS: i64 = -32602;
/// Something failed that the caller cannot mend.
pub const INTERNAL_ERROR: i64 = -32603;
/// There is no such task, in A2A's own methods and in the aliases.
pub const TASK_NOT_FOUND: i64 = -32001;
/// The task is at its end.
pub const TASK_NOT_CANCELABLE: i64 = -32002;
/// There are no push notifications here.
pub const PUSH_NOT_SUPPORTED: i64 = -32003;
/// The task's state does not allow it; there is no such task, in the proposal's methods.
pub const UNSUPPORTED_OPERATION: i64 = -32004;
/// The body has another content type.
pub const CONTENT_TYPE_NOT_SUPPORTED: i64 = -32005;
/// There is no card but the public one.
pub const NO_EXTENDED_CARD: i64 = -32007;
/// There is no such version here.
pub const VERSION_NOT_SUPPORTED: i64 = -32009;
/// The task's state does not allow a pause, or a resume.
pub const NOT_PAUSABLE: i64 = -32011;
/// The handle is not that of the suspension.
pub const HANDLE_MISMATCH: i64 = -32012;

/// The caller may not do this; over HTTP it comes with the status 403.
pub const FORBIDDEN: i64 = -32050;

/// The domain of the reasons that A2A names.
const A2A: &str = "a2a-protocol.org";
/// The domain of ours.
const OURS: &str = "adjourn";

/// Where a peer has written what a command is made of: its fields have other names there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the parameters of the request.
    Parameters,
    /// In the message that it sends.
    Message,
    /// In the metadata of that message, in the tunnel of an earlier implementation.
    Tunnel,
}

impl Source {
    /// Where the tunnel is.
    pub(crate) const TUNNEL: &str = "metadata.harn.pause";

    /// Returns what the peer calls a field of a command, which is spelled as in ACP.
    fn parameter(self, path: &str) -> String {
        let names: &[_] = match self {
            Self::Parameters | Self::Tunnel => {
                &[("resumeWhen", "conditions"), ("_meta", "metadata")]
            }
            Self::Message => &[
                ("prompt", "message.parts"),
                ("input", "message.parts"),
                ("messageId", "message.messageId"),
            ],
        };
        let mut named =
            names.iter().filter_map(|(theirs, ours)| Some((ours, path.strip_prefix(theirs)?)));
        let named =
            named.next().map_or_else(|| path.to_owned(), |(ours, rest)| format!("{ours}{rest}"));
        match self {
            Self::Parameters | Self::Message => named,
            Self::Tunnel => format!("{}.{}", Self::TUNNEL, snake_case(&named)),
        }
    }
}

/// Returns a name as the tunnel spells it.
fn snake_case(name: &str) -> String {
    let spelled = name.chars().flat_map(|letter| {
        let hump = letter.is_ascii_uppercase().then_some('_');
        hump.into_iter().chain([letter.to_ascii_lowercase()])
    });
    spelled.collect()
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// The JSON-RPC code.
    pub code: i64,
    /// The word for it.
    pub reason: &'static str,
    /// What is wrong, for people: for those who ask, and of an internal error for operators alone,
    /// since it may say where things are on this machine.
    pub problem: String,
    /// What a program may want to know besides.
    pub details: Map<String, Value>,
}

impl Error {
    /// Makes an error.
    pub fn new(code: i64, reason: &'static str, problem: impl Into<String>) -> Self {
        Self { code, reason, problem: problem.into(), details: Map::new() }
    }

    /// Adds what a program may want to know.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// A parameter is missing or malformed.
    pub fn invalid(path: impl Into<String>, problem: &str) -> Self {
        let path = path.into();
        Self::new(INVALID_PARAMS, "INVALID_PARAMS", format!("{path}: {problem}")).with("path", path)
    }

    /// The same of a parameter that lies within another one.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        if let Some(Value::String(path)) = self.details.get_mut("path") {
            *path = format!("{outer}.{path}");
            self.problem = format!("{outer}.{}", self.problem);
        }
        self
    }

    /// There is no such task, or the caller must not know of it.
    pub fn no_task(task: &str, family: Family) -> Self {
        let code = match family {
            Family::Proposal => UNSUPPORTED_OPERATION,
            Family::Standard | Family::Alias => TASK_NOT_FOUND,
        };
        let task: String = task.chars().take(80).collect();
        Self::new(code, "TASK_NOT_FOUND", format!("there is no task {task:?}")).with("taskId", task)
    }

    /// The body cannot be read: it is no JSON, or none that is taken.
    pub fn unreadable(unreadable: &Unreadable) -> Self {
        let (code, reason) = match unreadable {
            Unreadable::Malformed(_) => (PARSE_ERROR, "PARSE_ERROR"),
            _ => (INVALID_REQUEST, "INVALID_REQUEST"),
        };
        Self::new(code, reason, unreadable.to_string())
    }

    /// The state of a task does not allow a pause. A message may ask for one, too, and is answered in
    /// the codes of A2A's own methods.
    pub fn not_pausable(reason: &'static str, problem: impl Into<String>, family: Family) -> Self {
        let code = match family {
            Family::Standard => UNSUPPORTED_OPERATION,
            Family::Proposal | Family::Alias => NOT_PAUSABLE,
        };
        Self::new(code, reason, problem)
    }

    /// There are no push notifications here.
    pub fn no_push() -> Self {
        let problem = "this agent sends no push notifications; subscribe to the task";
        Self::new(PUSH_NOT_SUPPORTED, "PUSH_NOTIFICATION_NOT_SUPPORTED", problem)
    }

    /// There is no card but the public one, which says so: 1.0 has another error for one that is
    /// promised there and missing.
    pub fn no_extended_card(version: Version) -> Self {
        let problem = "this agent has no card but the public one";
        match version {
            Version::V10 => Self::new(UNSUPPORTED_OPERATION, "UNSUPPORTED_OPERATION", problem),
            Version::V03 | Version::V03Proto => {
                Self::new(NO_EXTENDED_CARD, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", problem)
            }
        }
    }

    /// There is no such method.
    pub fn no_method(name: &str) -> Self {
        let name: String = name.chars().take(80).collect();
        Self::new(METHOD_NOT_FOUND, "METHOD_NOT_FOUND", format!("there is no method {name:?}"))
    }

    /// There is no such version here.
    pub fn version(asked: &str) -> Self {
        let asked: String = asked.chars().take(40).collect();
        let problem = format!("there is no version {asked:?} here; there are 0.3 and 1.0");
        Self::new(VERSION_NOT_SUPPORTED, "VERSION_NOT_SUPPORTED", problem)
    }

    /// The caller may not do this.
    pub fn forbidden(scope: Scope) -> Self {
        let problem = format!("the token does not have the scope {:?}", scope.as_str());
        Self::new(FORBIDDEN, "PERMISSION_DENIED", problem)
    }

    /// The store failed, or a host. Peers are told no more than that.
    fn internal(problem: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, "INTERNAL", problem)
    }

    /// What the library could not do.
    pub fn of(error: adjourn::Error, task: &str, family: Family) -> Self {
        Self::of_source(error, task, family, Source::Parameters)
    }

    /// What the library could not do with what a peer has written somewhere.
    pub fn of_source(error: adjourn::Error, task: &str, family: Family, source: Source) -> Self {
        match error {
            adjourn::Error::Refused(refused) => Self::refused(&refused, task, family, source),
            // The first session of a context may have been removed a moment ago.
            adjourn::Error::NotFound(_) | adjourn::Error::UnknownParent(_) => {
                Self::no_task(task, family)
            }
            adjourn::Error::NotSuspended { ref why, .. } => {
                let reason = match why {
                    NotSuspended::Overtaken => "TASK_NOT_PAUSABLE",
                    _ => "WITHDRAWN",
                };
                let problem = match family {
                    Family::Standard => format!("the pause is not in force: {why}"),
                    Family::Proposal | Family::Alias => error.to_string(),
                };
                Self::not_pausable(reason, problem, family).with("taskId", task)
            }
            error => Self::internal(error.to_string()),
        }
    }

    /// What the lifecycle refuses of what a peer has written somewhere.
    pub fn refused(refused: &Rejected, task: &str, family: Family, source: Source) -> Self {
        if let Rejected::Invalid { path, problem } = refused {
            return Self::invalid(source.parameter(path), problem).with("taskId", task);
        }
        let (code, reason) = match family {
            Family::Standard => standard(refused),
            Family::Proposal | Family::Alias => pausing(refused),
        };
        if reason == "TASK_NOT_FOUND" {
            return Self::no_task(task, family);
        }
        let (problem, details) = match family {
            // Handles are for those who pause and resume.
            Family::Standard => {
                let mut details = refused.details();
                details.retain(|name, _| name != "handle");
                (without_handle(refused), details)
            }
            Family::Proposal | Family::Alias => (refused.to_string(), refused.details()),
        };
        // A peer elsewhere cannot type what a person here would.
        let error = Self::new(code, reason, problem).with("taskId", task);
        Self { details: error.details.into_iter().chain(details).collect(), ..error }
    }

    /// Returns what is shown to those who ask; it begins with the word, because clients drop the rest.
    pub fn message(&self) -> String {
        let problem = match self.code {
            INTERNAL_ERROR => "the agent cannot do this now; the log of its server says why",
            _ => &self.problem,
        };
        format!("{}: {problem}", self.reason)
    }

    /// Returns it as an error of JSON-RPC.
    pub fn to_rpc(&self) -> Value {
        json!({ "code": self.code, "message": self.message(), "data": [self.info()] })
    }

    /// Returns what a program reads: one word and its details, which are texts.
    pub(crate) fn info(&self) -> Value {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let details = self.details.iter().filter(|(_, value)| !value.is_null());
        let metadata: Map<_, _> =
            details.map(|(name, value)| (name.clone(), text(value).into())).collect();
        json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.reason,
            "domain": if self.code > NOT_PAUSABLE && self.code <= TASK_NOT_FOUND { A2A } else { OURS },
            "metadata": metadata,
        })
    }
}

/// Says why the lifecycle refuses something, without the handle of a suspension.
fn without_handle(refused: &Rejected) -> String {
    match refused {
        Rejected::HandleMismatch { .. } => "the task does not wait for this any more".to_owned(),
        Rejected::AlreadyResumed { at, cause, by, .. } => {
            format!("the suspension was resumed at {at} ({cause}) by {by}")
        }
        Rejected::Withdrawn { at, by, .. } => {
            format!("the suspension was withdrawn at {at} by {by}")
        }
        Rejected::ConditionsDiffer { .. } => {
            "the suspension that is there has other conditions".to_owned()
        }
        refused => refused.to_string(),
    }
}

/// A2A's own methods.
const fn standard(refused: &Rejected) -> (i64, &'static str) {
    match refused {
        Rejected::Invalid { .. } => (INVALID_PARAMS, "INVALID_PARAMS"),
        Rejected::EmptyReply => (INVALID_PARAMS, refused.reason()),
        Rejected::NothingToCancel { .. } => (TASK_NOT_CANCELABLE, "TASK_NOT_CANCELABLE"),
        Rejected::Held(_) | Rejected::PausedByAnother(_) => (UNSUPPORTED_OPERATION, "TASK_PAUSED"),
        Rejected::Busy { .. } | Rejected::Stopping { .. } => (UNSUPPORTED_OPERATION, "TASK_BUSY"),
        Rejected::NotPermitted => (TASK_NOT_FOUND, "TASK_NOT_FOUND"),
        // What a message answers was answered before, or is over.
        refused => (UNSUPPORTED_OPERATION, refused.reason()),
    }
}

/// The methods of the proposal, by any name.
const fn pausing(refused: &Rejected) -> (i64, &'static str) {
    match refused {
        Rejected::Invalid { .. } => (INVALID_PARAMS, "INVALID_PARAMS"),
        Rejected::EmptyReply => (INVALID_PARAMS, refused.reason()),
        Rejected::HandleMismatch { .. } | Rejected::HandleRequired { .. } => {
            (HANDLE_MISMATCH, refused.reason())
        }
        Rejected::NotPermitted => (TASK_NOT_FOUND, "TASK_NOT_FOUND"),
        refused => (NOT_PAUSABLE, refused.reason()),
    }
}

#[cfg(test)]
mod tests {
    use adjourn::core::session::Phase;

    use super::*;

    #[test]
    fn a_field_is_named_as_the_peer_has_spelled_it() {
        for (source, path, parameter) in [
            (Source::Parameters, "resumeWhen.since", "conditions.since"),
            (Source::Parameters, "_meta", "metadata"),
            (Source::Parameters, "graceMs", "graceMs"),
            (Source::Parameters, "input", "input"),
            (Source::Message, "prompt", "message.parts"),
            (Source::Message, "input", "message.parts"),
            (Source::Message, "messageId", "message.messageId"),
            (Source::Tunnel, "resumeWhen.since", "metadata.harn.pause.conditions.since"),
            (Source::Tunnel, "graceMs", "metadata.harn.pause.grace_ms"),
            (Source::Tunnel, "reason", "metadata.harn.pause.reason"),
        ] {
            let (path, problem) = (path.to_owned(), "is wrong".to_owned());
            let refused = Rejected::Invalid { path, problem };
            let error = Error::refused(&refused, "t", Family::Proposal, source);
            assert_eq!((error.code, &error.details["path"]), (-32602, &json!(parameter)));
            assert!(error.problem.starts_with(parameter), "{}", error.problem);
        }
    }

    #[test]
    fn each_family_of_methods_has_its_own_code_for_an_unknown_task() {
        for (family, code) in
            [(Family::Standard, -32001), (Family::Proposal, -32004), (Family::Alias, -32001)]
        {
            let error = Error::no_task("x", family);
            assert_eq!((error.code, error.reason), (code, "TASK_NOT_FOUND"));
            assert!(error.message().starts_with("TASK_NOT_FOUND: "));
        }
    }

    #[test]
    fn a_refusal_has_the_code_of_its_family_and_its_word_on_every_face() {
        let busy = Rejected::Busy { phase: Phase::Running };
        let paused = Rejected::NotSuspended { phase: Phase::Running };
        let terminal = Rejected::NotSuspendable { phase: Phase::Idle };
        for (refused, family, code, reason) in [
            (&busy, Family::Standard, -32004, "TASK_BUSY"),
            (&busy, Family::Proposal, -32011, "TASK_BUSY"),
            (&paused, Family::Proposal, -32011, "TASK_NOT_PAUSED"),
            (&terminal, Family::Alias, -32011, "TASK_NOT_PAUSABLE"),
            (&Rejected::EmptyReply, Family::Proposal, -32602, "EMPTY_REPLY"),
            (&Rejected::NotPermitted, Family::Proposal, -32004, "TASK_NOT_FOUND"),
            (&Rejected::NotPermitted, Family::Alias, -32001, "TASK_NOT_FOUND"),
        ] {
            let error = Error::refused(refused, "t", family, Source::Parameters);
            assert_eq!((error.code, error.reason), (code, reason), "{refused}");
            let info = &error.to_rpc()["data"][0];
            assert_eq!(
                (&info["reason"], &info["metadata"]["taskId"]),
                (&reason.into(), &"t".into())
            );
        }
    }
}
