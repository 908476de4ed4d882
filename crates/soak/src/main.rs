//! `make soak`: the long versions of the trials, with a seed and a line that sums them up.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use adjourn_testkit::dice;
use soak::report::Report;
use soak::trial::crash::{self, Length};
use soak::trial::{pausing, reach, rolling};
use soak::{process, role};

/// Kills, if nobody says otherwise.
const KILLS: u64 = 2000;
/// Minutes of kills, if nobody says otherwise.
const MINUTES: f64 = 10.0;
/// Rolling restarts per hundred kills.
const RESTARTS_PER_HUNDRED: u64 = 5;
/// The fewest rolling restarts.
const RESTARTS: u64 = 20;
/// How long peers pause and resume one task.
const PAUSING: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let Some((first, rest)) = arguments.split_first()
        && first == role::ROLE
    {
        role::play(rest);
        return ExitCode::SUCCESS;
    }
    let Some(wanted) = Wanted::read(&arguments) else {
        eprintln!("usage: soak [--kills N] [--minutes N] [--seed N]");
        return ExitCode::from(2);
    };
    match wanted.run() {
        Ok(report) if report.is_clean() => ExitCode::SUCCESS,
        Ok(report) => {
            eprint!("{}", report.problems());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What was asked for.
struct Wanted {
    kills: u64,
    minutes: f64,
    seed: Option<u64>,
}

impl Wanted {
    fn read(arguments: &[String]) -> Option<Self> {
        let mut wanted = Self { kills: KILLS, minutes: MINUTES, seed: None };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return None };
            match name.as_str() {
                "--kills" => wanted.kills = value.parse().ok()?,
                "--minutes" => wanted.minutes = value.parse().ok()?,
                "--seed" => wanted.seed = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        Some(wanted)
    }

    fn run(&self) -> std::io::Result<Report> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let seed = self.seed.unwrap_or_else(dice::seed);
        runtime.block_on(self.trials(seed))
    }

    async fn trials(&self, seed: u64) -> std::io::Result<Report> {
        let program = process::this_program();
        let start = Instant::now();
        let directory = tempfile::tempdir()?;
        let time = Duration::try_from_secs_f64(self.minutes * 60.0).unwrap_or_default();
        let length = Length::over(self.kills, time);
        let crashed = crash::run(directory.path(), program.clone(), seed, length).await;
        let mut report = crashed.report.clone();
        report.wrong.extend(crashed.leaks());

        let directory = tempfile::tempdir()?;
        let restarts = (self.kills * RESTARTS_PER_HUNDRED / 100).max(RESTARTS);
        report.add(rolling::run(directory.path(), program.clone(), seed, restarts).await);

        let directory = tempfile::tempdir()?;
        report.add(pausing::run(directory.path(), seed, PAUSING.min(time)).await);

        let directory = tempfile::tempdir()?;
        for figure in reach::run(directory.path(), program).await {
            println!("{figure}");
            report.wrong.extend(figure.problem());
        }
        let minutes = start.elapsed().as_secs_f64() / 60.0;
        println!("soak: seed {seed}, {minutes:.1} minutes; {report}");
        Ok(report)
    }
}
