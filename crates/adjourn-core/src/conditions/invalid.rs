//! The refusal of conditions: where they are wrong, and what was expected there.
//!
//! What was given is hostile until proven otherwise: it is shown escaped and never longer than
//! [`SHOWN`] characters at a time, so that a refusal can go into a log, a terminal or an answer.

use serde_json::Value;

/// How many characters of what was given a refusal repeats at one place.
const SHOWN: usize = 64;

/// Why conditions were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", root_or(.path))]
pub struct Invalid {
    /// Where: `timeout.durationMinutes`, `trigger.any[2].exact.name`; empty for the whole.
    ///
    /// A field whose name is no plain word stands in brackets: `trigger["a b"]`.
    pub path: String,
    /// What was expected there, in lower case and without full stop.
    pub problem: String,
}

impl Invalid {
    /// Makes a refusal of the value at hand; callers on the way out add where that is.
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    /// Refuses `given` because it is not `what`.
    pub(super) fn expected(what: impl std::fmt::Display, given: &Value) -> Self {
        Self::new(format!("expected {what}, got {}", shown(given)))
    }

    /// Puts the path below `prefix`, for conditions that are a field of something else.
    ///
    /// The path of the whole becomes just the prefix.
    #[must_use]
    pub fn within(self, prefix: &str) -> Self {
        let dot = match self.path.chars().next() {
            None | Some('[') => "",
            Some(_) if prefix.is_empty() => "",
            Some(_) => ".",
        };
        Self { path: format!("{prefix}{dot}{}", self.path), problem: self.problem }
    }

    /// Puts the path below a field whose name may be anything.
    #[must_use]
    pub(super) fn in_field(self, name: &str) -> Self {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if plain && !name.is_empty() && name.len() <= SHOWN {
            self.within(name)
        } else {
            self.within(&format!("[{}]", quoted(name)))
        }
    }

    /// Puts the path below an element of a list.
    #[must_use]
    pub(super) fn in_element(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }
}

/// Names the whole where there is no path into it.
fn root_or(path: &str) -> &str {
    if path.is_empty() { "conditions" } else { path }
}

/// Returns the beginning of a text in quotes, with everything escaped that a terminal might obey.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", clipped(text))
}

/// Returns a text, or its beginning and a mark that something is missing.
fn clipped(text: &str) -> String {
    let mut chars = text.chars();
    let mut head: String = chars.by_ref().take(SHOWN).collect();
    if chars.next().is_some() {
        head.push('…');
    }
    head
}

/// Says what a value is, in as many words as a refusal has room for.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => clipped(&number.to_string()),
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_grow_outwards() {
        let invalid = Invalid::new("expected a string");
        assert_eq!(invalid.to_string(), "conditions: expected a string");

        let invalid = invalid.in_field("name").in_field("exact").in_element(2).in_field("any");
        assert_eq!(invalid.path, "any[2].exact.name");
        assert_eq!(invalid.clone().within("").path, "any[2].exact.name");

        let invalid = invalid.within("trigger").within("resumeWhen");
        assert_eq!(invalid.to_string(), "resumeWhen.trigger.any[2].exact.name: expected a string");
    }

    #[test]
    fn the_root_becomes_the_prefix() {
        assert_eq!(Invalid::new("expected less").within("resumeWhen").path, "resumeWhen");
    }

    #[test]
    fn a_name_that_is_no_word_is_bracketed_and_escaped() {
        let path = |name: &str| Invalid::new("").in_field(name).within("trigger").path;
        assert_eq!(path("on_event-2"), "trigger.on_event-2");
        assert_eq!(path(""), r#"trigger[""]"#);
        assert_eq!(path("a.b"), r#"trigger["a.b"]"#);
        assert_eq!(path("\u{1b}[2J\"\n"), r#"trigger["\u{1b}[2J\"\n"]"#);
        assert_eq!(path(&"x".repeat(65)), format!(r#"trigger["{}…"]"#, "x".repeat(64)));
        assert_eq!(path(&"é".repeat(10_000)), format!(r#"trigger["{}…"]"#, "é".repeat(64)));
    }

    #[test]
    fn what_was_given_is_shown_in_part() {
        let long = Value::from("ä".repeat(1_000));
        let invalid = Invalid::expected("an object", &long);
        assert_eq!(invalid.problem, format!("expected an object, got \"{}…\"", "ä".repeat(64)));
    }
}
