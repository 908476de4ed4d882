//! Hosts are killed at random moments while agents park, wake, ask and call tools.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::footprint::Footprint;
use crate::life::{Manners, Temper};
use crate::oracle::Marks;
use crate::process::Process;
use crate::report::Report;
use crate::trial::Stage;

/// Agents at work at any time.
const AGENTS: u64 = 50;
/// Hosts that are killed in turn.
const HOSTS: usize = 3;
/// Sessions that each of these drives at once: so few that all of them have some.
const RUNNING: usize = 16;
/// Sessions that the host which is never killed drives at once.
const SURVIVOR_RUNNING: usize = 4;
/// How often the host that is never killed is looked at.
const LOOKS: u32 = 20;

/// Bounds of the pause between two kills, in milliseconds.
const SHORTEST_MS: u64 = 100;
const LONGEST_MS: u64 = 5000;
/// Up to this long a trial is brief.
const BRIEF: Duration = Duration::from_secs(60);
/// The longest pauses between two looks at an agent, in brief trials and in long ones.
const BRIEF_PACE_MS: u64 = 40;
const LONG_PACE_MS: u64 = 300;
/// How many connections the host that is never killed may open late, when several read at once.
const MORE_DESCRIPTORS: usize = 8;
/// By how much it may grow after its youth: the pages that its connections keep have a bound, and
/// so have the sessions it knows.
const MORE_KIB: u64 = 16 * 1024;

/// How long a crash trial is.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// At least so many kills.
    pub kills: u64,
    /// At least so long.
    pub time: Duration,
    /// The longest pause between two kills, in milliseconds.
    pub pause_ms: u64,
    /// The longest pause between two looks at an agent, in milliseconds.
    pub pace_ms: u64,
}

impl Length {
    /// Spreads so many kills over a time.
    pub fn over(kills: u64, time: Duration) -> Self {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        // Half of the longest pause on average, and never so short that nobody gets to work.
        let pause_ms = (2 * millis / kills.max(1)).clamp(SHORTEST_MS, LONGEST_MS);
        // Whoever soaks for long does not want a store of many gigabytes.
        let pace_ms = if time > BRIEF { LONG_PACE_MS } else { BRIEF_PACE_MS };
        Self { kills, time, pause_ms, pace_ms }
    }
}

/// What a crash trial came to.
pub struct Crashed {
    /// The figures, and what went wrong.
    pub report: Report,
    /// What the host that was never killed took of the machine, from its first work to the end.
    pub survivor: Vec<Footprint>,
}

impl Crashed {
    /// Says what the host that was never killed holds at the end and did not hold before.
    ///
    /// The first quarter of the trial is its youth: caches fill up to their bounds.
    pub fn leaks(&self) -> Vec<String> {
        let (young, grown) = self.survivor.split_at(self.survivor.len() / 4);
        let (Some(young), Some(grown)) = (young.last(), grown.last()) else { return Vec::new() };
        let mut leaks = Vec::new();
        if grown.descriptors > young.descriptors + MORE_DESCRIPTORS || grown.threads > young.threads
        {
            leaks.push(format!("the host that lived had {young}, and has {grown}"));
        }
        if grown.resident_kib > young.resident_kib + MORE_KIB {
            leaks.push(format!("the host that lived grew from {young} to {grown}"));
        }
        leaks
    }
}

/// Kills hosts, and sees what becomes of the agents.
///
/// # Panics
/// The trial cannot go on.
pub async fn run(directory: &Path, program: PathBuf, seed: u64, length: Length) -> Crashed {
    let mut dice = Dice::new(seed);
    let mut stage = Stage::new(directory, program);
    let mut hosts: Vec<_> = (0..HOSTS).map(|_| stage.program.host(RUNNING)).collect();
    let survivor = stage.program.host(SURVIVOR_RUNNING);
    let manners = Manners { temper: Temper::Wild, pace_ms: length.pace_ms };
    stage.people(AGENTS, manners, &mut dice);
    let (start, mut looks, mut killed) = (Instant::now(), Vec::new(), 0);
    while (killed < length.kills || start.elapsed() < length.time) && !stage.failed() {
        tokio::time::sleep(dice.millis(5, length.pause_ms)).await;
        let victim = dice.index(HOSTS);
        let next = if dice.once_in(2) { Some(stage.program.host(RUNNING)) } else { None };
        killed += u64::from(end(&stage, hosts.swap_remove(victim), &mut dice).await);
        hosts.push(next.unwrap_or_else(|| stage.program.host(RUNNING)));
        if dice.once_in(4) {
            // Somebody watches for a moment, and is killed, too.
            let watcher = stage.program.watcher();
            tokio::time::sleep(dice.millis(1, 30)).await;
            watcher.kill();
        }
        if looks.len() < due_looks(killed, start, length) {
            let look = Footprint::of(survivor.id());
            if let Some(look) = look {
                println!("{killed} kills; the host that lives: {look}");
            }
            looks.extend(look);
        }
    }
    stage.last_ones().await;
    looks.extend(Footprint::of(survivor.id()));
    hosts.push(survivor);
    for host in hosts {
        host.ask_to_end();
        let status = host.ended().await;
        if !status.success() {
            stage.note(|report| report.wrong.push(format!("a host ended with {status}")));
        }
    }
    Crashed { report: stage.reckon(Marks::AtMostOnce).await, survivor: looks }
}

/// Returns how many looks should have been taken by now.
fn due_looks(killed: u64, start: Instant, length: Length) -> usize {
    let part = |done: f64, all: f64| if all > 0.0 { (done / all).min(1.0) } else { 1.0 };
    #[expect(clippy::cast_precision_loss, reason = "a few thousand kills")]
    let kills = part(killed as f64, length.kills as f64);
    let time = part(start.elapsed().as_secs_f64(), length.time.as_secs_f64());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most LOOKS")]
    let looks = (kills.min(time) * f64::from(LOOKS)).ceil() as usize;
    looks
}

/// Ends a host in one of many ways; returns whether it was killed.
async fn end(stage: &Stage, host: Process, dice: &mut Dice) -> bool {
    let killed = match dice.below(10) {
        // While it gives its sessions back.
        0 | 1 => {
            host.ask_to_end();
            tokio::time::sleep(dice.millis(0, 60)).await;
            let killed = host.kill();
            stage.note(|report| report.mid_drain += u64::from(killed));
            killed
        }
        // While it stands still, and others may have taken what it had.
        2 => {
            host.stop().await;
            stage.note(|report| report.stops += 1);
            tokio::time::sleep(dice.millis(0, 100)).await;
            if dice.once_in(2) {
                host.go_on();
                tokio::time::sleep(dice.millis(0, 50)).await;
            }
            host.kill()
        }
        _ => host.kill(),
    };
    stage.note(|report| report.kills += u64::from(killed));
    killed
}
