//! The one thread of a process that writes: it drains a bounded queue into one transaction, in which
//! each job is kept or undone by itself, and has everybody told when the commit is durable.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use adjourn_core::time::Timestamp;
use adjourn_record::Hash;
use adjourn_record::commit;
use adjourn_record::keys::{KeyId, Keys, Signature};
use adjourn_record::merkle::Tree;
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::{mpsc, oneshot};
use tracing::Span;
use tracing::field::Empty;

use super::checkpoint::Checkpoints;
use super::idle::Idle;
use super::opened::Opened;
use super::points::{Point, Points};
use super::rows::{Known, SqliteRows, Undone, Unwritten, given_up, signed, unsigned};
use super::schema;
use super::signers::register;
use super::teller::{Answers, Teller};
use super::turnstile::Turnstile;
use crate::cache::Cache;
use crate::committed::Committed;
use crate::environment::Environment;
use crate::error::Error;
use crate::transaction::Transaction;

/// Commands in one commit at most: more make it longer without making it cheaper per command.
const GROUP: usize = 256;
/// How long a group is collected before it is committed, at least and at most: as long as the last
/// commit took to be durable.
///
/// A longer one would save little of what a commit costs, and those in it come back all at once,
/// to a writer that has waited for them. Other processes may be waiting for the lock, too.
const GROUP_TIME: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(5));
/// For how many groups each job's rows are written before the next job runs, after rows could not be
/// written when it was too late to tell whose they were.
const CAREFUL: u32 = 1000;

/// A caller's part of a transaction, and the way to tell it how that went.
pub(super) trait Job: Send {
    /// Does the work; `Err` means that it is undone.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> Result<(), Undo>;
    /// Takes back what the work answered: it was undone all the same.
    fn undone(&mut self, why: Option<Error>);
    /// Tells the caller, once the commit is durable or has failed.
    fn tell(self: Box<Self>, committed: Result<(), Error>);
}

/// The work failed or was refused; its caller will be told why.
pub(super) struct Undo {
    /// What the store said, if it was the store that failed.
    store: Option<Error>,
}

/// What the writer has done so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) commits: AtomicU64,
    pub(super) commands: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) reads: AtomicU64,
}

pub(super) struct Writer {
    pub(super) connection: Connection,
    /// Carries the log into the file between commits.
    pub(super) checkpoints: Checkpoints,
    pub(super) turnstile: Turnstile,
    pub(super) points: Points,
    pub(super) opened: Arc<Opened>,
    pub(super) environment: Arc<dyn Environment>,
    pub(super) keys: Keys,
    /// Keys to take up before the next commit.
    pub(super) next_keys: Arc<Mutex<Option<Keys>>>,
    pub(super) cache: Arc<Cache>,
    pub(super) counters: Arc<Counters>,
    /// Tells listeners and callers what was committed.
    pub(super) teller: Teller,
    /// What commands need not read again.
    pub(super) known: Known,
    /// What the transaction has yet to write.
    pub(super) unwritten: Unwritten,
    /// For how many groups more the rows of each job are written at its end: see [`CAREFUL`].
    pub(super) careful: u32,
    /// How long the last commit took, from its signature on.
    pub(super) last_took: Duration,
    /// Whether the last commits found no room.
    pub(super) full: bool,
}

