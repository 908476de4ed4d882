//! Rows that a transaction has decided on and has not written yet.
//!
//! Most commands read nothing that their transaction has written: what they need of it is
//! [`Known`]. So their rows are kept here, and written when something is read from the file, or
//! before the commit. A job that is undone before that has changed nothing in the file, and needs no
//! savepoint, with which SQLite would copy every page before it is changed.
//!
//! [`Known`]: super::Known

use std::cell::{Cell, RefCell};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ToSql, params_from_iter};

use super::given_up;
use crate::error::Error;

/// Rows with more bytes than this are written at the end of a job: messages may be long, and many
/// jobs share a transaction.
const LARGE: usize = 1024 * 1024;

/// Rows to be written, in order, and how what the job that runs has written can be undone.
#[derive(Default)]
pub(in crate::sqlite) struct Unwritten {
    writes: RefCell<Vec<Write>>,
    /// The bytes of their longest values together.
    bytes: Cell<usize>,
    /// How many of them are of the jobs before the one that runs, which are kept.
    kept: Cell<usize>,
    /// Whether the transaction has no other job than the one that runs.
    is_alone: Cell<bool>,
    written: Cell<Written>,
    /// Why rows of the job that runs could not be written: it has to be undone.
    failed: RefCell<Option<Error>>,
    /// Why rows of jobs that are kept could not be written: the transaction cannot be committed.
    broken: RefCell<Option<Error>>,
}

/// What the job that runs has written to the file so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Written {
    #[default]
    Nothing,
    /// Something that lies behind a savepoint.
    BehindSavepoint,
    /// Something that is undone with the transaction, which has no other job.
    Alone,
}

/// What undoing a job has left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Undone {
    /// Nothing: the job had changed nothing.
    Unchanged,
    /// Nothing: what the job had changed is as it was before.
    Reverted,
    /// The transaction has to be rolled back.
    WithTransaction,
}

impl Unwritten {
    /// Begins a transaction without rows.
    pub(in crate::sqlite) fn begin(&self) {
        self.writes.borrow_mut().clear();
        self.bytes.set(0);
        self.broken.replace(None);
        self.begin_job(true);
    }

    /// Begins a job: the rows so far are kept, whatever becomes of it.
    pub(in crate::sqlite) fn begin_job(&self, is_alone: bool) {
        self.kept.set(self.writes.borrow().len());
        self.is_alone.set(is_alone);
        self.failed.replace(None);
        self.written.set(Written::Nothing);
    }

    /// Keeps what the job did.
    pub(in crate::sqlite) fn keep_job(&self, connection: &Connection) -> Result<(), Error> {
        if self.written.replace(Written::Nothing) == Written::BehindSavepoint {
            connection.prepare_cached("RELEASE job")?.execute([])?;
        }
        self.kept.set(self.writes.borrow().len());
        if self.bytes.get() > LARGE { self.write_out(connection) } else { Ok(()) }
    }

    /// Undoes what the job did, as far as that is possible within the transaction.
    pub(in crate::sqlite) fn undo_job(&self, connection: &Connection) -> Result<Undone, Error> {
        let rows = self.writes.borrow().len();
        self.writes.borrow_mut().truncate(self.kept.get());
        Ok(match self.written.replace(Written::Nothing) {
            Written::Nothing if rows == self.kept.get() => Undone::Unchanged,
            Written::Nothing => Undone::Reverted,
            Written::BehindSavepoint => {
                connection.prepare_cached("ROLLBACK TO job")?.execute([])?;
                connection.prepare_cached("RELEASE job")?.execute([])?;
                Undone::Reverted
            }
            Written::Alone => Undone::WithTransaction,
        })
    }

    /// Returns why the job has to be undone, whatever it made of the error.
    pub(in crate::sqlite) fn failed(&self) -> Option<Error> {
        self.failed.borrow().clone()
    }

    /// Returns why the transaction cannot be committed, if rows of a job that is kept are missing.
    pub(in crate::sqlite) fn broken(&self) -> Option<Error> {
        self.broken.borrow().clone()
    }

