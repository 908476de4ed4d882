//! The host, on a real store and with scripted agents.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod clocks;
mod declining;
mod driving;
mod fixture;
mod permissions;
mod scripts;
