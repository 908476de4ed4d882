//! How a host works.

use std::time::Duration;

use adjourn_core::id::SessionId;

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
}

/// Which sessions a host drives, of those that it can.
///
/// Every host delivers events, wakes what is due and takes over what dead hosts have left. Driving
/// is another matter: a process that goes as soon as its own session is done would cut off the
/// calls of any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// All of them.
    All,
    /// This one.
    Only(SessionId),
}

impl Default for Config {
    fn default() -> Self {
        let drain = adjourn_core::limits::GRACE;
        Self { max_running: 64, drain, claims: Claims::All, about: "{}".to_owned() }
    }
}
