//! Opening the file: what it must be, and how it is set up.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::holder::Holder;
use super::identity;
use super::points::Points;
use super::restore;
use super::schema;
use super::turnstile::{PATIENCE, Turnstile, patiently};
use crate::error::Error;

/// Pages kept in memory per connection, in KiB.
const CACHE_KIB: i64 = 8 * 1024;
/// Statements kept prepared per connection; more than there are in this crate.
const STATEMENTS: usize = 128;
/// How long a reader waits while another process recovers or resets the WAL.
const READ_PATIENCE: Duration = Duration::from_secs(10);

/// A file, whatever it is called: its device and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl FileId {
    pub(super) fn at(path: &Path) -> Result<Self, Error> {
        let about = path.metadata().map_err(|error| cannot(path, error.to_string()))?;
        Ok(Self(about.dev(), about.ino()))
    }

    /// Makes sure that this is still the file at the path, and returns how it is.
    pub(super) fn still_at(self, path: &Path) -> Result<Metadata, Error> {
        let replaced = |problem| Error::Replaced { path: path.to_owned(), problem };
        match path.metadata() {
            Ok(about) if Self(about.dev(), about.ino()) == self => Ok(about),
            Ok(_) => Err(replaced("another file is in its place")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(replaced("it was deleted or moved away"))
            }
            Err(error) => Err(Error::io(format!("cannot look at {}", path.display()), error)),
        }
    }
}

/// Makes the file, if it is not there, and returns where it really is.
///
/// What lies beside a store is found by its name, so whoever comes to it over a link must know it by
/// the same name as everybody else.
pub(super) fn settle(path: &Path) -> Result<PathBuf, Error> {
    make_private(path)?;
    find(path)
}

/// Returns where a file that is there really is.
pub(super) fn find(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|error| cannot(path, error.to_string()))
}

/// Refuses a file with a second name: what lies beside it is found by its name, so that those who
/// come by the other would have a log and locks of their own.
///
/// Returns names that a restore gives the file while it is under way; one that was cut short leaves
/// them.
pub(super) fn refuse_second_name(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error: std::io::Error| cannot(path, error.to_string());
    let about = path.metadata().map_err(failed)?;
    if about.nlink() == 1 {
        return Ok(Vec::new());
    }
    let file = FileId(about.dev(), about.ino());
    let directory = path.parent().unwrap_or(Path::new("/"));
    let names = std::fs::read_dir(directory).map_err(failed)?.flatten();
    let others = names.map(|entry| entry.path()).filter(|name| {
        let is_file = name.symlink_metadata().is_ok_and(|about| about.is_file());
        name != path && is_file && FileId::at(name).is_ok_and(|other| other == file)
    });
    let (kept, others): (Vec<_>, Vec<_>) = others.partition(|name| restore::is_kept(path, name));
    if about.nlink() == 1 + kept.len() as u64 {
        return Ok(kept);
    }
    Err(Error::TwoNames { path: path.to_owned(), other: others.into_iter().next() })
}

/// Removes the names that a restore left which was cut short, once none can be under way.
pub(super) fn remove_left_names(path: &Path) -> Result<(), Error> {
    refuse_second_name(path)?.iter().try_for_each(|name| {
        let what = || format!("cannot remove {}, a second name of the store", name.display());
        std::fs::remove_file(name).map_err(|error| Error::io(what(), error))
    })
}

