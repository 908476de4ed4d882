//! What a transaction takes from the world outside the file: the time, and ids nobody had before.

use adjourn_core::time::Timestamp;
use uuid::Uuid;

/// The clock and the source of ids. This crate reads neither by itself.
pub trait Environment: Send + Sync + 'static {
    /// Returns the wall clock.
    fn now(&self) -> Timestamp;

    /// Returns an id nobody had before, in UUID version 7.
    fn uuid(&self) -> Uuid;
}
