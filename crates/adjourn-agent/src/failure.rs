//! Failures: what can go wrong in a run, and what can be done about it.

use std::fmt;

use adjourn_core::limits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How much of a failure's own words is kept, as JSON.
const WORDS_BYTES: usize = limits::EXCERPT_BYTES;
/// How many blockers are kept.
const BLOCKERS: usize = 8;
/// How much of a blocker is kept, as JSON.
const BLOCKER_BYTES: usize = 256;
/// How long partial data may be, as JSON.
const DATA_BYTES: usize = 2 * 1024;
/// How long metadata may be together, as JSON.
const METADATA_BYTES: usize = 1024;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal => $action:ident,)*) => {
        /// What went wrong, in one word.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum FailureKind {
            $($(#[$doc])* #[serde(rename = $word)] $kind,)*
        }

        impl FailureKind {
            /// Every kind there is.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the word for this kind in records and events.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }

            /// Returns the kind that a word names.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$kind),)* _ => None }
            }

            /// Returns what is done about it unless the host's policy says otherwise.
            pub const fn default_action(self) -> Action {
                match self { $(Self::$kind => Action::$action,)* }
            }
        }
    };
}

kinds! {
    /// The model's provider did not answer, or not to the end: a time-out, a broken connection, an
    /// error of the provider's, a rate limit. Every failed model call is one that says nothing else.
    TransientProvider = "transient_provider" => Retry,
    /// The model's answer was cut off at its length.
    OutputTruncated = "output_truncated" => Retry,
    /// The model or its provider refused to answer.
    OutputRefused = "output_refused" => Handoff,
    /// What was asked for can be read in more than one way. Tools raise it.
    AmbiguousInput = "ambiguous_input" => AskUser,
    /// What was asked for does not fit: into the model's context, or into what a tool can do at
    /// once. Models and tools raise it.
    ScopeTooLarge = "scope_too_large" => NarrowScope,
    /// The model or a tool cannot do what was asked for: a request that its provider refuses as
    /// wrong, an unknown model.
    CapabilityGap = "capability_gap" => Handoff,
    /// The model answered with nothing.
    NoProgress = "no_progress" => NarrowScope,
    /// The model asks for the same call with the same arguments again and again.
    LoopDetected = "loop_detected" => AskUser,
    /// A tool failed, or was called with arguments that its schema refuses.
    ToolError = "tool_error" => Retry,
    /// What was asked for is not allowed. Tools raise it.
    PolicyViolation = "policy_violation" => Handoff,
    /// What a tool had built up for the run is gone, such as the variables of an interpreter that
    /// was restarted. Tools raise it.
    KernelInvalidated = "kernel_invalidated" => NarrowScope,
    /// The run has had as many model answers as it may.
    IterationLimit = "iteration_limit" => AskUser,
    /// The run has worked for as long as it may; parked time does not count.
    TimeLimit = "time_limit" => AskUser,
    /// The run has used as much money or as many tokens as it may.
    BudgetExceeded = "budget_exceeded" => AskUser,
    /// The model's provider or a tool does not accept the credentials it was given.
    AuthRequired = "auth_required" => AskUser,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The model is called again, after a while; a tool's failure is told to the model, which
    /// decides for itself whether it calls the tool again.
    Retry,
    /// A person is asked: the run suspends.
    AskUser,
    /// The model is told once to try something smaller.
    NarrowScope,
    /// The run ends, and a person takes over.
    Handoff,
    /// The run ends with what it has.
    Stop,
}

/// Something that went wrong in a run.
///
/// It is kept in records, so all of it is JSON and bounded: what is too long is cut or left out when
/// it is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// What went wrong, for people and for the model.
    pub explanation: String,
    /// What stands in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    /// What the part of the program suggests that met it.
    pub suggested_action: Action,
    /// What there is of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_data: Option<Value>,
    /// What else is known about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// What a failure carries beside its words.
#[derive(Debug, Clone, Copy)]
enum Detail {
    PartialData,
    Metadata,
    Blockers,
}

impl Failure {
    /// Makes a failure with the action that is usual for its kind.
    pub fn new(kind: FailureKind, explanation: impl AsRef<str>) -> Self {
        Self {
            kind,
            explanation: excerpt(explanation.as_ref(), WORDS_BYTES),
            blockers: Vec::new(),
            suggested_action: kind.default_action(),
            partial_data: None,
            metadata: Map::new(),
        }
    }

    /// Adds something that stands in the way; of more than eight the first are kept.
    #[must_use]
    pub fn blocker(mut self, blocker: impl AsRef<str>) -> Self {
        if self.blockers.len() < BLOCKERS {
            self.blockers.push(excerpt(blocker.as_ref(), BLOCKER_BYTES));
        }
        self
    }

    /// Suggests an action; the policy has the last word.
    #[must_use]
    pub const fn suggesting(mut self, action: Action) -> Self {
        self.suggested_action = action;
        self
    }

