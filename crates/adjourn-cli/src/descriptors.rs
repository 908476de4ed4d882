//! How many files the process may have open, and how many of them connections may take.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many as a host may need; what a system allows beyond that is left alone.
const WANTED: u64 = 4096;
/// Kept for the store, for the locks of other hosts, and for what sessions need.
const KEPT: u64 = 48;

/// Allows this process as many open files as it can get, and returns how many connections there may
/// be, so that they never take what the host itself needs.
pub fn connections() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    let allowed = match current {
        Some(current) if current < wanted => {
            let raised = Rlimit { current: Some(wanted), maximum };
            // Where it is not allowed, there are fewer connections.
            if setrlimit(Resource::Nofile, raised).is_ok() { wanted } else { current }
        }
        Some(current) => current,
        None => WANTED,
    };
    let free = usize::try_from(allowed.saturating_sub(KEPT)).unwrap_or(usize::MAX);
    free.clamp(1, adjourn_server::CONNECTIONS)
}
