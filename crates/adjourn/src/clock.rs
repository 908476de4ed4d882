//! Time that passes: the one place, with the binary, where a clock is read and slept by.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use adjourn_core::time::Timestamp;
pub use adjourn_store::Environment;
use uuid::Uuid;

/// A future that can be kept and sent.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The longest sleep without looking at the wall clock again.
///
/// Monotonic clocks stand still while a laptop sleeps; a deadline at nine o'clock does not.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// A clock that can be waited for.
///
/// Deadlines that people set are points in time, and go by the wall clock. A grace is a length of
/// time, and goes by a clock that cannot be set: [`Clock::elapsed`] and [`Clock::sleep`].
pub trait Clock: Environment {
    /// Waits until the wall clock shows `time`.
    fn sleep_until(&self, time: Timestamp) -> BoxFuture<'static, ()>;

    /// Returns how much time has passed since some moment, however the wall clock was set.
    fn elapsed(&self) -> Duration;

    /// Waits until that much time has passed, however the wall clock is set.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's own clock, and ids from its randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine;

impl Environment for Machine {
    fn now(&self) -> Timestamp {
        // Before 1970 there were no agents.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }
}

impl Clock for Machine {
    fn sleep_until(&self, time: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                let left = time.since(Self.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LOOK_AGAIN)).await;
            }
        })
    }

    fn elapsed(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
