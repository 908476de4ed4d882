//! Identities: every id is a type of its own, so that a run can never be passed for a session.
//!
//! Ids are made outside (this crate knows no randomness) as UUID version 7 and travel as text with a prefix that says what they name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::text;

/// Why a text is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `{prefix}` followed by a uuid")]
pub struct ParseIdError {
    prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// What the text form starts with.
            pub const PREFIX: &'static str = $prefix;

            /// Wraps a uuid.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Returns the characters of its text: every suspension reads and writes some ids.
            fn spelt(self) -> [u8; $prefix.len() + Hyphenated::LENGTH] {
                let mut spelt = [0; $prefix.len() + Hyphenated::LENGTH];
                let (prefix, uuid) = spelt.split_at_mut($prefix.len());
                prefix.copy_from_slice($prefix.as_bytes());
                self.0.as_hyphenated().encode_lower(uuid);
                spelt
            }

            /// Returns the uuid alone, for keys and indexes.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(text::of(&self.spelt()))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            /// Accepts exactly what `Display` writes: one spelling, so that an id can be compared as text.
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let error = ParseIdError { prefix: $prefix };
                let rest = text.strip_prefix($prefix).ok_or_else(|| error.clone())?;
                let uuid = Uuid::try_parse(rest).map_err(|_| error.clone())?;
                let id = Self(uuid);
                if id.spelt() == text.as_bytes() { Ok(id) } else { Err(error) }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(text::of(&self.spelt()))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                text::parse(deserializer)
            }
        }
    };
}

id! {
    /// Names one conversation of an agent with its history.
    SessionId, "sess-"
}
id! {
    /// Names the work from one prompt until the session is idle again.
    RunId, "run-"
}
id! {
    /// Names one suspension; the first resume that succeeds consumes it.
    Handle, "suspend-"
}
id! {
    /// Names one process that drives sessions.
    HostId, "host-"
}
id! {
    /// Names one gate: a panic over a scope.
    GateId, "gate-"
}
id! {
    /// Names one call of `suspend`, so that its caller can withdraw it.
    RequestId, "req-"
}

impl SessionId {
    /// How many characters of an id lists show: enough to tell a million sessions apart.
    pub const SHORT: usize = 12;

    /// Returns the end of the id, which can be typed instead of the whole.
    pub fn short(self) -> String {
        let text = self.to_string();
        text.get(text.len().saturating_sub(Self::SHORT)..).unwrap_or(&text).to_owned()
    }
}

/// The position of an event in the order in which events were acknowledged.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// How often a session has been claimed; a host drives it only under the epoch of its own claim.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let text = "suspend-019abf6b-7d51-7c1d-bb02-0123456789ab";
        let handle: Handle = text.parse().unwrap();
        assert_eq!(handle.to_string(), text);
        for other in [
            "suspend-019ABF6B-7d51-7c1d-bb02-0123456789ab",
            "suspend-019abf6b7d517c1dbb020123456789ab",
            "run-019abf6b-7d51-7c1d-bb02-0123456789ab",
            "019abf6b-7d51-7c1d-bb02-0123456789ab",
            "suspend-",
            "",
        ] {
            assert!(other.parse::<Handle>().is_err(), "{other:?}");
        }
    }
}
