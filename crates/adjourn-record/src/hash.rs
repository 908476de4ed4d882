//! SHA-256 with a tag for every use, so that a value hashed for one purpose never passes for another.
//!
//! Owns the tags and the framing of what is hashed; what is framed belongs to the callers.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::hex;
use crate::text::serde_as_text;

/// A SHA-256 value: 32 bytes, spelt as 64 lower-case hexadecimal digits.
///
/// Hashes are public here, so comparing them takes no care about timing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The predecessor of whatever comes first.
    pub const ZERO: Self = Self([0; 32]);

    /// Wraps 32 bytes, as a store keeps them.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 lower-case hexadecimal digits")]
pub struct ParseHashError;

impl FromStr for Hash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, ParseHashError> {
        hex::read(text).map(Self).ok_or(ParseHashError)
    }
}

serde_as_text!(Hash);

/// One use of hashing, signing or sealing.
///
/// The tag is ASCII text with a version, and its only zero byte is its last: no tag begins another,
/// so two uses never see the same bytes. A change of layout takes a tag with the next version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    Journal,
    Empty,
    Leaf,
    Node,
    Commit,
    CommitRow,
    KeyId,
    KeyFile,
    SealingFile,
    Record,
}

impl Domain {
    pub(crate) const fn tag(self) -> &'static [u8] {
        match self {
            Self::Journal => b"adjourn:journal:1\0",
            Self::Empty => b"adjourn:empty:1\0",
            Self::Leaf => b"adjourn:leaf:1\0",
            Self::Node => b"adjourn:node:1\0",
            Self::Commit => b"adjourn:commit:1\0",
            Self::CommitRow => b"adjourn:commit-row:1\0",
            Self::KeyId => b"adjourn:key-id:1\0",
            Self::KeyFile => b"adjourn:key-file:1\0",
            Self::SealingFile => b"adjourn:sealing-file:1\0",
            Self::Record => b"adjourn:record:1\0",
        }
    }
}

/// Hashes the fields of one value under its domain.
///
/// A field is either an array, whose length the layout fixes, or a slice, which gets its length in
/// front: the bytes hashed can be cut into fields in one way only.
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn new(domain: Domain) -> Self {
        Self(Sha256::new_with_prefix(domain.tag()))
    }

    pub(crate) fn fixed<const N: usize>(mut self, field: &[u8; N]) -> Self {
        self.0.update(field);
        self
    }

    pub(crate) fn sized(mut self, field: &[u8]) -> Self {
        self.0.update(length_prefix(field));
        self.0.update(field);
        self
    }

    pub(crate) fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

/// Returns the eight big-endian bytes that stand in front of a field of variable length.
pub(crate) fn length_prefix(field: &[u8]) -> [u8; 8] {
    // `usize` is at most 64 bits wide on every platform that Rust compiles for.
    (field.len() as u64).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tag_begins_another() {
        let all = [
            Domain::Journal,
            Domain::Empty,
            Domain::Leaf,
            Domain::Node,
            Domain::Commit,
            Domain::CommitRow,
            Domain::KeyId,
            Domain::KeyFile,
            Domain::Record,
        ];
        for one in all {
            let zeros = one.tag().iter().filter(|byte| **byte == 0).count();
            assert!(one.tag().is_ascii() && one.tag().ends_with(&[0]) && zeros == 1, "{one:?}");
            for other in all {
                assert_eq!(one.tag().starts_with(other.tag()), one == other, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn fields_cannot_be_cut_differently() {
        let hash =
            |one: &[u8], two: &[u8]| Hasher::new(Domain::Leaf).sized(one).sized(two).finish();
        assert_ne!(hash(b"ab", b"c"), hash(b"a", b"bc"));
        assert_ne!(hash(b"", b"abc"), hash(b"abc", b""));
    }

    #[test]
    fn a_hash_has_one_spelling() {
        let hash = Hasher::new(Domain::Leaf).finish();
        let text = hash.to_string();
        assert_eq!(text.parse(), Ok(hash));
        assert_eq!(text.to_uppercase().parse::<Hash>(), Err(ParseHashError));
        assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<Hash>(&format!("\"{text}\"")).unwrap(), hash);
    }
}
