//! The hash chain of a session's journal.
//!
//! Each entry's link covers the link before it, the session, the entry's position and its bytes as
//! stored. Owns linking and walking a chain; must not know what entries say or where rows are kept.
//!
//! # What a chain shows, and what it does not
//!
//! A chain is checked from one [`Tip`] to another, both kept outside the rows that are checked.
//! Whoever can rewrite the rows *and* the head can also recompute every link; that shows in the signed
//! [commits](crate::commit), whose leaves the links are.
//!
//! # Pruning
//!
//! Entries may be deleted from the front. The tip before the first entry that is kept is the tombstone
//! of those deleted: the chain is then checked from there instead of from [`Tip::START`]. The links of
//! deleted entries (32 bytes each) stay, because the commits that covered them also cover entries of
//! other sessions; the tombstone itself is proved by its link's place in one of those commits.

use std::fmt;

use adjourn_core::id::SessionId;
use serde::{Deserialize, Serialize};

use crate::Hash;
use crate::hash::{Domain, Hasher};

/// A place in a chain: how many entries there are up to it, and the link of the last of them.
///
/// The head of a chain and the point where it was pruned are both tips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tip {
    /// The revision of the last entry; the first entry of a chain has revision 1.
    pub revision: u64,
    /// The link of the last entry.
    pub link: Hash,
}

impl Tip {
    /// The place before the first entry.
    pub const START: Self = Self { revision: 0, link: Hash::ZERO };
}

/// One entry as a store or a bundle holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// The session that the row says it belongs to.
    pub session: SessionId,
    /// The position that the row says it has.
    pub revision: u64,
    /// The bytes of the entry.
    pub entry: &'a [u8],
    /// The link that was stored beside the entry.
    pub link: Hash,
}

/// Names one chain: the journal of a session.
///
/// What was said is in the transcript, which the entries of the journal bind by its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain {
    /// Whose journal.
    pub session: SessionId,
}

impl Chain {
    /// Names the journal of `session`.
    pub const fn journal(session: SessionId) -> Self {
        Self { session }
    }

    /// Returns the link of `entry` at `revision` after an entry whose link is `prev`.
    pub fn link(self, prev: Hash, revision: u64, entry: &[u8]) -> Hash {
        Hasher::new(Domain::Journal)
            .fixed(prev.as_bytes())
            .fixed(self.session.uuid().as_bytes())
            .fixed(&revision.to_be_bytes())
            .sized(entry)
            .finish()
    }

    /// Returns the tip after `entry` is appended at `tip`.
    #[must_use]
    pub fn extend(self, tip: Tip, entry: &[u8]) -> Tip {
        // One entry per nanosecond would take six centuries to get to the end of the count.
        let revision = tip.revision.saturating_add(1);
        Tip { revision, link: self.link(tip.link, revision, entry) }
    }

    /// Checks `rows` as all that lies between `start` and `head`.
    ///
    /// # Errors
    /// The first entry that is wrong, and how.
    pub fn verify<'a>(
        self,
        start: Tip,
        rows: impl IntoIterator<Item = Row<'a>>,
        head: Tip,
    ) -> Result<(), Broken> {
        let mut verifier = Verifier::new(self, start);
        for row in rows {
            verifier.check(&row)?;
        }
        verifier.finish(head)
    }

    fn broken(self, revision: u64, fault: Fault) -> Broken {
        Broken { chain: self, revision, fault }
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "journal of session {}", self.session)
    }
}

/// Checks a chain row by row, for rows that are borrowed from a cursor one at a time.
///
/// A chain is whole only after [`finish`](Self::finish): entries removed from its end leave rows that
/// all fit.
#[derive(Debug)]
#[must_use = "entries missing at the end are found by `finish`"]
pub struct Verifier {
    chain: Chain,
    tip: Tip,
}

impl Verifier {
    /// Starts at `start`: [`Tip::START`], or the tip up to which the chain was pruned.
    pub const fn new(chain: Chain, start: Tip) -> Self {
        Self { chain, tip: start }
    }

    /// Checks the next row.
    ///
    /// # Errors
    /// What is wrong with the row, or with its place.
    pub fn check(&mut self, row: &Row<'_>) -> Result<(), Broken> {
        let next = self.chain.extend(self.tip, row.entry);
        let broken = |revision, fault| Err(self.chain.broken(revision, fault));
        if row.session != self.chain.session {
            return broken(row.revision, Fault::Foreign { owner: row.session });
        }
        if row.revision > next.revision {
            return broken(next.revision, Fault::Missing { found: row.revision });
        }
        if row.revision < next.revision {
            return broken(row.revision, Fault::Misplaced { expected: next.revision });
        }
        if row.link != next.link {
            return broken(row.revision, Fault::Altered);
        }
        self.tip = next;
        Ok(())
    }

    /// Checks that the rows ended where `head` says.
    ///
    /// # Errors
    /// The first entry that is missing or too many, or the last one if it is not the head's.
    pub fn finish(self, head: Tip) -> Result<(), Broken> {
        let Self { chain, tip } = self;
        if tip.revision < head.revision {
            let first_missing = tip.revision.saturating_add(1);
            return Err(chain.broken(first_missing, Fault::CutOff { head: head.revision }));
        }
        if tip.revision > head.revision {
            let first_added = head.revision.saturating_add(1);
            return Err(chain.broken(first_added, Fault::Added { head: head.revision }));
        }
        if tip.link != head.link {
            return Err(chain.broken(tip.revision, Fault::OtherHead));
        }
        Ok(())
    }
}

/// The first entry of a chain that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{chain}, entry {revision}: {fault}")]
pub struct Broken {
    /// The chain that was walked.
    pub chain: Chain,
    /// The revision that is wrong.
    pub revision: u64,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It is not where it belongs: removed, or moved further back.
    #[error("it is missing; entry {found} stands in its place")]
    Missing {
        /// The revision that stands in its place.
        found: u64,
    },
    /// The rows end before it, but the head does not.
    #[error("it is missing, and so is all up to the head of the chain, which is entry {head}")]
    CutOff {
        /// The revision of the head.
        head: u64,
    },
    /// It stands where a later one belongs: repeated, or moved from further up.
    #[error("it stands where entry {expected} belongs")]
    Misplaced {
        /// The revision that belongs there.
        expected: u64,
    },
    /// The row says that it belongs to another session.
    #[error("it belongs to session {owner}")]
    Foreign {
        /// That session.
        owner: SessionId,
    },
    /// The link computed from the bytes, the session, the place and the entry before is not the one
    /// stored: the bytes or the link were altered, or come from elsewhere.
    #[error("its bytes and its place do not give the link stored beside it")]
    Altered,
    /// It comes after the head.
    #[error("it was added after the head of the chain, which is entry {head}")]
    Added {
        /// The revision of the head.
        head: u64,
    },
    /// It fits all entries before it, but is not the one that the head names.
    #[error("its link is not the one that the head of the chain names")]
    OtherHead,
}
