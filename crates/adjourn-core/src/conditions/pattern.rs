//! The pattern of `onEvent`: which events wake a session, by name and subject.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::invalid::{Invalid, quoted};
use super::parse::{check_length, string};
use super::{EventView, glob};

/// What separates the parts of a name.
pub(super) const NAME_SEPARATOR: char = '.';

/// What separates the parts of a subject.
const SUBJECT_SEPARATOR: char = '/';

/// A pattern for events: `name` or `name:subject`.
///
/// The first colon ends the name; later ones belong to the subject. Names have parts separated by
/// dots, subjects by slashes:
///
/// | pattern | matches |
/// |---|---|
/// | `ci.passed` | that name, with any subject or none |
/// | `ci.build.completed:1234` | that name with that subject |
/// | `file.*:src/**.rs` | `file.changed` and `file.removed` of every Rust file below `src` |
///
/// `*` stands for a run of characters within one part, `**` for a run that may span parts. A star
/// that is a whole part stands for at least one character; one that completes a part (`ch*ed`) may
/// stand for nothing. There is no way to name a star itself; a trigger with `exact` can.
///
/// The first part of a name is literal, so that every pattern has a key by which an event finds it.
/// Parts of a name are not empty and hold neither white space nor control characters. A subject is
/// free but for control characters: it may be an absolute path or an address, whose parts can be
/// empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventPattern(String);

impl EventPattern {
    /// Returns the pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the pattern for the name.
    pub fn name(&self) -> &str {
        split(&self.0).0
    }

    /// Returns the pattern for the subject; without one, any subject and none match.
    pub fn subject(&self) -> Option<&str> {
        split(&self.0).1
    }

    /// Tells whether the name and the subject of `event` match.
    pub fn matches(&self, event: EventView<'_>) -> bool {
        let (name, subject) = split(&self.0);
        glob::matches(name, NAME_SEPARATOR, event.name)
            && subject.is_none_or(|pattern| {
                event.subject.is_some_and(|text| glob::matches(pattern, SUBJECT_SEPARATOR, text))
            })
    }

    /// Returns whether a wait for such a name and subject is one that this pattern describes, or
    /// one that would take what is spelled like this pattern.
    pub(super) fn is_about(&self, name: &str, subject: Option<&str>) -> bool {
        let either = |separator, one: &str, other: &str| {
            glob::matches(one, separator, other) || glob::matches(other, separator, one)
        };
        let subjects = self.subject().zip(subject);
        either(NAME_SEPARATOR, self.name(), name)
            && subjects.is_none_or(|(one, other)| either(SUBJECT_SEPARATOR, one, other))
    }

    pub(super) fn read(value: &Value) -> Result<Self, Invalid> {
        string(value)?.parse()
    }
}

impl FromStr for EventPattern {
    type Err = Invalid;

    /// Reads a pattern; the path of a refusal is empty, to be put where the pattern came from.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        check_length(text)?;
        let (name, subject) = split(text);
        check_name(name)
            .and_then(|()| subject.map_or(Ok(()), check_subject))
            .map_err(|problem| Invalid::new(format!("{problem}, got {}", quoted(text))))?;
        Ok(Self(text.to_owned()))
    }
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((name, subject)) => (name, Some(subject)),
        None => (text, None),
    }
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let mut parts = name.split(NAME_SEPARATOR);
    if !parts.clone().all(|part| !part.is_empty()) {
        Err("expected a name of non-empty parts between dots")
    } else if name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        Err("expected a name without white space and control characters")
    } else if !parts.next().is_some_and(glob::is_literal) {
        Err("expected a name whose first part has no star")
    } else {
        check_stars(name)
    }
}

fn check_subject(subject: &str) -> Result<(), &'static str> {
    if subject.is_empty() {
        Err("expected a subject after the colon")
    } else if subject.contains(char::is_control) {
        Err("expected a subject without control characters")
    } else {
        check_stars(subject)
    }
}

