//! The store as its users see it, whatever back end is behind it.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use adjourn_core::Session;
use adjourn_core::id::{HostId, RunId, Seq, SessionId};
use adjourn_core::journal::Entry;
use adjourn_core::time::Timestamp;

use crate::committed::{Appended, Listener};
use crate::environment::Environment;
use crate::error::Error;
use crate::query::{Counted, Filter, Page, Query};
use crate::retention::Retention;
use crate::rows::{EntryNo, HostRow, Of, OpenRecipient, RecipientRow, SessionNo};
use crate::transaction::Transaction;

/// A place where sessions live.
///
/// # Contract
/// - What [`Store::transact`] answers with `Ok` is durable, and happened as a whole.
/// - What it answers with `Err` left no trace, unless the error is that of a failed commit, after
///   which it is not known whether anything of the commit is there.
/// - A transaction sees all that was committed before it, by any process, and nothing else.
/// - Transactions are few milliseconds long; nobody is kept waiting for seconds.
/// - Reads see commits only, and hold nothing longer than a page of results takes. Those that may
///   take long leave the caller's thread, and answer when they are done; those of one session, or of
///   a bounded page, answer at once.
pub trait Store: Clone + Send + Sync + 'static {
    /// Runs `work` inside a write transaction that it may share with others, and answers when the
    /// commit is durable.
    ///
    /// The work is queued at once, or as soon as there is room when the answer is waited for.
    fn transact<T, E, F>(&self, work: F) -> Pending<T, E>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static;

    /// Returns a session.
    ///
    /// # Errors
    /// The store fails.
    fn session(&self, id: SessionId) -> Result<Option<Arc<Session>>, Error>;

    /// Returns a page of sessions, after `after`, oldest first. Those that cannot be read are among
    /// them, with what is wrong.
    ///
    /// # Errors
    /// The store fails.
    fn sessions(&self, after: SessionNo, limit: usize) -> Result<Vec<(SessionNo, Listed)>, Error>;

    /// Returns a page of sessions that some process could not read when something came for them,
    /// after `after`, oldest first. They are left alone until [`Transaction::mend`].
    ///
    /// # Errors
    /// The store fails.
    fn unreadable(
        &self,
        after: SessionNo,
        limit: usize,
    ) -> Result<Vec<(SessionNo, SessionId)>, Error>;

    /// Returns whether there is something to drop, so that nobody takes the write lock for nothing.
    ///
    /// # Errors
    /// The store fails.
    fn prunable(&self, retention: &Retention) -> Result<bool, Error>;

    /// Returns sessions whose id begins with these hexadecimal digits, ends with twelve digits that
    /// begin with them, or ends with at least four of them, at most `limit` of each kind; no session
    /// is loaded.
    ///
    /// # Errors
    /// The store fails.
    fn ids_like(&self, digits: &str, limit: usize) -> Result<Vec<SessionId>, Error>;

    /// Returns where the entries of a session's journal lie, from `revision` on, oldest first.
    ///
    /// It costs as much as there are entries behind `revision`, so whoever reads page by page asks
    /// once.
    ///
    /// # Errors
    /// The store fails.
    fn places(&self, id: SessionId, revision: u64) -> Result<Vec<EntryNo>, Error>;

    /// Returns the entries of a session's journal at `places`; those that were pruned are left out.
    ///
    /// # Errors
    /// The store fails.
    fn entries(&self, id: SessionId, places: &[EntryNo]) -> Result<Vec<Entry>, Error>;

    /// Returns a page of what any process has appended to the journal behind `after`, oldest first.
    ///
    /// # Errors
    /// The store fails.
    fn appended(&self, after: EntryNo, limit: usize) -> Result<Vec<Appended>, Error>;

    /// Returns the place of the last entry in the journal of all sessions, or zero.
    ///
    /// # Errors
    /// The store fails.
    fn last_entry(&self) -> Result<EntryNo, Error>;

    /// Tells a listener of the commits of this process from now on, as long as it is there.
    fn listen(&self, listener: Weak<dyn Listener>);

    /// Returns the entry that created a session, unless it was pruned.
    ///
    /// # Errors
    /// The store fails.
    fn founding(&self, id: SessionId) -> Result<Option<Entry>, Error>;

    /// Returns a page of a session's journal, from `revision` on.
    ///
    /// Entries that were pruned are left out.
    ///
    /// # Errors
    /// The store fails.
    fn journal(&self, id: SessionId, revision: u64, limit: usize) -> Result<Vec<Entry>, Error> {
        let mut places = self.places(id, revision)?;
        places.truncate(limit);
        self.entries(id, &places)
    }

    /// Returns a page of a session's transcript, from the entry with the number `index` on.
    ///
    /// # Errors
    /// The store fails.
    fn transcript(&self, id: SessionId, index: u64, limit: usize) -> Result<Vec<Vec<u8>>, Error> {
        self.transcript_within(id, index, limit, usize::MAX)
    }

    /// Returns a page of a session's transcript that takes at most `bytes`, or has one entry.
    ///
    /// # Errors
    /// The store fails.
    fn transcript_within(
        &self,
        id: SessionId,
        index: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Vec<u8>>, Error>;

    /// Returns an event's data, while it is kept.
    ///
    /// # Errors
    /// The store fails.
    fn event_data(&self, seq: Seq) -> Result<Option<String>, Error>;

    /// Returns the earliest deadline.
    ///
    /// # Errors
    /// The store fails.
    fn next_due(&self) -> Result<Option<Timestamp>, Error>;

    /// Returns whether events were acknowledged that are not delivered yet, to somebody who can
    /// hear them.
    ///
    /// # Errors
    /// The store fails.
    fn undelivered(&self) -> Result<bool, Error>;

    /// Returns sessions that wait to be claimed, after `after`, at most `limit`. Those that are
    /// marked as unreadable are left out.
    ///
    /// # Errors
    /// The store fails.
    fn ready(&self, after: SessionNo, limit: usize) -> Result<Vec<(SessionNo, SessionId)>, Error>;

    /// Returns the sessions that a host drives.
    ///
    /// # Errors
    /// The store fails.
    fn driven_by(&self, host: HostId) -> Result<Vec<SessionId>, Error>;

    /// Returns the hosts that were announced.
    ///
    /// # Errors
    /// The store fails.
    fn hosts(&self) -> Result<Vec<HostRow>, Error>;

    /// Returns hosts that own sessions and are not announced, so that nobody finds them by their
    /// row. Sessions that are marked as unreadable do not count.
    ///
    /// # Errors
    /// The store fails.
    fn strays(&self) -> Result<Vec<HostId>, Error>;

    /// Returns the recipients of a kind that a run has, in the order in which they were added.
    ///
    /// # Errors
    /// The store fails.
    fn recipients(
        &self,
        session: SessionId,
        run: RunId,
        kind: &str,
    ) -> Result<Vec<RecipientRow>, Error>;

    /// Returns a page of the recipients of a kind that are told more, by their number.
    ///
    /// # Errors
    /// The store fails.
    fn open_recipients(
        &self,
        kind: &str,
        of: Of,
        limit: usize,
    ) -> Result<Vec<OpenRecipient>, Error>;

    /// Counts sessions by their state, deadlines that have passed at `now`, and events that are not
    /// delivered yet.
    ///
    /// It reads no session: states are counted where the list that queries answer from is kept, and
    /// what is behind the journal is brought up to it first where that is possible, for at most a
    /// moment; the counts say how far it is not. It does so on a thread of its own.
    fn tally(&self, now: Timestamp) -> Pending<Tally, Error>;

    /// Returns a page of the sessions that a query asks for.
    ///
    /// Each filter has an index: no query reads every session, but for one without a filter that
    /// turns all pages. What is behind the journal is brought up to it first where that is possible,
    /// for at most a moment; the page says how far it is not. The work is done on a thread of its
    /// own.
    fn query(&self, query: Query) -> Pending<Page, Error>;

    /// Counts the sessions that a filter lets through by their state. It looks at each of them, in
    /// pages, on a thread of its own.
    fn count(&self, filter: Filter) -> Pending<Counted, Error>;

    /// Returns how many entries of the journal the list that queries answer from does not know yet.
    ///
    /// # Errors
    /// The store fails.
    fn unlisted(&self) -> Result<u64, Error>;

    /// Brings the list that queries answer from up to the journal, by a batch; returns whether there
    /// may be more.
    ///
    /// A session that has changed a hundred times since is entered once. It is read on a thread of
    /// its own, and written like any transaction. Nothing but the speed of queries depends on it.
    fn follow(&self) -> Pending<bool, Error>;

    /// Returns the session that a run belongs to, unless it was erased.
    ///
    /// # Errors
    /// The store fails.
    fn session_of(&self, run: RunId) -> Result<Option<SessionId>, Error>;

    /// Returns what is stored, and how much room it takes.
    ///
    /// # Errors
    /// The store fails.
    fn size(&self) -> Result<Size, Error>;

    /// Writes a copy of the store, as it is at one moment, to a file that is not there yet.
    ///
    /// # Errors
    /// The store fails, or the file is there already or cannot be written.
    fn backup(&self, to: &Path) -> Result<(), Error>;

    /// Makes sure that the store is still the one that was opened: its file may have been moved,
    /// deleted or replaced.
    ///
    /// # Errors
    /// It is not, and what is committed there would be lost; or the store fails.
    fn still_there(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the clock and the source of ids.
    fn environment(&self) -> &dyn Environment;

    /// Returns what was done so far.
    fn metrics(&self) -> Metrics;
}

/// A session in a list, or which one cannot be read and why.
pub type Listed = Result<Arc<Session>, (SessionId, Error)>;

/// How many sessions there are in which state, and what waits for a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many sessions are in each state, by its name, and since when the one is that was in it
    /// longest; states that no session is in are left out.
    pub states: BTreeMap<&'static str, Standing>,
    /// How many deadlines have passed and have not acted yet.
    pub overdue: u64,
    /// The earliest of these.
    pub overdue_since: Option<Timestamp>,
    /// How many events are not delivered yet.
    pub undelivered: u64,
    /// How many sessions are marked because some program could not read them.
    pub unreadable: u64,
    /// How many entries of the journal the counts of states do not take into account, zero most of
    /// the time.
    pub behind: u64,
}

