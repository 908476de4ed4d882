//! The ids that requests and their answers have in common.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What is said of an id that is none.
pub(super) const NO_ID: &str = "an id is a text, a number or null, of at most 1024 bytes";
/// How long the id of a request may be: it is kept until it is answered, and more than once.
const ID_BYTES: usize = 1024;

/// The id of a request, exactly as its sender wrote it: a text, a number of any size, or null.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(String);

impl Id {
    /// The id of an answer to something that has none.
    pub fn null() -> Self {
        Self("null".to_owned())
    }

    /// An id of our own.
    pub fn number(number: u64) -> Self {
        Self(number.to_string())
    }

    /// Returns the id as it stands in a message.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    pub(super) fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let legal = matches!(text.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9' | b'n'))
            && text.len() <= ID_BYTES;
        legal.then(|| Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::read(&raw).ok_or_else(|| serde::de::Error::custom(NO_ID))
    }
}
