//! The store on SQLite, tried from outside.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod child;
mod conformance;
mod crash;
mod damage;
mod durability;
mod erasing;
mod fairness;
mod faults;
mod holes;
mod incarnation;
mod known_rows;
mod lag;
mod names;
mod queries;
mod rows_written;
mod signing;
mod smoke;
mod tampering;
mod telling;
mod torn;
mod unreadable;
mod unwritten_rows;

use adjourn_testkit::store as fixture;
