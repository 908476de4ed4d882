//! What the tests of all crates, soak and the benchmarks share.
//!
//! The four types to know are [`VirtualClock`], `host::Fixture`, `acp::Process` and `home::Home`: most
//! tests need one of them, and a test of a store [`store::Fixture`].
//!
//! - [`VirtualClock`] stands still until it is moved.
//! - [`store::Fixture`] is a store in a directory that goes away.
//! - `host::Fixture` has hosts on such a store that come and go.
//! - `acp::Process` has a host and ACP clients over streams in memory, of both versions.
//! - `home::Home` runs the program as a user with a home of its own, `editor::Editor` speaks ACP
//!   with it over a pipe, and `process::Process` is any process that is spoken with in lines;
//!   `process::Child` is one that is only started, signalled and killed, as those of `soak` are.
//! - [`dice::Dice`] makes random choices that can be had again.
//! - `http` has an HTTP client that blocks and one that is awaited, `log` what a test's own thread logs.
//! - `provider::Server` stands for a provider of models.
//! - `conformance` is the suite that every store has to pass.
//! - `scenarios::Played` plays a scenario through the verbs of the library.
//!
//! Features keep it small where little of it is needed: the tests of a crate compile what lies
//! beneath that crate, and nothing above it.

#[cfg(feature = "acp")]
pub mod acp;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod dice;
#[cfg(feature = "program")]
pub mod editor;
#[cfg(feature = "program")]
pub mod home;
#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "log")]
pub mod log;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "provider")]
pub mod provider;
#[cfg(feature = "http")]
pub mod receiver;
#[cfg(feature = "scenarios")]
pub mod scenarios;
pub mod store;

use std::time::Duration;

pub use clock::VirtualClock;

/// How long something may take that should take no time.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits, on the real clock, until something is so.
///
/// # Panics
/// It is not so for long.
#[cfg(feature = "host")]
pub async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is() {
        // On a busy machine, processes take long to start and to end.
        assert!(start.elapsed() < PATIENCE * 2, "never {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
