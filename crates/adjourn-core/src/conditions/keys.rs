//! The keys under which a wait is found when an event arrives.
//!
//! A wait is stored under the keys of its conditions, and an event looks under its own keys.
//!
//! # Contract
//!
//! Whenever conditions match an event, they share a key with it. The converse does not hold: what
//! is found under a key is a candidate and is matched in full. This is so for all strings, also
//! for names and subjects that no pattern could be written for.
//!
//! # Scheme
//!
//! | conditions | key |
//! |---|---|
//! | a literal name and a literal subject | `:name␟subject` |
//! | a literal name | `=name` |
//! | a name that begins with complete parts | `^those.parts` |
//! | anything else | `*` |
//!
//! The first character tells the kinds apart, so that no name can pass for a key of another kind.
//! The separator before the subject is U+001F. A name that itself contains it, as only a malformed
//! one can, has no key with a subject and is found under its name alone.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

use super::pattern::NAME_SEPARATOR;
use super::trigger::harn_names;
use super::{Attribute, Conditions, EventPattern, EventView, Trigger, glob};

/// How many leading parts of a name have keys of their own.
///
/// It bounds the lookups for one event. Names with more parts are rare, and a pattern that spells
/// out more is found under its first ones.
const MAX_PARTS: usize = 32;

const SUBJECT: char = '\u{1f}';

/// A key under which a wait is stored and an event looks for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

/// The names of the events that look under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names<'a> {
    /// Any name.
    All,
    /// This name.
    Only(&'a str),
    /// This name, and those that go on after it with a dot.
    Under(&'a str),
}

/// The kinds of keys, the least selective first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Any,
    Parts,
    Name,
    NameAndSubject,
}

impl Key {
    /// The text of the key that every event looks under.
    pub const ANY: &str = "*";

    /// Makes the key that every event looks under.
    pub fn any() -> Self {
        Self(Self::ANY.to_owned())
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether every event looks under this key, which makes waits under it costly.
    pub fn is_any(&self) -> bool {
        self.0 == Self::ANY
    }

    /// Returns which events look under this key, by their names.
    ///
    /// A store that searches its past events for those that a wait must not miss can leave out
    /// all others.
    pub fn names(&self) -> Names<'_> {
        let mut rest = self.0.chars();
        match rest.next() {
            Some('=') => Names::Only(rest.as_str()),
            Some(':') => {
                let name = rest.as_str().split(SUBJECT).next();
                name.map_or(Names::All, Names::Only)
            }
            Some('^') => Names::Under(rest.as_str()),
            _ => Names::All,
        }
    }

    fn name(name: &str) -> Self {
        Self(format!("={name}"))
    }

    fn name_and_subject(name: &str, subject: &str) -> Option<Self> {
        (!name.contains(SUBJECT)).then(|| Self(format!(":{name}{SUBJECT}{subject}")))
    }

    /// Returns a pattern for the events that look under this key, as a name and perhaps a subject;
    /// nothing for the key that all events look under, nor for one with a star in it: that is a star
    /// of the name itself, and would be taken for any other.
    fn described(&self) -> Option<(String, Option<&str>)> {
        let rest = self.0.get(1..).filter(|rest| glob::is_literal(rest))?;
        match (self.kind(), rest.split_once(SUBJECT)) {
            (Kind::Any, _) => None,
            (Kind::Parts, _) => Some((format!("{rest}{NAME_SEPARATOR}**"), None)),
            (Kind::NameAndSubject, Some((name, subject))) => Some((name.to_owned(), Some(subject))),
            (Kind::Name | Kind::NameAndSubject, _) => Some((rest.to_owned(), None)),
        }
    }

    /// Returns a key for each row of complete parts at the beginning of `text`, the shortest first.
    ///
    /// A part is complete when its separator follows.
    fn parts(text: &str) -> impl Iterator<Item = Self> {
        text.match_indices(NAME_SEPARATOR)
            .take(MAX_PARTS)
            .filter_map(|(end, _)| Some(Self(format!("^{}", text.get(..end)?))))
    }

    /// Returns the best key for names that begin with `text`.
    fn beginning(text: &str) -> Self {
        Self::parts(text).last().unwrap_or_else(Self::any)
    }

    /// Returns the best key for one name with a subject, if there is one to ask for.
    fn literal(name: &str, subject: Option<&str>) -> Self {
        subject
            .and_then(|subject| Self::name_and_subject(name, subject))
            .unwrap_or_else(|| Self::name(name))
    }

