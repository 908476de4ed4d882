//! How the journal binds the transcript: by digests of what was said, never by the words.
//!
//! The words live in the transcript, a log of their own. The state keeps the log's length and head
//! hash, and a short excerpt where a list or a digest needs one. So a decision about a message of
//! a megabyte is as small as one about a word, and can be taken again from the journal alone.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::{limits, text};

/// A SHA-256 digest; 64 lower-case hex digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of nothing: where a chain starts.
    pub const ZERO: Self = Self([0; 32]);

    /// Wraps the bytes of a digest.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Hashes bytes as they are.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns its digits, all at once: every suspension writes some digests.
    fn spelt(&self) -> [u8; 64] {
        let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
        let mut digits = [0; 64];
        for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(self.0) {
            *pair = [digit(byte >> 4), digit(byte & 0xf)];
        }
        digits
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text::of(&self.spelt()))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected 64 lower-case hex digits";
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(EXPECTED);
        }
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(EXPECTED),
        };
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text::of(&self.spelt()))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::parse(deserializer)
    }
}

/// Something said that goes into the transcript: what the core may know of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// The digest of the transcript entry, as it is stored.
    pub digest: Digest,
    /// How long the entry is.
    pub bytes: u64,
    /// Its beginning, for lists and digests.
    pub excerpt: String,
    /// Whether it says nothing: empty or only white space.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blank: bool,
}

impl Content {
    /// Describes the transcript entry `stored`, which says `text`.
    pub fn new(stored: &[u8], text: &str) -> Self {
        Self {
            digest: Digest::of(stored),
            bytes: stored.len() as u64,
            excerpt: limits::excerpt(text, limits::EXCERPT_BYTES),
            blank: text.trim().is_empty(),
        }
    }

    /// Describes a text that is stored as it is.
    pub fn text(text: &str) -> Self {
        Self::new(text.as_bytes(), text)
    }
}

/// How far a transcript goes, and the hash of all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    /// The number of entries.
    pub length: u64,
    /// The hash of the last entry and, through it, of all before.
    pub hash: Digest,
}

impl Head {
    /// The head of a transcript in which nothing was said.
    pub const EMPTY: Self = Self { length: 0, hash: Digest::ZERO };

    /// Returns the head after one more entry.
    #[must_use]
    pub fn with(self, entry: Digest) -> Self {
        // Both parts have a fixed length, so no two pairs share an encoding.
        let mut hasher = Sha256::new_with_prefix(b"adjourn transcript 1\0");
        hasher.update(self.hash.as_bytes());
        hasher.update(entry.as_bytes());
        Self { length: self.length + 1, hash: Digest(hasher.finalize().into()) }
    }

    /// Returns the head after further entries.
    #[must_use]
    pub fn with_all(self, entries: &[Digest]) -> Self {
        entries.iter().fold(self, |head, entry| head.with(*entry))
    }
}

/// Where a transcript has what people were last shown of each kind: entries by their numbers.
///
/// A client that comes to see a session is told these, so that it knows how things stand without
/// all that was said before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShownAt {
    /// The entry with the last plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<u64>,
    /// The entry that last said how much of the model's context is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// The entry with the commands that a person can type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<u64>,
    /// The entry with the mode that the agent works in, unless a client has chosen one since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<u64>,
}

impl ShownAt {
    /// Returns whether nothing was shown.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the entries that it names.
    pub fn entries(&self) -> impl Iterator<Item = u64> {
        [self.plan, self.context, self.commands, self.mode].into_iter().flatten()
    }

    /// Returns where each kind stands after something else was shown as well.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            plan: later.plan.or(self.plan),
            context: later.context.or(self.context),
            commands: later.commands.or(self.commands),
            mode: later.mode.or(self.mode),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let digest = Digest::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        assert!(text.to_uppercase().parse::<Digest>().is_err());
        assert!(text[1..].parse::<Digest>().is_err());
    }

    #[test]
    fn the_head_depends_on_order() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        assert_ne!(Head::EMPTY.with_all(&[a, b]), Head::EMPTY.with_all(&[b, a]));
        assert_eq!(Head::EMPTY.with(a).with(b), Head::EMPTY.with_all(&[a, b]));
    }

    #[test]
    fn white_space_says_nothing() {
        assert!(Content::text(" \n\t").blank);
        assert!(!Content::text(" x ").blank);
    }
}
