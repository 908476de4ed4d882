//! Time, as an agent sees it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use adjourn_core::time::Timestamp;
use adjourn_driver::BoxFuture;

/// A clock: the wall's for what records say, and one that cannot be set for how long things take.
pub trait Clock: Send + Sync + 'static {
    /// Returns the time of the day.
    fn now(&self) -> Timestamp;

    /// Returns how much time has passed since some moment, however the wall clock was set.
    fn elapsed(&self) -> Duration;

    /// Waits until that much time has passed.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's own clock; it sleeps by tokio's timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Before 1970 there were no agents.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that stands still while a consumer of events keeps the agent waiting, so that a slow
/// consumer uses up neither a limit nor a time-out.
#[derive(Clone)]
pub(crate) struct WorkClock {
    clock: Arc<dyn Clock>,
    idle: Arc<Mutex<Idle>>,
}

#[derive(Debug, Default)]
struct Idle {
    total: Duration,
    since: Option<Duration>,
}

impl WorkClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, idle: Arc::default() }
    }

    /// Stops the clock: an event was handed out.
    pub(crate) fn stop(&self) {
        let now = self.clock.elapsed();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).since.get_or_insert(now);
    }

    /// Lets the clock go on: the consumer wants the next event.
    pub(crate) fn go_on(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = idle.since.take() {
            idle.total += self.clock.elapsed().saturating_sub(since);
        }
    }
}

impl Clock for WorkClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn elapsed(&self) -> Duration {
        let total = self.idle.lock().unwrap_or_else(PoisonError::into_inner).total;
        self.clock.elapsed().saturating_sub(total)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        Box::pin(async move {
            let until = clock.elapsed().saturating_add(duration);
            loop {
                let left = until.saturating_sub(clock.elapsed());
                if left.is_zero() {
                    return;
                }
                clock.clock.sleep(left).await;
            }
        })
    }
}
