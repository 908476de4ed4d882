//! Which sessions are meant, and in which order: the flags of commands that list or count them.

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn::core::conditions::EventPattern;
use adjourn::core::time::Timestamp;
use adjourn::{Cursor, Filter, NotACursor, ReasonPattern, StateKind};
use clap::{Args, ValueEnum};

use crate::durations::duration;
use crate::failure::Failure;
use crate::place::Place;

/// The heading of the flags that say which sessions are meant.
const WHICH: &str = "Which sessions";

#[derive(Debug, Args)]
pub struct Ls {
    #[command(flatten)]
    pub wanted: Wanted,
    /// Those that have ended, too; --json always lists them
    #[arg(short, long, conflicts_with = "states")]
    pub all: bool,
    /// In which order [default: oldest; stalest with --older-than]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub sort: Option<Order>,
    /// At most so many; the cursor to go on with comes last
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        value_parser = crate::settings::count,
        allow_negative_numbers = true
    )]
    pub limit: Option<usize>,
    /// Those behind the cursor that a list before this one ended with
    #[arg(long, value_name = "CURSOR", value_parser = cursor)]
    pub after: Option<Cursor>,
}

fn cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|error: NotACursor| error.to_string())
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Order {
    /// Made first
    Oldest,
    /// Made last
    Newest,
    /// With nothing that happened to them for the longest time
    Stalest,
    /// With something that happened to them last
    Freshest,
}

#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    pub wanted: Wanted,
}

/// Which sessions are meant: those for which everything holds that is given.
#[derive(Debug, Default, Args)]
pub struct Wanted {
    /// In one of these states, with commas between them
    #[arg(
        long = "state",
        value_name = "STATE",
        value_enum,
        value_delimiter = ',',
        help_heading = WHICH
    )]
    pub states: Vec<InState>,
    /// With this label; with all of them, if it is given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label, help_heading = WHICH)]
    pub labels: Vec<(String, String)>,
    /// Run by this agent: `native` (a model), `script`, or the name of a driver
    #[arg(long, value_name = "NAME", help_heading = WHICH)]
    pub agent: Option<String>,
    /// Waiting for such events: NAME or NAME:SUBJECT, with * and ** except in the name's first part
    #[arg(long, value_name = "PATTERN", value_parser = pattern, help_heading = WHICH)]
    pub waiting_for: Option<EventPattern>,
    /// With nothing that happened to them for this long: 90s, 30m, 1h30m, 2d
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = age,
        allow_hyphen_values = true,
        help_heading = WHICH
    )]
    pub older_than: Option<Duration>,
    /// Paused for this reason: all of it, or its beginning and a *
    #[arg(long, value_name = "TEXT", help_heading = WHICH)]
    pub reason: Option<String>,
    /// Working in this directory
    #[arg(long, value_name = "PATH", help_heading = WHICH)]
    pub cwd: Option<String>,
    /// Made on behalf of this session
    #[arg(long, value_name = "SESSION", help_heading = WHICH)]
    pub parent: Option<String>,
    /// Owned by this tenant [default: all of them]
    #[arg(long, value_name = "NAME", help_heading = WHICH)]
    pub tenant: Option<String>,
}

/// A state that one can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InState {
    /// Without a run
    Idle,
    /// With work to do, and no host at it yet
    Ready,
    /// Run by a host
    Running,
    /// About to rest
    Quiescing,
    /// Parked, also with a question
    Suspended,
    /// Parked with a question
    Asking,
    /// Over
    Ended,
}

impl InState {
    const fn kind(self) -> StateKind {
        match self {
            Self::Idle => StateKind::Idle,
            Self::Ready => StateKind::Ready,
            Self::Running => StateKind::Running,
            Self::Quiescing => StateKind::Quiescing,
            Self::Suspended => StateKind::Suspended,
            Self::Asking => StateKind::Asking,
            Self::Ended => StateKind::Ended,
        }
    }
}

impl Wanted {
    /// Returns whether anything is asked for.
    pub fn is_anything(&self) -> bool {
        let Self { states, labels, agent, waiting_for, older_than, reason, cwd, parent, tenant } =
            self;
        states.is_empty()
            && labels.is_empty()
            && waiting_for.is_none()
            && older_than.is_none()
            && [agent, reason, cwd, parent, tenant].iter().all(|text| text.is_none())
    }

    /// Returns what the store is asked for.
    pub async fn filter(&self, place: &Place) -> Result<Filter, Failure> {
        let Self { states, agent, waiting_for, older_than, reason, cwd, tenant, .. } = self;
        let parent = match &self.parent {
            Some(parent) => Some(place.find(parent).await?),
            None => None,
        };
        Ok(Filter {
            states: states.iter().map(|state| state.kind()).collect(),
            tenant: tenant.clone(),
            labels: unlike(&self.labels)?,
            agent: agent.clone(),
            cwd: cwd.as_deref().map(absolute).transpose()?,
            parent,
            reason: reason.clone().map(ReasonPattern::new),
            waiting_for: waiting_for.clone(),
            unchanged_since: older_than.map(|age| before(place.clock.now(), age)),
            prompted: false,
        })
    }
}

/// Returns the labels by their keys; two values of one key are a slip.
pub fn unlike(labels: &[(String, String)]) -> Result<BTreeMap<String, String>, Failure> {
    let mut unlike = BTreeMap::new();
    for (key, value) in labels {
        if unlike.insert(key.clone(), value.clone()).is_some_and(|before| before != *value) {
            let message = format!("--label: {key} is given two values, and a session has one");
            return Err(Failure::usage(message));
        }
    }
    Ok(unlike)
}

/// Reads a label.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

/// Reads how long ago something is.
fn age(text: &str) -> Result<Duration, String> {
    if text.trim_start().starts_with('-') {
        return Err("expected how long ago, like 90s or 2d".to_owned());
    }
    duration(text)
}

fn pattern(text: &str) -> Result<EventPattern, String> {
    text.parse().map_err(|error: adjourn::core::conditions::Invalid| {
        // What was given is told beside it.
        error.problem.split(", got ").next().unwrap_or_default().to_owned()
    })
}

/// Returns a directory as it is from the root on.
fn absolute(path: &str) -> Result<String, Failure> {
    let absolute = std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("--cwd: {error}, not {path:?}")))?;
    Ok(absolute.to_string_lossy().into_owned())
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(age))
}