    fn kind(&self) -> Kind {
        match self.0.chars().next() {
            Some(':') => Kind::NameAndSubject,
            Some('=') => Kind::Name,
            Some('^') => Kind::Parts,
            _ => Kind::Any,
        }
    }

    /// Orders keys by how few events look under them, as far as the key itself can tell.
    fn selectivity(&self) -> (Kind, usize) {
        let parts = match self.kind() {
            Kind::Parts => self.0.matches(NAME_SEPARATOR).count(),
            Kind::Any | Kind::Name | Kind::NameAndSubject => 0,
        };
        (self.kind(), parts)
    }
}

/// Where the keys of waits lie that a pattern is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyRange {
    /// This key.
    Only(Key),
    /// The keys whose text begins so.
    Beginning(String),
}

/// Returns where to look for the waits that `pattern` is about; see [`Conditions::are_about`].
///
/// What is found there is a candidate and is compared in full. Waits that every event finds are among
/// them, which are few: one of their alternatives may have a name.
pub fn keys_about(pattern: &EventPattern) -> Vec<KeyRange> {
    let name = pattern.name();
    let head = name.split('*').next().unwrap_or_default();
    let beginnings = Key::parts(name)
        .filter(|key| head.starts_with(key.0.strip_prefix('^').unwrap_or_default()));
    let mut ranges: Vec<_> =
        [Key::any()].into_iter().chain(beginnings).map(KeyRange::Only).collect();
    if !glob::is_literal(name) {
        ranges.extend(['=', ':', '^'].map(|kind| KeyRange::Beginning(format!("{kind}{head}"))));
        return ranges;
    }
    ranges.push(KeyRange::Only(Key::name(name)));
    let literal = pattern.subject().filter(|subject| glob::is_literal(subject));
    ranges.push(match literal.and_then(|subject| Key::name_and_subject(name, subject)) {
        Some(key) => KeyRange::Only(key),
        None => KeyRange::Beginning(format!(":{name}{SUBJECT}")),
    });
    ranges
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the keys under which the waits that may match `event` are found.
///
/// There are at most three more than the name has parts, and at most 35.
pub fn event_keys(event: EventView<'_>) -> Vec<Key> {
    let subject = event.subject.and_then(|subject| Key::name_and_subject(event.name, subject));
    [Key::any(), Key::name(event.name)]
        .into_iter()
        .chain(subject)
        .chain(Key::parts(event.name))
        .collect()
}

impl Conditions {
    /// Returns the keys to store a wait under, sorted and without repetition.
    ///
    /// Conditions that no event can satisfy have none. A wait that is found by every event has just
    /// [`Key::ANY`].
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = self.trigger.as_ref().map(trigger_keys).unwrap_or_default();
        keys.extend(self.on_event.as_ref().map(pattern_key));
        if keys.iter().any(Key::is_any) { vec![Key::any()] } else { keys.into_iter().collect() }
    }

    /// Returns whether these conditions wait for what `pattern` describes.
    ///
    /// They do if an event of that very name and subject would be taken by them, or if what they
    /// wait for is itself spelled as the pattern says: `ci.*` is about waits for `ci.passed`, and
    /// `ci.passed` about waits for `ci.*`. Without a subject a pattern is about all subjects.
    ///
    /// Of a trigger the names and subjects count, and nothing else. Alternatives count each by
    /// itself. One that tells neither a name nor how it begins is about nothing, although events of
    /// many names may wake it: `suffix`, other attributes, and `not`. What a `not` names is what
    /// does not wake it, so that no pattern is about a name that a `not` rules out.
    pub fn are_about(&self, pattern: &EventPattern) -> bool {
        let on_event = self.on_event.as_ref();
        on_event.is_some_and(|waits| pattern.is_about(waits.name(), waits.subject()))
            || self.trigger.as_ref().is_some_and(|trigger| is_trigger_about(trigger, pattern))
    }
}

fn is_trigger_about(trigger: &Trigger, pattern: &EventPattern) -> bool {
    let (name, subject) = (pattern.name(), pattern.subject());
    let is_named = || {
        let keys = trigger_keys(trigger);
        let mut described = keys.iter().filter_map(Key::described);
        described.any(|(name, subject)| pattern.is_about(&name, subject))
    };
    let subject = subject.filter(|subject| glob::is_literal(subject));
    match trigger {
        Trigger::Any(triggers) => triggers.iter().any(|one| is_trigger_about(one, pattern)),
        _ => is_named() && (!glob::is_literal(name) || trigger.may_match(name, subject)),
    }
}

