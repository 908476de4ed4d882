//! What a key file and a revocation file say.
//!
//! Owns their JSON and its checks; where the files lie and how they get there belongs to [`super::dir`].

use std::fmt;

use adjourn_core::json;
use adjourn_core::time::Timestamp;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::error::Category;
use zeroize::Zeroizing;

use super::public::{KeyId, PublicKey};
use super::secret::{Key, SealingKey, Secret};
use crate::Hash;
use crate::hash::{Domain, Hasher};
use crate::hex::{self, Hex};

const VERSION: u32 = 1;
const KEY: &str = "ed25519+hmac-sha256";
const REVOCATION: &str = "revocation";
const SEALING: &str = "hmac-sha256";

/// A key, and how many were made before it in its directory.
#[derive(Debug, Clone)]
pub(super) struct KeyFile {
    pub(super) key: Key,
    /// Orders keys where their times may not: clocks go back.
    pub(super) generation: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct KeyFields {
    v: u32,
    kind: String,
    id: KeyId,
    generation: u32,
    created: Timestamp,
    public: Hex<32>,
    signing_secret: Secret,
    sealing_secret: Secret,
    /// Over all of the above. The id vouches for the signing secret only.
    checksum: Hash,
}

impl KeyFile {
    pub(super) fn write(&self) -> Result<Zeroizing<Vec<u8>>, Damage> {
        let key = &self.key;
        let fields = KeyFields {
            v: VERSION,
            kind: KEY.to_owned(),
            id: key.id(),
            generation: self.generation,
            created: key.created(),
            public: Hex(key.public_bytes()),
            signing_secret: key.signing_secret(),
            sealing_secret: key.sealing_secret(),
            checksum: self.checksum(),
        };
        write_secret(&fields)
    }

    pub(super) fn read(text: &[u8]) -> Result<Self, Damage> {
        let fields: KeyFields = read(text, KEY)?;
        let (signing, sealing) = (&fields.signing_secret.0, &fields.sealing_secret.0);
        let key = Key::from_secrets(fields.created, signing, sealing);
        let file = Self { key, generation: fields.generation };
        fits(fields.id, file.key.id(), fields.checksum == file.checksum())?;
        match fields.public.0 == file.key.public_bytes() {
            true => Ok(file),
            false => Err(Damage::Checksum),
        }
    }

    fn checksum(&self) -> Hash {
        Hasher::new(Domain::KeyFile)
            .fixed(&self.generation.to_be_bytes())
            .fixed(&self.key.created().as_millis().to_be_bytes())
            .fixed(&self.key.public_bytes())
            .fixed(&self.key.signing_secret().0)
            .fixed(&self.key.sealing_secret().0)
            .finish()
    }
}

/// The sealing half of a key, as it travels to a process that is to open what the key seals.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SealingFields {
    v: u32,
    kind: String,
    id: KeyId,
    created: Timestamp,
    public: Hex<32>,
    sealing_secret: Secret,
    /// Over all of the above: the id does not vouch for the sealing secret.
    checksum: Hash,
}

impl SealingKey {
    pub(super) fn write(&self) -> Result<Zeroizing<Vec<u8>>, Damage> {
        let public = self.public();
        let fields = SealingFields {
            v: VERSION,
            kind: SEALING.to_owned(),
            id: self.id(),
            created: public.created(),
            public: Hex(*public.as_bytes()),
            sealing_secret: self.secret().clone(),
            checksum: self.checksum(),
        };
        write_secret(&fields)
    }

    pub(super) fn read(text: &[u8]) -> Result<Self, Damage> {
        let fields: SealingFields = read(text, SEALING)?;
        let public = PublicKey::new(&fields.public.0, fields.created, None);
        let public = public.map_err(|_| Damage::Checksum)?;
        let key = Self::new(public, fields.sealing_secret);
        fits(fields.id, key.id(), fields.checksum == key.checksum())?;
        Ok(key)
    }

    fn checksum(&self) -> Hash {
        Hasher::new(Domain::SealingFile)
            .fixed(&self.public().created().as_millis().to_be_bytes())
            .fixed(self.public().as_bytes())
            .fixed(&self.secret().0)
            .finish()
    }
}

/// A revoked key: its public half with the revocation, and its generation.
///
/// All of that is there so that the revocation stays effective when the secret is destroyed, and the
/// key before it does not become the last one again.
#[derive(Debug, Clone)]
pub(super) struct RevocationFile {
    pub(super) key: PublicKey,
    pub(super) generation: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RevocationFields {
    v: u32,
    kind: String,
    generation: u32,
    key: PublicKey,
}

impl RevocationFile {
    pub(super) fn write(self) -> Result<Vec<u8>, Damage> {
        let Self { key, generation } = self;
        let fields = RevocationFields { v: VERSION, kind: REVOCATION.to_owned(), generation, key };
        let mut text = serde_json::to_vec_pretty(&fields).map_err(|error| Damage::json(&error))?;
        text.push(b'\n');
        Ok(text)
    }

