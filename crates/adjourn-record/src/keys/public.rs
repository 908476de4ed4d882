//! What everybody may know of keys: ids, public halves, revocations; and checking with them.

use std::collections::btree_map::{BTreeMap, Entry};
use std::fmt;
use std::str::FromStr;

use adjourn_core::time::Timestamp;
use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Serialize};

use crate::hash::{Domain, Hasher};
use crate::hex::{self, Hex};
use crate::text::serde_as_text;

/// Names a key: `key-` and 32 digits of the hash of its public half.
///
/// Since it follows from the key, an id cannot name another key than its own. 128 bits are kept, so
/// that not even the maker of two keys can give them one id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 16]);

impl KeyId {
    const PREFIX: &'static str = "key-";

    /// Returns the id of the key with this public half.
    pub fn of(public: &[u8; 32]) -> Self {
        let hash = Hasher::new(Domain::KeyId).fixed(public).finish();
        let mut id = [0; 16];
        for (to, from) in id.iter_mut().zip(hash.as_bytes()) {
            *to = *from;
        }
        Self(id)
    }

    /// Wraps 16 bytes, as a store keeps them.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PREFIX)?;
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not the id of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `key-` followed by 32 lower-case hexadecimal digits")]
pub struct ParseKeyIdError;

impl FromStr for KeyId {
    type Err = ParseKeyIdError;

    fn from_str(text: &str) -> Result<Self, ParseKeyIdError> {
        text.strip_prefix(Self::PREFIX).and_then(hex::read).map(Self).ok_or(ParseKeyIdError)
    }
}

serde_as_text!(KeyId);

/// An Ed25519 signature.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature([u8; 64]);

impl Signature {
    /// Wraps 64 bytes, as a store keeps them.
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// Returns the 64 bytes.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 128 lower-case hexadecimal digits")]
pub struct ParseSignatureError;

impl FromStr for Signature {
    type Err = ParseSignatureError;

    fn from_str(text: &str) -> Result<Self, ParseSignatureError> {
        hex::read(text).map(Self).ok_or(ParseSignatureError)
    }
}

serde_as_text!(Signature);

/// When and why a key was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// The time at which it was revoked.
    pub at: Timestamp,
    /// Why, in the words of whoever revoked it.
    pub reason: String,
}

/// The public half of a key, as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "PublicKeyFields", try_from = "PublicKeyFields")]
pub struct PublicKey {
    id: KeyId,
    created: Timestamp,
    /// Kept unpacked: checking a signature would otherwise unpack it each time.
    verifying: VerifyingKey,
    revoked: Option<Revocation>,
}

impl PublicKey {
    /// Takes the 32 bytes of an Ed25519 public key.
    ///
    /// # Errors
    /// [`PublicKeyError::NotAKey`].
    pub fn new(
        bytes: &[u8; 32],
        created: Timestamp,
        revoked: Option<Revocation>,
    ) -> Result<Self, PublicKeyError> {
        let verifying = VerifyingKey::from_bytes(bytes).map_err(|_| PublicKeyError::NotAKey)?;
        // Under a weak key one signature holds for many messages.
        if verifying.is_weak() {
            return Err(PublicKeyError::NotAKey);
        }
        Ok(Self::of(verifying, created, revoked))
    }

    pub(super) fn of(
        verifying: VerifyingKey,
        created: Timestamp,
        revoked: Option<Revocation>,
    ) -> Self {
        Self { id: KeyId::of(verifying.as_bytes()), created, verifying, revoked }
    }

    pub(super) fn with_revocation(self, revocation: Revocation) -> Self {
        Self { revoked: Some(revocation), ..self }
    }

    /// Returns the id.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// Returns when the key was made.
    pub const fn created(&self) -> Timestamp {
        self.created
    }

    /// Returns the 32 bytes of the Ed25519 public key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.verifying.as_bytes()
    }

    /// Returns the revocation, if the key was revoked.
    pub const fn revoked(&self) -> Option<&Revocation> {
        self.revoked.as_ref()
    }
}

