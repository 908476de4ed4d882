//! `make bench`: what the machine can do at best, and what we make of it, in the same minute.
//!
//! Every figure is taken in several rounds that take turns, and the median is kept. A figure that
//! depends on the disk stands beside the raw figure of the disk.

mod figures;
mod fsync;
mod store;

use std::path::Path;

use anyhow::{Context as _, Result};

use figures::Figures;

/// The argument that makes this program a second process of a benchmark.
pub const CHILD: &str = "bench-child";

/// How many rounds are taken of everything.
const ROUNDS: usize = 5;

/// Runs the benchmarks and writes `target/bench.json`.
pub fn run(arguments: &[String]) -> Result<()> {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let directory = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(&target)
        .with_context(|| format!("cannot make a directory in {target}"))?;
    let large = arguments.iter().any(|argument| argument == "--large");
    let mut figures = Figures::default();
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        let place = directory.path().join(format!("round-{round}"));
        std::fs::create_dir(&place)?;
        fsync::measure(&place, &mut figures)?;
        store::cycles(&place, &mut figures)?;
        store::messages(&place, &mut figures)?;
        store::foreign(&place, &mut figures)?;
    }
    store::parked(directory.path(), 10_000, "10k", &mut figures)?;
    if large {
        store::parked(directory.path(), 1_000_000, "1m", &mut figures)?;
    }
    print!("{}", figures.table());
    let json = Path::new(&target).join("bench.json");
    std::fs::write(&json, figures.json()?)?;
    eprintln!("written to {}", json.display());
    Ok(())
}

/// Runs the second process of a benchmark.
pub fn child(arguments: &[String]) -> Result<()> {
    let path = arguments.first().context("the child is told which store")?;
    store::foreign_child(Path::new(path))
}
