//! Drives sessions.
//!
//! A [`Host`] claims sessions that are ready and that it can run, and drives each through a
//! [`Driver`](adjourn_driver::Driver); it delivers events and deadlines, takes over what dead hosts have left, and
//! gives everything back when it stops. Everything it does is a commit; what it must do next is
//! read off the state.

pub mod about;
mod claimant;
pub mod clock;
mod config;
mod declined;
pub mod doorbell;
mod drive;
mod ending;
pub mod feed;
mod host;
pub mod live;
pub mod permission;
mod ring;
pub mod script;
mod shown;
mod slots;
pub mod telling;
mod transcript;
mod warm;
pub mod watch;

pub use claimant::Claimant;
pub use config::{Claims, Config, Notes};
pub use host::Host;
pub use ring::Ring;
pub use shown::Showing;
pub use transcript::call_content;