    /// Adds a row that is written before anything is read.
    pub(super) fn add(&self, sql: &'static str, values: Vec<Value>) {
        let bytes = values.iter().map(Value::bytes).fold(self.bytes.get(), usize::saturating_add);
        self.bytes.set(bytes);
        self.writes.borrow_mut().push(Write { sql, values });
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// The transaction is gone, or SQLite fails. If that is with rows of a job that is kept, the
    /// transaction is broken.
    pub(in crate::sqlite) fn write_out(&self, connection: &Connection) -> Result<(), Error> {
        if let Some(error) = self.broken() {
            return Err(error);
        }
        if self.writes.borrow().is_empty() {
            return Ok(());
        }
        if connection.is_autocommit() {
            return Err(given_up());
        }
        self.bytes.set(0);
        let mut kept = self.writes.take();
        let own = kept.split_off(self.kept.replace(0).min(kept.len()));
        let mut statements = Statements { connection, prepared: Vec::new() };
        statements.execute(&kept).inspect_err(|error| {
            self.broken.replace(Some(error.clone()));
        })?;
        if own.is_empty() {
            return Ok(());
        }
        let written = self.before_own(connection).and_then(|()| statements.execute(&own));
        written.inspect_err(|error| {
            self.failed.replace(Some(error.clone()));
        })
    }

    /// Makes sure that what the job is about to write to the file can be undone.
    pub(super) fn before_own(&self, connection: &Connection) -> Result<(), Error> {
        match (self.written.get(), self.is_alone.get()) {
            (Written::Nothing, true) => self.written.set(Written::Alone),
            (Written::Nothing, false) => {
                connection.prepare_cached("SAVEPOINT job")?.execute([])?;
                self.written.set(Written::BehindSavepoint);
            }
            (Written::BehindSavepoint | Written::Alone, _) => {}
        }
        Ok(())
    }
}

/// A statement that changes rows, and what is bound to it.
struct Write {
    sql: &'static str,
    values: Vec<Value>,
}

/// The statements of a few writes, each looked up once.
struct Statements<'a> {
    connection: &'a Connection,
    prepared: Vec<(&'static str, CachedStatement<'a>)>,
}

impl Statements<'_> {
    fn execute(&mut self, writes: &[Write]) -> Result<(), Error> {
        for Write { sql, values } in writes {
            // The same text at another address is only prepared twice.
            let known = self.prepared.iter_mut().find(|(known, _)| std::ptr::eq(*known, *sql));
            let values = params_from_iter(values);
            match known {
                Some((_, statement)) => statement.execute(values)?,
                None => {
                    let mut statement = self.connection.prepare_cached(sql)?;
                    let changed = statement.execute(values)?;
                    self.prepared.push((sql, statement));
                    changed
                }
            };
        }
        Ok(())
    }
}

