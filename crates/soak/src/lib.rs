//! Trials with real processes: hosts that are killed, stopped, restarted and raced on one store.
//!
//! `make test` runs short trials, `make soak` long ones; the code is the same. A trial keeps a few
//! dozen agents at work, in hosts that are processes of their own. Its clients answer, wake,
//! suspend and race, and remember all that was acknowledged to them; the agents' tools leave a
//! mark outside of the store. At the end an oracle compares both with what the store says.
//!
//! The types to know are [`scene::Scene`], where a trial takes place, [`client::Client`], which gives
//! commands as several programs do, [`oracle::Remembered`], what was acknowledged, and
//! [`report::Report`], what came of it.
//!
//! Choices are drawn from a seed that is printed. What two processes make of them is up to the
//! machine, so a seed brings back the same load, not the same interleaving.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a trial that cannot go on should stop where it is"
)]

pub mod agent;
pub mod client;
pub mod footprint;
pub mod life;
pub mod oracle;
pub mod process;
pub mod report;
pub mod role;
pub mod scene;
pub mod story;
pub mod trial;
