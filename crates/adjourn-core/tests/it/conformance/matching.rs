//! Compares what a scenario expects with what there is, and says where they differ.

use std::collections::BTreeMap;

use adjourn_core::time::Timestamp;
use serde_json::Value;

use super::scenario::{Fields, Moment};

/// Knows what a scenario's own words stand for: its names of handles, its times.
pub struct Matcher {
    start: Timestamp,
    handles: BTreeMap<String, String>,
}

impl Matcher {
    pub fn new(start: Timestamp) -> Self {
        Self { start, handles: BTreeMap::new() }
    }

    /// Returns the handle that a scenario's word stands for.
    pub fn handle(&self, word: &str) -> Result<String, String> {
        if word.starts_with("suspend-") {
            return Ok(word.to_owned());
        }
        let known = self.handles.get(word).cloned();
        known.ok_or_else(|| format!("no handle has been called {word:?} before"))
    }

    /// Returns each field in which `actual` is not what was expected.
    pub fn differences(&mut self, expected: &Fields, actual: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.fields("", expected, actual, &mut found);
        found
    }

    fn fields(&mut self, path: &str, expected: &Fields, actual: &Value, found: &mut Vec<String>) {
        for (name, expected) in expected {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            // What is absent and what is `null` are the same everywhere.
            self.value(&path, name, expected, &actual[name], found);
        }
    }

    fn value(
        &mut self,
        path: &str,
        name: &str,
        expected: &Value,
        actual: &Value,
        found: &mut Vec<String>,
    ) {
        let same = match (name, expected, actual) {
            (_, Value::Object(expected), Value::Object(_)) => {
                return self.fields(path, expected, actual, found);
            }
            ("handle" | "held", Value::String(word), Value::String(handle)) => {
                self.is_called(word, handle)
            }
            ("suspendedAt" | "resumedAt" | "dueAt", Value::String(word), Value::String(time)) => {
                self.is_at(word, time)
            }
            ("state", Value::String(word), Value::String(state)) if word == "working" => {
                matches!(state.as_str(), "ready" | "running")
            }
            ("told", Value::Array(pieces), Value::String(told)) => {
                pieces.iter().all(|piece| piece.as_str().is_some_and(|piece| told.contains(piece)))
            }
            // A value that is no text reaches the agent as its JSON.
            ("input", expected, Value::String(text)) if !expected.is_string() => {
                *text == format!("{expected}")
            }
            (_, expected, actual) => expected == actual,
        };
        if !same {
            found.push(format!("{path}: expected {expected}, found {}", self.shown(name, actual)));
        }
    }

    /// Tells whether `word` is the name of `handle`; a first mention gives it that name.
    ///
    /// No handle has two names, so that two names in a file are two suspensions.
    fn is_called(&mut self, word: &str, handle: &str) -> bool {
        if let Some(known) = self.handles.get(word) {
            return known == handle;
        }
        if self.handles.values().any(|known| known == handle) {
            return false;
        }
        self.handles.insert(word.to_owned(), handle.to_owned());
        true
    }

    fn is_at(&self, word: &str, time: &str) -> bool {
        let expected = Moment::try_from(word.to_owned()).map(|moment| self.start.after(moment.0));
        expected.is_ok() && expected == Timestamp::parse(time)
    }

    /// Shows a value in the scenario's words.
    fn shown(&self, name: &str, actual: &Value) -> String {
        let Some(text) = actual.as_str() else { return actual.to_string() };
        let called = self.handles.iter().find(|(_, handle)| *handle == text);
        match (name, called, Timestamp::parse(text)) {
            (_, Some((word, _)), _) => format!("{word:?}"),
            ("suspendedAt" | "resumedAt" | "dueAt", None, Ok(time)) => {
                format!("\"{}\"", Moment(time.since(self.start)))
            }
            _ => actual.to_string(),
        }
    }
}