/// The serde form of a [`PublicKey`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublicKeyFields {
    id: KeyId,
    created: Timestamp,
    public: Hex<32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked: Option<Revocation>,
}

impl From<PublicKey> for PublicKeyFields {
    fn from(key: PublicKey) -> Self {
        let public = Hex(*key.as_bytes());
        Self { id: key.id, created: key.created, public, revoked: key.revoked }
    }
}

impl TryFrom<PublicKeyFields> for PublicKey {
    type Error = PublicKeyError;

    fn try_from(fields: PublicKeyFields) -> Result<Self, PublicKeyError> {
        let key = Self::new(&fields.public.0, fields.created, fields.revoked)?;
        if key.id == fields.id {
            Ok(key)
        } else {
            Err(PublicKeyError::OtherId { stated: fields.id, derived: key.id })
        }
    }
}

/// Why bytes are not the public half of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublicKeyError {
    /// The bytes are no point that Ed25519 takes for a key.
    #[error("the bytes are not an Ed25519 public key")]
    NotAKey,
    /// The id is not that of the key it stands beside.
    #[error("id {stated} does not fit the public key, whose id is {derived}")]
    OtherId {
        /// The id as stated.
        stated: KeyId,
        /// The id of the key.
        derived: KeyId,
    },
}

/// Public keys by id: what signatures are checked with.
///
/// A signature shows only that the holder of some key in the ring signed. Whoever can write to a store
/// can also add a key to it and sign its whole history again; so a store is checked with keys from
/// elsewhere, such as [`KeyDir::ring`](super::KeyDir::ring), and its own list serves to name a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRing(BTreeMap<KeyId, PublicKey>);

impl KeyRing {
    /// Makes a ring without keys.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a key. Of a key that is known, the earliest revocation is kept: none is ever lost.
    pub fn insert(&mut self, key: PublicKey) {
        match self.0.entry(key.id) {
            Entry::Vacant(slot) => {
                slot.insert(key);
            }
            Entry::Occupied(mut slot) => {
                let known = &mut slot.get_mut().revoked;
                *known = [known.take(), key.revoked].into_iter().flatten().min_by_key(|one| one.at);
            }
        }
    }

    /// Returns a key by its id.
    pub fn get(&self, id: KeyId) -> Option<&PublicKey> {
        self.0.get(&id)
    }

    /// Walks the keys in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &PublicKey> {
        self.0.values()
    }

    /// Checks that the key `id` signed `message`.
    ///
    /// # Errors
    /// [`SignatureError`]. A revoked key is not an error: the signature holds, and is marked.
    pub(crate) fn verify(
        &self,
        id: KeyId,
        message: &[u8],
        signature: &Signature,
    ) -> Result<Standing<'_>, SignatureError> {
        let key = self.get(id).ok_or(SignatureError::UnknownKey { key: id })?;
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        // Strict: of each signature only one spelling holds, so no bit of it can change unseen.
        key.verifying
            .verify_strict(message, &signature)
            .map_err(|_| SignatureError::BadSignature { key: id })?;
        Ok(key.revoked().map_or(Standing::Good, Standing::Revoked))
    }
}

impl FromIterator<PublicKey> for KeyRing {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        let mut ring = Self::new();
        keys.into_iter().for_each(|key| ring.insert(key));
        ring
    }
}

/// How far a signature that holds can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'r> {
    /// The key is in use, or was put aside in good standing.
    Good,
    /// The key was revoked: somebody else may have signed.
    Revoked(&'r Revocation),
}

/// Why a signature does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// Nobody here knows the key.
    #[error("it is signed with unknown key {key}")]
    UnknownKey {
        /// The id of the key.
        key: KeyId,
    },
    /// The key did not sign these bytes.
    #[error("its signature is not that of key {key} over its fields")]
    BadSignature {
        /// The id of the key.
        key: KeyId,
    },
}
