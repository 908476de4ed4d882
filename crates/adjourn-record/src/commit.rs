//! Commits: one row per transaction, with one root over all it wrote and one signature.
//!
//! A commit names its predecessor by the hash of its whole row, signature included, so the rows form a
//! chain of their own. Owns the row, what is signed of it, and checking the rows; must not know what
//! the leaves say or how the rows are stored.

mod verifier;

use std::fmt;
use std::str::FromStr;

use adjourn_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::hash::{Domain, Hasher};
use crate::keys::{Key, KeyId, KeyRing, Signature, SignatureError, Standing};
use crate::merkle::{self, InclusionProof, Tree};
use crate::text::serde_as_text;
use crate::{Hash, ParseHashError};

pub use verifier::{Audit, Marked, Verifier, verify};

/// One commit, as it is stored.
///
/// The leaves of `root` are the links of the journal entries that the transaction appended, in the
/// order in which it appended them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The position in the store; the first commit has number 1.
    pub number: u64,
    /// The hash of the row before this one; [`Hash::ZERO`] for the first.
    pub prev: Hash,
    /// The Merkle root over the links.
    pub root: Hash,
    /// How many links there are.
    pub count: u64,
    /// When the transaction was committed, by the clock of its host.
    pub at: Timestamp,
    /// The key that signed.
    pub key: KeyId,
    /// The signature over all fields above.
    pub signature: Signature,
}

impl Row {
    /// Signs the commit of `tree` after the commit at `prev`.
    pub fn sign(key: &Key, prev: Head, tree: &Tree, at: Timestamp) -> Self {
        let mut row = Self {
            number: prev.number.saturating_add(1),
            prev: prev.hash,
            root: tree.root(),
            count: tree.count(),
            at,
            key: key.id(),
            signature: Signature::from_bytes([0; 64]),
        };
        row.signature = key.sign(&row.message());
        row
    }

    /// Returns the hash of the row, which the next row and the head carry.
    pub fn hash(&self) -> Hash {
        Hasher::new(Domain::CommitRow)
            .sized(&self.message())
            .fixed(self.signature.as_bytes())
            .finish()
    }

    /// Returns the head of a store whose last commit this is.
    pub fn head(&self) -> Head {
        Head { number: self.number, hash: self.hash() }
    }

    /// Checks the signature.
    ///
    /// # Errors
    /// [`Fault::Signature`]: the key is not in `ring`, or did not sign this.
    pub fn verify<'r>(&self, ring: &'r KeyRing) -> Result<Standing<'r>, Broken> {
        ring.verify(self.key, &self.message(), &self.signature)
            .map_err(|error| self.broken(Fault::Signature(error)))
    }

    /// Checks that `leaves` are the links that this commit covers, all of them and in order.
    ///
    /// # Errors
    /// [`Fault::Count`] or [`Fault::Root`]. Which entry is wrong is for its chain to say.
    pub fn covers(&self, leaves: impl IntoIterator<Item = Hash>) -> Result<(), Broken> {
        let tree: Tree = leaves.into_iter().collect();
        if tree.count() != self.count {
            return Err(self.broken(Fault::Count { signed: self.count, found: tree.count() }));
        }
        if tree.root() != self.root {
            return Err(self.broken(Fault::Root));
        }
        Ok(())
    }

    /// Checks that `proof` shows the entry with this link to be covered by this commit.
    ///
    /// # Errors
    /// [`Fault::NotIncluded`].
    pub fn includes(&self, link: Hash, proof: &InclusionProof) -> Result<(), Broken> {
        if merkle::verify_inclusion(self.root, self.count, link, proof) {
            Ok(())
        } else {
            Err(self.broken(Fault::NotIncluded { link }))
        }
    }

    /// Lays out what is signed. All fields have a fixed length.
    fn message(&self) -> Vec<u8> {
        [
            Domain::Commit.tag(),
            &self.number.to_be_bytes(),
            self.prev.as_bytes(),
            self.root.as_bytes(),
            &self.count.to_be_bytes(),
            &self.at.as_millis().to_be_bytes(),
            self.key.as_bytes(),
        ]
        .concat()
    }

    fn broken(&self, fault: Fault) -> Broken {
        Broken { number: self.number, fault }
    }
}