/// How many sessions are in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The number of sessions in that state.
    pub count: u64,
    /// When the one changed last that did so the longest time ago.
    pub oldest: Timestamp,
}

/// How much there is in a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// The number of sessions, ended ones included.
    pub sessions: u64,
    /// How many of the sessions are suspended.
    pub suspended: u64,
    /// The number of journal entries.
    pub entries: u64,
    /// The number of events that are kept.
    pub events: u64,
    /// Bytes of the file.
    pub file: u64,
    /// Of these, free for reuse.
    pub free: u64,
    /// Bytes of the write-ahead log beside it.
    pub log: u64,
}

/// What a store has done since it was opened, in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metrics {
    /// The number of commits.
    pub commits: u64,
    /// Transactions of callers in these commits.
    pub commands: u64,
    /// How often the write lock was found taken by another process.
    pub retries: u64,
    /// Reads of the file, outside of commits.
    pub reads: u64,
}

/// The answer to a transaction, once its commit is durable, or to a read that takes a while.
///
/// # Cancel safety
/// Dropping it does not undo the transaction: what is queued runs to its end.
#[must_use = "nothing is known of it before its answer"]
pub struct Pending<T, E>(Pin<Box<dyn Future<Output = Result<T, E>> + Send>>);

impl<T, E> Pending<T, E> {
    pub(crate) fn new(answer: impl Future<Output = Result<T, E>> + Send + 'static) -> Self {
        Self(Box::pin(answer))
    }

    /// Waits for the answer on this thread.
    ///
    /// # Errors
    /// Whatever the work answered, or that the commit failed.
    pub fn wait(mut self) -> Result<T, E> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match self.0.as_mut().poll(&mut context) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl<T, E> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
