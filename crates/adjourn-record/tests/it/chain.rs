//! Invariant 6 for entries: any flipped, missing, added, moved or borrowed one is found and named.

use adjourn_record::Hash;
use adjourn_record::chain::{Broken, Chain, Fault, Tip};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::fixtures::{Stored, commits, flip, ring, session, store};

/// Entries that differ from each other, so that exchanging two changes something.
fn entries() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 0..40), 1..12).prop_map(|mut entries| {
        for (n, entry) in (0..).zip(&mut entries) {
            entry.insert(0, n);
        }
        entries
    })
}

fn journal() -> Chain {
    Chain::journal(session(1))
}

fn verify(rows: &[Stored], head: Tip) -> Result<(), Broken> {
    journal().verify(Tip::START, rows.iter().map(Stored::row), head)
}

fn broken(revision: u64, fault: Fault) -> Result<(), Broken> {
    Err(Broken { chain: journal(), revision, fault })
}

proptest! {
    #[test]
    fn a_sound_chain_verifies_whole_and_from_any_tombstone(entries in entries()) {
        let (rows, head) = store(journal(), &entries);
        prop_assert_eq!(verify(&rows, head), Ok(()));
        for (pruned, last) in (1..).zip(&rows) {
            let tombstone = Tip { revision: last.revision, link: last.link };
            let kept = rows[pruned..].iter().map(Stored::row);
            prop_assert_eq!(journal().verify(tombstone, kept, head), Ok(()));
        }
    }

    #[test]
    fn a_flipped_bit_is_found(entries in entries(), at: Index, bit: Index) {
        let (rows, head) = store(journal(), &entries);
        let at = at.index(rows.len());
        let revision = rows[at].revision;

        let mut altered = rows.clone();
        let bit_of_entry = bit.index(altered[at].entry.len() * 8);
        altered[at].entry[bit_of_entry / 8] ^= 1 << (bit_of_entry % 8);
        prop_assert_eq!(verify(&altered, head), broken(revision, Fault::Altered));

        let mut altered = rows.clone();
        altered[at].link = Hash::from_bytes(flip(rows[at].link.as_bytes(), bit.index(256)));
        prop_assert_eq!(verify(&altered, head), broken(revision, Fault::Altered));

        let mut altered = rows.clone();
        altered[at].revision ^= 1 << bit.index(64);
        let found = altered[at].revision;
        prop_assert_eq!(verify(&altered, head), if found > revision {
            broken(revision, Fault::Missing { found })
        } else {
            broken(found, Fault::Misplaced { expected: revision })
        });

        let other = Tip { link: Hash::from_bytes(flip(head.link.as_bytes(), bit.index(256))), ..head };
        prop_assert_eq!(verify(&rows, other), broken(head.revision, Fault::OtherHead));
    }

    #[test]
    fn a_shortened_or_lengthened_entry_is_found(entries in entries(), at: Index) {
        let (rows, head) = store(journal(), &entries);
        let at = at.index(rows.len());
        let mut altered = rows.clone();
        altered[at].entry.push(0);
        prop_assert_eq!(verify(&altered, head), broken(rows[at].revision, Fault::Altered));
        altered[at].entry.truncate(rows[at].entry.len() - 1);
        prop_assert_eq!(verify(&altered, head), broken(rows[at].revision, Fault::Altered));
    }

    #[test]
    fn a_removed_entry_is_found(entries in entries(), at: Index) {
        let (mut rows, head) = store(journal(), &entries);
        let removed = rows.remove(at.index(rows.len())).revision;
        let cut_off = Fault::CutOff { head: head.revision };
        prop_assert_eq!(verify(&rows, head), if removed < head.revision {
            broken(removed, Fault::Missing { found: removed + 1 })
        } else {
            broken(removed, cut_off.clone())
        });

        // Closing the gap by renumbering does not help.
        for (revision, row) in (1..).zip(&mut rows) {
            row.revision = revision;
        }
        prop_assert_eq!(verify(&rows, head), if removed < head.revision {
            broken(removed, Fault::Altered)
        } else {
            broken(removed, cut_off)
        });
    }

    #[test]
    fn an_added_entry_is_found(entries in entries(), at: Index) {
        let (rows, head) = store(journal(), &entries);

        let mut repeated = rows.clone();
        let at = at.index(rows.len());
        repeated.insert(at, rows[at].clone());
        prop_assert_eq!(
            verify(&repeated, head),
            broken(rows[at].revision, Fault::Misplaced { expected: rows[at].revision + 1 })
        );

        // Renumbered, the one after the original no longer follows its predecessor.
        for (revision, row) in (1..).zip(&mut repeated) {
            row.revision = revision;
        }
        prop_assert_eq!(verify(&repeated, head), broken(rows[at].revision + 1, Fault::Altered));

        // Properly linked at the end, it lies behind the head.
        let appended = [entries.clone(), vec![b"more".to_vec()]].concat();
        let (longer, _) = store(journal(), &appended);
        let fault = Fault::Added { head: head.revision };
        prop_assert_eq!(verify(&longer, head), broken(head.revision + 1, fault));
    }

    #[test]
    fn swapped_entries_are_found(entries in entries(), one: Index, two: Index) {
        let (rows, head) = store(journal(), &entries);
        let (one, two) = (one.index(rows.len()), two.index(rows.len()));
        let (one, two) = (one.min(two), one.max(two));
        prop_assume!(one != two);
        let first = rows[one].revision;

        let mut swapped = rows.clone();
        swapped.swap(one, two);
        let fault = Fault::Missing { found: rows[two].revision };
        prop_assert_eq!(verify(&swapped, head), broken(first, fault));

        // With the numbers left where they were, and with the links as well.
        (swapped[one].revision, swapped[two].revision) = (rows[one].revision, rows[two].revision);
        prop_assert_eq!(verify(&swapped, head), broken(first, Fault::Altered));
        (swapped[one].link, swapped[two].link) = (rows[one].link, rows[two].link);
        prop_assert_eq!(verify(&swapped, head), broken(first, Fault::Altered));
    }

    #[test]
    fn a_spliced_entry_is_found(entries in entries(), at: Index) {
        let (rows, head) = store(journal(), &entries);
        let at = at.index(rows.len());
        let revision = rows[at].revision;

        // The same entries in another session.
        let (foreign, foreign_head) = store(Chain::journal(session(2)), &entries);

        let mut spliced = rows.clone();
        spliced[at] = foreign[at].clone();
        let owner = session(2);
        prop_assert_eq!(verify(&spliced, head), broken(revision, Fault::Foreign { owner }));
        spliced[at].session = session(1);
        prop_assert_eq!(verify(&spliced, head), broken(revision, Fault::Altered));

        // A whole chain, head and all, does not pass for that of another session.
        let mut relabelled = foreign;
        relabelled.iter_mut().for_each(|row| row.session = session(1));
        prop_assert_eq!(verify(&relabelled, foreign_head), broken(1, Fault::Altered));
    }

    #[test]
    fn a_rewritten_chain_is_found_by_the_commit_that_covered_it(
        entries in entries(),
        at: Index,
        bit: Index,
    ) {
        let (rows, _) = store(journal(), &entries);
        let transactions: Vec<_> = rows.chunks(2).map(|two| {
            two.iter().map(|row| row.link).collect::<Vec<_>>()
        }).collect();
        let commits = commits(&transactions);

        // Whoever alters an entry can compute all links and the head again, but cannot sign.
        let mut entries = entries;
        let at = at.index(entries.len());
        let bit = bit.index(entries[at].len() * 8);
        entries[at][bit / 8] ^= 1 << (bit % 8);
        let (rewritten, head) = store(journal(), &entries);
        prop_assert_eq!(verify(&rewritten, head), Ok(()));

        let mut found = None;
        for (commit, rows) in commits.iter().zip(rewritten.chunks(2)) {
            prop_assert!(commit.verify(&ring()).is_ok());
            if let Err(error) = commit.covers(rows.iter().map(|row| row.link)) {
                found = found.or(Some(error.number));
            }
        }
        prop_assert_eq!(found, Some(at as u64 / 2 + 1));
    }
}

