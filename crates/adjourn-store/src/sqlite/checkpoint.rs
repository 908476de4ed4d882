//! Carries the log into the file: most of it on a thread of its own, beside commits, and the rest
//! on the thread that writes.
//!
//! A pass beside commits never reaches the end of a log that grows meanwhile, so that with such
//! passes alone the log would never begin anew, and grow without bound. What such a pass leaves is
//! little: the thread that writes carries it between two commits, and the next one begins the log
//! anew. No caller waits for either: a commit is durable in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::connection;
use super::opened::Opened;
use crate::error::Error;

/// The log is carried into the file when it has this many pages (8 MiB).
const PAGES: usize = 2000;
/// A log of this many pages is carried by the thread that writes, unless the other one is in the
/// middle of it.
const MOST: usize = 4 * PAGES;

/// Sees to it that the log is carried into the file.
pub(super) struct Checkpoints {
    opened: Arc<Opened>,
    /// How many pages the log had behind the last commit.
    pages: Arc<AtomicUsize>,
    /// Whether a pass beside commits was asked for since the log was last carried here.
    asked: bool,
    beside: Option<Beside>,
}

/// The thread that carries the log beside commits, once there was reason to start it.
struct Beside {
    requests: SyncSender<()>,
    /// Whether the pass that was asked for is over.
    is_over: Arc<AtomicBool>,
    handle: JoinHandle<()>,
}

impl Checkpoints {
    /// Takes over from SQLite, which would carry the log with the commit that makes it too long.
    ///
    /// # Errors
    /// SQLite refuses.
    pub(super) fn of(connection: &mut Connection, opened: &Arc<Opened>) -> Result<Self, Error> {
        let pages = Arc::<AtomicUsize>::default();
        let known = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            known.store(usize::try_from(pages).unwrap_or_default(), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { opened: Arc::clone(opened), pages, asked: false, beside: None })
    }

    /// Carries the log if it is long, here or on the other thread, after a commit was told.
    pub(super) fn after_commit(&mut self, connection: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < PAGES {
            // The pass reached the end of the log, and it has begun anew.
            self.asked = false;
            return;
        }
        if pages < MOST && !self.asked && self.ask() {
            self.asked = true;
            return;
        }
        let is_over =
            self.beside.as_ref().is_none_or(|beside| beside.is_over.load(Ordering::Acquire));
        if is_over || pages >= MOST {
            carry(connection, &self.opened);
            self.asked = false;
        }
    }

    /// Asks for a pass on the other thread; returns whether there is one.
    fn ask(&mut self) -> bool {
        if self.beside.is_none() {
            self.beside = Beside::start(&self.opened);
        }
        self.beside.as_ref().is_some_and(Beside::ask)
    }

    /// Waits until the other thread is done.
    pub(super) fn finish(&mut self) {
        if let Some(Beside { requests, handle, .. }) = self.beside.take() {
            drop(requests);
            // If it has panicked, the log is carried by the next process that opens the store.
            let _ = handle.join();
        }
    }
}

impl Beside {
    /// Starts the thread; returns nothing if there is no room for one.
    fn start(opened: &Arc<Opened>) -> Option<Self> {
        let (requests, receiver) = sync_channel(1);
        let is_over = Arc::new(AtomicBool::new(true));
        let run = {
            let (opened, is_over) = (Arc::clone(opened), Arc::clone(&is_over));
            move || run(&receiver, &opened, &is_over)
        };
        let named = std::thread::Builder::new().name("adjourn-checkpoint".to_owned());
        Some(Self { requests, is_over, handle: named.spawn(run).ok()? })
    }

    fn ask(&self) -> bool {
        self.is_over.store(false, Ordering::Release);
        self.requests.try_send(()).is_ok()
    }
}

fn run(requests: &Receiver<()>, opened: &Opened, is_over: &AtomicBool) {
    let mut connection = None;
    while requests.recv().is_ok() {
        if connection.is_none() {
            connection = connection::open_beside(opened.path(), opened.file()).ok();
        }
        if let Some(connection) = &connection {
            carry(connection, opened);
        }
        is_over.store(true, Ordering::Release);
    }
}

