//! Secrets of others that lie in a store: encrypted under a key of the process, so that the file alone
//! does not give them away.
//!
//! The key is derived from the secret that signs, which leaves its directory in no other way: the half
//! that is shared to open records elsewhere does not open these.

use hmac::Mac as _;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::secret::{Key, RandomnessError, random};
use super::{KeyId, Keys, Revocation};

/// The first byte, which says how the rest is read.
const VERSION: u8 = 1;
/// What the encryption key is derived for, so that it is no other secret.
const PURPOSE: &[u8] = b"adjourn: secrets at rest, version 1";
/// How long the id of a key is.
const ID: usize = 16;

/// Why a secret is not encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncryptError {
    /// There was no randomness.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
    /// It is longer than anything that can be encrypted.
    #[error("it is too long to be encrypted")]
    TooLong,
}

/// Why a secret cannot be had again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecryptError {
    /// It was encrypted with a key that is not here.
    #[error("it was encrypted with {0}, which is not here")]
    UnknownKey(KeyId),
    /// It was encrypted with a key that was revoked, so that others may know it.
    #[error("it was encrypted with {0}, which was revoked")]
    RevokedKey(KeyId),
    /// It was changed, belongs to something else, or was written by a newer program.
    #[error("it was changed, or was written by a newer program")]
    Changed,
}

impl Keys {
    /// Encrypts a secret with the current key. It is had again with the same context only, which says
    /// what it belongs to.
    ///
    /// # Errors
    /// The operating system gave no randomness.
    pub fn encrypt(&self, context: &[u8], secret: &[u8]) -> Result<Vec<u8>, EncryptError> {
        let nonce = random::<NONCE_LEN>()?;
        let key = encryption_key(self.current()).ok_or(EncryptError::TooLong)?;
        // Nothing of it is left behind where it grows.
        let mut sealed =
            Zeroizing::new(Vec::with_capacity(secret.len() + CHACHA20_POLY1305.tag_len()));
        sealed.extend_from_slice(secret);
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(context),
            &mut *sealed,
        )
        .map_err(|_| EncryptError::TooLong)?;
        let id = self.current().id();
        Ok([&[VERSION][..], id.as_bytes(), &nonce, &sealed].concat())
    }

    /// Returns a secret that was encrypted for a context, with the current key or one of those before
    /// it.
    ///
    /// # Errors
    /// See [`DecryptError`].
    pub fn decrypt(
        &self,
        context: &[u8],
        encrypted: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, DecryptError> {
        let (version, rest) = encrypted.split_first().ok_or(DecryptError::Changed)?;
        let (id, rest) = rest.split_first_chunk::<ID>().ok_or(DecryptError::Changed)?;
        let (nonce, sealed) = rest.split_first_chunk().ok_or(DecryptError::Changed)?;
        if *version != VERSION {
            return Err(DecryptError::Changed);
        }
        let id = KeyId::from_bytes(*id);
        let key = match self.own(id) {
            Some((key, None)) => encryption_key(key).ok_or(DecryptError::Changed)?,
            Some((_, Some(_))) => return Err(DecryptError::RevokedKey(id)),
            None if self.gone.iter().any(|gone| gone.id() == id) => {
                return Err(DecryptError::RevokedKey(id));
            }
            None => return Err(DecryptError::UnknownKey(id)),
        };
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = key
            .open_in_place(nonce, Aad::from(context), &mut bytes)
            .map_err(|_| DecryptError::Changed)?
            .len();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Returns one of its own keys by its id, with its revocation.
    fn own(&self, id: KeyId) -> Option<(&Key, Option<&Revocation>)> {
        let others = self.others.iter().map(|(key, revoked)| (key, revoked.as_ref()));
        std::iter::once((&self.current, None)).chain(others).find(|(key, _)| key.id() == id)
    }
}

/// Returns the key that secrets at rest are encrypted with; it always has the right length.
fn encryption_key(key: &Key) -> Option<LessSafeKey> {
    let derived = key.signing_mac().chain_update(PURPOSE).finalize().into_bytes();
    let derived = Zeroizing::new(<[u8; 32]>::from(derived));
    UnboundKey::new(&CHACHA20_POLY1305, &*derived).ok().map(LessSafeKey::new)
}

#[cfg(test)]
mod tests {
    use adjourn_core::time::Timestamp;

    use super::*;

    fn key(byte: u8) -> Key {
        Key::from_secrets(Timestamp::default(), &[byte; 32], &[9; 32])
    }

    fn revoked() -> Revocation {
        Revocation { at: Timestamp::default(), reason: "stolen".to_owned() }
    }

    #[test]
    fn a_secret_is_had_again_with_its_context_and_its_key_alone() {
        let keys = Keys::only(key(1));
        let encrypted = keys.encrypt(b"run-1", b"hunter2").unwrap();
        assert_eq!(&**keys.decrypt(b"run-1", &encrypted).unwrap(), b"hunter2");
        assert!(!encrypted.windows(7).any(|window| window == b"hunter2"));
        assert_ne!(keys.encrypt(b"run-1", b"hunter2").unwrap(), encrypted, "no nonce comes twice");
        assert_eq!(keys.decrypt(b"run-2", &encrypted), Err(DecryptError::Changed));
        // The same sealing half is not enough.
        let id = key(1).id();
        let others = Keys::only(key(2)).opening(key(1).sealing_half(), None);
        assert_eq!(others.decrypt(b"run-1", &encrypted), Err(DecryptError::UnknownKey(id)));
        for length in 0..encrypted.len() {
            let cut = encrypted.get(..length).unwrap();
            assert_eq!(keys.decrypt(b"run-1", cut), Err(DecryptError::Changed), "{length}");
        }
        for index in 0..encrypted.len() {
            let mut changed = encrypted.clone();
            *changed.get_mut(index).unwrap() ^= 1;
            assert!(keys.decrypt(b"run-1", &changed).is_err(), "{index}");
        }
    }

    #[test]
    fn a_rotated_key_still_opens_and_a_revoked_one_does_not() {
        let encrypted = Keys::only(key(1)).encrypt(b"x", b"hunter2").unwrap();
        let rotated = Keys::only(key(2)).accepting(key(1), None);
        assert_eq!(&**rotated.decrypt(b"x", &encrypted).unwrap(), b"hunter2");
        let refused = Err(DecryptError::RevokedKey(key(1).id()));
        let kept = Keys::only(key(2)).accepting(key(1), Some(revoked()));
        assert_eq!(kept.decrypt(b"x", &encrypted), refused);
        let gone = Keys::only(key(2)).remembering(key(1).public(Some(revoked())));
        assert_eq!(gone.decrypt(b"x", &encrypted), refused);
    }
}
