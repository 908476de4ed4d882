//! Putting a backup in the place of a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use super::Sqlite;
use super::connection::FileId;
use super::holder::Holder;
use super::identity::{self, Incarnation, Own};
use super::sidecar::{self, Sidecar, sync_directory};
use super::turnstile::beside;
use crate::environment::Environment;
use crate::error::Error;
use crate::store::Store as _;

/// A backup that is in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Where the store is.
    pub store: PathBuf,
    /// Where the files are that were there before, the database first; together they are a store.
    pub kept: Vec<PathBuf>,
    /// The log of the backup that could not be read, and whose commits are missing.
    pub without: Option<PathBuf>,
}

/// How the names go on under which the files of a store are kept.
const KEPT: &str = ".before-";

/// Returns whether a name is one under which a restore keeps the file of a store.
pub(super) fn is_kept(store: &Path, name: &Path) -> bool {
    let prefix = beside(store, KEPT);
    name.as_os_str().as_encoded_bytes().starts_with(prefix.as_os_str().as_encoded_bytes())
}

/// Puts a copy of the store in `from` in the place of `store`, and keeps what was there.
///
/// A crash leaves the old store or the new one at the path, never one with the log of the other:
/// the new one has an incarnation of its own, and the old log is set aside when it is opened.
///
/// # Errors
/// What is in `from` is no store or cannot be read, or a process has `store` open, or it cannot be
/// written. Nothing is changed then, unless what failed is to clear away after it was put in place.
pub fn restore(
    from: &Path,
    store: &Path,
    environment: Arc<dyn Environment>,
) -> Result<Restored, Error> {
    // A store that is reached over a link is replaced where it is.
    let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let there = store.exists();
    if there && FileId::at(from)? == FileId::at(&store)? {
        let what = format!("cannot restore {}", from.display());
        let source = std::io::Error::other("it is the store itself");
        return Err(Error::io(what, source));
    }
    let source = Sqlite::look(from, Arc::clone(&environment), 0)?;
    let without = source.unread_log();
    if there && identity::own(&store)? == Own::Foreign {
        let problem = "it is the database of another program".to_owned();
        return Err(Error::NotAStore { path: store, problem });
    }
    let sidecar = Sidecar::alone(&store)?;
    if let Some(holder) = Holder::of_database(&store).filter(|_| there) {
        return Err(Error::InUse { path: store, holder });
    }
    let copy = beside(&store, ".restoring");
    // What is left of a restore that was cut short.
    let _ = std::fs::remove_file(&copy);
    source.backup(&copy)?;
    let placed = whole(&copy).and_then(|()| {
        let mut kept = Vec::new();
        let put = match there {
            true => keep(&store, &sidecar, environment.now(), &mut kept),
            false => Ok(()),
        };
        let put = put.and_then(|()| place(&copy, &store, &sidecar));
        put.inspect_err(|_| {
            kept.iter().for_each(|name| drop(std::fs::remove_file(name)));
        })
        .map(|names| (kept, names))
    });
    let (kept, names) = placed.inspect_err(|_| {
        let _ = std::fs::remove_file(&copy);
    })?;
    clear(&store)?;
    sidecar.write(&store, names)?;
    Ok(Restored { store, kept, without })
}

/// Makes sure that a copy is a sound database.
fn whole(copy: &Path) -> Result<(), Error> {
    let connection = Connection::open(copy)?;
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(Error::Damaged(found)) }
}

/// Keeps the files of the store that is there under other names, and leaves them where they are.
fn keep(
    store: &Path,
    sidecar: &Sidecar,
    now: adjourn_core::time::Timestamp,
    kept: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let digits: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let old = beside(store, &format!("{KEPT}{digits}"));
    for suffix in ["", "-wal"] {
        let (from, to) = (beside(store, suffix), beside(&old, suffix));
        if !from.exists() {
            continue;
        }
        // A second name for the same file; where there are none, a copy.
        let linked = std::fs::hard_link(&from, &to);
        linked.or_else(|_| std::fs::copy(&from, &to).map(|_| ())).map_err(|error| {
            Error::io(format!("cannot keep {} as {}", from.display(), to.display()), error)
        })?;
        kept.push(to);
    }
    if let Some(names) = sidecar.names(store)? {
        let to = sidecar::path(&old);
        std::fs::write(&to, format!("{names}\n"))
            .map_err(|error| Error::io(format!("cannot write {}", to.display()), error))?;
        kept.push(to);
    }
    sync_directory(store)
}

/// Gives a copy the name of the store, and returns what it is called there.
fn place(copy: &Path, store: &Path, sidecar: &Sidecar) -> Result<Option<Incarnation>, Error> {
    // A copy of an older store gets an incarnation when it is first opened.
    let names = match identity::own(copy)? {
        Own::Is(incarnation) => Some(incarnation),
        _ => None,
    };
    if let Some(next) = names {
        sidecar.exclude(store, next)?;
    }
    std::fs::rename(copy, store)
        .map_err(|error| Error::io(format!("cannot write {}", store.display()), error))?;
    Ok(names)
}

/// Takes the log and the index away that belonged to the file before.
fn clear(store: &Path) -> Result<(), Error> {
    sync_directory(store)?;
    for suffix in ["-wal", "-shm"] {
        let path = beside(store, suffix);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(format!("cannot remove {}", path.display()), error));
            }
            _ => {}
        }
    }
    sync_directory(store)
}
