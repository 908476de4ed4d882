//! Merkle trees over the links that one commit covers, shaped as in RFC 6962.
//!
//! Leaves and inner nodes are hashed under different tags, and the left part of a split is always the
//! largest full tree that fits: no leaf passes for a node, and no two lists of leaves share a root by
//! repeating the last one. Owns the tree and its proofs; must not know what the leaves are links of.

use serde::{Deserialize, Serialize};

use crate::Hash;
use crate::hash::{Domain, Hasher};

/// Full subtrees by height: one for every bit of a 64-bit count.
const HEIGHTS: usize = u64::BITS as usize;

/// A tree that grows leaf by leaf and keeps only the roots of its full subtrees.
///
/// Nothing is allocated, and `n` leaves take `2n - 1` hashes in all.
#[derive(Debug, Clone)]
pub struct Tree {
    count: u64,
    /// The root of the full subtree of `2^i` leaves is in slot `i` iff bit `i` of `count` is set.
    /// Subtrees of greater height lie further left.
    full: [Hash; HEIGHTS],
}

impl Tree {
    /// Makes a tree without leaves.
    pub const fn new() -> Self {
        Self { count: 0, full: [Hash::ZERO; HEIGHTS] }
    }

    /// Returns how many leaves there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Appends a leaf.
    pub fn push(&mut self, leaf: Hash) {
        // Adding one to a binary number: each carry joins two full subtrees of equal height.
        let mut carry = hash_leaf(leaf);
        let mut bits = self.count;
        for slot in &mut self.full {
            if bits & 1 == 0 {
                *slot = carry;
                break;
            }
            carry = hash_node(*slot, carry);
            bits >>= 1;
        }
        self.count = self.count.saturating_add(1);
    }

    /// Returns the root over all leaves so far.
    pub fn root(&self) -> Hash {
        let mut bits = self.count;
        let mut root = None;
        for slot in &self.full {
            if bits & 1 == 1 {
                root = Some(root.map_or(*slot, |right| hash_node(*slot, right)));
            }
            bits >>= 1;
        }
        root.unwrap_or_else(|| Hasher::new(Domain::Empty).finish())
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Extend<Hash> for Tree {
    fn extend<I: IntoIterator<Item = Hash>>(&mut self, leaves: I) {
        leaves.into_iter().for_each(|leaf| self.push(leaf));
    }
}

impl FromIterator<Hash> for Tree {
    fn from_iter<I: IntoIterator<Item = Hash>>(leaves: I) -> Self {
        let mut tree = Self::new();
        tree.extend(leaves);
        tree
    }
}

/// Shows that a leaf is in a tree, to somebody who knows only the tree's root and count.
///
/// The count is not part of the proof: it is signed with the root, and is taken from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionProof {
    /// The position of the leaf, from zero.
    pub index: u64,
    /// The sibling at each height, from the leaf up.
    pub path: Vec<Hash>,
}

/// Returns the root over `leaves`.
pub fn root(leaves: impl IntoIterator<Item = Hash>) -> Hash {
    leaves.into_iter().collect::<Tree>().root()
}

/// Proves that the leaf at `index` is in the tree over `leaves`; there is no proof beyond the end.
pub fn prove(leaves: &[Hash], index: usize) -> Option<InclusionProof> {
    if index >= leaves.len() {
        return None;
    }
    let mut path = Vec::new();
    let (mut leaves, mut at) = (leaves, index);
    while leaves.len() > 1 {
        // The left part is the largest power of two below the length.
        let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
        let sibling;
        if at < left.len() {
            (leaves, sibling) = (left, right);
        } else {
            at -= left.len();
            (leaves, sibling) = (right, left);
        }
        path.push(root(sibling.iter().copied()));
    }
    path.reverse();
    Some(InclusionProof { index: index as u64, path })
}

/// Tells whether `proof` shows `leaf` in the tree of `count` leaves with this `root`.
pub fn verify_inclusion(root: Hash, count: u64, leaf: Hash, proof: &InclusionProof) -> bool {
    // RFC 9162, 2.1.3.2: `at` and `last` are the positions, at the current height, of the node on the
    // path and of the rightmost node.
    let Some(mut last) = count.checked_sub(1) else { return false };
    let mut at = proof.index;
    if at > last {
        return false;
    }
    let mut node = hash_leaf(leaf);
    for sibling in &proof.path {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            node = hash_node(*sibling, node);
            // A rightmost node without a sibling at this height moves up unchanged. `at` is not zero:
            // it is odd, or equal to `last`, which is not zero.
            let lone = at.trailing_zeros();
            at >>= lone;
            last >>= lone;
        } else {
            node = hash_node(node, *sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && node == root
}

fn hash_leaf(leaf: Hash) -> Hash {
    Hasher::new(Domain::Leaf).fixed(leaf.as_bytes()).finish()
}

fn hash_node(left: Hash, right: Hash) -> Hash {
    Hasher::new(Domain::Node).fixed(left.as_bytes()).fixed(right.as_bytes()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree hash as RFC 6962 defines it, by recursion.
    fn defined(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => Hasher::new(Domain::Empty).finish(),
            [leaf] => hash_leaf(*leaf),
            _ => {
                let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                hash_node(defined(left), defined(right))
            }
        }
    }

    fn leaves(count: u8) -> Vec<Hash> {
        (0..count).map(|n| Hash::from_bytes([n; 32])).collect()
    }

    #[test]
    fn the_growing_tree_is_the_defined_one() {
        for count in 0..=130 {
            let leaves = leaves(count);
            assert_eq!(root(leaves.iter().copied()), defined(&leaves), "{count}");
        }
    }

    #[test]
    fn repeating_the_last_leaf_changes_the_root() {
        for count in 1..=40 {
            let mut leaves = leaves(count);
            let before = root(leaves.iter().copied());
            leaves.extend(leaves.last().copied());
            assert_ne!(root(leaves), before, "{count}");
        }
    }

    #[test]
    fn proofs_are_as_long_as_the_tree_is_high() {
        let leaves = leaves(40);
        let proof = prove(&leaves, 39).unwrap();
        // 40 = 32 + 8: three siblings within the eight, and the 32.
        assert_eq!(proof.path.len(), 4);
        assert_eq!(prove(&leaves, 0).unwrap().path.len(), 6);
        assert_eq!(prove(&leaves, 40), None);
        assert_eq!(prove(&[], 0), None);
    }
}
