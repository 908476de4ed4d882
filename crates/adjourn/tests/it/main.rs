//! The program, as people and scripts use it: real processes on a real store.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod acp;
mod by_hand;
mod conformance;
mod generated;
mod home;
mod races;
mod refusals;
mod settings;
mod takeover;
