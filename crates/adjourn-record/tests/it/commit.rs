//! Any change of a commit row, and any row removed, added, swapped or spliced, is found and named.

use adjourn_core::time::Timestamp;
use adjourn_record::Hash;
use adjourn_record::commit::{self, Audit, Broken, Fault, Head, Marked, Row, Verifier};
use adjourn_record::keys::{KeyId, KeyRing, Revocation, Signature, SignatureError, Standing};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::fixtures::{NOW, commits, flip, key, ring};

fn transactions() -> impl Strategy<Value = Vec<Vec<Hash>>> {
    vec(vec(any::<[u8; 32]>().prop_map(Hash::from_bytes), 0..6), 1..8)
}

fn verify(rows: &[Row]) -> Result<Audit, Broken> {
    commit::verify(&ring(), rows, None)
}

fn fault(number: u64, fault: Fault) -> Result<Audit, Broken> {
    Err(Broken { number, fault })
}

/// Each case signs and checks a few commits, which takes milliseconds without optimisation.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 48, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn sound_commits_verify_and_cover_their_entries(transactions in transactions()) {
        let rows = commits(&transactions);
        let head = rows.last().unwrap().head();
        prop_assert_eq!(verify(&rows), Ok(Audit { head, marked: vec![] }));
        for (row, leaves) in rows.iter().zip(&transactions) {
            prop_assert_eq!(row.covers(leaves.iter().copied()), Ok(()));
            let text = serde_json::to_string(row).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Row>(&text).unwrap(), row);
        }
    }

    #[test]
    fn a_flipped_bit_is_found(transactions in transactions(), at: Index, bit: Index) {
        let rows = commits(&transactions);
        let at = at.index(rows.len());
        let row = &rows[at];
        let (number, key) = (row.number, row.key);
        let with = |altered: Row| {
            let mut rows = rows.clone();
            rows[at] = altered;
            verify(&rows)
        };
        let unsigned = fault(number, Fault::Signature(SignatureError::BadSignature { key }));
        let hash = |hash: Hash| Hash::from_bytes(flip(hash.as_bytes(), bit.index(256)));
        let one_of_64 = 1 << bit.index(64);

        prop_assert_eq!(&with(Row { prev: hash(row.prev), ..row.clone() }), &unsigned);
        prop_assert_eq!(&with(Row { root: hash(row.root), ..row.clone() }), &unsigned);
        prop_assert_eq!(&with(Row { count: row.count ^ one_of_64, ..row.clone() }), &unsigned);
        let signature = Signature::from_bytes(flip(row.signature.as_bytes(), bit.index(512)));
        prop_assert_eq!(&with(Row { signature, ..row.clone() }), &unsigned);
        let at = Timestamp::from_millis(row.at.as_millis() ^ (1 << bit.index(64)));
        prop_assert_eq!(&with(Row { at, ..row.clone() }), &unsigned);

        let key = KeyId::from_bytes(flip(row.key.as_bytes(), bit.index(128)));
        let unknown = Fault::Signature(SignatureError::UnknownKey { key });
        prop_assert_eq!(with(Row { key, ..row.clone() }), fault(number, unknown));

        let found = number ^ one_of_64;
        prop_assert_eq!(with(Row { number: found, ..row.clone() }), if found > number {
            fault(number, Fault::Missing { found })
        } else {
            fault(found, Fault::Misplaced { expected: number })
        });
    }

    #[test]
    fn a_removed_added_or_swapped_row_is_found(
        transactions in transactions(),
        one: Index,
        two: Index,
    ) {
        let rows = commits(&transactions);
        let head = rows.last().unwrap().head();
        let at = one.index(rows.len());
        let number = rows[at].number;

        let mut removed = rows.clone();
        removed.remove(at);
        if number < head.number {
            let missing = Fault::Missing { found: number + 1 };
            prop_assert_eq!(verify(&removed), fault(number, missing));
        } else {
            // Without its end a store is a sound older one: only a head kept elsewhere shows it.
            prop_assert!(verify(&removed).is_ok());
            let rolled_back = fault(number, Fault::RolledBack { known: head });
            prop_assert_eq!(commit::verify(&ring(), &removed, Some(head)), rolled_back);
        }

        let mut repeated = rows.clone();
        repeated.insert(at, rows[at].clone());
        let misplaced = Fault::Misplaced { expected: number + 1 };
        prop_assert_eq!(verify(&repeated), fault(number, misplaced));

        let other = two.index(rows.len());
        let (first, second) = (at.min(other), at.max(other));
        if first != second {
            let mut swapped = rows.clone();
            swapped.swap(first, second);
            let missing = Fault::Missing { found: rows[second].number };
            prop_assert_eq!(verify(&swapped), fault(rows[first].number, missing));
        }
    }

    #[test]
    fn a_row_of_another_store_is_found(transactions in transactions(), at: Index) {
        // Another history under the same keys: every row of it is validly signed.
        let mut others = transactions.clone();
        others[0].push(Hash::ZERO);
        let (mut rows, others) = (commits(&transactions), commits(&others));
        let at = at.index(rows.len());
        rows[at] = others[at].clone();
        let spliced = verify(&rows);
        if at > 0 {
            // Its predecessor is another.
            prop_assert_eq!(spliced, fault(rows[at].number, Fault::Unlinked));
        } else if rows.len() > 1 {
            // In the first place nothing is before it, and it is its successor that does not fit.
            prop_assert_eq!(spliced, fault(2, Fault::Unlinked));
        } else {
            let leaves = transactions[0].iter().copied();
            prop_assert!(rows[0].covers(leaves).is_err());
        }
    }

    #[test]
    fn entries_removed_added_swapped_or_altered_do_not_fit_their_commit(
        leaves in vec(any::<[u8; 32]>().prop_map(Hash::from_bytes), 2..20),
        one: Index,
        two: Index,
        bit in 0_usize..256,
    ) {
        let row = commits(std::slice::from_ref(&leaves)).remove(0);
        let signed = row.count;
        let (one, two) = (one.index(leaves.len()), two.index(leaves.len()));
        let fault = |fault| Err(Broken { number: 1, fault });

        let mut removed = leaves.clone();
        removed.remove(one);
        prop_assert_eq!(row.covers(removed), fault(Fault::Count { signed, found: signed - 1 }));
        let mut added = leaves.clone();
        added.insert(one, leaves[two]);
        prop_assert_eq!(row.covers(added), fault(Fault::Count { signed, found: signed + 1 }));
        let mut altered = leaves.clone();
        altered[one] = Hash::from_bytes(flip(altered[one].as_bytes(), bit));
        prop_assert_eq!(row.covers(altered), fault(Fault::Root));
        if one != two {
            let mut swapped = leaves.clone();
            swapped.swap(one, two);
            prop_assert_eq!(row.covers(swapped), fault(Fault::Root));
        }
    }
}

