//! [`Rows`](crate::rows::Rows) on SQLite: one prepared statement per method.

mod answers;
mod events;
mod gates;
mod hosts;
mod journal;
mod known;
mod listing;
pub(super) mod recipients;
mod removal;
pub(super) mod said;
mod sessions;
mod unwritten;
mod waits;

use rusqlite::{CachedStatement, Connection};

use crate::error::Error;
use crate::rows::SessionNo;

pub(super) use known::Known;
pub(super) use listing::{kind_of_row, listed_code, row_code};
pub(super) use removal::PRUNABLE_EVENTS;
pub(super) use sessions::{Thin, session_row, state_name};
pub(super) use unwritten::{Undone, Unwritten};

use unwritten::Value;

/// The rows of one connection.
pub(super) struct SqliteRows<'a> {
    connection: &'a Connection,
    /// What the connection knows, if it has a write transaction open; nothing while reading.
    writing: Option<&'a Known>,
    /// The rows of the write transaction that are not written yet.
    unwritten: Option<&'a Unwritten>,
}

impl<'a> SqliteRows<'a> {
    /// Rows to be read, each statement for itself.
    pub(super) const fn reading(connection: &'a Connection) -> Self {
        Self { connection, writing: None, unwritten: None }
    }

    /// Rows inside a write transaction.
    pub(super) const fn writing(
        connection: &'a Connection,
        known: &'a Known,
        unwritten: &'a Unwritten,
    ) -> Self {
        Self { connection, writing: Some(known), unwritten: Some(unwritten) }
    }

    /// Prepares a statement that finds everything written that was decided before, unless the
    /// transaction it belongs to is gone.
    ///
    /// Some errors (a full disk) make SQLite give up the whole transaction. What came after would
    /// be committed statement by statement.
    fn prepare(&self, sql: &str) -> Result<CachedStatement<'a>, Error> {
        if self.writing.is_some() && self.connection.is_autocommit() {
            return Err(given_up());
        }
        let statement = self.connection.prepare_cached(sql)?;
        if let Some(unwritten) = self.unwritten {
            unwritten.write_out(self.connection)?;
            if !statement.readonly() {
                unwritten.before_own(self.connection)?;
            }
        }
        Ok(statement)
    }

    /// Changes rows behind all that was decided before, at the latest before anything is read.
    fn write<const N: usize>(&self, sql: &'static str, values: [Value; N]) -> Result<(), Error> {
        match self.unwritten {
            Some(unwritten) => unwritten.add(sql, values.into()),
            None => drop(self.run(sql, rusqlite::params_from_iter(values))?),
        }
        Ok(())
    }

    fn numbers(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<SessionNo>, Error> {
        let mut statement = self.prepare(sql)?;
        let rows = statement.query_map(params, |row| row.get(0).map(SessionNo))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn run(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, Error> {
        Ok(self.prepare(sql)?.execute(params)?)
    }
}

/// What SQLite itself says of a transaction that it rolled back.
pub(super) fn given_up() -> Error {
    const SQLITE_ABORT_ROLLBACK: i32 = 4 | (2 << 8);
    let error = rusqlite::ffi::Error::new(SQLITE_ABORT_ROLLBACK);
    rusqlite::Error::SqliteFailure(error, None).into()
}

/// SQLite's integers are signed; ours never reach the bit that makes the difference.
pub(super) const fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub(super) const fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}

fn size(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn text<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Damaged(error.to_string()))
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Error> {
    adjourn_core::json::stored(text.as_bytes()).map_err(|error| Error::Damaged(error.to_string()))
}