    /// Adds what there is of the result. What is longer than 2 KiB as JSON, or nested too deep to be
    /// read again, is left out.
    #[must_use]
    pub fn partial_data(mut self, data: Value) -> Self {
        self.partial_data = Some(data).filter(|data| fits(data, DATA_BYTES));
        self
    }

    /// Adds what else is known about it, as long as all of that is not longer than 1 KiB as JSON.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: Value) -> Self {
        let name = name.into();
        self.metadata.insert(name.clone(), value);
        if !fits(&self.metadata, METADATA_BYTES) {
            self.metadata.remove(&name);
        }
        self
    }

    /// Bounds a failure that was made field by field.
    #[must_use]
    pub(crate) fn bounded(self) -> Self {
        let mut bounded = Self::new(self.kind, &self.explanation).suggesting(self.suggested_action);
        for blocker in &self.blockers {
            bounded = bounded.blocker(blocker);
        }
        for (name, value) in self.metadata {
            bounded = bounded.with(name, value);
        }
        bounded.partial_data = self.partial_data.filter(|data| fits(data, DATA_BYTES));
        bounded
    }

    /// Leaves out the longest of what failures carry beside their words, and returns whether there was
    /// something.
    pub(crate) fn leave_out_longest<'f>(failures: impl IntoIterator<Item = &'f mut Self>) -> bool {
        let details = failures.into_iter().filter_map(|failure| {
            let (length, detail) = failure.longest_detail()?;
            Some((length, detail, failure))
        });
        let Some((_, detail, failure)) = details.max_by_key(|(length, ..)| *length) else {
            return false;
        };
        match detail {
            Detail::PartialData => failure.partial_data = None,
            Detail::Metadata => failure.metadata = Map::new(),
            Detail::Blockers => failure.blockers = Vec::new(),
        }
        true
    }

    /// Returns the longest of what it carries beside its words, and how long that is as JSON.
    fn longest_detail(&self) -> Option<(usize, Detail)> {
        let data =
            self.partial_data.as_ref().map(|data| (encoded(data).len(), Detail::PartialData));
        let metadata =
            (!self.metadata.is_empty()).then(|| (encoded(&self.metadata).len(), Detail::Metadata));
        let blockers =
            (!self.blockers.is_empty()).then(|| (encoded(&self.blockers).len(), Detail::Blockers));
        [data, metadata, blockers].into_iter().flatten().max_by_key(|(length, _)| *length)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.explanation)
    }
}

fn fits(value: &impl Serialize, limit: usize) -> bool {
    adjourn_core::json::check(&encoded(value), limit).is_ok()
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    // A value always encodes.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Cuts a text so that it takes no more than `limit` bytes as JSON, where quotes and backslashes take
/// two each.
fn excerpt(text: &str, limit: usize) -> String {
    let mut taken = 0;
    let is_beyond = |&(_, letter): &(usize, char)| {
        taken += letter.len_utf8() + usize::from(matches!(letter, '"' | '\\'));
        taken > limit
    };
    let end = text.char_indices().find(is_beyond).map(|(end, _)| end);
    limits::excerpt(text, end.unwrap_or(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_long_as_json_as_they_may_be() {
        for (text, limit, cut) in [
            ("short", 16, "short"),
            ("\"\"\"\"", 8, "\"\"\"\""),
            ("\"\"\"\"\"", 8, "\"…"),
            ("a\\b\nc", 16, "a\\b c"),
            ("ééééé", 8, "éé…"),
        ] {
            assert_eq!(excerpt(text, limit), cut);
        }
        for letter in ["\"", "\\", "é\"", "x", "\n", "𝄞"] {
            let failure = Failure::new(FailureKind::ToolError, letter.repeat(5000));
            let length = encoded(&failure.explanation).len() - 2;
            assert!((WORDS_BYTES / 2..=WORDS_BYTES).contains(&length), "{letter:?}: {length}");
            assert_eq!(failure.clone().bounded(), failure, "it is cut once");
        }
    }

    #[test]
    fn the_longest_of_what_failures_carry_is_left_out_first() {
        let long = |bytes: usize| Value::String("x".repeat(bytes));
        let mut failures = [
            Failure::new(FailureKind::ToolError, "a").partial_data(long(30)).with("n", long(900)),
            Failure::new(FailureKind::AuthRequired, "b").partial_data(long(500)).blocker("a wall"),
        ];
        let mut left_out = Vec::new();
        while Failure::leave_out_longest(&mut failures) {
            let left = |failure: &Failure| {
                let Failure { partial_data, metadata, blockers, .. } = failure;
                [partial_data.is_some(), !metadata.is_empty(), !blockers.is_empty()]
            };
            left_out.push(failures.each_ref().map(left));
        }
        let expected = [
            [[true, false, false], [true, false, true]],
            [[true, false, false], [false, false, true]],
            [[false, false, false], [false, false, true]],
            [[false, false, false], [false, false, false]],
        ];
        assert_eq!(left_out, expected);
        assert_eq!(failures.map(|failure| failure.explanation), ["a", "b"]);
    }
}
