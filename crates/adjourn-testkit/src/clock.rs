//! A clock that stands still until it is moved, and ids in the order in which they are made.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use adjourn_core::time::Timestamp;
use adjourn_store::Environment;
use tokio::sync::oneshot;
use uuid::Uuid;

/// 2026-11-16T09:00:00Z, in milliseconds.
const NINE_O_CLOCK: i64 = 1_794_819_600_000;

/// The time and the ids of a test: nothing in it happens by itself.
///
/// Clones show the same time and never make the same id.
#[derive(Clone)]
pub struct VirtualClock(Arc<Inner>);

struct Inner {
    time: Mutex<Time>,
    made: AtomicU64,
    /// Tells the ids of one clock from those of another that shares its store.
    series: u16,
}

struct Time {
    now: Timestamp,
    /// How much time has passed, however the clock was set.
    passed: Duration,
    sleepers: Vec<(Wake, oneshot::Sender<()>)>,
}

/// When a sleeper wakes: at a time, or when so much time has passed.
#[cfg_attr(not(feature = "host"), expect(dead_code, reason = "only hosts sleep"))]
enum Wake {
    At(Timestamp),
    Passed(Duration),
}

impl Time {
    fn is_due(&self, wake: &Wake) -> bool {
        match wake {
            Wake::At(time) => *time <= self.now,
            Wake::Passed(passed) => *passed <= self.passed,
        }
    }

    fn wake(&mut self) {
        let sleepers = std::mem::take(&mut self.sleepers);
        let (due, later) = sleepers.into_iter().partition(|(wake, _)| self.is_due(wake));
        self.sleepers = later;
        for (_, sleeper) in due {
            let _ = sleeper.send(());
        }
    }
}

impl VirtualClock {
    /// Makes a clock that shows nine o'clock, on 16 November 2026.
    #[expect(clippy::new_without_default, reason = "a test says that it makes a clock")]
    pub fn new() -> Self {
        Self::of_series(1)
    }

    /// Makes a clock whose ids are not those of another that works on the same store.
    pub fn of_series(series: u16) -> Self {
        let now = Timestamp::from_millis(NINE_O_CLOCK);
        let time = Mutex::new(Time { now, passed: Duration::ZERO, sleepers: Vec::new() });
        Self(Arc::new(Inner { time, made: AtomicU64::new(0), series }))
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.time.lock().unwrap()
    }

    /// Lets time pass, and wakes those that are due.
    pub fn advance(&self, by: Duration) {
        let mut time = self.time();
        time.now = time.now.after(by);
        time.passed += by;
        time.wake();
    }

    /// Sets the clock, ahead or back, without time passing.
    pub fn set(&self, now: Timestamp) {
        let mut time = self.time();
        time.now = now;
        time.wake();
    }

    /// Sets the clock ahead, without time passing.
    pub fn set_ahead(&self, by: Duration) {
        self.set(self.now().after(by));
    }

    /// Sets the clock back. Nothing is due earlier for it.
    pub fn set_back(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        self.set(Timestamp::from_millis(self.now().as_millis() - by));
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtualClock({})", self.now())
    }
}

impl Environment for VirtualClock {
    fn now(&self) -> Timestamp {
        self.time().now
    }

    fn uuid(&self) -> Uuid {
        let number = self.0.made.fetch_add(1, Ordering::SeqCst) + 1;
        let time = u128::from(self.now().as_millis().cast_unsigned());
        Uuid::from_u128(
            (time << 80)
                | (0x7 << 76)
                | (0x8 << 60)
                | (u128::from(self.0.series) << 40)
                | u128::from(number),
        )
    }
}

#[cfg(feature = "host")]
mod waited_for {
    use std::time::Instant;

    use adjourn::clock::{BoxFuture, Clock};

    use super::*;

    impl VirtualClock {
        /// Waits, on the real clock, until so many wait for time to pass.
        ///
        /// # Panics
        /// Others than these wait for long.
        pub async fn until_waited_for(&self, sleepers: usize) {
            let start = Instant::now();
            while self.waiting() != sleepers {
                assert!(start.elapsed() < crate::PATIENCE, "{} wait", self.waiting());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }

        /// Returns how many wait for time to pass.
        pub fn waiting(&self) -> usize {
            let waits = |(wake, sleeper): &&(Wake, oneshot::Sender<()>)| {
                matches!(wake, Wake::Passed(_)) && !sleeper.is_closed()
            };
            self.time().sleepers.iter().filter(waits).count()
        }
    }

    impl Time {
        fn sleep(&mut self, wake: Wake) -> BoxFuture<'static, ()> {
            if self.is_due(&wake) {
                return Box::pin(std::future::ready(()));
            }
            let (sender, receiver) = oneshot::channel();
            self.sleepers.push((wake, sender));
            Box::pin(async move {
                let _ = receiver.await;
            })
        }
    }

    impl Clock for VirtualClock {
        fn sleep_until(&self, time: Timestamp) -> BoxFuture<'static, ()> {
            self.time().sleep(Wake::At(time))
        }

        fn elapsed(&self) -> Duration {
            self.time().passed
        }

        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            let mut time = self.time();
            let passed = time.passed.saturating_add(duration);
            time.sleep(Wake::Passed(passed))
        }
    }
}
