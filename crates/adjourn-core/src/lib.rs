//! The lifecycle of a session that can be parked, as two pure functions.
//!
//! [`Session::decide`] holds all rules: given the session, a [`Command`] and the [`Facts`] of the
//! transaction that will commit it, it returns what happens, or why it may not.
//! [`Session::evolve`] takes one [`Event`] into the state; it decides nothing and cannot fail.
//! Live state, recovered state and replayed state are folds of the same events.
//!
//! - [`Session`] is the state: where it stands is a [`session::State`], with its data where it is
//!   valid.
//! - [`Command`] is what can be asked of it, by people and programs, the world, and its host.
//! - [`Event`] is what happened to it, for ever readable.
//! - [`Rejected`] is why a command was refused; then nothing has changed.
//!
//! Nothing here knows clocks, randomness, storage or wire formats. Times and ids come in with the
//! facts, contents as digests, and what must be done next is read off the state.
//!
//! Start reading at [`session::State`], then `lifecycle/suspend.rs`, then `lifecycle/settle.rs`.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "a test reads what it has written itself")
)]

pub mod actor;
pub mod arrival;
pub mod carry;
pub mod command;
pub mod conditions;
pub mod driver;
pub mod event;
pub mod facts;
pub mod id;
pub mod journal;
pub mod json;
pub mod ledger;
pub mod limits;
pub mod option;
pub mod pause;
pub mod rejected;
pub mod session;
pub mod status;
pub mod syntax;
pub mod time;
pub mod transcript;

mod digest;
mod evolve;
mod lifecycle;
mod past;
mod text;
mod title;

pub use command::Command;
pub use digest::{BEFORE_THAT, MARK};
pub use event::Event;
pub use facts::Facts;
pub use lifecycle::Founding;
pub use rejected::Rejected;
pub use session::Session;