    pub(super) fn read(text: &[u8]) -> Result<Self, Damage> {
        let RevocationFields { key, generation, .. } = read(text, REVOCATION)?;
        if key.revoked().is_none() {
            return Err(Damage::NotRevoked);
        }
        Ok(Self { key, generation })
    }
}

/// Writes a file that holds secrets.
fn write_secret(fields: &impl Serialize) -> Result<Zeroizing<Vec<u8>>, Damage> {
    // Longer than any key file: a buffer that grew would leave copies of the secrets behind.
    let mut text = Zeroizing::new(Vec::with_capacity(1024));
    serde_json::to_writer_pretty(&mut *text, fields).map_err(|error| Damage::json(&error))?;
    text.push(b'\n');
    Ok(text)
}

/// Refuses a file whose id is not that of what is in it, or whose checksum does not fit.
fn fits(stated: KeyId, derived: KeyId, checksum_fits: bool) -> Result<(), Damage> {
    match (stated == derived, checksum_fits) {
        (false, _) => Err(Damage::OtherId { stated, derived }),
        (true, false) => Err(Damage::Checksum),
        (true, true) => Ok(()),
    }
}

/// Reads a file of a kind: kind and version before the rest, which another version may have other
/// members for.
fn read<'a, T: Deserialize<'a>>(text: &'a [u8], kind: &'static str) -> Result<T, Damage> {
    #[derive(Deserialize)]
    struct Preamble {
        v: u32,
        kind: String,
    }
    let preamble: Preamble = parse(text)?;
    if preamble.kind != kind {
        return Err(Damage::Kind { expected: kind });
    }
    if preamble.v != VERSION {
        return Err(Damage::Version { found: preamble.v });
    }
    parse(text)
}

fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, Damage> {
    json::stored(text).map_err(|error| Damage::json(&error))
}

/// What is wrong with a key file or a revocation file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The file stops before its end.
    #[error("it ends too early, at line {line}, column {column}")]
    Truncated {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The file is not the JSON it should be. What it is instead is not told: it may be a secret.
    #[error("it is not readable at line {line}, column {column}")]
    Unreadable {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The file is of another kind.
    #[error("its kind is not `{expected}`")]
    Kind {
        /// The kind that belongs under its name.
        expected: &'static str,
    },
    /// The file is of a version that this program does not know.
    #[error("its version {found} is not known to this program")]
    Version {
        /// The version.
        found: u32,
    },
    /// The id in the file is not that of the secret in it.
    #[error("it says that its id is {stated}, but its content has id {derived}")]
    OtherId {
        /// The id in the file.
        stated: KeyId,
        /// The id that follows from the content.
        derived: KeyId,
    },
    /// The name of the file is not the id of the key in it.
    #[error("it is named for another key than {id}, which it holds")]
    OtherName {
        /// The id of the key in it.
        id: KeyId,
    },
    /// The fields do not fit the checksum.
    #[error("its fields do not fit its checksum")]
    Checksum,
    /// A revocation file does not say when and why.
    #[error("it does not say when and why the key was revoked")]
    NotRevoked,
}

impl Damage {
    fn json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Eof => Self::Truncated { line, column },
            Category::Io | Category::Syntax | Category::Data => Self::Unreadable { line, column },
        }
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Zeroizing::new(String::with_capacity(2 * self.0.len()));
        hex::write(&self.0, &mut *text).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SecretVisitor;

        impl Visitor<'_> for SecretVisitor {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 lower-case hexadecimal digits")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Secret, E> {
                hex::read(text).map(Secret).ok_or_else(|| E::custom("not a secret"))
            }
        }

        deserializer.deserialize_str(SecretVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Revocation;
    use super::*;

    #[test]
    fn the_files_are_the_golden_ones() {
        let key = Key::from_secrets(Timestamp::from_millis(1_763_200_000_000), &[1; 32], &[2; 32]);
        let revocation = Revocation {
            at: Timestamp::from_millis(1_763_300_000_000),
            reason: "laptop lost".to_owned(),
        };
        let revoked = RevocationFile { key: key.public(Some(revocation)), generation: 1 };
        let file = KeyFile { key, generation: 1 };

        let golden = include_str!("../../tests/golden/key.json");
        assert_eq!(str::from_utf8(&file.write().unwrap()).unwrap(), golden);
        assert_eq!(KeyFile::read(golden.as_bytes()).unwrap().key.id(), file.key.id());

        let golden = include_str!("../../tests/golden/revocation.json");
        assert_eq!(str::from_utf8(&revoked.clone().write().unwrap()).unwrap(), golden);
        assert_eq!(RevocationFile::read(golden.as_bytes()).unwrap().key, revoked.key);
    }

    #[test]
    fn a_revocation_file_must_say_so() {
        let golden = include_str!("../../tests/golden/revocation.json");
        let mut value: serde_json::Value = serde_json::from_str(golden).unwrap();
        value["key"]["revoked"] = serde_json::Value::Null;
        let text = value.to_string();
        assert_eq!(RevocationFile::read(text.as_bytes()).unwrap_err(), Damage::NotRevoked);
    }
}