fn check_stars(pattern: &str) -> Result<(), &'static str> {
    if pattern.contains("***") { Err("expected at most two stars in a row") } else { Ok(()) }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for EventPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for EventPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|invalid: Invalid| D::Error::custom(invalid.problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn event<'a>(name: &'a str, subject: Option<&'a str>) -> EventView<'a> {
        EventView { id: "1", source: "test", name, subject, time: Timestamp::from_millis(0) }
    }

    #[test]
    fn patterns_that_are_accepted() {
        for (text, name, subject) in [
            ("ci.passed", "ci.passed", None),
            ("file.changed:src/lib.rs", "file.changed", Some("src/lib.rs")),
            ("ci.build.completed:1234", "ci.build.completed", Some("1234")),
            ("a", "a", None),
            ("a.*", "a.*", None),
            ("a.**:**", "a.**", Some("**")),
            ("a.**b*c**", "a.**b*c**", None),
            ("a:b:c", "a", Some("b:c")),
            ("a:/etc/hosts", "a", Some("/etc/hosts")),
            ("a:https://example.org//x y", "a", Some("https://example.org//x y")),
            ("größe.geändert:ß", "größe.geändert", Some("ß")),
        ] {
            let pattern: EventPattern = text.parse().unwrap();
            assert_eq!((pattern.name(), pattern.subject()), (name, subject));
            assert_eq!(pattern.to_string(), text);
            let json = serde_json::to_value(&pattern).unwrap();
            assert_eq!(json, text);
            assert_eq!(serde_json::from_value::<EventPattern>(json).unwrap(), pattern);
        }
    }

    #[test]
    fn patterns_that_are_refused() {
        let longest = "a".repeat(256);
        assert!(longest.parse::<EventPattern>().is_ok());
        for (text, problem) in [
            ("", "expected a name of non-empty parts between dots, got \"\""),
            (":", "expected a name of non-empty parts between dots, got \":\""),
            (":x", "expected a name of non-empty parts between dots, got \":x\""),
            (".a", "expected a name of non-empty parts between dots, got \".a\""),
            ("a.", "expected a name of non-empty parts between dots, got \"a.\""),
            ("a..b", "expected a name of non-empty parts between dots, got \"a..b\""),
            ("a b", "expected a name without white space and control characters, got \"a b\""),
            (
                "a\u{a0}",
                "expected a name without white space and control characters, got \"a\\u{a0}\"",
            ),
            ("a\u{0}", "expected a name without white space and control characters, got \"a\\0\""),
            ("*", "expected a name whose first part has no star, got \"*\""),
            ("**", "expected a name whose first part has no star, got \"**\""),
            ("ci*.x", "expected a name whose first part has no star, got \"ci*.x\""),
            ("*:x", "expected a name whose first part has no star, got \"*:x\""),
            ("a.***", "expected at most two stars in a row, got \"a.***\""),
            ("a:****", "expected at most two stars in a row, got \"a:****\""),
            ("a:", "expected a subject after the colon, got \"a:\""),
            ("a:b\u{1f}", "expected a subject without control characters, got \"a:b\\u{1f}\""),
            (&format!("{longest}b"), "expected at most 256 bytes, got 257"),
        ] {
            let invalid = text.parse::<EventPattern>().unwrap_err();
            assert_eq!((invalid.path.as_str(), invalid.problem.as_str()), ("", problem));
        }
    }

    #[test]
    fn a_pattern_without_subject_takes_any() {
        let pattern: EventPattern = "ci.passed".parse().unwrap();
        assert!(pattern.matches(event("ci.passed", None)));
        assert!(pattern.matches(event("ci.passed", Some(""))));
        assert!(pattern.matches(event("ci.passed", Some("1234"))));
        assert!(!pattern.matches(event("ci.passed.late", None)));
        assert!(!pattern.matches(event("ci.passed:1234", None)));
    }

    #[test]
    fn a_pattern_with_subject_takes_only_events_that_have_it() {
        let pattern: EventPattern = "file.*:src/**.rs".parse().unwrap();
        assert!(pattern.matches(event("file.changed", Some("src/lib.rs"))));
        assert!(pattern.matches(event("file.removed", Some("src/a.b/c.rs"))));
        assert!(!pattern.matches(event("file.changed", Some("src/lib.c"))));
        assert!(!pattern.matches(event("file.changed", None)));

        let any: EventPattern = "a:**".parse().unwrap();
        assert!(any.matches(event("a", Some("/"))));
        assert!(!any.matches(event("a", Some(""))));
        assert!(!any.matches(event("a", None)));
    }
}