impl Writer {
    /// Runs until every handle to the queue is gone.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) {
        let mut idle = Idle::default();
        while let Some(first) = idle.until_next(&mut queue) {
            let mut told = Vec::new();
            let mut changes = Committed::default();
            let span = tracing::debug_span!(
                "commit",
                commands = Empty,
                session = Empty,
                run = Empty,
                handle = Empty,
                host = Empty
            );
            let committed =
                span.in_scope(|| self.commit(first, &mut queue, &mut told, &mut changes));
            name(&span, told.len(), &changes);
            let committed = committed.map_err(|error| {
                // The pages of another file are read as damage.
                self.opened.still_there().err().unwrap_or(error)
            });
            span.in_scope(|| self.log_room(&committed, &changes));
            drop(span);
            self.careful = match self.unwritten.broken() {
                Some(_) => CAREFUL,
                None => self.careful.saturating_sub(1),
            };
            if committed.is_err() {
                // What was cached on the way may never have happened.
                self.cache.clear();
                self.known.forget();
                if !self.connection.is_autocommit() {
                    let _ = self.connection.execute_batch("ROLLBACK");
                }
            }
            self.counters.commands.fetch_add(told.len() as u64, Ordering::Relaxed);
            // Nobody waits for the same lock as long again as those before.
            if matches!(committed, Err(Error::Locked { .. })) {
                while let Ok(job) = queue.try_recv() {
                    told.push(job);
                }
            }
            self.teller.tell(Answers { committed, changes, told }, !queue.is_empty());
            self.checkpoints.after_commit(&self.connection);
            self.counters.retries.store(self.turnstile.retries, Ordering::Relaxed);
            self.turnstile.after_commit();
        }
        self.teller.finish();
        self.checkpoints.finish();
        self.opened.close([&self.connection]);
    }

    /// Tells the log that the store has no room left, and that it has again, once each.
    fn log_room(&mut self, committed: &Result<(), Error>, changes: &Committed) {
        match committed {
            Err(error @ Error::Full(_)) if !self.full => {
                let hint = error.hint().unwrap_or_default();
                let Concerned { session, run, handle, host } = Concerned::of(changes);
                tracing::warn!(session, run, handle, host, hint, "nothing can be stored: {error}");
                self.full = true;
            }
            Ok(()) if self.full && changes.entries.is_some() => {
                let Concerned { session, run, handle, host } = Concerned::of(changes);
                tracing::info!(session, run, handle, host, "there is room in the store again");
                self.full = false;
            }
            _ => {}
        }
    }

    /// Begins a transaction, unless a newer program has changed the tables meanwhile.
    fn begin(&mut self) -> Result<(), Error> {
        self.turnstile.begin(&self.connection)?;
        self.unwritten.begin();
        self.known.begin(&self.connection)?;
        schema::not_newer(&self.connection)
    }

    /// Runs a group of jobs in one transaction.
    fn commit(
        &mut self,
        first: Box<dyn Job>,
        queue: &mut mpsc::Receiver<Box<dyn Job>>,
        told: &mut Vec<Box<dyn Job>>,
        changes: &mut Committed,
    ) -> Result<(), Error> {
        told.push(first);
        self.take_up_keys();
        self.begin()?;
        self.points.reach(Point::Locked);
        let start = Instant::now();
        let (at_least, at_most) = GROUP_TIME;
        let group_time = self.last_took.clamp(at_least, at_most);
        let mut tree = Tree::new();
        loop {
            self.unwritten.begin_job(told.len() == 1);
            let Some(job) = told.last_mut() else { break };
            self.run_one(job.as_mut(), &mut tree, changes)?;
            if told.len() == GROUP || start.elapsed() > group_time {
                break;
            }
            match queue.try_recv() {
                Ok(next) => told.push(next),
                Err(_) => break,
            }
        }
        self.unwritten.write_out(&self.connection)?;
        let collected = Instant::now();
        if tree.count() > 0 {
            self.sign(&tree)?;
        }
        self.points.reach(Point::BeforeCommit);
        // A log that belongs to another file by now is not written to.
        self.opened.file_still_there()?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.last_took = collected.elapsed();
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.points.reach(Point::AfterCommit);
        // What went into a file or a log that is gone is not acknowledged.
        self.opened.still_there()
    }

    /// Signs with other keys from here on, if there are others.
    fn take_up_keys(&mut self) {
        let next = || self.next_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(keys) = next().take() else { return };
        let there = self.opened.still_there();
        match there.and_then(|()| register(&self.connection, &mut self.turnstile, &keys)) {
            Ok(()) => self.keys = keys,
            // A store that cannot be written says so with the commit; they are taken up later.
            Err(_) => drop(next().get_or_insert(keys)),
        }
    }

    /// Runs one job, and keeps what it did as a whole or undoes it as a whole.
    fn run_one(
        &mut self,
        job: &mut dyn Job,
        tree: &mut Tree,
        changes: &mut Committed,
    ) -> Result<(), Error> {
        let mut rows = SqliteRows::writing(&self.connection, &self.known, &self.unwritten);
        let mut transaction = Transaction::new(&mut rows, &*self.environment, &self.cache)
            .listened_to(self.teller.is_listened_to());
        // A panic of one caller must not take the others' answers with it.
        let result = catch_unwind(AssertUnwindSafe(|| job.run(&mut transaction)));
        let result = match result {
            Ok(Ok(())) => match transaction.failed().cloned().or_else(|| self.unwritten.failed()) {
                // A job that took an error of the store for an answer has done half of its work.
                Some(failed) => Err(Some(failed)),
                None if self.careful > 0 => {
                    self.unwritten.write_out(&self.connection).map_err(Some)
                }
                None => Ok(()),
            },
            Ok(Err(Undo { store })) => return self.undo(store),
            Err(_) => return self.undo(None),
        };
        if let Err(store) = result {
            job.undone(store.clone());
            return self.undo(store);
        }
        if self.connection.is_autocommit() {
            return Err(given_up());
        }
        changes.extend(transaction.keep(tree));
        self.unwritten.keep_job(&self.connection)
    }

    /// Undoes what a job did; the others in the transaction stay.
    ///
    /// # Errors
    /// The transaction is gone, or cannot be committed.
    fn undo(&mut self, store: Option<Error>) -> Result<(), Error> {
        if self.connection.is_autocommit() {
            // Some errors (a full disk) make SQLite give up the whole transaction. The callers of all
            // its jobs are told why, also of those that met no error.
            return Err(store.unwrap_or_else(given_up));
        }
        if let Some(error) = self.unwritten.broken() {
            return Err(error);
        }
        match self.unwritten.undo_job(&self.connection)? {
            Undone::Unchanged => {}
            Undone::Reverted => self.known.forget(),
            Undone::WithTransaction => {
                self.known.forget();
                self.connection.prepare_cached("ROLLBACK")?.execute([])?;
                self.begin()?;
            }
        }
        Ok(())
    }

    /// Adds the commit's row: the root of its entries, signed, on top of the commit before.
    fn sign(&self, tree: &Tree) -> Result<(), Error> {
        let prev = last_commit(&self.connection)?.map_or(commit::Head::START, |row| row.head());
        let row = commit::Row::sign(self.keys.current(), prev, tree, self.environment.now());
        self.connection
            .prepare_cached(
                "INSERT INTO commits (number, prev, root, count, at, key, signature)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                signed(row.number),
                row.prev.as_bytes(),
                row.root.as_bytes(),
                signed(row.count),
                row.at.as_millis(),
                row.key.as_bytes(),
                row.signature.as_bytes(),
            ])?;
        Ok(())
    }
}

