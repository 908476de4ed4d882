//! `make bench`: what the machine can do at best, and what we make of it, in the same minute.
//!
//! Every figure is taken in several rounds that take turns, and the median is kept. A figure that
//! depends on the disk, the network or another process stands beside the raw figure of it.

mod a2a;
mod acp;
mod acp_runs;
mod agent;
mod child;
mod commits;
mod figures;
mod http;
mod live;
mod log;
mod ls;
mod parked;
mod peers;
mod pipe;
mod plot;
mod runs;
mod sessions;
mod storm;
mod wake;

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use figures::Figures;
use log::Log;
use parked::Parked;

/// The argument that makes this program a second process of a benchmark.
pub const CHILD: &str = "bench-child";

/// How many rounds are taken of everything.
const ROUNDS: usize = 5;
/// Sessions in the small and in the large store.
const FEW: usize = 10_000;
const MANY: usize = 1_000_000;

/// What can be measured by itself.
const PARTS: &[&str] = &[
    "runs", "acp-runs", "live", "commits", "messages", "foreign", "wake", "http", "a2a", "pipe",
    "acp", "status", "storm", "parked", "ls", "agent",
];

/// What can be left out or chosen.
struct Choice {
    /// Leaves out what needs a million sessions; its figures are then missing, not guessed.
    quick: bool,
    /// Measures only this part.
    only: Option<String>,
}

impl Choice {
    fn read(arguments: &[String]) -> Result<Self> {
        let mut choice = Self { quick: false, only: None };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => choice.quick = true,
                "--only" => choice.only = Some(part(arguments.next())?),
                other => bail!("no argument {other:?}; there are --quick and --only PART"),
            }
        }
        Ok(choice)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == part)
    }
}

/// Returns the part of the benchmarks that was named.
fn part(name: Option<&String>) -> Result<String> {
    match name.filter(|name| PARTS.contains(&name.as_str())) {
        Some(part) => Ok(part.clone()),
        None => bail!("--only takes one of {}, and not {name:?}", PARTS.join(", ")),
    }
}

/// Runs the benchmarks; writes `target/bench.json` and `target/bench.svg`.
pub fn run(arguments: &[String]) -> Result<()> {
    let choice = Choice::read(arguments)?;
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    // Gone at the end, whatever the end is.
    let directory = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(&target)
        .with_context(|| format!("cannot make a directory in {target}"))?;
    let mut figures = Figures::default();
    measure(directory.path(), &choice, &mut figures)?;
    print!("{}", figures.table());
    if choice.only.is_none() {
        let json = Path::new(&target).join("bench.json");
        let svg = Path::new(&target).join("bench.svg");
        std::fs::write(&json, figures.json()?)?;
        std::fs::write(&svg, plot::draw(&figures, &plot::Run::here()))?;
        eprintln!("written to {} and {}", json.display(), svg.display());
    }
    Ok(())
}

fn measure(place: &Path, choice: &Choice, figures: &mut Figures) -> Result<()> {
    let mut few = None;
    let mut many = None;
    let mut storm = None;
    let mut empty = None;
    let mut conversation = None;
    if choice.wants("parked") || choice.wants("status") {
        eprintln!("parking {FEW} sessions");
        empty = Some(Parked::build(&place.join("empty.db"), 0)?);
        few = Some(Parked::build(&place.join("few.db"), FEW)?);
    }
    if (choice.wants("parked") || choice.wants("ls")) && !choice.quick {
        eprintln!("parking {MANY} sessions");
        many = Some(Parked::build(&place.join("many.db"), MANY)?);
    }
    // Once, and before others are at work in the same store.
    if let Some(largest) = many.as_ref().or(few.as_ref()).filter(|_| choice.wants("parked")) {
        figures.add("disk_per_parked_bytes", largest.disk_per_session()?);
    }
    if let Some(many) = many.as_ref().filter(|_| choice.wants("ls")) {
        ls::prepare(many.path())?;
    }
    if choice.wants("storm") {
        eprintln!("parking {} sessions that are due", storm::DEADLINES);
        storm = Some(storm::prepare(&place.join("storm.db"))?);
    }
    if choice.wants("acp") {
        eprintln!("having a long conversation");
        conversation = Some(acp::prepare(&place.join("conversation.db"))?);
    }
    let log = Log::new()?;
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        // What a round writes goes with it.
        let place = tempfile::Builder::new().prefix("round-").tempdir_in(place)?;
        let place = place.path();
        if choice.wants("runs") {
            runs::measure(place, &log, figures)?;
        }
        if choice.wants("acp-runs") {
            acp_runs::measure(place, figures)?;
        }
        if choice.wants("live") {
            live::measure(place, figures)?;
        }
        if choice.wants("commits") {
            commits::alone(place, figures)?;
            commits::together(place, figures)?;
        }
        if choice.wants("messages") {
            commits::messages(place, figures)?;
        }
        if choice.wants("foreign") {
            commits::foreign(place, figures)?;
        }
        if choice.wants("wake") {
            wake::measure(place, figures)?;
        }
        if choice.wants("http") {
            http::measure(place, figures)?;
        }
        if choice.wants("a2a") {
            a2a::measure(place, figures)?;
        }
        if choice.wants("agent") {
            agent::measure(figures)?;
        }
        if choice.wants("pipe") {
            pipe::measure(figures)?;
        }
        if let Some(conversation) = &conversation {
            acp::measure(place, figures)?;
            conversation.measure(figures)?;
        }
        if let Some(few) = few.as_ref().filter(|_| choice.wants("status")) {
            few.status(figures)?;
        }
        if let Some(storm) = &storm {
            storm.measure(place, figures)?;
        }
        if let Some(many) = many.as_ref().filter(|_| choice.wants("ls")) {
            ls::measure(many.path(), figures)?;
        }
        if let (Some(empty), Some(few)) = (&empty, &few)
            && choice.wants("parked")
        {
            figures.add("restart_empty_ms", empty.restart()?);
            figures.add("restart_10k_ms", few.restart()?);
            if let Some(many) = &many {
                figures.add("restart_1m_ms", many.restart()?);
                let (few, many) = (few.resident_after_work()?, many.resident_after_work()?);
                figures.add("host_beside_10k_mb", few as f64 / 1e6);
                figures.add("host_beside_1m_mb", many as f64 / 1e6);
                let each = parked::per_session(few, many, MANY - FEW);
                figures.add("rss_per_parked_bytes_1m", each);
            }
        }
    }
    Ok(())
}

/// Runs the second process of a benchmark.
pub fn child(arguments: &[String]) -> Result<()> {
    child::run(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Choice> {
        Choice::read(&arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_part_that_is_not_there_is_refused_with_those_that_are() {
        assert!(read(&["--only", "wake"]).unwrap().wants("wake"));
        for arguments in [&["--only", "nonsense"][..], &["--only"]] {
            let refused = read(arguments).err().unwrap().to_string();
            assert!(PARTS.iter().all(|part| refused.contains(part)), "{refused}");
        }
    }

    #[test]
    fn the_page_names_all_parts() {
        let page = include_str!("../../../docs/performance.md");
        let line = page.lines().find(|line| line.contains("--only")).unwrap();
        assert!(PARTS.iter().all(|part| line.contains(&format!("`{part}`"))), "{line}");
    }
}
