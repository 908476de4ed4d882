//! Commands that look at a session over time.

use std::time::Duration;

use adjourn::core::time::Timestamp;
use clap::{Args, ValueEnum};

use super::Which;
use crate::durations::duration;

#[derive(Debug, Args)]
pub struct Log {
    #[command(flatten)]
    pub which: Which,
    /// Show what was said instead
    #[arg(short, long)]
    pub transcript: bool,
    /// Go on until the session ends
    #[arg(short, long)]
    pub follow: bool,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N", value_parser = crate::settings::count)]
    pub tail: Option<usize>,
    /// Only what is younger: a duration like 10m, or a point in time like 2026-11-16T09:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<Since>,
}

/// From when on a log is shown.
#[derive(Debug, Clone, Copy)]
pub enum Since {
    /// So long before now.
    Ago(Duration),
    /// A point in time.
    At(Timestamp),
}

fn since(text: &str) -> Result<Since, String> {
    let ago = duration(text).map(Since::Ago);
    let at = || Timestamp::parse(text).map(Since::At);
    ago.or_else(|_| at()).map_err(|_| {
        "expected a duration like 10m, or a point in time like 2026-11-16T09:00:00Z".to_owned()
    })
}

#[derive(Debug, Args)]
pub struct Wait {
    #[command(flatten)]
    pub which: Which,
    /// What to wait for; one of several, with commas between them
    #[arg(
        long = "for",
        value_name = "STATE",
        value_enum,
        value_delimiter = ',',
        default_value = "idle"
    )]
    pub states: Vec<WaitFor>,
    /// How long at most [default: as long as it takes]
    #[arg(short, long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitFor {
    /// Its run is over
    Idle,
    /// It is parked
    Suspended,
    /// It has ended
    Ended,
}