/// Names in the span of a commit what is in it.
fn name(span: &Span, commands: usize, changes: &Committed) {
    if span.is_disabled() {
        return;
    }
    let Concerned { session, run, handle, host } = Concerned::of(changes);
    span.record("commands", commands);
    span.record("session", session);
    span.record("run", run);
    span.record("handle", handle);
    span.record("host", host);
}

/// What a group has a part in: each session, each run, each suspension and each host once, as far as
/// they are known.
struct Concerned {
    session: Option<String>,
    run: Option<String>,
    handle: Option<String>,
    host: Option<String>,
}

impl Concerned {
    fn of(committed: &Committed) -> Self {
        let sessions = || committed.changes.iter().map(|change| &change.session);
        let runs = sessions().filter_map(|session| Some(session.run()?.id.to_string()));
        let handles = sessions().filter_map(|session| session.last_suspension());
        let events = committed.changes.iter().flat_map(|change| change.events.iter());
        Self {
            session: joined(sessions().map(|session| session.id.to_string())),
            run: joined(runs),
            handle: joined(handles.map(|handle| handle.to_string())),
            host: joined(events.filter_map(|event| Some(event.by.host?.to_string()))),
        }
    }
}

/// Puts ids together, each once.
fn joined(ids: impl Iterator<Item = String>) -> Option<String> {
    let ids: BTreeSet<_> = ids.collect();
    (!ids.is_empty()).then(|| ids.into_iter().collect::<Vec<_>>().join(","))
}

/// Returns the last commit's row.
pub(super) fn last_commit(connection: &Connection) -> Result<Option<commit::Row>, Error> {
    let sql = format!("{COMMIT} ORDER BY number DESC LIMIT 1");
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row([], commit_row).optional()?)
}

pub(super) const COMMIT: &str = "SELECT number, prev, root, count, at, key, signature FROM commits";

pub(super) fn commit_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<commit::Row> {
    Ok(commit::Row {
        number: unsigned(row.get(0)?),
        prev: Hash::from_bytes(row.get(1)?),
        root: Hash::from_bytes(row.get(2)?),
        count: unsigned(row.get(3)?),
        at: Timestamp::from_millis(row.get(4)?),
        key: KeyId::from_bytes(row.get(5)?),
        signature: Signature::from_bytes(row.get(6)?),
    })
}

/// A closure and the way to tell its caller.
pub(super) struct Work<F, T, E> {
    work: Option<F>,
    result: Option<Result<T, E>>,
    caller: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Work<F, T, E> {
    pub(super) const fn new(work: F, caller: oneshot::Sender<Result<T, E>>) -> Self {
        Self { work: Some(work), result: None, caller }
    }
}

impl<F, T, E> Job for Work<F, T, E>
where
    F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send + 'static,
{
    fn run(&mut self, transaction: &mut Transaction<'_>) -> Result<(), Undo> {
        // If the work panics, this is what its caller is told.
        self.result = Some(Err(Error::Panicked.into()));
        let Some(work) = self.work.take() else { return Err(Undo { store: None }) };
        let result = work(transaction);
        let undo = result.as_ref().err().map(|error| Undo { store: Error::within(error) });
        self.result = Some(result);
        undo.map_or(Ok(()), Err)
    }

    fn undone(&mut self, why: Option<Error>) {
        self.result = Some(Err(why.unwrap_or(Error::Closed).into()));
    }

    fn tell(self: Box<Self>, committed: Result<(), Error>) {
        let result = match (committed, self.result) {
            // A refusal may rest on something in the same commit that is not durable now.
            (Err(error), _) => Err(error.into()),
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(Error::Closed.into()),
        };
        // Whoever does not wait for the answer does not get one.
        let _ = self.caller.send(result);
    }
}
