//! One key: its two secrets, and what is done with them.
//!
//! The secrets do not leave this module except into a key file, and are overwritten when dropped.

use std::fmt;

use adjourn_core::time::Timestamp;
use ed25519_dalek::{Signer as _, SigningKey};
use hmac::{Hmac, KeyInit as _};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::public::{KeyId, PublicKey, Revocation, Signature};

/// The operating system gave no randomness for a key or a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no randomness")]
pub struct RandomnessError(#[source] getrandom::Error);

/// Returns `N` random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], RandomnessError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(RandomnessError)?;
    Ok(bytes)
}

/// 32 secret bytes.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(super) struct Secret(pub(super) [u8; 32]);

impl Secret {
    /// Starts a MAC under this secret.
    fn mac(&self) -> Hmac<Sha256> {
        // HMAC fills a short key with zeros up to the block size; doing so here makes it infallible.
        let mut block = Zeroizing::new([0; 64]);
        for (to, from) in block.iter_mut().zip(&self.0) {
            *to = *from;
        }
        Hmac::new((&*block).into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

/// A key: a secret that signs commits, and a secret that seals portable records.
///
/// The two are independent. A record is sealed with a MAC, so whoever is to open it must hold the
/// sealing secret; handing that to another process must not hand over the power to sign history.
#[derive(Clone)]
pub struct Key {
    id: KeyId,
    created: Timestamp,
    signing: SigningKey,
    sealing: Secret,
}

impl Key {
    /// Makes a key from fresh randomness.
    ///
    /// # Errors
    /// The operating system gave no randomness.
    pub fn generate(now: Timestamp) -> Result<Self, RandomnessError> {
        let signing = Zeroizing::new(random()?);
        let sealing = Zeroizing::new(random()?);
        Ok(Self::from_secrets(now, &signing, &sealing))
    }

    /// Makes a key from secrets that the caller keeps, for processes that share them by other means
    /// than files.
    ///
    /// Both must be 32 bytes of randomness. A password, a name or a session id is not a secret.
    pub fn from_secrets(created: Timestamp, signing: &[u8; 32], sealing: &[u8; 32]) -> Self {
        let signing = SigningKey::from_bytes(signing);
        let id = KeyId::of(signing.verifying_key().as_bytes());
        Self { id, created, signing, sealing: Secret(*sealing) }
    }

    /// Returns the id, which follows from the public half.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// Returns when the key was made.
    pub const fn created(&self) -> Timestamp {
        self.created
    }

    /// Returns the public half, with what is known of the key's revocation.
    pub fn public(&self, revoked: Option<Revocation>) -> PublicKey {
        PublicKey::of(self.signing.verifying_key(), self.created, revoked)
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Signature {
        Signature::from_bytes(self.signing.sign(message).to_bytes())
    }

    /// Returns the half that seals and opens records, for a process that is to open those of this
    /// one.
    pub fn sealing_half(&self) -> SealingKey {
        SealingKey { public: self.public(None), sealing: self.sealing.clone() }
    }

    /// Starts a MAC under the sealing secret.
    pub(crate) fn mac(&self) -> Hmac<Sha256> {
        self.sealing.mac()
    }

    /// Starts a MAC under the signing secret, from which other secrets are derived.
    pub(super) fn signing_mac(&self) -> Hmac<Sha256> {
        self.signing_secret().mac()
    }

    pub(super) fn signing_secret(&self) -> Secret {
        Secret(self.signing.to_bytes())
    }

    pub(super) fn sealing_secret(&self) -> Secret {
        self.sealing.clone()
    }

    pub(super) fn public_bytes(&self) -> [u8; 32] {
        self.signing.verifying_key().to_bytes()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &self.id)
            .field("created", &self.created)
            .finish_non_exhaustive()
    }
}

/// The half of a key that seals and opens portable records. It signs no history.
#[derive(Debug, Clone)]
pub struct SealingKey {
    public: PublicKey,
    sealing: Secret,
}

impl SealingKey {
    pub(super) const fn new(public: PublicKey, sealing: Secret) -> Self {
        Self { public, sealing }
    }

    /// Returns the id of the key that it is half of.
    pub const fn id(&self) -> KeyId {
        self.public.id()
    }

    /// Returns the public half of that key.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Starts a MAC under the sealing secret.
    pub(crate) fn mac(&self) -> Hmac<Sha256> {
        self.sealing.mac()
    }

    pub(super) const fn secret(&self) -> &Secret {
        &self.sealing
    }
}

#[cfg(test)]
mod tests {
    use hmac::Mac as _;

    use super::*;

    #[test]
    fn the_mac_is_hmac_sha256() {
        // RFC 4231 has no key of 32 bytes; `new_from_slice` is the reference for any length.
        let key = Key::from_secrets(Timestamp::default(), &[1; 32], &[2; 32]);
        let ours = key.mac().chain_update(b"message").finalize();
        let theirs = Hmac::<Sha256>::new_from_slice(&[2; 32]).unwrap();
        assert!(ours == theirs.chain_update(b"message").finalize());
    }

    #[test]
    fn nothing_secret_is_printed() {
        let key = Key::from_secrets(Timestamp::default(), &[0x5a; 32], &[0xa5; 32]);
        let text = format!("{key:?} {:?} {:?}", key.signing_secret(), key.sealing_secret());
        for secret in ["5a5a", "a5a5", "90, 90", "165, 165"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}
