//! Values that are stored as text: each is read from it where it stands and written from where it is
//! spelt, without a copy.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Reads a value from its text.
///
/// # Errors
/// There is no text, or one of something else.
pub(crate) fn parse<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_str(Text(PhantomData))
}

/// Returns the text that a value has spelt as ASCII characters, of which each has one byte.
pub(crate) fn of(spelt: &[u8]) -> &str {
    std::str::from_utf8(spelt).unwrap_or_default()
}

struct Text<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
