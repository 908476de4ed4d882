//! The agent, with scripted models and a clock that only moves when all wait.
//!
//! Tests whose names begin with `agt` show a line of the guide to suspending and resuming, those
//! that begin with `defect` that a known defect of such libraries is not here; `docs/agent.md` has
//! the tables.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod asking;
mod cancelling;
mod conformance;
mod defects;
mod directory;
mod engine;
mod events;
mod examples;
mod fixture;
mod guardrails;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "models")]
mod models;
mod naming;
mod properties;
mod records;
mod recovery;
mod resuming;
mod tools;
