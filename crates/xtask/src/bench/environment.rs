//! The real clock and real ids: benchmarks measure what users get.

use std::time::{SystemTime, UNIX_EPOCH};

use adjourn_core::time::Timestamp;
use adjourn_store::Environment;
use uuid::Uuid;

/// The machine's clock and randomness.
pub struct Machine;

impl Environment for Machine {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn uuid(&self) -> Uuid {
        let mut random = [0; 16];
        // Without randomness ids would collide, and the store would say so.
        let _ = getrandom::fill(&mut random);
        let time = u128::from(self.now().as_millis().cast_unsigned()) << 80;
        let rest = u128::from_be_bytes(random) & ((1 << 76) - 1);
        let number = time | (0x7 << 76) | rest;
        Uuid::from_u128((number & !(0b11 << 62)) | (0b10 << 62))
    }
}
