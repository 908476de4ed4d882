//! How long tools run: calls that run beside one another count once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;

/// Measures how long at least one call runs.
#[derive(Debug, Clone, Default)]
pub(super) struct ActiveTime(Arc<Mutex<Measured>>);

#[derive(Debug, Default)]
struct Measured {
    running: u32,
    since: Duration,
    total: Duration,
}

impl ActiveTime {
    /// Takes note that a call runs, until what is returned is dropped.
    pub(super) fn begin(&self, clock: Arc<dyn Clock>) -> Running {
        let now = clock.elapsed();
        let mut measured = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if measured.running == 0 {
            measured.since = now;
        }
        measured.running += 1;
        Running { time: self.clone(), clock }
    }

    /// Returns how long calls have run since this was asked last.
    pub(super) fn take(&self) -> Duration {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).total)
    }
}

/// A call that runs.
pub(super) struct Running {
    time: ActiveTime,
    clock: Arc<dyn Clock>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = self.clock.elapsed();
        let mut measured = self.time.0.lock().unwrap_or_else(PoisonError::into_inner);
        measured.running = measured.running.saturating_sub(1);
        if measured.running == 0 {
            let since = measured.since;
            measured.total += now.saturating_sub(since);
        }
    }
}
