//! A2A without sockets: what peers are told of sessions on a real store.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails should stop where it fails"
)]

mod awaiting;
mod bounds;
mod chunks;
mod contexts;
mod log;
mod patience;
mod peer;
mod races;
mod refusals;
mod retries;
mod seed;
mod streams;
mod tasks;
mod tunnel;
