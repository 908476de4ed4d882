//! The trigger: a small language over the attributes of an event, and points in time.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::EventView;
use super::cron::{CRON, Cron, TZ};
use super::invalid::Invalid;
use super::parse::{
    Origin, check_names, list, name, object, one_of, optional, present, required, short_string,
    string,
};
use crate::time::Timestamp;

/// Which events wake a session, by any of their attributes, or at which point in time it wakes.
///
/// An attribute that an event does not have satisfies no comparison, so only `not` can ask for its
/// absence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// Every attribute named here equals its text.
    Exact(BTreeMap<Attribute, String>),
    /// Every attribute named here begins with its text.
    Prefix(BTreeMap<Attribute, String>),
    /// Every attribute named here ends with its text.
    Suffix(BTreeMap<Attribute, String>),
    /// All of these match.
    All(Vec<Trigger>),
    /// One of these matches, or is due.
    Any(Vec<Trigger>),
    /// This does not match.
    Not(Box<Trigger>),
    /// A point in time has come; no event matches.
    ///
    /// It is no property of an event, so it stands alone or among alternatives, never in `all` or
    /// `not`.
    At(At),
    /// A time has come that comes again and again: the first one behind the commit that parked the
    /// session. It stands where a point in time may.
    #[serde(untagged)]
    Cron(Cron),
    /// Harn's form: an event of this source, with one of these names.
    #[serde(untagged)]
    Harn {
        /// The source.
        provider: String,
        /// The name, unless `events` has some.
        kind: String,
        /// The names, any one of which matches.
        #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
        #[serde(serialize_with = "as_match")]
        events: Vec<String>,
    },
}

fn as_match<S: Serializer>(events: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_map(Some(1))?;
    fields.serialize_entry(EVENTS, events)?;
    fields.end()
}

/// A property of an event that a trigger can compare with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Attribute {
    /// What the source calls the event.
    Id,
    /// Who says that it happened.
    Source,
    /// What happened.
    Name,
    /// To what it happened; not every event has one.
    Subject,
    /// When it happened: RFC 3339, UTC, with three decimals.
    Time,
}

impl Attribute {
    /// Every attribute.
    pub const ALL: [Self; 5] = [Self::Id, Self::Source, Self::Name, Self::Subject, Self::Time];

    /// Returns how it is spelt in a trigger.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Source => "source",
            Self::Name => "name",
            Self::Subject => "subject",
            Self::Time => "time",
        }
    }
}

/// A point in time, and the text that named it.
///
/// Two of them are equal, and ordered, by the time alone.
#[derive(Debug, Clone)]
pub struct At {
    time: Timestamp,
    text: String,
}

impl At {
    /// Names a point in time as this project does.
    pub fn new(time: Timestamp) -> Self {
        Self { time, text: time.to_string() }
    }

    /// Returns the point in time.
    pub const fn time(&self) -> Timestamp {
        self.time
    }

    /// Returns the text that named it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn read(value: &Value, origin: Origin) -> Result<Self, Invalid> {
        let text = short_string(value)?;
        // The offset decides, so that the text means the same time under the zones of another day.
        let time = Timestamp::parse(text.split('[').next().unwrap_or_default());
        let zone = match origin {
            Origin::Outside => Timestamp::parse(text),
            Origin::Journal => time.clone(),
        };
        // What the reader of times has to say is left out: it repeats the text at any length.
        match (time, zone) {
            (Ok(time), Ok(_)) => Ok(Self { time, text: text.to_owned() }),
            _ => Err(Invalid::expected(
                "a time with its offset, such as 2026-11-16T09:00:00Z, and no zone that disagrees",
                value,
            )),
        }
    }
}

impl PartialEq for At {
    fn eq(&self, other: &Self) -> bool {
        self.time == other.time
    }
}

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &Self) -> Ordering {
        self.time.cmp(&other.time)
    }
}

