//! How a host works.

use std::time::Duration;

use adjourn_core::id::SessionId;
use adjourn_store::Retention;

use crate::failures::Failures;

/// How a host works.
#[derive(Debug, Clone)]
pub struct Config {
    /// Sessions it drives at once.
    pub max_running: usize,
    /// How long calls in flight may go on when it stops.
    pub drain: Duration,
    /// Which sessions it drives.
    pub claims: Claims,
    /// What it says about itself: a JSON object, as text.
    pub about: String,
    /// How many drivers of parked and idle sessions it keeps warm.
    pub max_warm: usize,
    /// How long it keeps each of them.
    pub warm_for: Duration,
    /// What it does about steps that fail.
    pub failures: Failures,
    /// How long it lets things be kept.
    pub retention: Retention,
}

/// Which sessions a host drives, of those that it can.
///
/// Every host delivers events, wakes what is due and takes over what dead hosts have left. Driving
/// is another matter: a process that goes as soon as its own session is done would cut off the
/// calls of any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// Every session that it can drive.
    All,
    /// This session alone.
    Only(SessionId),
}

impl Default for Config {
    fn default() -> Self {
        let drain = adjourn_core::limits::GRACE;
        Self {
            max_running: 64,
            drain,
            claims: Claims::All,
            max_warm: 8,
            warm_for: Duration::from_secs(300),
            about: "{}".to_owned(),
            failures: Failures::default(),
            retention: Retention::of_hosts(),
        }
    }
}
