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
    /// When the time began that is not counted yet, while a call runs.
    since: Duration,
    /// What was counted and not handed out.
    counted: Duration,
}

impl Measured {
    /// Counts the time up to now.
    fn count(&mut self, now: Duration) {
        if self.running > 0 {
            self.counted += now.saturating_sub(self.since);
        }
        self.since = now;
    }
}

impl ActiveTime {
    /// Takes note that a call runs, until what is returned is dropped.
    pub(super) fn begin(&self, clock: Arc<dyn Clock>) -> Running {
        let mut measured = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        measured.count(clock.elapsed());
        measured.running += 1;
        drop(measured);
        Running { time: self.clone(), clock }
    }
}

/// A call that runs.
pub(super) struct Running {
    time: ActiveTime,
    clock: Arc<dyn Clock>,
}

impl Running {
    /// Returns how many milliseconds calls have run since this was last asked, of this call or of
    /// another one.
    pub(super) fn take_millis(&self) -> u64 {
        let mut measured = self.time.0.lock().unwrap_or_else(PoisonError::into_inner);
        measured.count(self.clock.elapsed());
        let millis = u64::try_from(measured.counted.as_millis()).unwrap_or(u64::MAX);
        // Parts of a millisecond count with the next call.
        measured.counted = measured.counted.saturating_sub(Duration::from_millis(millis));
        millis
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut measured = self.time.0.lock().unwrap_or_else(PoisonError::into_inner);
        measured.count(self.clock.elapsed());
        measured.running = measured.running.saturating_sub(1);
    }
}
