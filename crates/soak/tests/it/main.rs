//! Short trials: what `make soak` does for long, with processes that are killed for good.

use std::path::PathBuf;
use std::time::Duration;

use adjourn_testkit::dice;
use soak::report::Report;
use soak::trial::crash::{self, Length};
use soak::trial::reach::{self, Figure};
use soak::trial::{pausing, rolling};
use tempfile::TempDir;

/// The program that plays hosts and watchers.
fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_soak").into()
}

fn assert_clean(report: &Report) {
    println!("{report}");
    assert!(report.is_clean(), "{}", report.problems());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_hosts_lose_nothing_and_repeat_nothing() {
    let directory = TempDir::new().expect("a directory");
    let length = Length::over(60, Duration::from_secs(6));
    let crashed = crash::run(directory.path(), program(), dice::seed(), length).await;
    assert_clean(&crashed.report);
    assert_eq!(crashed.leaks(), Vec::<String>::new());
    let Report { kills, mid_drain, stops, takeovers, .. } = crashed.report;
    let Report { recovered, sessions, unknown, .. } = crashed.report;
    assert!(kills >= 60 && sessions >= 50, "{kills} kills, {sessions} sessions");
    // Of ten hosts two are to die in a drain, which may be over before, and one after a stop.
    assert!(stops >= 6, "{stops} stops");
    assert!(mid_drain > 0 && takeovers > 0, "{mid_drain} kills in a drain, {takeovers} takeovers");
    // Otherwise the kills came when nothing was at stake.
    assert!(recovered >= kills / 2, "{recovered} recoveries from {kills} dead hosts");
    assert!(unknown > 0, "no call was in flight at any kill");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_die_of_themselves_end_a_trial_with_a_problem() {
    let directory = TempDir::new().expect("a directory");
    let length = Length::over(60, Duration::from_secs(6));
    let dies: PathBuf = "false".into();
    let crashed = crash::run(directory.path(), dies.clone(), dice::seed(), length).await;
    let rolled = rolling::run(directory.path(), dies, dice::seed(), 20).await;
    for report in [crashed.report, rolled] {
        assert_eq!(report.wrong.len(), 1, "{}", report.problems());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_restarts_under_load_lose_nothing_and_repeat_nothing() {
    let directory = TempDir::new().expect("a directory");
    let report = rolling::run(directory.path(), program(), dice::seed(), 20).await;
    assert_clean(&report);
    assert_eq!((report.restarts, report.unknown), (20, 0));
    assert!(report.sessions >= 30, "{} sessions", report.sessions);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_that_pause_and_resume_one_task_are_answered_rightly_and_its_journal_says_so() {
    let directory = TempDir::new().expect("a directory");
    let report = pausing::run(directory.path(), dice::seed(), Duration::from_secs(3)).await;
    assert_clean(&report);
    assert!(report.acknowledged >= 100, "{} answers", report.acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_command_reaches_a_session_promptly() {
    let directory = TempDir::new().expect("a directory");
    let figures = reach::run(directory.path(), program()).await;
    for figure in &figures {
        println!("{figure}");
    }
    let problems: Vec<_> = figures.iter().filter_map(Figure::problem).collect();
    assert_eq!(problems, Vec::<String>::new());
}
