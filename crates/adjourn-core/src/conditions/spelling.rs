//! The two spellings of the fields, each name written once for reading and for writing.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::{Conditions, Timeout};

/// How the names of fields are spelt; either spelling has only its own names.
///
/// Values (`resume_with_summary`) and the fields of triggers are the same in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// `onEvent`, `durationMinutes`: what the protocols and the journal say.
    Camel,
    /// `on_event`, `duration_minutes`: what an old tunnel says.
    Snake,
}

impl Spelling {
    pub(super) const TRIGGER: &str = "trigger";
    pub(super) const TIMEOUT: &str = "timeout";
    pub(super) const SINCE: &str = "since";
    pub(super) const INPUT: &str = "input";

    pub(super) const fn on_event(self) -> &'static str {
        match self {
            Self::Camel => "onEvent",
            Self::Snake => "on_event",
        }
    }

    pub(super) const fn duration_minutes(self) -> &'static str {
        match self {
            Self::Camel => "durationMinutes",
            Self::Snake => "duration_minutes",
        }
    }

    pub(super) const fn on_timeout(self) -> &'static str {
        match self {
            Self::Camel => "onTimeout",
            Self::Snake => "on_timeout",
        }
    }
}

impl Conditions {
    /// Returns these conditions ready to be written in `spelling`, for a peer that used it.
    pub fn spelled(&self, spelling: Spelling) -> impl Serialize + '_ {
        SpelledConditions { conditions: self, spelling }
    }
}

struct SpelledConditions<'a> {
    conditions: &'a Conditions,
    spelling: Spelling,
}

impl Serialize for SpelledConditions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Conditions { on_event, trigger, timeout, since } = self.conditions;
        let mut fields = serializer.serialize_map(None)?;
        if let Some(on_event) = on_event {
            fields.serialize_entry(self.spelling.on_event(), on_event)?;
        }
        if let Some(trigger) = trigger {
            fields.serialize_entry(Spelling::TRIGGER, trigger)?;
        }
        if let Some(timeout) = timeout {
            let timeout = SpelledTimeout { timeout, spelling: self.spelling };
            fields.serialize_entry(Spelling::TIMEOUT, &timeout)?;
        }
        if let Some(since) = since {
            fields.serialize_entry(Spelling::SINCE, since)?;
        }
        fields.end()
    }
}

struct SpelledTimeout<'a> {
    timeout: &'a Timeout,
    spelling: Spelling,
}

impl Serialize for SpelledTimeout<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Timeout { minutes, on_timeout, input } = self.timeout;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry(self.spelling.duration_minutes(), minutes)?;
        if let Some(on_timeout) = on_timeout {
            fields.serialize_entry(self.spelling.on_timeout(), on_timeout)?;
        }
        if let Some(input) = input {
            fields.serialize_entry(Spelling::INPUT, input)?;
        }
        fields.end()
    }
}
