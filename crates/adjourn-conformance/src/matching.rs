//! Compares what a scenario expects with what there is, and says where they differ.

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_core::time::Timestamp;
use serde_json::{Value, json};

use crate::face::{Answer, Ending, Refusal};
use crate::scenario::{Fields, Moment, Notice, Refused, Scenario};

/// Knows what a scenario's own words stand for: its names of handles, its times.
#[derive(Debug, Clone)]
pub struct Matcher {
    start: Timestamp,
    room: Duration,
    handles: BTreeMap<String, String>,
}

impl Matcher {
    /// Makes a matcher for a scenario that began at `start`, where what happens may be seen up to
    /// `room` too late.
    pub const fn new(start: Timestamp, room: Duration) -> Self {
        Self { start, room, handles: BTreeMap::new() }
    }

    /// Returns the handle that a scenario's word stands for.
    ///
    /// # Errors
    /// The word has not been given to any.
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

    /// Returns where an ending is not what the scenario expects.
    pub fn ending(&mut self, scenario: &Scenario, ending: &Ending) -> Vec<String> {
        let mut found = Vec::new();
        let timeline: Vec<_> = scenario.timeline.iter().map(Notice::fields).collect();
        self.list("timeline", &timeline, &ending.timeline, &mut found);
        if let Some(turns) = &scenario.turns {
            self.list("turns", turns, &ending.turns, &mut found);
        }
        let (expected, actual) = (&scenario.tools, &ending.tools);
        if actual != expected {
            found.push(format!("tools: expected {expected:?}, found {actual:?}"));
        }
        if let Some(expected) = &scenario.said
            && *expected != ending.said
        {
            found.push(format!("said: expected {expected:?}, found {:?}", ending.said));
        }
        if let (Some(expected), Some(actual)) = (&scenario.given, &ending.given) {
            self.list("given", expected, actual, &mut found);
        }
        found
    }

    /// Compares two lists: in number and order exactly, each element by the fields it names.
    fn list(&mut self, what: &str, expected: &[Fields], actual: &[Value], found: &mut Vec<String>) {
        for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
            let differences = self.differences(expected, actual);
            let place = format!("{what}[{index}]");
            found.extend(differences.into_iter().map(|found| format!("{place}.{found}")));
        }
        if expected.len() != actual.len() {
            let (wanted, number) = (expected.len(), actual.len());
            found.push(format!("{what}: expected {wanted}, found {number}: {}", json!(actual)));
        }
    }

    fn fields(&mut self, path: &str, expected: &Fields, actual: &Value, found: &mut Vec<String>) {
        for (name, expected) in expected {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            // What is absent and what is `null` are the same everywhere.
            let actual = actual.get(name).unwrap_or(&Value::Null);
            self.value(&path, name, expected, actual, found);
        }
    }

    /// Compares two objects whole: what is not named must not be there.
    fn whole(&mut self, path: &str, expected: &Value, actual: &Value, found: &mut Vec<String>) {
        let mut named = expected.as_object().cloned().unwrap_or_default();
        for name in actual.as_object().into_iter().flat_map(Fields::keys) {
            named.entry(name.clone()).or_insert(Value::Null);
        }
        self.fields(path, &named, actual, found);
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
            // A value that an agent is given is given whole.
            ("structured", expected, actual) => expected == actual,
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
            ("messages", Value::Array(expected), Value::Array(actual))
                if expected.len() == actual.len() =>
            {
                for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                    self.whole(&format!("{path}[{index}]"), expected, actual, found);
                }
                return;
            }
            ("told" | "text", Value::Array(pieces), Value::String(told)) => {
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
        match (expected, Timestamp::parse(time)) {
            (Ok(expected), Ok(time)) => time >= expected && time.since(expected) <= self.room,
            _ => false,
        }
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

/// Returns what is wrong with how a verb was answered, if a scenario expects it to be refused or
/// taken.
pub fn judge(answer: &Answer, expected: Option<&Refused>) -> Vec<String> {
    match (answer, expected) {
        (Ok(_), None) => Vec::new(),
        (Err(Refusal { reason, message, .. }), None) => {
            vec![format!("refused {reason}: {message}")]
        }
        (Ok(_), Some(Refused { reason, .. })) => {
            vec![format!("expected to be refused {reason}, and was not")]
        }
        (Err(refusal), Some(expected)) => {
            let mut found = Vec::new();
            let (wanted, reason) = (&expected.reason, &refusal.reason);
            if reason != wanted {
                let message = &refusal.message;
                found.push(format!("expected to be refused {wanted}, found {reason}: {message}"));
            }
            if expected.path.is_some() && expected.path != refusal.path {
                let (wanted, path) = (&expected.path, &refusal.path);
                found.push(format!("expected to be refused at {wanted:?}, found {path:?}"));
            }
            found
        }
    }
}

/// Returns what is wrong with how the verbs of a race were answered: one is taken and the others
/// are refused, or all are taken where none is to be refused.
pub fn judge_race(answers: &[Answer], expected: Option<&Refused>) -> Vec<String> {
    let first_taken = answers.iter().position(Result::is_ok);
    let mut found = Vec::new();
    for (index, answer) in answers.iter().enumerate() {
        let expected = expected.filter(|_| first_taken.is_some() && first_taken != Some(index));
        found.extend(judge(answer, expected));
    }
    found
}
