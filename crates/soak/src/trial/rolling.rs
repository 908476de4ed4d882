//! Hosts are replaced one after the other under load: nothing dies, so everything runs once.

use std::path::{Path, PathBuf};

use adjourn_testkit::dice::Dice;

use crate::life::{Manners, STUCK, Temper};
use crate::oracle::Marks;
use crate::report::Report;
use crate::trial::Stage;

/// Agents at work at any time.
const AGENTS: u64 = 30;
/// Hosts at any time; one of them is on its way out now and then.
const HOSTS: usize = 2;
/// Sessions that each drives at once.
const RUNNING: usize = 24;

/// The longest pause between two looks at an agent, in milliseconds.
const PACE_MS: u64 = 40;

/// Replaces hosts so many times.
///
/// # Panics
/// The trial cannot go on.
pub async fn run(directory: &Path, program: PathBuf, seed: u64, restarts: u64) -> Report {
    let mut dice = Dice::new(seed);
    let mut stage = Stage::new(directory, program);
    let mut hosts: Vec<_> = (0..HOSTS).map(|_| stage.program.host(RUNNING)).collect();
    if let Err(problem) = stage.join(&mut hosts).await {
        return Report { wrong: vec![problem], ..Report::default() };
    }
    let manners = Manners { temper: Temper::Calm, pace_ms: PACE_MS, stuck: STUCK };
    stage.people(AGENTS, manners, &mut dice);
    for _ in 0..restarts {
        tokio::time::sleep(dice.millis(20, 200)).await;
        let host = hosts.swap_remove(dice.index(HOSTS));
        let next = if dice.once_in(2) { Some(stage.program.host(RUNNING)) } else { None };
        if next.is_some() {
            tokio::time::sleep(dice.millis(0, 100)).await;
        }
        let ended_well = stage.dismiss(host).await;
        stage.note(|report| report.restarts += u64::from(ended_well));
        hosts.push(next.unwrap_or_else(|| stage.program.host(RUNNING)));
    }
    stage.last_ones().await;
    for host in hosts {
        stage.dismiss(host).await;
    }
    stage.reckon(Marks::ExactlyOnce).await
}
