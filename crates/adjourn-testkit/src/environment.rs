//! A clock that stands still until it is moved, and ids in the order in which they are made.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use adjourn_core::time::Timestamp;
use adjourn_store::Environment;
use uuid::Uuid;

/// The environment of a test: nothing in it happens by itself.
#[derive(Debug)]
pub struct VirtualEnvironment {
    millis: AtomicI64,
    made: AtomicU64,
    /// Tells the ids of one environment from those of another that shares its store.
    series: u16,
}

impl VirtualEnvironment {
    /// Starts at 2026-11-16T09:00:00Z.
    pub const fn new(series: u16) -> Self {
        let millis = AtomicI64::new(1_794_819_600_000);
        Self { millis, made: AtomicU64::new(0), series }
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.millis.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the clock, also back.
    pub fn set(&self, now: Timestamp) {
        self.millis.store(now.as_millis(), Ordering::SeqCst);
    }
}

impl Environment for VirtualEnvironment {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst))
    }

    fn uuid(&self) -> Uuid {
        let number = self.made.fetch_add(1, Ordering::SeqCst) + 1;
        let time = u128::from(self.now().as_millis().cast_unsigned());
        Uuid::from_u128(
            (time << 80)
                | (0x7 << 76)
                | (0x8 << 60)
                | (u128::from(self.series) << 40)
                | u128::from(number),
        )
    }
}