fn pattern_key(pattern: &EventPattern) -> Key {
    let name = pattern.name();
    if glob::is_literal(name) {
        Key::literal(name, pattern.subject().filter(|subject| glob::is_literal(subject)))
    } else {
        Key::beginning(name.split('*').next().unwrap_or_default())
    }
}

fn trigger_keys(trigger: &Trigger) -> BTreeSet<Key> {
    match trigger {
        Trigger::Exact(texts) => {
            let subject = texts.get(&Attribute::Subject).map(String::as_str);
            let name = texts.get(&Attribute::Name);
            [name.map_or_else(Key::any, |name| Key::literal(name, subject))].into()
        }
        Trigger::Prefix(texts) => {
            let name = texts.get(&Attribute::Name);
            [name.map_or_else(Key::any, |name| Key::beginning(name))].into()
        }
        Trigger::Suffix(_) | Trigger::Not(_) => [Key::any()].into(),
        // All of them must hold, so that it is enough to be found by one: the one that is found
        // least.
        Trigger::All(triggers) => triggers
            .iter()
            .map(trigger_keys)
            .max_by_key(|keys| (least_selective(keys), Reverse(keys.len())))
            .unwrap_or_else(|| [Key::any()].into()),
        Trigger::Any(triggers) => triggers.iter().flat_map(trigger_keys).collect(),
        Trigger::At(_) | Trigger::Cron(_) => BTreeSet::new(),
        Trigger::Harn { kind, events, .. } => {
            harn_names(kind, events).iter().map(|name| Key::name(name)).collect()
        }
    }
}

