//! What adjourn can prove: entries, hash chains, signed commits, keys and portable records.
//!
//! Proof is built in layers, and each layer is checked against the next:
//!
//! 1. An [entry] is bytes. They are hashed as stored; nothing is serialised again to check it.
//! 2. A [chain] links the entries of one log of one session, so that none can be altered,
//!    dropped, repeated, moved or borrowed from another session.
//! 3. A [commit] covers every link that one transaction wrote with one [Merkle](merkle) root
//!    and one Ed25519 signature, and names its predecessor by hash.
//! 4. A [head](commit::Head) kept outside the store shows that the whole store was not rolled back.
//!
//! [Keys](keys) sign commits and seal [portable records](portable): snapshots of a suspended session
//! that leave the store and come back through any JSON database.
//!
//! The types to know are [`chain::Chain`], which links entries, [`commit::Row`], which is signed,
//! [`keys::Keys`], which signs, and [`portable::Record`], which leaves the store.
//!
//! The crate does no I/O except for key files, reads no clock (time is handed in) and takes randomness
//! only for keys and nonces. It knows neither how sessions behave nor how rows are kept: it hashes what
//! it is given and says what does not fit.
//!
//! Every byte that is hashed or signed is laid out in `tests/golden/README.md`, with vectors.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "a test reads what it has written itself")
)]

pub mod chain;
pub mod commit;
pub mod entry;
mod hash;
mod hex;
pub mod keys;
pub mod merkle;
pub mod portable;
mod text;

pub use hash::{Hash, ParseHashError};
