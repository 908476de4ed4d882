//! What the tests of all crates, soak and the benchmarks share.
//!
//! - [`VirtualEnvironment`] is a clock that is moved by hand.
//! - `conformance` is the suite that every store has to pass.
//!
//! Features keep it small where little of it is needed: the tests of a crate compile what lies
//! beneath that crate, and nothing above it.

#[cfg(feature = "conformance")]
pub mod conformance;
mod environment;

pub use environment::VirtualEnvironment;