#[test]
fn a_wrong_tombstone_is_found() {
    let entries: Vec<_> = (0..6).map(|n| vec![n]).collect();
    let (rows, head) = store(journal(), &entries);
    let kept = || rows[3..].iter().map(Stored::row);
    let right = Tip { revision: 3, link: rows[2].link };
    assert_eq!(journal().verify(right, kept(), head), Ok(()));

    let wrong = Tip { link: rows[1].link, ..right };
    assert_eq!(journal().verify(wrong, kept(), head), broken(4, Fault::Altered));
    let early = Tip { revision: 2, link: rows[1].link };
    let missing = Fault::Missing { found: 4 };
    assert_eq!(journal().verify(early, kept(), head), broken(3, missing));
    let late = Tip { revision: 4, link: rows[3].link };
    let misplaced = Fault::Misplaced { expected: 5 };
    assert_eq!(journal().verify(late, kept(), head), broken(4, misplaced));
}

#[test]
fn a_pruned_chain_ends_in_its_tombstone() {
    let (rows, head) = store(journal(), &[b"one".to_vec(), b"two".to_vec()]);
    assert_eq!(journal().verify(head, [], head), Ok(()));
    let fault = Fault::CutOff { head: 2 };
    assert_eq!(journal().verify(Tip::START, [], head), broken(1, fault));
    assert_eq!(journal().verify(Tip::START, [], Tip::START), Ok(()));
    let added = Fault::Added { head: 0 };
    assert_eq!(verify(&rows, Tip::START), broken(1, added));
}
