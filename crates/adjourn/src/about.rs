//! What a host says about itself, so that others can say why a session stays Ready.

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_core::id::SessionId;
use adjourn_core::json;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many sessions a host names that it cannot run: its row is read by every `ls`.
const MOST: usize = 64;
/// How many signs of life may be missing before a host is told to be silent.
const MISSED: u32 = 3;
/// How much of each reason is told.
const REASON_CHARACTERS: usize = 200;

/// What a host says about itself: whatever it was given to say, whom it is
/// there for, and what it cannot run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The one session that it drives, if it is there for one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only: Option<SessionId>,
    /// How many sessions it drives at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_running: Option<usize>,
    /// How often it gives a sign of life, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signs_every_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    declined: BTreeMap<SessionId, String>,
    #[serde(flatten)]
    given: Map<String, Value>,
}

impl About {
    /// Reads what a host said; what cannot be read says nothing.
    pub fn parse(text: &str) -> Self {
        json::stored(text.as_bytes()).unwrap_or_default()
    }

    /// Adds how many sessions it drives at once.
    #[must_use]
    pub const fn at_most(mut self, max_running: usize) -> Self {
        self.max_running = Some(max_running);
        self
    }

    /// Returns how many sessions it drives at once, if it said so.
    pub const fn max_running(&self) -> Option<usize> {
        self.max_running
    }

    /// Adds how often it gives a sign of life.
    #[must_use]
    pub fn signing_every(mut self, period: Duration) -> Self {
        self.signs_every_ms = u64::try_from(period.as_millis()).ok();
        self
    }

    /// Returns how often it gives a sign of life, if it does.
    pub fn signs_every(&self) -> Option<Duration> {
        self.signs_every_ms.map(Duration::from_millis)
    }

    /// Returns whether a host that gave its last sign of life so long ago has missed several.
    pub fn is_silent(&self, silent: Duration) -> bool {
        self.signs_every().is_some_and(|period| silent > period * MISSED)
    }

    /// Adds that it drives one session only.
    #[must_use]
    pub const fn only(mut self, id: SessionId) -> Self {
        self.only = Some(id);
        self
    }

    /// Returns whether it drives a session at all, if it can.
    pub fn drives(&self, id: SessionId) -> bool {
        self.only.is_none_or(|only| only == id)
    }

    /// Adds what it cannot run, as far as there is room.
    #[must_use]
    pub fn declining<'a>(mut self, declined: impl Iterator<Item = (SessionId, &'a str)>) -> Self {
        // The oldest first, by their ids: the same ones each time, so that little is written.
        let declined: BTreeMap<_, _> = declined.collect();
        let told = declined.into_iter().take(MOST);
        self.declined =
            told.map(|(id, why)| (id, why.chars().take(REASON_CHARACTERS).collect())).collect();
        self
    }

    /// Returns the one session that it drives, if it is there for one only.
    pub const fn only_session(&self) -> Option<SessionId> {
        self.only
    }

    /// Returns why it cannot run a session, if it said so.
    pub fn declines(&self, id: SessionId) -> Option<&str> {
        self.declined.get(&id).map(String::as_str)
    }

    /// Returns the process that it is, if it said so.
    pub fn pid(&self) -> Option<u64> {
        self.given.get("pid").and_then(Value::as_u64)
    }

    /// Returns it as JSON text.
    pub fn to_text(&self) -> String {
        // Keys are text, and nothing in it fails to encode.
        serde_json::to_string(self).unwrap_or_default()
    }
}
