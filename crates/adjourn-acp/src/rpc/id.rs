//! The ids that requests and their answers have in common.

use std::hash::{Hash, Hasher};

use adjourn::core::json;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What is said of an id that is none.
pub(super) const NO_ID: &str = "an id is a text, a number or null, of at most 1024 bytes";
/// How long the id of a request may be: it is kept until it is answered, and more than once.
const ID_BYTES: usize = 1024;

/// The id of a request: a text, a number of any size, or null.
///
/// It is answered exactly as its sender wrote it. Two ids are the same if they are equal in value,
/// however they are written: `1` and `1.0` are, and a client may write a number that it was sent in
/// another way.
#[derive(Debug, Clone)]
pub struct Id {
    written: String,
    /// The one way to write the value, where `written` is another.
    value: Option<String>,
}

impl Id {
    /// The id of an answer to something that has none.
    pub fn null() -> Self {
        Self { written: "null".to_owned(), value: None }
    }

    /// An id of our own.
    pub fn number(number: u64) -> Self {
        Self { written: number.to_string(), value: None }
    }

    /// Returns the id as it stands in a message.
    pub fn as_json(&self) -> &str {
        &self.written
    }

    pub(super) fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        if text.len() > ID_BYTES {
            return None;
        }
        let value = match text.as_bytes() {
            [b'n', ..] => None,
            [b'"', rest @ ..] if !rest.contains(&b'\\') => None,
            [b'"', ..] => {
                let words = json::stored::<String>(text.as_bytes());
                words.ok().and_then(|words| serde_json::to_string(&words).ok())
            }
            [b'-' | b'0'..=b'9', rest @ ..] => {
                let plain = text != "-0" && rest.iter().all(u8::is_ascii_digit);
                if plain { None } else { number(text) }
            }
            _ => return None,
        };
        Some(Self { written: text.to_owned(), value })
    }

    fn value(&self) -> &str {
        self.value.as_deref().unwrap_or(&self.written)
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::read(&raw).ok_or_else(|| serde::de::Error::custom(NO_ID))
    }
}

/// Writes a number of JSON in the one way in which its value is written here: without a fraction
/// if it has none, else as digits and an exponent. Nothing is rounded.
fn number(text: &str) -> Option<String> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => ("-", text),
        None => ("", text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let dropped = all.len() - all.trim_end_matches('0').len();
    // A number whose exponent does not fit equals only what is written like it.
    let exponent = exponent.parse::<i64>().ok()?;
    let exponent = exponent
        .checked_add(i64::try_from(dropped).ok()?)?
        .checked_sub(i64::try_from(fraction.len()).ok()?)?;
    Some(match usize::try_from(exponent) {
        Ok(zeros) if zeros <= ID_BYTES => format!("{sign}{digits}{}", "0".repeat(zeros)),
        _ => format!("{sign}{digits}e{exponent}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        Id::read(&RawValue::from_string(text.to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn ids_are_the_same_if_their_values_are() {
        for (one, other) in [
            ("1", "1.0"),
            ("10", "1e1"),
            ("10", "0.1E+2"),
            ("0", "-0"),
            ("0", "0.00e7"),
            ("-5", "-50e-1"),
            ("1.5", "15e-1"),
            ("123456789012345678901234567890", "123456789012345678901234567890.0"),
            (r#""a b""#, r#""a\u0020b""#),
            (r#""a\"b""#, r#""\u0061\u0022b""#),
        ] {
            assert_eq!(id(one), id(other), "{one} {other}");
            let seen = std::collections::HashSet::from([id(one)]);
            assert!(seen.contains(&id(other)), "{one} {other}");
            assert_eq!((id(one).as_json(), id(other).as_json()), (one, other));
        }
        for (one, other) in [
            ("1", "1.1"),
            ("1", r#""1""#),
            ("1", "-1"),
            ("123456789012345678901234567890", "123456789012345678901234567891"),
            ("1e99999", "1e99998"),
            ("null", r#""null""#),
        ] {
            assert_ne!(id(one), id(other), "{one} {other}");
        }
    }
}
