//! Several connections of one process, over streams in memory.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod client_requests;
mod content;
mod introduction;
mod live;
mod options;
mod permissions;
mod questions;
mod reads;
mod round_trip;
mod secrets;
mod slow;
mod warm;

use adjourn_testkit::acp as process;