/// Carries what can be carried of the log, if the file and the log are still those that were opened.
///
/// If it fails, or another process is at it, the log stays as it is, and the next pass tries again.
fn carry(connection: &Connection, opened: &Opened) {
    if opened.still_there().is_ok() && opened.takes_log() {
        let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::connection::FileId;
    use super::*;

    /// A file with a log, and what carries the one into the other.
    struct Logged {
        connection: Connection,
        checkpoints: Checkpoints,
    }

    impl Logged {
        fn at(path: &Path) -> Self {
            let mut connection = Connection::open(path).unwrap();
            connection.pragma_update(None, "journal_mode", "WAL").unwrap();
            connection.execute_batch("CREATE TABLE page (bytes BLOB)").unwrap();
            let file = FileId::at(path).unwrap();
            let opened = Arc::new(Opened::new(path.to_owned(), file, None).with_log().unwrap());
            let checkpoints = Checkpoints::of(&mut connection, &opened).unwrap();
            Self { connection, checkpoints }
        }

        /// Commits so many pages, and returns how long the log is then.
        fn commit(&self, pages: usize) -> usize {
            let sql = "INSERT INTO page (bytes) VALUES (zeroblob(?1))";
            self.connection.execute(sql, [i64::try_from(pages * 4096).unwrap()]).unwrap();
            self.checkpoints.pages.load(Ordering::Relaxed)
        }

        fn until_the_pass_is_over(&self) {
            let beside = self.checkpoints.beside.as_ref().unwrap();
            while !beside.is_over.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_long_log_is_carried_beside_commits_and_begins_anew_behind_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let mut logged = Logged::at(&path);
        let length = || path.metadata().unwrap().len();
        logged.commit(PAGES - 100);
        logged.checkpoints.after_commit(&logged.connection);
        assert!(length() < 100 * 4096, "a short log stays where it is");
        // One that reads what was there keeps the pass from what is committed now, as commits do that
        // are made during the pass.
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM page").unwrap();
        logged.commit(200);
        logged.checkpoints.after_commit(&logged.connection);
        logged.until_the_pass_is_over();
        let carried = length();
        assert!(carried > (PAGES as u64 - 200) * 4096, "the other thread carries it: {carried}");
        drop(reader);
        assert!(logged.commit(1) > PAGES, "the log goes on where it was");
        logged.checkpoints.after_commit(&logged.connection);
        assert!(length() > carried, "the rest is carried here");
        assert!(logged.commit(1) < 10, "the log begins anew");
        logged.checkpoints.after_commit(&logged.connection);
        // Each time: also behind a pass that reached the end of the log by itself.
        for _ in 0..2 {
            let carried = length();
            logged.commit(PAGES);
            logged.checkpoints.after_commit(&logged.connection);
            logged.until_the_pass_is_over();
            assert!(length() > carried, "the other thread carries it");
            assert!(logged.commit(1) < 10, "the log begins anew");
            logged.checkpoints.after_commit(&logged.connection);
        }
        logged.checkpoints.finish();
    }

    #[test]
    fn a_log_that_the_other_thread_does_not_get_to_is_bounded_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let mut logged = Logged::at(&directory.path().join("store.db"));
        // A thread that is asked and never answers.
        let (requests, _receiver) = sync_channel(1);
        let is_over = Arc::<AtomicBool>::default();
        let handle = std::thread::spawn(|| {});
        logged.checkpoints.beside = Some(Beside { requests, is_over, handle });
        let mut longest = 0;
        for _ in 0..3 * MOST / 500 {
            longest = longest.max(logged.commit(500));
            logged.checkpoints.after_commit(&logged.connection);
        }
        assert!((MOST..MOST + 1000).contains(&longest), "{longest}");
    }

    #[test]
    fn nothing_is_carried_into_a_file_that_was_put_in_the_place_of_the_one_opened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let mut logged = Logged::at(&path);
        logged.commit(PAGES);
        std::fs::rename(&path, directory.path().join("moved.db")).unwrap();
        std::fs::write(&path, "another").unwrap();
        logged.checkpoints.after_commit(&logged.connection);
        logged.until_the_pass_is_over();
        logged.checkpoints.after_commit(&logged.connection);
        assert_eq!(std::fs::read(&path).unwrap(), b"another");
        let moved = directory.path().join("moved.db").metadata().unwrap().len();
        assert!(moved < 100 * 4096, "and nothing into the one that was moved away");
    }
}
