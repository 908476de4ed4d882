//! Where sessions live.
//!
//! - [`Store`] is what its users see. [`Store::transact`] is the one way to change anything: inside
//!   it a command is loaded, decided by `adjourn-core` and appended, in one transaction with whatever
//!   other callers want at the same moment. What it answers is durable.
//! - [`Transaction`] is one caller's part of that: it gives commands, acknowledges events, claims.
//! - [`Query`] finds sessions by what they are and what they wait for, a page at a time.
//! - [`Sqlite`] is the first back end: one file for any number of processes.
//!
//! The rules of a transaction are written once, in `transaction.rs`, on top of [`rows::Rows`],
//! which a back end implements. [`sqlite`] is the first.
//!
//! This crate knows no wire format, reads no clock and makes no ids: see [`Environment`].

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "a test reads what it has written itself")
)]

mod cache;
mod committed;
mod environment;
mod error;
mod fold;
mod query;
mod retention;
pub mod rows;
pub mod sqlite;
mod store;
mod transaction;

pub use committed::{Appended, Change, Committed, Listener};
pub use environment::Environment;
pub use error::{CommandError, Error, Problem};
pub use query::{Counted, Cursor, Filter, NotACursor, Page, Query, ReasonPattern, Sort, StateKind};
pub use retention::{Pruned, Retention};
pub use sqlite::Sqlite;
pub use store::{Listed, Metrics, Pending, Size, Standing, Store, Tally};
pub use transaction::{
    Added, Delivered, Done, Erased, NewRecipient, Next, Reached, Request, Spares, Taken,
    Transaction,
};
