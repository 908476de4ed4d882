//! The token of a portable record: `{nonce}.{hexdigest}`, in one spelling.

use std::fmt;
use std::str::FromStr;

use crate::hex;
use crate::keys::{RandomnessError, random};

/// 16 random bytes that make every token different, even of records that are otherwise equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nonce([u8; 16]);

impl Nonce {
    pub(super) fn random() -> Result<Self, RandomnessError> {
        random().map(Self)
    }

    #[cfg(test)]
    pub(super) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

/// A nonce and the MAC that was computed with it.
///
/// Not comparable: a MAC is compared in constant time, by whoever computed the other one.
#[derive(Clone, Copy)]
pub(super) struct Token {
    pub(super) nonce: Nonce,
    pub(super) digest: [u8; 32],
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.nonce)?;
        hex::write(&self.digest, f)
    }
}

/// Why a text is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 32 lower-case hexadecimal digits, a full stop and 64 more digits")]
pub(super) struct ParseTokenError;

impl FromStr for Token {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        let (nonce, digest) = text.split_once('.').ok_or(ParseTokenError)?;
        let nonce = hex::read(nonce).map(Nonce).ok_or(ParseTokenError)?;
        let digest = hex::read(digest).ok_or(ParseTokenError)?;
        Ok(Self { nonce, digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_one_spelling() {
        let (nonce, digest) = ("0a".repeat(16), "0b".repeat(32));
        let text = format!("{nonce}.{digest}");
        assert_eq!(text.parse::<Token>().unwrap().to_string(), text);
        for other in [
            String::new(),
            nonce.clone(),
            format!("{nonce}{digest}"),
            format!("{nonce}:{digest}"),
            format!("{nonce}.{digest}0"),
            format!("{nonce}.{digest}."),
            format!("{nonce}.{digest} "),
            format!("{nonce}..{digest}"),
            format!("{digest}.{nonce}"),
            format!("{}.{digest}", nonce.to_uppercase()),
            format!("{nonce}.{}", digest.to_uppercase()),
        ] {
            assert!(other.parse::<Token>().is_err(), "{other:?}");
        }
    }

    #[test]
    fn nonces_differ() {
        assert_ne!(Nonce::random().unwrap(), Nonce::random().unwrap());
    }
}
