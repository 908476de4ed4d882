//! What hosts do about steps that fail.

use std::collections::BTreeSet;
use std::time::Duration;

use adjourn::Failures;
use serde_json::json;

use super::keys::{ASK_ON, Key, LONGEST_DELAY, LONGEST_PARK, RETRIES, RETRY_DELAY, RETRY_ON};
use super::{Held, Layers, OrDefault as _, Row};
use crate::durations::{duration, exact};
use crate::failure::Failure;

/// The settings of what hosts do about steps that fail.
#[derive(Debug, Clone)]
pub struct FailureSettings {
    retries: Held<u32>,
    delay: Held<Duration>,
    longest_delay: Held<Duration>,
    longest_park: Held<Duration>,
    retry_on: Held<BTreeSet<String>>,
    ask_on: Held<BTreeSet<String>>,
}

impl FailureSettings {
    /// Finds out what holds; what is not set is as in `defaults`.
    pub(super) fn of(layers: &Layers, defaults: Failures) -> Result<Self, Failure> {
        let Failures { retries, delay, longest_delay, longest_park, retry_on, ask_on } = defaults;
        Ok(Self {
            retries: layers.pick(&RETRIES, None, tries)?.by_default(retries),
            delay: layers.pick(&RETRY_DELAY, None, duration)?.by_default(delay),
            longest_delay: layers.pick(&LONGEST_DELAY, None, duration)?.by_default(longest_delay),
            longest_park: layers.pick(&LONGEST_PARK, None, duration)?.by_default(longest_park),
            retry_on: layers.pick(&RETRY_ON, None, kinds)?.by_default(retry_on),
            ask_on: layers.pick(&ASK_ON, None, kinds)?.by_default(ask_on),
        })
    }

    /// Returns them as a host takes them.
    pub fn policy(&self) -> Failures {
        Failures {
            retries: self.retries.value,
            delay: self.delay.value,
            longest_delay: self.longest_delay.value,
            longest_park: self.longest_park.value,
            retry_on: self.retry_on.value.clone(),
            ask_on: self.ask_on.value.clone(),
        }
    }

    /// Returns every one of them with its value and where it came from.
    pub(super) fn rows(&self) -> Vec<Row> {
        let time = |key: &Key, held: &Held<Duration>| Row {
            key: key.name.into(),
            value: Some(json!(exact(held.value))),
            source: held.source.to_string(),
        };
        let kinds = |key: &Key, held: &Held<BTreeSet<String>>| {
            let kinds: Vec<_> = held.value.iter().map(String::as_str).collect();
            let value = Some(json!(kinds.join(", ")));
            Row { key: key.name.into(), value, source: held.source.to_string() }
        };
        let value = Some(json!(self.retries.value));
        vec![
            Row { key: RETRIES.name.into(), value, source: self.retries.source.to_string() },
            time(&RETRY_DELAY, &self.delay),
            time(&LONGEST_DELAY, &self.longest_delay),
            time(&LONGEST_PARK, &self.longest_park),
            kinds(&RETRY_ON, &self.retry_on),
            kinds(&ASK_ON, &self.ask_on),
        ]
    }
}

/// Reads how often something is tried.
fn tries(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected a whole number from 0 on".to_owned())
}

/// Reads kinds of failures; none if the text is empty.
fn kinds(text: &str) -> Result<BTreeSet<String>, String> {
    let kinds = text.split(',').map(str::trim).filter(|kind| !kind.is_empty());
    let is_word = |kind: &str| kind.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    kinds
        .map(|kind| match is_word(kind) {
            true => Ok(kind.to_owned()),
            false => Err("expected kinds of failures, as in \"rate_limit, timeout\"".to_owned()),
        })
        .collect()
}
