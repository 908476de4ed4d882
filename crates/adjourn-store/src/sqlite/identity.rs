//! Which store a file is, and which copy of it.
//!
//! A store keeps its id for life. Each file that holds it has an incarnation of its own, drawn anew
//! when the store is made, backed up and restored: two files of one incarnation are one file that
//! was copied together with its log.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::schema;
use crate::error::Error;

/// One copy of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Incarnation(pub(super) [u8; 16]);

impl Incarnation {
    /// Reads what [`Display`](fmt::Display) writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|digits| Self(digits.to_be_bytes()))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// What a database file says of itself, its log left aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// It is empty, or older than incarnations are: no log was written for it under one.
    Nothing,
    /// It is another program's.
    Foreign,
    /// It is this copy of a store.
    Is(Incarnation),
    /// It cannot be read as it is: a checkpoint may have been cut short, which the log mends.
    Unknown,
}

/// Reads what the bytes of a database file say, whatever lies beside it.
///
/// Only through SQLite: a process that opens and closes the file by itself drops the locks that
/// SQLite holds on it.
///
/// # Errors
/// The file is no database.
pub(super) fn own(path: &Path) -> Result<Own, Error> {
    match path.metadata() {
        Ok(about) if about.len() == 0 => return Ok(Own::Nothing),
        Ok(_) => {}
        // Opening it says what is wrong.
        Err(_) => return Ok(Own::Unknown),
    }
    match read_own(path) {
        Ok(own) => Ok(own),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            let problem = "it is not a database".to_owned();
            Err(Error::NotAStore { path: path.to_owned(), problem })
        }
        Err(_) => Ok(Own::Unknown),
    }
}

fn read_own(path: &Path) -> rusqlite::Result<Own> {
    let connection = open_immutable(path)?;
    let number = |pragma: &str| -> rusqlite::Result<i64> {
        connection.query_row(pragma, [], |row| row.get(0))
    };
    if number("PRAGMA application_id")? != i64::from(schema::APPLICATION_ID) {
        let tables = number("SELECT count(*) FROM sqlite_master")?;
        return Ok(if tables > 0 { Own::Foreign } else { Own::Nothing });
    }
    if number("PRAGMA user_version")? < schema::IDENTITY {
        return Ok(Own::Nothing);
    }
    Ok(incarnation(&connection)?.map_or(Own::Unknown, Own::Is))
}

/// Opens a database file as if nothing could change it; its log is not read.
pub(super) fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02X}").into_bytes()),
            byte => uri.push(*byte),
        }
    }
    uri.extend(b"?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(OsString::from_vec(uri), flags)
}

/// Reads the incarnation through an open connection, the log included.
pub(super) fn incarnation(connection: &Connection) -> rusqlite::Result<Option<Incarnation>> {
    let mut statement = connection.prepare("SELECT incarnation FROM identity")?;
    statement.query_row([], |row| row.get(0).map(Incarnation)).optional()
}

/// Makes a copy one of its own, in a file that no other process has open.
pub(super) fn renew(copy: &Path) -> Result<(), Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(copy, flags)?;
    // A copy of an older store gets an incarnation when it is first opened.
    if schema::version(&connection)? >= schema::IDENTITY {
        connection.execute("UPDATE identity SET incarnation = randomblob(16)", [])?;
    }
    Ok(())
}

/// Draws a new incarnation for a store, and returns it; it may be in the log alone then. Nothing is
/// returned if a process has the store open, or if it cannot be written.
pub(super) fn renew_alone(store: &Path) -> Option<Incarnation> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(store, flags).ok()?;
    // Closing the connection carries the log into the file.
    draw(&mut connection).ok()
}

fn draw(connection: &mut Connection) -> Result<Incarnation, Error> {
    connection.busy_timeout(std::time::Duration::ZERO)?;
    // SQLite takes the whole file, or says that another connection has it: also where other locks
    // exclude nobody.
    connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.transaction()?;
    schema::not_newer(&transaction)?;
    let sql = "UPDATE identity SET incarnation = randomblob(16) RETURNING incarnation";
    let drawn = transaction.query_row(sql, [], |row| row.get(0).map(Incarnation))?;
    transaction.commit()?;
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incarnation_is_read_as_it_is_written() {
        let incarnation = Incarnation(*b"\x00\x01incarnation\xff\xfe!");
        assert_eq!(Incarnation::parse(&format!("{incarnation}\n")), Some(incarnation));
        for other in
            ["", "12", "+0123456789012345678901234567890", "é123456789012345678901234567890"]
        {
            assert_eq!(Incarnation::parse(other), None, "{other}");
        }
    }
}
