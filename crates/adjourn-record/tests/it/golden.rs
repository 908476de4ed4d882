//! The committed vectors, computed again. What they mean is written beside them, in `golden/README.md`.

use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use adjourn_record::Hash;
use adjourn_record::chain::{Chain, Tip};
use adjourn_record::commit::{Head, Row};
use adjourn_record::entry::{self, Codec};
use adjourn_record::keys::Keys;
use adjourn_record::merkle::{InclusionProof, prove, root};
use adjourn_record::portable::Record;
use serde::Deserialize;

use crate::fixtures::{NOW, key, ring};

fn read<T: for<'de> Deserialize<'de>>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn leaves(count: u8) -> Vec<Hash> {
    (0..count).map(|n| Hash::from_bytes([n; 32])).collect()
}

#[test]
fn entries() {
    #[derive(Deserialize)]
    struct Vector {
        value: serde_json::Value,
        bytes: String,
    }
    for vector in read::<Vec<Vector>>(include_str!("../golden/entry.json")) {
        let written = entry::encode(Codec::Json1, &vector.value).unwrap();
        assert_eq!(written, bytes(&vector.bytes), "{}", vector.value);
        assert_eq!(entry::read::<serde_json::Value>(&written).unwrap(), vector.value);
    }
}

#[test]
fn chains() {
    #[derive(Deserialize)]
    struct Vector {
        session: SessionId,
        rows: Vec<Line>,
    }
    #[derive(Deserialize)]
    struct Line {
        revision: u64,
        entry: String,
        link: Hash,
    }
    for Vector { session, rows } in read::<Vec<Vector>>(include_str!("../golden/chain.json")) {
        let mut tip = Tip::START;
        for row in rows {
            tip = Chain { session }.extend(tip, &bytes(&row.entry));
            assert_eq!(tip, Tip { revision: row.revision, link: row.link }, "{session}");
        }
    }
}

#[test]
fn merkle_trees() {
    #[derive(Deserialize)]
    struct Vectors {
        roots: Vec<Root>,
        proofs: Vec<Proof>,
    }
    #[derive(Deserialize)]
    struct Root {
        count: u8,
        root: Hash,
    }
    #[derive(Deserialize)]
    struct Proof {
        count: u8,
        index: u64,
        path: Vec<Hash>,
    }
    let vectors: Vectors = read(include_str!("../golden/merkle.json"));
    for vector in vectors.roots {
        assert_eq!(root(leaves(vector.count)), vector.root, "{}", vector.count);
    }
    for Proof { count, index, path } in vectors.proofs {
        let proof = prove(&leaves(count), usize::try_from(index).unwrap());
        assert_eq!(proof, Some(InclusionProof { index, path }), "{index} of {count}");
    }
}

#[test]
fn commits() {
    #[derive(Deserialize)]
    struct Vector {
        leaves: Vec<Hash>,
        row: Row,
        head: Head,
    }
    let mut head = Head::START;
    for vector in read::<Vec<Vector>>(include_str!("../golden/commit.json")) {
        let tree = vector.leaves.into_iter().collect();
        let row = Row::sign(&key(1), head, &tree, vector.row.at);
        assert_eq!(row, vector.row);
        assert!(row.verify(&ring()).is_ok());
        head = row.head();
        assert_eq!(head, vector.head);
    }
}

#[test]
fn records() {
    let keys = Keys::only(key(1));
    let text = include_str!("../golden/record.json");
    let record: Record = text.parse().unwrap();
    assert_eq!(record.to_string(), text.trim_end());
    let opened = record.open(&keys, NOW, None).unwrap();
    let run = "run-019abf6b-7d51-7c1d-bb02-0123456789ac".parse().unwrap();
    assert_eq!(opened.header.run, Some(run));
    assert_eq!(opened.header.expires_at.map(Timestamp::as_millis), Some(1_763_286_400_123));
    // The payload's own escapes are characters of its text, and stay as they were sealed.
    assert!(opened.payload.contains(r#""Grüße \"park\" \ud83d\ude80""#));

    let idle: Record = include_str!("../golden/record-idle.json").parse().unwrap();
    let opened = idle.open(&keys, NOW, None).unwrap();
    assert_eq!((opened.header.run, opened.header.expires_at), (None, None));
    assert_eq!(opened.header.suspended_at.as_millis(), 1_763_200_000_123);
}
