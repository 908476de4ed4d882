//! The project's own tools. `make` names them: [`bench::run`] measures, [`artifacts::write`] writes
//! the shapes of the protocol in `spec/`, from the types that read them.
//!
//! Each file of `bench/` is one part: it starts processes of its own, or works through the library as
//! a program does that embeds it. The types to know there are
//! - `bench::figures::Figures`, what was measured, round by round, and its medians;
//! - `bench::parked::Parked`, a store with many sessions at rest, as operators have it;
//! - `bench::acp::Conversation`, a session with a long past;
//! - `bench::acp_runs::Sessions`, an editor with sessions that run all at once.

mod artifacts;
mod bench;

use anyhow::{Result, bail};

/// The one of the program, so that what is measured in this process is measured as there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("bench") => bench::run(&arguments.collect::<Vec<_>>()),
        Some("gen-protocol-artifacts") => artifacts::write(),
        Some(bench::CHILD) => bench::child(&arguments.collect::<Vec<_>>()),
        other => bail!("no tool {other:?}; there are `bench` and `gen-protocol-artifacts`"),
    }
}
