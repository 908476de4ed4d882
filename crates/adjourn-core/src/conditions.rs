//! What wakes a parked session: the grammar of conditions, and what they match.
//!
//! This module owns the reading of conditions from JSON (strictly, each refusal with its path),
//! the writing of them back as they were given, the matching against one event, the deadlines they
//! hold, and the [`Key`]s under which a wait is found when an event arrives.
//!
//! It must not know sessions, suspensions, stores or clocks. Whether an event is young enough for
//! a wait ([`Conditions::since`] and the window of the suspension) is for the caller to judge:
//! what is seen of an event is an [`EventView`], and that has no position.
//!
//! Conditions come from outside. Reading them does work linear in what was given, is bounded in
//! depth and never panics; matching costs at most the length of a pattern for each character of an
//! event.

mod cron;
mod glob;
mod invalid;
mod keys;
mod parse;
mod pattern;
mod spelling;
mod timeout;
mod trigger;

#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::parse::Origin;
use crate::id::Seq;
use crate::time::Timestamp;

pub use cron::Cron;
pub use invalid::Invalid;
pub use keys::{Key, KeyRange, Names, event_keys, keys_about};
pub use pattern::EventPattern;
pub use spelling::Spelling;
pub use timeout::{OnTimeout, Timeout};
pub use trigger::{At, Attribute, Trigger};

/// How many bytes of JSON, written without spaces, conditions may take.
///
/// They are journaled, echoed in every status and read again for each event that may match.
pub const MAX_BYTES: usize = 16 * 1024;

/// How many lists and objects may lie inside each other, the conditions themselves included.
///
/// It bounds every recursion of this module.
pub const MAX_DEPTH: usize = 16;

/// How many bytes a pattern, the name of an event or a point in time may take.
pub const MAX_NAME_BYTES: usize = 256;

/// What wakes a parked session; any one of its parts does.
///
/// Two conditions are equal when they ask for the same: a timeout of `30` minutes equals one of
/// `30.0`, and a default that is spelt out equals the default. Written back, each keeps the form it
/// came in.
///
/// [`Conditions::parse`] never gives conditions without any part, and gives triggers only in shapes
/// that mean something. Values built by hand can have every shape; they match, and find their keys,
/// as their shape says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Conditions {
    /// The events that wake the session, by name and subject.
    pub on_event: Option<EventPattern>,
    /// The events that wake the session, by any of their attributes, or a point in time.
    pub trigger: Option<Trigger>,
    /// How long the session waits at most, and what happens then.
    pub timeout: Option<Timeout>,
    /// From where in the order of events to look back for one that matches.
    ///
    /// Alone it wakes nothing. How far back events reach is for the caller to know.
    pub since: Option<Seq>,
}

impl Conditions {
    /// Makes conditions that wake the session at a point in time.
    pub fn at(time: Timestamp) -> Self {
        Self { trigger: Some(Trigger::At(At::new(time))), ..Self::default() }
    }

    /// Tells whether `event` wakes the session, by pattern or by trigger.
    pub fn matches(&self, event: EventView<'_>) -> bool {
        self.on_event.as_ref().is_some_and(|pattern| pattern.matches(event))
            || self.trigger.as_ref().is_some_and(|trigger| trigger.matches(event))
    }

    /// Tells whether no name leads to these conditions, so that every event is matched with them.
    pub fn is_keyless(&self) -> bool {
        self.keys().iter().any(Key::is_any)
    }

    /// Returns the first point in time at which these conditions wake a session that parked at
    /// `committed_at`.
    ///
    /// On a tie the point in time that was asked for comes before the timeout, because a timeout
    /// acts only where nothing else woke the session.
    pub fn next_due(&self, committed_at: Timestamp) -> Option<Due> {
        let at = self.trigger.as_ref().and_then(|trigger| trigger.earliest(committed_at));
        let timeout = self.timeout.as_ref().map(|timeout| committed_at.after(timeout.duration()));
        let at = at.map(|at| Due { at, why: DueWhy::At });
        let timeout = timeout.map(|at| Due { at, why: DueWhy::Timeout });
        at.into_iter().chain(timeout).min()
    }
}

impl Serialize for Conditions {
    /// Writes the shape that was read, in the spelling of the protocols.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.spelled(Spelling::Camel).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Conditions {
    /// Reads what was written before, by the rules of [`Conditions::parse`] but for one.
    ///
    /// Whether a time zone agrees with the offset before it was checked when the conditions were
    /// given, and is not checked again: zones change. What means no conditions is read as the
    /// conditions without parts.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::read(&value, Spelling::Camel, Origin::Journal)
            .map(Option::unwrap_or_default)
            .map_err(D::Error::custom)
    }
}

/// When a wait is over if no event ends it.
///
/// The lesser of two is the one that acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Due {
    /// The point in time.
    pub at: Timestamp,
    /// Which part of the conditions named it.
    pub why: DueWhy,
}

/// Which part of the conditions a deadline comes from, the one that acts on a tie first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DueWhy {
    /// A point in time that the trigger names has come.
    At,
    /// The session has waited as long as its timeout allows.
    Timeout,
}

/// The part of an event that conditions can see.
///
/// Events come from outside and nothing here relies on their being well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventView<'a> {
    /// What the source calls the event.
    pub id: &'a str,
    /// Who says that it happened.
    pub source: &'a str,
    /// What happened (the `type` of a CloudEvent).
    pub name: &'a str,
    /// To what it happened.
    pub subject: Option<&'a str>,
    /// When it happened.
    pub time: Timestamp,
}

impl<'a> EventView<'a> {
    /// Returns an attribute as the text it is compared as, or nothing if the event has none.
    pub fn attribute(self, attribute: Attribute) -> Option<Cow<'a, str>> {
        match attribute {
            Attribute::Id => Some(Cow::Borrowed(self.id)),
            Attribute::Source => Some(Cow::Borrowed(self.source)),
            Attribute::Name => Some(Cow::Borrowed(self.name)),
            Attribute::Subject => self.subject.map(Cow::Borrowed),
            Attribute::Time => Some(Cow::Owned(self.time.to_string())),
        }
    }
}
