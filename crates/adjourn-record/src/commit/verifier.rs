//! Walks the commits of a store in order.
//!
//! Owns the order of the checks, and the count of what revoked keys signed. The checks of a single row
//! belong to the row.

use std::collections::BTreeMap;

use super::{Broken, Fault, Head, Row};
use crate::keys::{KeyId, KeyRing, Revocation, Standing};

/// Checks `rows` as all commits from the first, and `known` as one of their heads if there is one.
///
/// # Errors
/// The first commit that is wrong, and how.
pub fn verify<'a>(
    ring: &KeyRing,
    rows: impl IntoIterator<Item = &'a Row>,
    known: Option<Head>,
) -> Result<Audit, Broken> {
    let mut verifier = Verifier::new(ring, Head::START, known);
    for row in rows {
        verifier.check(row)?;
    }
    verifier.finish()
}

/// Checks commits row by row.
#[derive(Debug)]
#[must_use = "a rollback is found by `finish`"]
pub struct Verifier<'r> {
    ring: &'r KeyRing,
    start: Head,
    head: Head,
    known: Option<Head>,
    marked: BTreeMap<KeyId, Marked>,
}

impl<'r> Verifier<'r> {
    /// Starts after the commit `start`, and expects to come upon `known`, a head kept elsewhere.
    pub const fn new(ring: &'r KeyRing, start: Head, known: Option<Head>) -> Self {
        Self { ring, start, head: start, known, marked: BTreeMap::new() }
    }

    /// Checks the next row: its number, its signature, what it follows, and the known head.
    ///
    /// # Errors
    /// What is wrong with the row, or with its place.
    pub fn check(&mut self, row: &Row) -> Result<Standing<'r>, Broken> {
        let expected = self.head.number.saturating_add(1);
        if row.number > expected {
            return Err(Broken { number: expected, fault: Fault::Missing { found: row.number } });
        }
        if row.number < expected {
            return Err(row.broken(Fault::Misplaced { expected }));
        }
        // The signature goes first: a row that was altered is told from one that is genuine but
        // belongs elsewhere.
        let standing = row.verify(self.ring)?;
        if row.prev != self.head.hash {
            return Err(row.broken(Fault::Unlinked));
        }
        let head = row.head();
        if let Some(known) = self.known
            && known.number == head.number
            && known != head
        {
            return Err(row.broken(Fault::Forked { known }));
        }
        if let Standing::Revoked(revocation) = standing {
            self.mark(row, revocation);
        }
        self.head = head;
        Ok(standing)
    }

    /// Checks that the known head lies among the commits, and says what was found.
    ///
    /// # Errors
    /// [`Fault::RolledBack`], [`Fault::OutOfReach`], or [`Fault::Forked`] at the start itself.
    pub fn finish(self) -> Result<Audit, Broken> {
        if let Some(known) = self.known {
            let broken = |number, fault| Err(Broken { number, fault });
            if known.number > self.head.number {
                let first_missing = self.head.number.saturating_add(1);
                return broken(first_missing, Fault::RolledBack { known });
            }
            if known.number < self.start.number {
                return broken(known.number, Fault::OutOfReach { known });
            }
            if known.number == self.start.number && known != self.start {
                return broken(known.number, Fault::Forked { known });
            }
        }
        Ok(Audit { head: self.head, marked: self.marked.into_values().collect() })
    }

    fn mark(&mut self, row: &Row, revocation: &Revocation) {
        let marked = self.marked.entry(row.key).or_insert_with(|| Marked {
            key: row.key,
            revocation: revocation.clone(),
            first: row.number,
            last: row.number,
            commits: 0,
        });
        marked.last = row.number;
        marked.commits += 1;
    }
}

/// What a walk over sound commits found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// The last commit.
    pub head: Head,
    /// What was signed with keys that have been revoked since, by key.
    pub marked: Vec<Marked>,
}

/// The commits signed with one revoked key.
///
/// Their signatures hold. Whether the key was already in wrong hands when they were made is not to be
/// seen from them: the time in a commit is the signer's own word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// The key.
    pub key: KeyId,
    /// When it was revoked, and why.
    pub revocation: Revocation,
    /// The first commit it signed.
    pub first: u64,
    /// The last commit it signed.
    pub last: u64,
    /// How many it signed.
    pub commits: u64,
}
