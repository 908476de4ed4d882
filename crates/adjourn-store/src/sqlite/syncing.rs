//! How commits become durable: the log is synced while the writer goes on with the next commands.
//!
//! SQLite writes a commit into its log and lets go of the write lock. Those whose commands are in it
//! are answered, and listeners are told, only when the log has been synced. One sync covers all that
//! was written before it, by whatever process: so a host that reads a commit which is not synced yet
//! cannot act on it too early, because it acts after a commit of its own, whose sync covers both.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use super::opened::Opened;
use super::points::{Point, Points};
use super::writer::Job;
use crate::cache::Cache;
use crate::committed::{Committed, Listeners};
use crate::error::Error;

/// Commits that may wait for the disk; with more, the writer waits, too.
const COMMITS: usize = 16;
/// How often the writer looks whether the commits before a failure have been answered.
const LOOK: Duration = Duration::from_millis(1);

/// A commit that is in the log, and whose callers wait until the log is on the disk.
pub(super) struct Written {
    pub(super) jobs: Vec<Box<dyn Job>>,
    pub(super) changes: Committed,
    /// Whether it wrote anything: a refusal alone does not.
    pub(super) in_log: bool,
}

/// What syncs the log, and then answers those who wait for it.
pub(super) struct Log {
    /// Brings what was written to the log to the disk.
    pub(super) sync: Box<dyn Fn() -> std::io::Result<()> + Send + Sync>,
    pub(super) opened: Arc<Opened>,
    pub(super) points: Points,
    pub(super) cache: Arc<Cache>,
    pub(super) listeners: Arc<Listeners>,
}

/// A log, and what is known of its syncs.
struct Synced {
    log: Log,
    /// Commits that were handed to the thread and are not answered yet.
    waiting: AtomicUsize,
    /// How long the last sync took, in nanoseconds.
    took: AtomicU64,
    /// Whether a sync has failed, and the log was not carried into the file since.
    ///
    /// The system forgets what it could not write: a later sync would succeed, and the log would
    /// have a gap behind which SQLite reads nothing after a loss of power.
    failed: AtomicBool,
}

/// The thread that syncs the log while the writer goes on.
pub(super) struct Syncing {
    synced: Arc<Synced>,
    commits: SyncSender<Written>,
    thread: JoinHandle<()>,
}

impl Log {
    /// Returns the way to sync the log of a store that is open.
    ///
    /// # Errors
    /// The log cannot be opened, or its name cannot be made durable.
    pub(super) fn of(opened: &Opened) -> Result<impl Fn() -> std::io::Result<()> + use<>, Error> {
        let log: File = opened.open_log()?;
        Ok(move || log.sync_data())
    }
}

impl Syncing {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(log: Log) -> Result<Self, Error> {
        let synced = Arc::new(Synced {
            log,
            waiting: AtomicUsize::new(0),
            took: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        });
        let (commits, receiver) = sync_channel(COMMITS);
        let thread = std::thread::Builder::new()
            .name("adjourn-sync".to_owned())
            .spawn({
                let synced = Arc::clone(&synced);
                move || synced.run(&receiver)
            })
            .map_err(|error| Error::io("cannot start the thread that syncs", error))?;
        Ok(Self { synced, commits, thread })
    }

    pub(super) fn thread_id(&self) -> ThreadId {
        self.thread.thread().id()
    }

    /// Returns how long the last sync took.
    pub(super) fn last_took(&self) -> Duration {
        Duration::from_nanos(self.synced.took.load(Ordering::Relaxed))
    }

    /// Has a commit synced and answered, in the order of the commits.
    ///
    /// With nothing else to do, the caller does it itself: waking the thread takes as long as a
    /// sync.
    pub(super) fn take(&self, written: Written, more_waits: bool) {
        if !more_waits && self.is_idle() {
            self.synced.settle(vec![written]);
            return;
        }
        self.synced.waiting.fetch_add(1, Ordering::AcqRel);
        if let Err(unsent) = self.commits.send(written) {
            // The thread has panicked: what it did not answer is answered here.
            self.synced.settle(vec![unsent.0]);
        }
    }

    /// Returns whether everything that was committed has been answered.
    fn is_idle(&self) -> bool {
        self.synced.waiting.load(Ordering::Acquire) == 0
    }

    /// Returns whether a sync has failed; all commits are answered then.
    pub(super) fn has_failed(&self) -> bool {
        if !self.synced.failed.load(Ordering::Acquire) {
            return false;
        }
        while !self.is_idle() && !self.thread.is_finished() {
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Takes note that all of the log is in the file, which was synced.
    pub(super) fn log_was_carried(&self) {
        self.synced.failed.store(false, Ordering::Release);
    }

    /// Waits until everything is answered, and ends the thread.
    pub(super) fn end(self) {
        let Self { commits, thread, .. } = self;
        drop(commits);
        let _ = thread.join();
    }
}

impl Synced {
    fn run(&self, commits: &Receiver<Written>) {
        while let Ok(first) = commits.recv() {
            let mut all = vec![first];
            all.extend(commits.try_iter());
            let count = all.len();
            self.settle(all);
            self.waiting.fetch_sub(count, Ordering::AcqRel);
        }
    }

    /// Syncs the log once, and answers those whose commands are in the commits.
    fn settle(&self, commits: Vec<Written>) {
        let synced = match commits.iter().any(|written| written.in_log) {
            true => self.sync(),
            false => Ok(()),
        };
        let Log { opened, points, cache, listeners, .. } = &self.log;
        for Written { jobs, changes, .. } in commits {
            points.reach(Point::AfterCommit);
            // What went into a file or a log that is gone is not acknowledged.
            let durable = opened.still_there().and_then(|()| synced.clone());
            match &durable {
                Ok(()) => listeners.tell(&changes),
                Err(_) => cache.clear(),
            }
            for job in jobs {
                job.tell(durable.clone());
            }
        }
    }

    fn sync(&self) -> Result<(), Error> {
        let start = Instant::now();
        let synced = match self.failed.load(Ordering::Acquire) {
            true => Err(std::io::Error::other("the disk did not take what was written before")),
            false => (self.log.sync)(),
        };
        let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.took.store(took, Ordering::Relaxed);
        synced.map_err(|error| {
            self.failed.store(true, Ordering::Release);
            Error::io("cannot sync the log of the store", error)
        })
    }
}
