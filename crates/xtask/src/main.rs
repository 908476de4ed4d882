//! The project's own tools. `make` names them.

#![expect(clippy::disallowed_methods, reason = "what it reads is of its own making")]

mod artifacts;
mod bench;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("bench") => bench::run(&arguments.collect::<Vec<_>>()),
        Some("gen-protocol-artifacts") => artifacts::write(),
        Some(bench::CHILD) => bench::child(&arguments.collect::<Vec<_>>()),
        other => bail!("no tool {other:?}; there are `bench` and `gen-protocol-artifacts`"),
    }
}
