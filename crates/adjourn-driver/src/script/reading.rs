//! Reading a script's values field by field, so that what is wrong is told with its place and with
//! what is expected there.

use adjourn_core::rejected::Rejected;
use serde_json::{Map, Value};

/// What is wrong, and where in the item it is.
pub(super) type Wrong = (String, String);

/// The fields of an object, each of which is taken once.
pub(super) struct Fields {
    place: String,
    fields: Map<String, Value>,
}

impl Fields {
    /// Takes an object apart.
    pub(super) fn of(place: &str, value: Value) -> Result<Self, Wrong> {
        match value {
            Value::Object(fields) => Ok(Self { place: place.to_owned(), fields }),
            other => Err(expected(place, "an object", &other)),
        }
    }

    /// Takes a text that must be there.
    pub(super) fn text(&mut self, name: &str) -> Result<String, Wrong> {
        let text = self.optional_text(name)?;
        text.ok_or_else(|| (self.place.clone(), format!("{name:?} is missing: expected a text")))
    }

    /// Takes a text, if it is there.
    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, Wrong> {
        match self.take(name) {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            other => Err(expected(&self.at(name), "a text", &other)),
        }
    }

    /// Takes a whole number; without one it is 0.
    pub(super) fn count(&mut self, name: &str) -> Result<u64, Wrong> {
        let value = self.take(name);
        match value.as_u64() {
            Some(count) => Ok(count),
            None if value.is_null() => Ok(0),
            None => Err(expected(&self.at(name), "a whole number from 0 on", &value)),
        }
    }

    /// Takes a whole number that must be there.
    pub(super) fn number(&mut self, name: &str) -> Result<u64, Wrong> {
        if self.fields.get(name).is_some_and(|value| !value.is_null()) {
            return self.count(name);
        }
        let problem = format!("{name:?} is missing: expected a whole number from 0 on");
        Err((self.place.clone(), problem))
    }

    /// Takes one of several words, if it is there.
    pub(super) fn choice(&mut self, name: &str, words: &[&str]) -> Result<Option<String>, Wrong> {
        match self.optional_text(name)? {
            Some(word) if !words.contains(&word.as_str()) => {
                let problem = format!("expected one of {}, found {word:?}", words.join(", "));
                Err((self.at(name), problem))
            }
            word => Ok(word),
        }
    }

    /// Takes a truth; without one it is false.
    pub(super) fn truth(&mut self, name: &str) -> Result<bool, Wrong> {
        match self.take(name) {
            Value::Null => Ok(false),
            Value::Bool(truth) => Ok(truth),
            other => Err(expected(&self.at(name), "true or false", &other)),
        }
    }

    /// Takes a list of texts; without one it is empty.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>, Wrong> {
        let at = self.at(name);
        match self.take(name) {
            Value::Null => Ok(Vec::new()),
            value => list(&at, value)?
                .enumerate()
                .map(|(index, value)| match value {
                    Value::String(text) => Ok(text),
                    other => Err(expected(&format!("{at}[{index}]"), "a text", &other)),
                })
                .collect(),
        }
    }

    /// Takes a value, whatever it is; without one it is null.
    pub(super) fn take(&mut self, name: &str) -> Value {
        self.fields.remove(name).unwrap_or_default()
    }

    /// Refuses what was not taken; `known` are all there can be.
    pub(super) fn end(self, known: &[&str]) -> Result<(), Wrong> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(name) => Err((self.place, unknown(name, known))),
        }
    }

    /// Returns the place of a field.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}.{name}", self.place)
    }
}

/// Takes a list apart.
pub(super) fn list(place: &str, value: Value) -> Result<std::vec::IntoIter<Value>, Wrong> {
    match value {
        Value::Array(values) => Ok(values.into_iter()),
        other => Err(expected(place, "a list", &other)),
    }
}

/// Says that there is something else than what is expected.
pub(super) fn expected(place: &str, what: &str, found: &Value) -> Wrong {
    let found = match found {
        Value::Null => "nothing".to_owned(),
        // Which one it is may be all that is wrong with it.
        Value::Bool(_) | Value::Number(_) => found.to_string(),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    (place.to_owned(), format!("expected {what}, found {found}"))
}

/// Says that there is no such field.
pub(super) fn unknown(name: &str, known: &[&str]) -> String {
    format!("there is no {name:?} here; expected {}", known.join(", "))
}

/// Says where in an item something is that the lifecycle would refuse when the item is run.
pub(super) fn within(place: &str, checked: Result<(), Rejected>) -> Result<(), Wrong> {
    checked.map_err(|refused| match refused {
        Rejected::Invalid { path, problem } => (format!("{place}.{path}"), problem),
        other => (place.to_owned(), other.to_string()),
    })
}