/// The last commit of a store: a few bytes to keep elsewhere.
///
/// A store that was rolled back as a whole is consistent in itself. It shows only against a head that
/// was written down before, as the text `<number>:<hash>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head {
    /// The number of the commit.
    pub number: u64,
    /// The hash of its row.
    pub hash: Hash,
}

impl Head {
    /// The head of a store without commits.
    pub const START: Self = Self { number: 0, hash: Hash::ZERO };
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.hash)
    }
}

/// Why a text is not a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseHeadError {
    /// There is no colon.
    #[error("expected `<number>:<hash>`")]
    Shape,
    /// What stands before the colon is not a plain decimal number.
    #[error("expected a decimal number without leading zeros before the colon")]
    Number,
    /// What stands behind the colon is not a hash.
    #[error("after the colon: {0}")]
    Hash(#[from] ParseHashError),
}

impl FromStr for Head {
    type Err = ParseHeadError;

    /// Accepts exactly what `Display` writes.
    fn from_str(text: &str) -> Result<Self, ParseHeadError> {
        let (digits, hash) = text.split_once(':').ok_or(ParseHeadError::Shape)?;
        let number: u64 = digits.parse().map_err(|_| ParseHeadError::Number)?;
        if number.to_string() != digits {
            return Err(ParseHeadError::Number);
        }
        Ok(Self { number, hash: hash.parse()? })
    }
}

serde_as_text!(Head);

/// The first commit that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("commit {number}: {fault}")]
pub struct Broken {
    /// Its number.
    pub number: u64,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It is not where it belongs: removed, moved further back, or its number altered.
    #[error("it is missing; commit {found} stands in its place")]
    Missing {
        /// What stands in its place.
        found: u64,
    },
    /// It stands where a later one belongs: repeated, moved from further up, or its number altered.
    #[error("it stands where commit {expected} belongs")]
    Misplaced {
        /// The number that belongs there.
        expected: u64,
    },
    /// The signature does not hold.
    #[error(transparent)]
    Signature(SignatureError),
    /// It is validly signed, but follows another commit than the one before it.
    #[error("it does not follow the commit before it")]
    Unlinked,
    /// It covers another number of entries than were given.
    #[error("it covers {signed} entries, but {found} are there")]
    Count {
        /// The number that was signed.
        signed: u64,
        /// The number of links given.
        found: u64,
    },
    /// The links do not give its root: an entry was altered, exchanged or moved.
    #[error("its entries do not give its root")]
    Root,
    /// A proof does not show a link to be among those covered.
    #[error("the proof does not show link {link} among its entries")]
    NotIncluded {
        /// The link.
        link: Hash,
    },
    /// It is not the commit that a head kept elsewhere names.
    #[error("it is not the commit of the known head {known}")]
    Forked {
        /// The head.
        known: Head,
    },
    /// The store ends before a head kept elsewhere.
    #[error("it is missing: the store ends before the known head {known} and was rolled back")]
    RolledBack {
        /// The head.
        known: Head,
    },
    /// A head kept elsewhere lies before the first commit that was checked.
    #[error("the known head {known} lies before the commits that were checked")]
    OutOfReach {
        /// The head.
        known: Head,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_one_spelling() {
        let head = Head { number: 42, hash: Hash::from_bytes([0xab; 32]) };
        let text = head.to_string();
        assert_eq!(text, format!("42:{}", "ab".repeat(32)));
        assert_eq!(text.parse(), Ok(head));
        let hash = "ab".repeat(32);
        for (other, error) in [
            (String::new(), "expected `<number>:<hash>`"),
            (hash.clone(), "expected `<number>:<hash>`"),
            (
                format!("042:{hash}"),
                "expected a decimal number without leading zeros before the colon",
            ),
            (
                format!("+42:{hash}"),
                "expected a decimal number without leading zeros before the colon",
            ),
            (
                format!("42:{}", hash.to_uppercase()),
                "after the colon: expected 64 lower-case hexadecimal digits",
            ),
        ] {
            assert_eq!(other.parse::<Head>().unwrap_err().to_string(), error, "{other:?}");
        }
    }
}
