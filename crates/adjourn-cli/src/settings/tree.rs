//! Values of the file whose names the user gives: agents, and prices of models.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::file::{article, line};

/// A value, and the line that it is written in.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub value: Node,
    pub line: usize,
}

/// A value as it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Text(String),
    Whole(u64),
    Number(f64),
    Truth(bool),
    List(Vec<Entry>),
    Section(BTreeMap<String, Entry>),
    /// Something that no setting takes, by TOML's word for it.
    Other(&'static str),
}

impl Entry {
    /// Takes over a value that stands in a line of a text.
    pub(super) fn of(value: &DeValue<'_>, at: usize, text: &str) -> Self {
        let value = match value {
            DeValue::String(words) => Node::Text(words.to_string()),
            DeValue::Integer(number) => {
                let read = u64::from_str_radix(number.as_str(), number.radix());
                let other = match number.as_str().starts_with('-') {
                    true => "negative integer",
                    false => "integer that is too large",
                };
                read.map_or(Node::Other(other), Node::Whole)
            }
            DeValue::Float(number) => {
                number.as_str().parse().map_or(Node::Other("float"), Node::Number)
            }
            DeValue::Boolean(truth) => Node::Truth(*truth),
            DeValue::Array(values) => {
                let entry = |value: &toml::Spanned<DeValue<'_>>| {
                    Self::of(value.get_ref(), line(text, value.span().start), text)
                };
                Node::List(values.iter().map(entry).collect())
            }
            DeValue::Table(table) => {
                let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                    let key: &toml::Spanned<std::borrow::Cow<'_, str>> = key;
                    let at = line(text, key.span().start);
                    (key.get_ref().to_string(), Self::of(value.get_ref(), at, text))
                };
                Node::Section(table.iter().map(entry).collect())
            }
            other @ DeValue::Datetime(_) => Node::Other(other.type_str()),
        };
        Self { value, line: at }
    }

    /// Returns a text.
    ///
    /// # Errors
    /// What is found instead.
    pub fn text(&self) -> Result<&str, String> {
        match &self.value {
            Node::Text(text) => Ok(text),
            _ => Err(self.instead_of("a string")),
        }
    }

    /// Returns whether something is so.
    ///
    /// # Errors
    /// What is found instead.
    pub fn truth(&self) -> Result<bool, String> {
        match &self.value {
            Node::Truth(truth) => Ok(*truth),
            _ => Err(self.instead_of("true or false")),
        }
    }

    /// Returns a list of texts.
    ///
    /// # Errors
    /// What is found instead.
    pub fn texts(&self) -> Result<Vec<&str>, String> {
        match &self.value {
            Node::List(entries) => entries.iter().map(Self::text).collect(),
            _ => Err(self.instead_of("a list of strings")),
        }
    }

    /// Returns the values of a section, by name.
    ///
    /// # Errors
    /// What is found instead.
    pub fn section(&self) -> Result<&BTreeMap<String, Self>, String> {
        match &self.value {
            Node::Section(entries) => Ok(entries),
            _ => Err(self.instead_of("a section")),
        }
    }

    /// Returns an amount.
    ///
    /// # Errors
    /// What is found instead.
    pub fn amount(&self) -> Result<f64, String> {
        match &self.value {
            Node::Whole(number) => {
                u32::try_from(*number).map(f64::from).map_err(|_| "expected less".to_owned())
            }
            Node::Number(number) if *number >= 0.0 && number.is_finite() => Ok(*number),
            _ => Err(self.instead_of("an amount from 0 on")),
        }
    }

    /// Says what is found instead of something.
    pub fn instead_of(&self, what: &str) -> String {
        let found = match &self.value {
            Node::Text(_) => "string",
            Node::Whole(_) => "integer",
            Node::Number(_) => "float",
            Node::Truth(_) => "boolean",
            Node::List(_) => "array",
            Node::Section(_) => "table",
            Node::Other(kind) => kind,
        };
        format!("expected {what}, found {}", article(found))
    }
}