/// A value of a row that is not written yet.
pub(super) enum Value {
    Null,
    Integer(i64),
    Id([u8; 16]),
    Link([u8; 32]),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    /// Returns how much room it takes beside the list, if that may be much.
    const fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Null | Self::Integer(_) | Self::Id(_) | Self::Link(_) => 0,
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Id(bytes) => ValueRef::Blob(bytes),
            Self::Link(bytes) => ValueRef::Blob(bytes),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<[u8; 16]> for Value {
    fn from(bytes: [u8; 16]) -> Self {
        Self::Id(bytes)
    }
}

impl From<[u8; 32]> for Value {
    fn from(bytes: [u8; 32]) -> Self {
        Self::Link(bytes)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: &str = "INSERT INTO row (no) VALUES (?1)";

    /// A transaction, and a list of rows for it.
    fn begun() -> (Connection, Unwritten) {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE row (no INTEGER PRIMARY KEY); BEGIN").unwrap();
        let unwritten = Unwritten::default();
        unwritten.begin();
        (connection, unwritten)
    }

    fn rows(connection: &Connection) -> Vec<i64> {
        let mut statement = connection.prepare("SELECT no FROM row ORDER BY no").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_job_that_reads_nothing_leaves_the_file_alone_until_the_end() {
        let (connection, unwritten) = begun();
        for (no, is_kept) in [(1, true), (2, false), (3, true)] {
            unwritten.begin_job(no == 1);
            unwritten.add(ADD, vec![no.into()]);
            if is_kept {
                unwritten.keep_job(&connection).unwrap();
            } else {
                assert_eq!(unwritten.undo_job(&connection).unwrap(), Undone::Reverted);
            }
            assert!(rows(&connection).is_empty());
        }
        unwritten.begin_job(false);
        assert_eq!(unwritten.undo_job(&connection).unwrap(), Undone::Unchanged);
        unwritten.write_out(&connection).unwrap();
        assert_eq!(rows(&connection), [1, 3]);
    }

    #[test]
    fn a_job_that_reads_between_its_rows_is_undone_with_all_of_them_and_no_others() {
        let (connection, unwritten) = begun();
        unwritten.begin_job(true);
        unwritten.add(ADD, vec![1.into()]);
        unwritten.keep_job(&connection).unwrap();
        unwritten.begin_job(false);
        unwritten.add(ADD, vec![2.into()]);
        unwritten.write_out(&connection).unwrap();
        unwritten.add(ADD, vec![3.into()]);
        assert_eq!(rows(&connection), [1, 2]);
        assert_eq!(unwritten.undo_job(&connection).unwrap(), Undone::Reverted);
        unwritten.write_out(&connection).unwrap();
        assert_eq!(rows(&connection), [1]);
    }

    #[test]
    fn the_first_job_is_undone_with_its_transaction_if_it_has_written() {
        let (connection, unwritten) = begun();
        unwritten.begin_job(true);
        unwritten.add(ADD, vec![1.into()]);
        unwritten.write_out(&connection).unwrap();
        assert_eq!(unwritten.undo_job(&connection).unwrap(), Undone::WithTransaction);
    }

    #[test]
    fn rows_that_cannot_be_written_break_the_transaction_only_if_their_job_is_kept() {
        let (connection, unwritten) = begun();
        connection.execute(ADD, [1]).unwrap();
        unwritten.begin_job(false);
        unwritten.add(ADD, vec![1.into()]);
        assert!(unwritten.write_out(&connection).is_err());
        assert!(unwritten.failed().is_some() && unwritten.broken().is_none());
        unwritten.undo_job(&connection).unwrap();
        unwritten.begin_job(false);
        unwritten.add(ADD, vec![1.into()]);
        unwritten.keep_job(&connection).unwrap();
        assert!(unwritten.write_out(&connection).is_err());
        assert!(unwritten.broken().is_some());
        assert!(
            unwritten.write_out(&connection).is_err(),
            "also later, with nothing left to write"
        );
    }

    #[test]
    fn rows_with_many_bytes_are_written_at_the_end_of_their_job() {
        let (connection, unwritten) = begun();
        connection.execute_batch("CREATE TABLE long (body BLOB)").unwrap();
        for (no, length) in [(1, LARGE / 2), (2, LARGE / 2), (3, 1)] {
            unwritten.begin_job(no == 1);
            unwritten.add("INSERT INTO long (body) VALUES (?1)", vec![vec![0; length].into()]);
            unwritten.add(ADD, vec![no.into()]);
            unwritten.keep_job(&connection).unwrap();
            let expected: &[i64] = if no < 3 { &[] } else { &[1, 2, 3] };
            assert_eq!(rows(&connection), expected);
        }
        unwritten.begin_job(false);
        unwritten.add(ADD, vec![4.into()]);
        unwritten.keep_job(&connection).unwrap();
        assert_eq!(rows(&connection), [1, 2, 3], "the count begins anew");
    }

    #[test]
    fn nothing_is_written_behind_a_transaction_that_is_gone() {
        let (connection, unwritten) = begun();
        unwritten.begin_job(true);
        unwritten.add(ADD, vec![1.into()]);
        unwritten.keep_job(&connection).unwrap();
        connection.execute_batch("ROLLBACK").unwrap();
        assert!(unwritten.write_out(&connection).is_err());
        assert!(rows(&connection).is_empty());
    }
}
