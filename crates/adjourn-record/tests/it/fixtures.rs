//! Keys, sessions and histories that the tests share.

use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use adjourn_record::Hash;
use adjourn_record::chain::{Chain, Row, Tip};
use adjourn_record::commit::{self, Head};
use adjourn_record::keys::{Key, KeyRing};
use uuid::Uuid;

/// 2025-11-15T09:46:40Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_763_200_000_000);

/// The key of the golden vectors is `key(1)`.
pub(crate) fn key(n: u8) -> Key {
    Key::from_secrets(NOW, &[n; 32], &[n + 1; 32])
}

pub(crate) fn session(n: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(0x019a_bf6b_7d51_7c1d_bb02_0000_0000_0000 | n))
}

/// An entry with its link, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) session: SessionId,
    pub(crate) revision: u64,
    pub(crate) entry: Vec<u8>,
    pub(crate) link: Hash,
}

impl Stored {
    pub(crate) fn row(&self) -> Row<'_> {
        let Self { session, revision, entry, link } = self;
        Row { session: *session, revision: *revision, entry, link: *link }
    }
}

/// Appends `entries` to an empty chain.
pub(crate) fn store(chain: Chain, entries: &[Vec<u8>]) -> (Vec<Stored>, Tip) {
    let mut tip = Tip::START;
    let rows = entries.iter().map(|entry| {
        tip = chain.extend(tip, entry);
        Stored {
            session: chain.session,
            revision: tip.revision,
            entry: entry.clone(),
            link: tip.link,
        }
    });
    (rows.collect(), tip)
}

/// Signs one commit per list of leaves, with `key(1)` for the first half and `key(3)` from then on.
pub(crate) fn commits(transactions: &[Vec<Hash>]) -> Vec<commit::Row> {
    let mut head = Head::START;
    let sign = |(n, leaves): (usize, &Vec<Hash>)| {
        let signer = if n < transactions.len() / 2 { key(1) } else { key(3) };
        let at = Timestamp::from_millis(NOW.as_millis() + i64::try_from(n).unwrap());
        let row = commit::Row::sign(&signer, head, &leaves.iter().copied().collect(), at);
        head = row.head();
        row
    };
    transactions.iter().enumerate().map(sign).collect()
}

/// Knows both keys that [`commits`] signs with.
pub(crate) fn ring() -> KeyRing {
    [key(1).public(None), key(3).public(None)].into_iter().collect()
}

/// Returns `bytes` with one bit changed.
pub(crate) fn flip<const N: usize>(bytes: &[u8; N], bit: usize) -> [u8; N] {
    let mut flipped = *bytes;
    flipped[bit / 8 % N] ^= 1 << (bit % 8);
    flipped
}
