//! Hosts are killed at random moments while agents park, wake, ask and call tools.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use adjourn_testkit::dice::Dice;
use adjourn_testkit::process::Child;

use crate::footprint::Footprint;
use crate::life::{Manners, STUCK, Temper};
use crate::oracle::Marks;
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
        let (Some(young), Some(grown)) = (young.last(), grown.last()) else {
            let looks = self.survivor.len();
            return vec![format!("{looks} looks at the host that lived: too few to see a leak")];
        };
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
    hosts.push(stage.program.host(SURVIVOR_RUNNING));
    if let Err(problem) = stage.join(&mut hosts).await {
        let report = Report { wrong: vec![problem], ..Report::default() };
        return Crashed { report, survivor: Vec::new() };
    }
    let survivor = hosts.pop().expect("it was the last");
    let manners = Manners { temper: Temper::Wild, pace_ms: length.pace_ms, stuck: STUCK };
    stage.people(AGENTS, manners, &mut dice);
    let (start, mut looks, mut killed) = (Instant::now(), Vec::new(), 0);
    let mut ways = Ways::default();
    while (killed < length.kills || start.elapsed() < length.time) && !stage.failed() {
        tokio::time::sleep(dice.millis(5, length.pause_ms)).await;
        let victim = dice.index(HOSTS);
        let next = if dice.once_in(2) { Some(stage.program.host(RUNNING)) } else { None };
        let way = ways.draw(&mut dice);
        killed += u64::from(end(&stage, hosts.swap_remove(victim), way, &mut dice).await);
        hosts.push(next.unwrap_or_else(|| stage.program.host(RUNNING)));
        if dice.once_in(4) {
            // Somebody watches for a moment, and is killed, too.
            let mut watcher = stage.program.watcher();
            tokio::time::sleep(dice.millis(1, 30)).await;
            if let Err(status) = watcher.kill() {
                let problem = format!("a watcher ended by itself: {status}");
                stage.note(|report| report.wrong.push(problem));
            }
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
        stage.dismiss(host).await;
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

/// How a host is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// At once.
    Kill,
    /// While it gives its sessions back.
    InDrain,
    /// While it stands still, and others may have taken what it had.
    Stopped,
}

/// Draws ways to end hosts from a pack, so that in ten ends each way comes up as often as it
/// should.
#[derive(Default)]
struct Ways(Vec<Way>);

impl Ways {
    fn draw(&mut self, dice: &mut Dice) -> Way {
        if self.0.is_empty() {
            self.0 = vec![Way::Kill; 7];
            self.0.extend([Way::InDrain, Way::InDrain, Way::Stopped]);
        }
        self.0.swap_remove(dice.index(self.0.len()))
    }
}

/// Ends a host; returns whether it was killed. One that has ended by itself is a problem.
async fn end(stage: &Stage, mut host: Child, way: Way, dice: &mut Dice) -> bool {
    if let Some(status) = host.has_ended() {
        stage.died(status);
        return false;
    }
    match way {
        Way::Kill => {}
        Way::InDrain => {
            host.ask_to_end().await;
            tokio::time::sleep(dice.millis(0, 60)).await;
        }
        Way::Stopped => {
            host.stop();
            tokio::time::sleep(dice.millis(0, 100)).await;
            if dice.once_in(2) {
                host.go_on();
                tokio::time::sleep(dice.millis(0, 50)).await;
            }
        }
    }
    match host.kill() {
        Ok(()) => {
            stage.note(|report| {
                report.kills += 1;
                report.mid_drain += u64::from(way == Way::InDrain);
                report.stops += u64::from(way == Way::Stopped);
            });
            true
        }
        Err(status) => {
            if !may_end_so(way, status) {
                stage.died(status);
            }
            false
        }
    }
}

/// Returns whether a host may have ended like this before it was killed: one that is asked to end
/// may be quicker.
fn may_end_so(way: Way, status: ExitStatus) -> bool {
    way == Way::InDrain && status.success()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    /// A stage whose hosts are a program that ends at once.
    fn stage(directory: &Path, program: &str) -> Stage {
        Stage::new(directory, program.into())
    }

    async fn gone(stage: &Stage) -> Child {
        let mut host = stage.program.host(1);
        while host.has_ended().is_none() {
            tokio::task::yield_now().await;
        }
        host
    }

    #[tokio::test]
    async fn a_host_that_has_ended_by_itself_is_a_problem_however_it_was_to_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut dice = Dice::new(1);
        for program in ["true", "false"] {
            for way in [Way::Kill, Way::InDrain, Way::Stopped] {
                let stage = stage(directory.path(), program);
                let host = gone(&stage).await;
                assert!(!end(&stage, host, way, &mut dice).await);
                stage.note(|report| assert_eq!((report.kills, report.wrong.len()), (0, 1)));
            }
        }
    }

    #[test]
    fn a_host_may_end_before_the_kill_only_when_asked_to_and_well() {
        let [well, badly] = [0, 101 << 8].map(ExitStatus::from_raw);
        assert!(may_end_so(Way::InDrain, well));
        assert!(!may_end_so(Way::InDrain, badly));
        assert!(!may_end_so(Way::Kill, well) && !may_end_so(Way::Stopped, well));
    }

    #[tokio::test]
    async fn a_host_that_ends_before_it_is_asked_or_not_well_is_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        let ends_badly = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ends-badly.sh");
        let stages = ["true", ends_badly].map(|program| stage(directory.path(), program));
        let [early, badly] = &stages;
        assert!(!early.dismiss(gone(early).await).await);
        assert!(!badly.dismiss(badly.program.host(1)).await);
        for stage in &stages {
            stage.note(|report| assert_eq!(report.wrong.len(), 1, "{}", report.problems()));
        }
    }

    #[test]
    fn every_way_comes_up_in_ten_ends() {
        let (mut ways, mut dice) = (Ways::default(), Dice::new(7));
        for _ in 0..3 {
            let drawn: Vec<_> = (0..10).map(|_| ways.draw(&mut dice)).collect();
            let count = |way| drawn.iter().filter(|drawn| **drawn == way).count();
            assert_eq!((count(Way::Kill), count(Way::InDrain), count(Way::Stopped)), (7, 2, 1));
        }
    }

    #[test]
    fn whether_it_leaks_takes_a_few_looks() {
        let look = |kib| Footprint { descriptors: 20, resident_kib: kib, threads: 3 };
        let leaks = |looks: &[u64]| {
            let survivor = looks.iter().map(|kib| look(*kib)).collect();
            Crashed { report: Report::default(), survivor }.leaks()
        };
        assert_eq!(leaks(&[9000; 3]).len(), 1);
        assert_eq!(leaks(&[9000; 4]), Vec::<String>::new());
        assert_eq!(leaks(&[9000, 9000, 9000, 9000 + MORE_KIB + 1]).len(), 1);
    }
}
