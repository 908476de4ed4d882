//! Everything that is served, over real HTTP on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that fails should stop where it fails"
)]

mod access;
mod agent;
mod bad_input;
mod bindings;
mod intake;
mod push;
mod push_bounds;
mod push_keys;
mod races;
mod seed;
mod slow_readers;
mod stopping;
mod waiting;