impl Hash for At {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.time.hash(state);
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Trigger {
    /// Tells whether `event` matches; a point in time never does.
    pub fn matches(&self, event: EventView<'_>) -> bool {
        match self {
            Self::Exact(texts) => compare(event, texts, |value, text| value == text),
            Self::Prefix(texts) => compare(event, texts, |value, text| value.starts_with(text)),
            Self::Suffix(texts) => compare(event, texts, |value, text| value.ends_with(text)),
            Self::All(triggers) => triggers.iter().all(|trigger| trigger.matches(event)),
            Self::Any(triggers) => triggers.iter().any(|trigger| trigger.matches(event)),
            Self::Not(trigger) => !trigger.matches(event),
            Self::At(_) | Self::Cron(_) => false,
            Self::Harn { provider, kind, events } => {
                provider == event.source
                    && harn_names(kind, events).iter().any(|name| name == event.name)
            }
        }
    }

    /// Returns whether an event of this name may match, and with this subject, if one is given,
    /// whatever else it has.
    pub(super) fn may_match(&self, name: &str, subject: Option<&str>) -> bool {
        self.outcomes(name, subject).may_match
    }

    fn outcomes(&self, name: &str, subject: Option<&str>) -> Outcomes {
        let compared = |texts: &BTreeMap<Attribute, String>, holds: fn(&str, &str) -> bool| {
            Outcomes::all(texts.iter().map(|(attribute, text)| {
                let known = match attribute {
                    Attribute::Name => Some(name),
                    Attribute::Subject => subject,
                    Attribute::Id | Attribute::Source | Attribute::Time => None,
                };
                known.map_or(Outcomes::EITHER, |value| Outcomes::known(holds(value, text)))
            }))
        };
        let each = |triggers: &[Self]| {
            triggers.iter().map(|trigger| trigger.outcomes(name, subject)).collect::<Vec<_>>()
        };
        match self {
            Self::Exact(texts) => compared(texts, |value, text| value == text),
            Self::Prefix(texts) => compared(texts, |value, text| value.starts_with(text)),
            Self::Suffix(texts) => compared(texts, |value, text| value.ends_with(text)),
            Self::All(triggers) => Outcomes::all(each(triggers).into_iter()),
            // One of them matches unless all of them fail.
            Self::Any(triggers) => {
                Outcomes::all(each(triggers).into_iter().map(Outcomes::negated)).negated()
            }
            Self::Not(trigger) => trigger.outcomes(name, subject).negated(),
            Self::At(_) | Self::Cron(_) => Outcomes::known(false),
            Self::Harn { kind, events, .. } => {
                let is_named = harn_names(kind, events).iter().any(|one| one == name);
                Outcomes { may_match: is_named, may_fail: true }
            }
        }
    }

    /// Returns whether it is a time, and no event matches it.
    pub const fn is_time(&self) -> bool {
        matches!(self, Self::At(_) | Self::Cron(_))
    }

    /// Returns the first point in time at which this is due for a session that parked at
    /// `committed_at`.
    pub(super) fn earliest(&self, committed_at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(at.time),
            Self::Cron(cron) => cron.next_after(committed_at),
            Self::Any(triggers) => {
                triggers.iter().filter_map(|trigger| trigger.earliest(committed_at)).min()
            }
            Self::Exact(_)
            | Self::Prefix(_)
            | Self::Suffix(_)
            | Self::All(_)
            | Self::Not(_)
            | Self::Harn { .. } => None,
        }
    }

    pub(super) fn read(value: &Value, origin: Origin) -> Result<Self, Invalid> {
        Self::read_at(value, Place::Alternative(origin))
    }

    fn read_at(value: &Value, place: Place) -> Result<Self, Invalid> {
        let fields = object(value)?;
        let names = OPERATORS.iter().map(|(name, _)| *name).chain([CRON, TZ]).chain(HARN);
        check_names(fields, &names.collect::<Vec<_>>())?;
        if present(fields, CRON).is_some() {
            let origin = place.of_time().map_err(|invalid| invalid.in_field(CRON))?;
            return Cron::read(fields, origin).map(Self::Cron);
        }
        if present(fields, TZ).is_some() {
            return Err(Invalid::new("expected only with cron").in_field(TZ));
        }

        let given: Vec<_> = OPERATORS
            .iter()
            .filter_map(|(name, operator)| Some((*name, *operator, present(fields, name)?)))
            .collect();
        let harn = HARN.iter().any(|name| present(fields, name).is_some());
        match given.as_slice() {
            [(name, operator, operand)] if !harn => {
                operator.read(operand, place).map_err(|invalid| invalid.in_field(name))
            }
            [] if harn => read_harn(fields),
            _ => {
                let operators = OPERATORS.iter().map(|(name, _)| *name).chain([CRON]);
                let operators = one_of(&operators.collect::<Vec<_>>());
                Err(Invalid::new(format!(
                    "expected exactly one of {operators}, or a provider with a kind"
                )))
            }
        }
    }
}

/// What may come of comparing an event of which not everything is known.
#[derive(Clone, Copy)]
struct Outcomes {
    may_match: bool,
    may_fail: bool,
}

impl Outcomes {
    const EITHER: Self = Self { may_match: true, may_fail: true };

    const fn known(matches: bool) -> Self {
        Self { may_match: matches, may_fail: !matches }
    }

    const fn negated(self) -> Self {
        Self { may_match: self.may_fail, may_fail: self.may_match }
    }

