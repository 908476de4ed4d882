//! The agent, with scripted models and a clock that only moves when all wait.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod asking;
mod fixture;
