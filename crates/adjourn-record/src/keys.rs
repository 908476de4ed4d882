//! Keys: what signs commits, seals portable records and encrypts secrets at rest, and what checks
//! them.
//!
//! A [`Key`] is two secrets under one id; [`Keys`] are those a process works with; a [`KeyDir`] keeps
//! them in files; a [`KeyRing`] has the public halves, for checking. Nothing here has a default secret:
//! a process loads keys, is handed them, or asks for [`Keys::ephemeral`] in so many words.
//!
//! Owns secrets and their life; must not know what is signed with them.

mod dir;
mod encryption;
mod file;
mod public;
mod secret;

use adjourn_core::time::Timestamp;
use hmac::Hmac;
use sha2::Sha256;

pub use dir::{Error, KeyDir};
pub use encryption::{DecryptError, EncryptError};
pub use file::Damage;
pub use public::{
    KeyId, KeyRing, ParseKeyIdError, ParseSignatureError, PublicKey, PublicKeyError, Revocation,
    Signature, SignatureError, Standing,
};
pub(crate) use secret::random;
pub use secret::{Key, RandomnessError, SealingKey};

/// The keys of a process: one that signs and seals, and those it still accepts.
#[derive(Debug, Clone)]
pub struct Keys {
    current: Key,
    /// The others, with what is known of their revocation. Neither list is long: a key is made by a
    /// person who rotates.
    others: Vec<(Key, Option<Revocation>)>,
    /// Public halves of keys that were revoked and whose secrets are gone.
    gone: Vec<PublicKey>,
    /// Sealing halves of keys of others, whose records are opened here.
    of_others: Vec<(SealingKey, Option<Revocation>)>,
}

impl Keys {
    /// Takes `key` as the only one.
    pub const fn only(key: Key) -> Self {
        Self { current: key, others: Vec::new(), gone: Vec::new(), of_others: Vec::new() }
    }

    /// Makes a key that exists in this process only.
    ///
    /// What it seals cannot be opened by another process, or by this one once it was restarted.
    ///
    /// # Errors
    /// The operating system gave no randomness.
    pub fn ephemeral(now: Timestamp) -> Result<Self, RandomnessError> {
        Key::generate(now).map(Self::only)
    }

    /// Accepts what `key` sealed, too; with a revocation, recognises and refuses it.
    #[must_use]
    pub fn accepting(mut self, key: Key, revoked: Option<Revocation>) -> Self {
        self.others.push((key, revoked));
        self
    }

    /// Opens records that another process sealed, too; with a revocation, recognises and refuses
    /// them. What that process signs is not believed for it.
    #[must_use]
    pub fn opening(mut self, key: SealingKey, revoked: Option<Revocation>) -> Self {
        self.of_others.push((key, revoked));
        self
    }

    /// Remembers a key whose secret is gone.
    #[must_use]
    pub(crate) fn remembering(mut self, key: PublicKey) -> Self {
        self.gone.push(key);
        self
    }

    /// Returns the key that signs and seals.
    pub const fn current(&self) -> &Key {
        &self.current
    }

    /// Returns the public halves of all keys.
    pub fn ring(&self) -> KeyRing {
        self.others
            .iter()
            .map(|(key, revoked)| key.public(revoked.clone()))
            .chain([self.current.public(None)])
            .chain(self.gone.iter().cloned())
            .collect()
    }

    /// Returns one of its own keys by its id, unless that was revoked.
    pub fn good(&self, id: KeyId) -> Option<&Key> {
        let own = self.others.iter().filter(|(_, revoked)| revoked.is_none()).map(|(key, _)| key);
        std::iter::once(&self.current).chain(own).find(|key| key.id() == id)
    }

    /// Starts the MAC that a key gives, and returns the key's revocation.
    pub(crate) fn mac(&self, id: KeyId) -> Option<(Hmac<Sha256>, Option<&Revocation>)> {
        if self.current.id() == id {
            return Some((self.current.mac(), None));
        }
        if let Some((key, revoked)) = self.others.iter().find(|(key, _)| key.id() == id) {
            return Some((key.mac(), revoked.as_ref()));
        }
        let (key, revoked) = self.of_others.iter().find(|(key, _)| key.id() == id)?;
        Some((key.mac(), revoked.as_ref()))
    }
}