    fn all(each: impl Iterator<Item = Self>) -> Self {
        each.fold(Self::known(true), |all, one| Self {
            may_match: all.may_match && one.may_match,
            may_fail: all.may_fail || one.may_fail,
        })
    }
}

fn compare(
    event: EventView<'_>,
    texts: &BTreeMap<Attribute, String>,
    holds: impl Fn(&str, &str) -> bool,
) -> bool {
    texts.iter().all(|(attribute, text)| {
        event.attribute(*attribute).is_some_and(|value| holds(&value, text))
    })
}

/// Returns the names that Harn's form takes.
pub(super) fn harn_names<'a>(kind: &'a String, events: &'a [String]) -> &'a [String] {
    if events.is_empty() { std::slice::from_ref(kind) } else { events }
}

/// Where a trigger stands, which decides whether it may be a point in time.
#[derive(Clone, Copy)]
enum Place {
    /// It can wake the session by itself.
    Alternative(Origin),
    /// It is one of the things that are asked of an event.
    Requirement,
}

impl Place {
    /// Returns where a time is read from, if one may stand here.
    fn of_time(self) -> Result<Origin, Invalid> {
        match self {
            Self::Alternative(origin) => Ok(origin),
            Self::Requirement => Err(Invalid::new(
                "expected only by itself or in any: a point in time is not a property of an event",
            )),
        }
    }
}

#[derive(Clone, Copy)]
enum Operator {
    Exact,
    Prefix,
    Suffix,
    All,
    Any,
    Not,
    At,
}

const OPERATORS: [(&str, Operator); 7] = [
    ("exact", Operator::Exact),
    ("prefix", Operator::Prefix),
    ("suffix", Operator::Suffix),
    ("all", Operator::All),
    ("any", Operator::Any),
    ("not", Operator::Not),
    ("at", Operator::At),
];

const PROVIDER: &str = "provider";
const KIND: &str = "kind";
const MATCH: &str = "match";
const EVENTS: &str = "events";
const HARN: [&str; 3] = [PROVIDER, KIND, MATCH];

impl Operator {
    fn read(self, operand: &Value, place: Place) -> Result<Trigger, Invalid> {
        Ok(match self {
            Self::Exact => Trigger::Exact(texts(operand)?),
            Self::Prefix => Trigger::Prefix(texts(operand)?),
            Self::Suffix => Trigger::Suffix(texts(operand)?),
            Self::All => Trigger::All(triggers(operand, Place::Requirement)?),
            Self::Any => Trigger::Any(triggers(operand, place)?),
            Self::Not => Trigger::Not(Box::new(Trigger::read_at(operand, Place::Requirement)?)),
            Self::At => Trigger::At(At::read(operand, place.of_time()?)?),
        })
    }
}

fn texts(value: &Value) -> Result<BTreeMap<Attribute, String>, Invalid> {
    let fields = object(value)?;
    let names = Attribute::ALL.map(Attribute::as_str);
    check_names(fields, &names)?;
    let mut texts = BTreeMap::new();
    for attribute in Attribute::ALL {
        // Only names are short by contract; an address as source or a path as subject can be long.
        let read = if attribute == Attribute::Name { short_string } else { string };
        if let Some(text) = optional(fields, attribute.as_str(), read)? {
            texts.insert(attribute, text.to_owned());
        }
    }
    if texts.is_empty() {
        return Err(Invalid::new(format!("expected at least one of {}", one_of(&names))));
    }
    Ok(texts)
}

fn triggers(value: &Value, place: Place) -> Result<Vec<Trigger>, Invalid> {
    let elements = list(value)?;
    if elements.is_empty() {
        return Err(Invalid::new("expected at least one trigger"));
    }
    let read = |(index, element)| {
        Trigger::read_at(element, place).map_err(|invalid| invalid.in_element(index))
    };
    elements.iter().enumerate().map(read).collect()
}

fn read_harn(fields: &Map<String, Value>) -> Result<Trigger, Invalid> {
    let provider = required(fields, PROVIDER, name)?.to_owned();
    let kind = required(fields, KIND, name)?.to_owned();
    let events = optional(fields, MATCH, |value| {
        let fields = object(value)?;
        check_names(fields, &[EVENTS])?;
        optional(fields, EVENTS, names)
    })?;
    Ok(Trigger::Harn { provider, kind, events: events.flatten().unwrap_or_default() })
}

fn names(value: &Value) -> Result<Vec<String>, Invalid> {
    let read = |(index, element)| {
        name(element).map(str::to_owned).map_err(|invalid: Invalid| invalid.in_element(index))
    };
    list(value)?.iter().enumerate().map(read).collect()
}