/// Returns how selective a set of keys is as a whole; the empty one, which nothing finds, most of
/// all.
fn least_selective(keys: &BTreeSet<Key>) -> (Kind, usize) {
    keys.iter().map(Key::selectivity).min().unwrap_or((Kind::NameAndSubject, usize::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::conditions::Spelling;
    use crate::time::Timestamp;

    const TIME: Timestamp = Timestamp::from_millis(1_000);

    fn event<'a>(name: &'a str, subject: Option<&'a str>) -> EventView<'a> {
        EventView { id: "1", source: "a", name, subject, time: TIME }
    }

    fn keys(value: &Value) -> Vec<String> {
        let conditions = Conditions::parse(value, Spelling::Camel).unwrap().unwrap();
        conditions.keys().iter().map(Key::to_string).collect()
    }

    #[test]
    fn an_event_looks_under_every_key_that_may_match() {
        let keys = |name, subject| {
            let keys = event_keys(event(name, subject));
            keys.iter().map(Key::to_string).collect::<Vec<_>>()
        };
        assert_eq!(keys("a", None), ["*", "=a"]);
        assert_eq!(keys("a.b.c", Some("x/y")), ["*", "=a.b.c", ":a.b.c\u{1f}x/y", "^a", "^a.b"]);
        assert_eq!(keys("", Some("")), ["*", "=", ":\u{1f}"]);
        assert_eq!(keys(".", None), ["*", "=.", "^"]);
        assert_eq!(keys("a\u{1f}b", Some("c")), ["*", "=a\u{1f}b"]);
        assert_eq!(keys(&"a.".repeat(1_000), Some("x")).len(), 35);
    }

    #[test]
    fn waits_are_found_by_what_they_are_about() {
        let on = |pattern: &str| json!({"onEvent": pattern});
        let harn = json!({"trigger": {"provider": "p", "kind": "ci.passed"}});
        let prefix = json!({"trigger": {"prefix": {"name": "ci.build."}}});
        let keyless = json!({"trigger": {"suffix": {"name": "ci.passed"}}});
        let prefix_within = json!({"trigger": {"prefix": {"name": "ci.built"}}});
        let failed = json!({"exact": {"name": "ci.failed"}});
        let not_failed = json!({"trigger": {"not": failed}});
        let of_ci = json!({"prefix": {"name": "ci."}});
        let all_but_failed = json!({"trigger": {"all": [of_ci, {"not": failed}]}});
        let one = json!({"exact": {"name": "ci.failed", "subject": "pr/12"}});
        let but_one = json!({"trigger": {"all": [of_ci, {"not": one}]}});
        // Every event finds these, and one of their alternatives has a name.
        let either = json!({"trigger": {"any": [{"exact": {"name": "cd.done"}}, {"not": failed}]}});
        let beside = json!({"onEvent": "cd.*", "trigger": keyless["trigger"]});
        for (wanted, conditions, is_about) in [
            ("ci.passed", on("ci.passed"), true),
            ("ci.passed", on("ci.passed:pr/12"), true),
            ("ci.passed:pr/12", on("ci.passed:pr/12"), true),
            ("ci.passed:pr/12", on("ci.passed"), true),
            ("ci.passed:pr/12", on("ci.passed:pr/13"), false),
            ("ci.passed:pr/*", on("ci.passed:pr/13"), true),
            ("ci.passed:pr/12", on("ci.passed:pr/*"), true),
            ("ci.passed", on("ci.*"), true),
            ("ci.passed", on("ci.build*"), false),
            ("ci.*", on("ci.passed:pr/12"), true),
            ("ci.*", on("ci.*"), true),
            ("ci.**", on("ci.build.*"), true),
            ("ci.build.*", on("ci.**"), true),
            ("ci.pa*", on("ci.passed"), true),
            ("ci.pa*", on("ci.failed"), false),
            ("ci", on("ci.passed"), false),
            ("cd.*", on("ci.passed"), false),
            ("ci.passed", harn.clone(), true),
            ("ci.*:x", harn, true),
            ("ci.build.done", prefix.clone(), true),
            ("ci.**", prefix.clone(), true),
            ("ci.passed", prefix, false),
            ("ci.build", prefix_within.clone(), false),
            ("ci.built", prefix_within, true),
            ("ci.passed", keyless.clone(), false),
            ("ci.passed", not_failed.clone(), false),
            ("ci.failed", not_failed.clone(), false),
            ("ci.failed", json!({"trigger": {"not": not_failed["trigger"]}}), false),
            ("ci.passed", all_but_failed.clone(), true),
            ("ci.*", all_but_failed.clone(), true),
            ("ci.failed", all_but_failed.clone(), false),
            ("ci.failed:pr/12", all_but_failed, false),
            ("ci.failed", but_one.clone(), true),
            ("ci.failed:pr/12", but_one.clone(), false),
            ("ci.failed:pr/13", but_one, true),
            ("cd.done", either.clone(), true),
            ("ci.failed", either, false),
            ("cd.done", beside.clone(), true),
            ("ci.passed", beside, false),
            ("ci.passed", json!({"timeout": {"durationMinutes": 1}}), false),
        ] {
            let pattern: EventPattern = wanted.parse().unwrap();
            let parsed = Conditions::parse(&conditions, Spelling::Camel).unwrap().unwrap();
            assert_eq!(parsed.are_about(&pattern), is_about, "{wanted} and {conditions}");
            let found = parsed.keys().iter().any(|key| within(key, &keys_about(&pattern)));
            assert!(found || !is_about, "{wanted} does not lead to {conditions}");
        }
    }

    fn within(key: &Key, ranges: &[KeyRange]) -> bool {
        ranges.iter().any(|range| match range {
            KeyRange::Only(only) => only == key,
            KeyRange::Beginning(beginning) => key.as_str().starts_with(beginning),
        })
    }

    #[test]
    fn patterns_have_one_key() {
        for (pattern, key) in [
            ("ci.passed", "=ci.passed"),
            ("ci.passed:1234", ":ci.passed\u{1f}1234"),
            ("ci.passed:12*", "=ci.passed"),
            ("ci.*", "^ci"),
            ("ci.*:1234", "^ci"),
            ("ci.build.**", "^ci.build"),
            ("ci.build.comp*", "^ci.build"),
            ("ci.*.completed", "^ci"),
        ] {
            assert_eq!(keys(&json!({"onEvent": pattern})), [key], "{pattern}");
        }
    }

    #[test]
    fn triggers_have_the_keys_of_their_names() {
        let (name, both) =
            (json!({"exact": {"name": "a"}}), json!({"exact": {"name": "b", "subject": "s"}}));
        let (parts, more) =
            (json!({"prefix": {"name": "a."}}), json!({"prefix": {"name": "a.b.c"}}));
        let (suffix, at) =
            (json!({"suffix": {"name": "a"}}), json!({"at": "2026-11-16T09:00:00Z"}));
        let two = json!({"any": [name, both]});
        for (trigger, keys_wanted) in [
            (name.clone(), &["=a"][..]),
            (both.clone(), &[":b\u{1f}s"]),
            (json!({"exact": {"name": "b\u{1f}", "subject": "s"}}), &["=b\u{1f}"]),
            (json!({"exact": {"subject": "s"}}), &["*"]),
            (parts.clone(), &["^a"]),
            (more.clone(), &["^a.b"]),
            (json!({"prefix": {"name": "a"}}), &["*"]),
            (json!({"prefix": {"source": "a.b"}}), &["*"]),
            (suffix.clone(), &["*"]),
            (json!({"not": name}), &["*"]),
            (at.clone(), &[]),
            (json!({"provider": "p", "kind": "k"}), &["=k"]),
            (
                json!({"provider": "p", "kind": "k", "match": {"events": ["y", "x", "y"]}}),
                &["=x", "=y"],
            ),
            (two.clone(), &[":b\u{1f}s", "=a"]),
            (json!({"any": [name, at]}), &["=a"]),
            (json!({"any": [name, suffix]}), &["*"]),
            (json!({"all": [suffix, parts, more, name]}), &["=a"]),
            (json!({"all": [suffix, parts, more]}), &["^a.b"]),
            (json!({"all": [both, name]}), &[":b\u{1f}s"]),
            (json!({"all": [two, name]}), &["=a"]),
            (json!({"all": [{"any": [name, suffix]}, parts]}), &["^a"]),
            (json!({"all": [suffix, {"not": name}]}), &["*"]),
        ] {
            assert_eq!(keys(&json!({"trigger": trigger})), keys_wanted, "{trigger}");
        }
        assert_eq!(keys(&json!({"timeout": {"durationMinutes": 1}})), [""; 0]);
        assert_eq!(keys(&json!({"onEvent": "c.*", "trigger": two})), [":b\u{1f}s", "=a", "^c"]);
        assert_eq!(keys(&json!({"onEvent": "c.*", "trigger": suffix})), ["*"]);
    }

    #[test]
    fn names_of_many_parts_are_found_by_their_first_ones() {
        let deep = vec!["a"; 60].join(".");
        for parts in [1, 2, 31, 32, 33, 34, 60] {
            let head = vec!["a"; parts].join(".");
            let prefix = Trigger::Prefix([(Attribute::Name, format!("{head}."))].into());
            let on_event = format!("{head}.**").parse().unwrap();
            for conditions in [
                Conditions { on_event: Some(on_event), ..Conditions::default() },
                Conditions { trigger: Some(prefix), ..Conditions::default() },
            ] {
                let wanted = format!("^{}", vec!["a"; parts.min(32)].join("."));
                assert_eq!(conditions.keys()[0].as_str(), wanted);
                if conditions.matches(event(&deep, None)) {
                    assert!(event_keys(event(&deep, None)).contains(&conditions.keys()[0]));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn what_a_pattern_is_about_lies_where_it_leads(
            wanted in "a(\\.(a|b|\\*|\\*\\*|a\\*)){0,2}(:[ab]\\*?)?",
            waits in "a(\\.(a|b|\\*|\\*\\*|a\\*)){0,2}(:[ab]\\*?)?",
        ) {
            let (pattern, on_event): (EventPattern, EventPattern) =
                (wanted.parse().unwrap(), waits.parse().unwrap());
            let conditions = Conditions { on_event: Some(on_event), ..Conditions::default() };
            if conditions.are_about(&pattern) {
                let ranges = keys_about(&pattern);
                prop_assert!(conditions.keys().iter().any(|key| within(key, &ranges)));
            }
        }

        #[test]
        fn a_key_with_a_subject_is_of_one_name_and_one_subject(
            (one, two) in ("[ab.\u{1f}]{0,3}", "[ab.\u{1f}]{0,3}"),
            (subject, other) in ("[ab\u{1f}]{0,3}", "[ab\u{1f}]{0,3}"),
        ) {
            if let (Some(left), Some(right)) =
                (Key::name_and_subject(&one, &subject), Key::name_and_subject(&two, &other))
            {
                prop_assert_eq!(left == right, one == two && subject == other);
            }
        }

        #[test]
        fn an_event_has_few_keys(name in any::<String>(), subject in option::of(any::<String>())) {
            let keys = event_keys(event(&name, subject.as_deref()));
            prop_assert!(keys.len() <= (name.split('.').count() + 3).min(35));
            prop_assert!(keys[0].is_any());
        }
    }
}