/// Opens the file for writing, bringing it to the newest version as needed.
pub(super) fn open_writer(
    path: &Path,
    points: &Points,
    max_pages: Option<u32>,
) -> Result<(Connection, Turnstile), Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags)?;
    // Only a file without tables takes this. For one with tables it would be a write all the same,
    // into a file that may be somebody else's, or read-only, or locked.
    if ours(path, &connection)? == Contents::Nothing {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // Nothing is left beside a file that turned out to be somebody else's.
    let mut turnstile = Turnstile::new(path)?;
    // While another process makes the same store, SQLite says at once that it is locked.
    let mode: String = patiently(|| {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
    })
    .map_err(|error| cannot_open(path, error))?;
    if mode != "wal" {
        let problem = "the file system does not support write-ahead logging".to_owned();
        return Err(cannot(path, problem));
    }
    // A commit is durable when it returns: that is what is acknowledged.
    connection.pragma_update(None, "synchronous", "FULL")?;
    if let Some(pages) = max_pages {
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    if schema::version(&connection)? != schema::VERSION {
        turnstile.begin(&connection)?;
        match schema::migrate(&connection, points) {
            Ok(()) => connection.execute_batch("COMMIT")?,
            Err(error) => {
                let _ = connection.execute_batch("ROLLBACK");
                return Err(error);
            }
        }
    }
    Ok((connection, turnstile))
}

/// Opens the file a second time for writing, to carry the log into it, if it is still the one that was
/// opened first.
pub(super) fn open_beside(path: &Path, file: FileId) -> Result<Connection, Error> {
    file.still_at(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// Lets a connection carry the log into the file when it is closed, if it is the last.
pub(super) fn carry_log(connection: &Connection) {
    // A log that is left is not lost.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
}

/// Makes the file, if it is not there, for its owner alone: it will hold what people say.
fn make_private(path: &Path) -> Result<(), Error> {
    if path.exists() {
        return Ok(());
    }
    // Not emptied: somebody else may be making it just now.
    match File::options().write(true).create(true).truncate(false).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(cannot(path, error.to_string())),
    }
}

/// What a reading connection sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sees {
    /// The file and its log: everything that was committed.
    All,
    /// The file alone, as it is: where nothing can be written beside it, SQLite cannot read its
    /// log, and a log that is another file's must not be read.
    File,
}

/// Opens the file for reading, if it is still the one that was opened first.
pub(super) fn open_reader(path: &Path, file: FileId, sees: Sees) -> Result<Connection, Error> {
    file.still_at(path)?;
    match sees {
        Sees::All => {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = open(path, flags)?;
            connection.pragma_update(None, "query_only", true)?;
            connection.busy_timeout(READ_PATIENCE)?;
            Ok(connection)
        }
        Sees::File => {
            let connection =
                identity::open_immutable(path).map_err(|error| cannot_open(path, error))?;
            keep_prepared(&connection)?;
            // The first thing that reads the file.
            schema::version(&connection)?;
            Ok(connection)
        }
    }
}

/// Opens a store that is there for reading alone, and returns what the connection sees; nothing is
/// returned if the file is empty.
pub(super) fn open_to_look(
    path: &Path,
    file: FileId,
    log_is_own: bool,
) -> Result<Option<(Connection, Sees)>, Error> {
    let all = log_is_own.then(|| {
        let connection = open_reader(path, file, Sees::All)?;
        // The first thing that needs the log.
        ours(path, &connection).map(|_| connection)
    });
    let (connection, sees) = match all {
        Some(Ok(connection)) => (connection, Sees::All),
        // SQLite cannot read it without writing something beside it.
        Some(Err(error @ (Error::CannotOpen { .. } | Error::ReadOnly(_)))) => {
            let connection = open_reader(path, file, Sees::File).map_err(|_| error)?;
            (connection, Sees::File)
        }
        Some(Err(error)) => return Err(error),
        None => (open_reader(path, file, Sees::File)?, Sees::File),
    };
    if ours(path, &connection)? == Contents::Nothing {
        return Ok(None);
    }
    // An older one is read as it is: a server of an older program may have it open, and could not go on
    // with one that was brought up to date.
    Ok(Some((connection, sees)))
}

/// Refuses what is at a path and is no file, before anything is opened or left beside it: opening a
/// pipe would wait for its other end.
pub(super) fn refuse_what_is_no_file(path: &Path) -> Result<(), Error> {
    let Ok(about) = path.metadata() else { return Ok(()) };
    let kind = about.file_type();
    let problem = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "it is a directory",
        _ if kind.is_fifo() => "it is a pipe",
        _ if kind.is_socket() => "it is a socket",
        _ => "it is a device",
    };
    Err(not_a_store(path, problem))
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    refuse_what_is_no_file(path)?;
    let connection =
        Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, error))?;
    keep_prepared(&connection)?;
    // Another file may have been copied over this one by the time it is closed.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // The first thing that reads the file.
    connection
        .pragma_update(None, "cache_size", -CACHE_KIB)
        .map_err(|error| cannot_open(path, error))?;
    Ok(connection)
}

/// Lets statements be prepared once.
///
/// Without the second setting, SQLite looks at what is bound to a `LIMIT` when it makes a plan, and
/// makes another with every other value: some twenty microseconds, each time.
fn keep_prepared(connection: &Connection) -> Result<(), Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// What is in a file that can be, or become, a store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    Nothing,
    Tables,
}

/// Refuses a file that another program made, and one that is no database at all.
fn ours(path: &Path, connection: &Connection) -> Result<Contents, Error> {
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
        .map_err(|error| cannot_open(path, error))?;
    let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if tables > 0 && id != schema::APPLICATION_ID {
        return Err(not_a_store(path, "it is the database of another program"));
    }
    schema::not_newer(connection)?;
    Ok(if tables > 0 { Contents::Tables } else { Contents::Nothing })
}

fn not_a_store(path: &Path, problem: &str) -> Error {
    Error::NotAStore { path: path.to_owned(), problem: problem.to_owned() }
}

fn cannot_open(path: &Path, error: rusqlite::Error) -> Error {
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) {
        return not_a_store(path, "it is not a database");
    }
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) {
        return Error::Locked { patience: PATIENCE, holder: Holder::of(path) };
    }
    match Error::from(error) {
        Error::Failed(error) => cannot(path, error.to_string()),
        other => other,
    }
}

fn cannot(path: &Path, problem: String) -> Error {
    Error::CannotOpen { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_with_a_limit_is_prepared_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = open(file.path(), flags).unwrap();
        connection.execute_batch("CREATE TABLE number (no INTEGER PRIMARY KEY)").unwrap();
        let mut prepared = 0;
        for (after, limit) in [(1, 2), (3, 4), (5, 6)] {
            let sql = "SELECT no FROM number WHERE no > ?1 ORDER BY no LIMIT ?2";
            let mut statement = connection.prepare_cached(sql).unwrap();
            assert!(!statement.exists([after, limit]).unwrap());
            prepared += statement.get_status(StatementStatus::RePrepare);
        }
        assert_eq!(prepared, 0);
    }
}
