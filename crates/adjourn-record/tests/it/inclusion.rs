//! Inclusion proofs of every size up to 40, and every way of bending one.

use adjourn_core::time::Timestamp;
use adjourn_record::Hash;
use adjourn_record::commit::{Broken, Fault, Head, Row};
use adjourn_record::merkle::{InclusionProof, prove, root, verify_inclusion};

use crate::fixtures::{flip, key};

fn leaves(count: u8) -> Vec<Hash> {
    (0..count).map(|n| Hash::from_bytes([n; 32])).collect()
}

#[test]
fn every_leaf_of_every_size_is_proved_and_no_bent_proof_holds() {
    for count in 1..=40 {
        let leaves = leaves(count);
        let root = root(leaves.iter().copied());
        let count = u64::from(count);
        let holds = |leaf, proof: &InclusionProof| verify_inclusion(root, count, leaf, proof);
        for (index, leaf) in leaves.iter().enumerate() {
            let proof = prove(&leaves, index).unwrap();
            assert!(holds(*leaf, &proof), "{index} of {count}");

            for other in (0..count + 2).filter(|other| *other != proof.index) {
                let moved = InclusionProof { index: other, ..proof.clone() };
                assert!(!holds(*leaf, &moved), "{index} as {other} of {count}");
            }
            for other in leaves.iter().filter(|other| *other != leaf) {
                assert!(!holds(*other, &proof), "{index} of {count}");
            }
            for step in 0..proof.path.len() {
                let mut bent = proof.clone();
                bent.path[step] = Hash::from_bytes(flip(bent.path[step].as_bytes(), step * 29));
                assert!(!holds(*leaf, &bent), "{index} of {count}, step {step}");
                let mut shorter = proof.clone();
                shorter.path.remove(step);
                assert!(!holds(*leaf, &shorter), "{index} of {count}, without step {step}");
                let mut longer = proof.clone();
                longer.path.insert(step, *leaf);
                assert!(!holds(*leaf, &longer), "{index} of {count}, one more at {step}");
            }
            let mut longer = proof.clone();
            longer.path.push(root);
            assert!(!holds(*leaf, &longer), "{index} of {count}, one more at the end");
            let other_root = Hash::from_bytes(flip(root.as_bytes(), index));
            assert!(!verify_inclusion(other_root, count, *leaf, &proof));
        }
    }
}

#[test]
fn nothing_is_in_an_empty_tree() {
    let proof = InclusionProof { index: 0, path: vec![] };
    let empty = root([]);
    assert!(!verify_inclusion(empty, 0, empty, &proof));
    assert!(!verify_inclusion(empty, 0, Hash::ZERO, &proof));
}

#[test]
fn an_inner_node_does_not_pass_for_a_leaf() {
    let four = leaves(4);
    let over_four = root(four.iter().copied());
    let halves = [root(four[..2].iter().copied()), root(four[2..].iter().copied())];
    assert_ne!(root(halves), over_four);
    let proof = prove(&halves, 0).unwrap();
    assert!(!verify_inclusion(over_four, 2, halves[0], &proof));
    assert!(!verify_inclusion(over_four, 4, halves[0], &proof));
}

#[test]
fn huge_claims_are_refused_without_harm() {
    let leaf = Hash::from_bytes([7; 32]);
    for length in [0, 1, 63, 64, 65, 1000] {
        for (index, count) in [(0, u64::MAX), (u64::MAX, u64::MAX), (u64::MAX - 1, u64::MAX)] {
            let proof = InclusionProof { index, path: vec![leaf; length] };
            assert!(!verify_inclusion(leaf, count, leaf, &proof));
        }
    }
}

#[test]
fn a_commit_vouches_for_its_entries_one_by_one() {
    let leaves = leaves(11);
    let tree = leaves.iter().copied().collect();
    let row = Row::sign(&key(1), Head::START, &tree, Timestamp::default());
    let proof = prove(&leaves, 7).unwrap();
    let text = serde_json::to_string(&proof).unwrap();
    let proof: InclusionProof = serde_json::from_str(&text).unwrap();
    assert_eq!(row.includes(leaves[7], &proof), Ok(()));
    let link = leaves[8];
    let not_included = Broken { number: 1, fault: Fault::NotIncluded { link } };
    assert_eq!(row.includes(link, &proof), Err(not_included));
}