#[test]
fn a_known_head_is_found_where_it_belongs() {
    let transactions: Vec<_> = (0..5).map(|n| vec![Hash::from_bytes([n; 32])]).collect();
    let rows = commits(&transactions);
    let heads: Vec<_> = rows.iter().map(Row::head).collect();
    for known in &heads {
        assert!(commit::verify(&ring(), &rows, Some(*known)).is_ok());
    }
    assert!(commit::verify(&ring(), &rows, Some(Head::START)).is_ok());

    // A store whose end was cut off and written again, with the keys, is sound in itself.
    let mut forked = transactions;
    forked[3] = vec![];
    let forked = commits(&forked);
    assert!(verify(&forked).is_ok());
    let known = heads[4];
    assert_eq!(commit::verify(&ring(), &forked, Some(known)), fault(5, Fault::Forked { known }));
    let known = heads[3];
    assert_eq!(commit::verify(&ring(), &forked, Some(known)), fault(4, Fault::Forked { known }));
    let known = heads[2];
    assert!(commit::verify(&ring(), &forked, Some(known)).is_ok());
}

#[test]
fn commits_are_checked_from_any_head() {
    let rows = commits(&vec![vec![]; 6]);
    let ring = ring();
    let check = |start, known| {
        let mut verifier = Verifier::new(&ring, start, known);
        for row in &rows[3..] {
            verifier.check(row)?;
        }
        verifier.finish()
    };
    let start = rows[2].head();
    assert_eq!(check(start, Some(start)).unwrap().head, rows[5].head());
    let known = Head { hash: Hash::ZERO, ..start };
    assert_eq!(check(start, Some(known)), fault(3, Fault::Forked { known }));
    assert_eq!(check(known, None), fault(4, Fault::Unlinked));
    let known = rows[1].head();
    assert_eq!(check(start, Some(known)), fault(2, Fault::OutOfReach { known }));
}

#[test]
fn a_signature_of_an_unknown_key_is_told_from_a_bad_one() {
    let rows = commits(&vec![vec![]; 2]);
    let only_the_first: KeyRing = [key(1).public(None)].into_iter().collect();
    let key = key(3).id();
    let unknown = Fault::Signature(SignatureError::UnknownKey { key });
    assert_eq!(commit::verify(&only_the_first, &rows, None), fault(2, unknown));

    // Claiming another key does not give its signature.
    let mut lying = rows;
    lying[0].key = key;
    let bad = Fault::Signature(SignatureError::BadSignature { key });
    assert_eq!(commit::verify(&ring(), &lying, None), fault(1, bad));
}

#[test]
fn commits_of_a_revoked_key_hold_and_are_marked() {
    let rows = commits(&vec![vec![]; 6]);
    let revocation = Revocation { at: NOW, reason: "laptop lost".to_owned() };
    let mut ring = ring();
    ring.insert(key(3).public(Some(revocation.clone())));

    assert_eq!(rows[2].verify(&ring), Ok(Standing::Good));
    assert_eq!(rows[3].verify(&ring), Ok(Standing::Revoked(&revocation)));
    let audit = commit::verify(&ring, &rows, None).unwrap();
    let marked = Marked { key: key(3).id(), revocation, first: 4, last: 6, commits: 3 };
    assert_eq!(audit, Audit { head: rows[5].head(), marked: vec![marked] });

    // Being revoked does not excuse a wrong signature.
    let mut altered = rows;
    altered[4].count = 1;
    let bad = Fault::Signature(SignatureError::BadSignature { key: key(3).id() });
    assert_eq!(commit::verify(&ring, &altered, None), fault(5, bad));
}
