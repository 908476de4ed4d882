//! The program, as people and scripts use it: real processes on a real store.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod by_hand;
mod home;
mod races;
mod refusals;
mod takeover;
