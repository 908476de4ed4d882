//! SQLite as a store: where the answer to each question comes from.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use adjourn_core::Session;
use adjourn_core::id::{HostId, RunId, Seq, SessionId};
use adjourn_core::journal::Entry;
use adjourn_core::time::Timestamp;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use super::query::{self, Answer};
use super::rows::{SqliteRows, recipients};
use super::writer::{Job, Work};
use super::{Sqlite, id_parts, listing, reader, tally};
use crate::committed::{Appended, Listener};
use crate::environment::Environment;
use crate::error::Error;
use crate::query::{Counted, Filter, Page, Query};
use crate::retention::Retention;
use crate::rows::{
    EntryNo, Events as _, HostRow, Hosts as _, Of, OpenRecipient, RecipientRow, SessionNo,
    Sessions as _, Waits as _,
};
use crate::store::{Listed, Metrics, Pending, Size, Store, Tally};
use crate::transaction::Transaction;

impl Store for Sqlite {
    fn transact<T, E, F>(&self, work: F) -> Pending<T, E>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let job: Box<dyn Job> = Box::new(Work::new(work, caller));
        // Queued right here if there is room; a full queue is waited for with the answer. The
        // answer does not hold the queue open: the writer, and whoever closes the store and waits
        // for it, would wait for the answer to be taken.
        let unsent = self.0.queue.as_ref().and_then(|queue| match queue.try_send(job) {
            Err(TrySendError::Full(job)) => Some((job, queue.downgrade())),
            // Closed: the job is gone, and with it the one who could answer.
            Ok(()) | Err(TrySendError::Closed(_)) => None,
        });
        Pending::new(async move {
            if let Some((job, queue)) = unsent {
                let queue = queue.upgrade().ok_or(Error::Closed)?;
                queue.send(job).await.map_err(|_| Error::Closed)?;
            }
            answer.await.unwrap_or_else(|_| Err(Error::Closed.into()))
        })
    }

    fn session(&self, id: SessionId) -> Result<Option<Arc<Session>>, Error> {
        self.read(|connection| reader::session(connection, &self.0.cache, id))
    }

    fn sessions(&self, after: SessionNo, limit: usize) -> Result<Vec<(SessionNo, Listed)>, Error> {
        self.read(|connection| reader::sessions(connection, &self.0.cache, after, limit))
    }

    fn unreadable(
        &self,
        after: SessionNo,
        limit: usize,
    ) -> Result<Vec<(SessionNo, SessionId)>, Error> {
        self.read(|connection| reader::unreadable(connection, after, limit))
    }

    fn prunable(&self, retention: &Retention) -> Result<bool, Error> {
        let now = self.0.environment.now();
        self.read(|connection| reader::prunable(connection, retention, now))
    }

    fn places(&self, id: SessionId, revision: u64) -> Result<Vec<EntryNo>, Error> {
        self.read_of(id, |connection| reader::places(connection, id, revision))
    }

    fn entries(&self, id: SessionId, places: &[EntryNo]) -> Result<Vec<Entry>, Error> {
        self.read_of(id, |connection| reader::entries(connection, id, places))
    }

    fn appended(&self, after: EntryNo, limit: usize) -> Result<Vec<Appended>, Error> {
        self.read(|connection| reader::appended(connection, after, limit))
    }

    fn last_entry(&self) -> Result<EntryNo, Error> {
        self.read(reader::last_entry)
    }

    fn listen(&self, listener: Weak<dyn Listener>) {
        self.0.listeners.add(listener);
    }

    fn founding(&self, id: SessionId) -> Result<Option<Entry>, Error> {
        self.read_of(id, |connection| reader::founding(connection, id))
    }

    fn transcript_within(
        &self,
        id: SessionId,
        index: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Vec<u8>>, Error> {
        self.read_of(id, |connection| reader::transcript(connection, id, index, limit, bytes))
    }

    fn event_data(&self, seq: Seq) -> Result<Option<String>, Error> {
        self.read(|connection| reader::event_data(connection, seq))
    }

    fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        self.read(|connection| SqliteRows::reading(connection).next_due())
    }

    fn undelivered(&self) -> Result<bool, Error> {
        self.read(|connection| {
            let mut rows = SqliteRows::reading(connection);
            let done = rows.cursor()?.done();
            Ok(rows.event_after(done)?.is_some() || !rows.lagging(1)?.is_empty())
        })
    }

    fn ids_like(&self, digits: &str, limit: usize) -> Result<Vec<SessionId>, Error> {
        self.read(|connection| id_parts::like(connection, digits, limit))
    }

    fn ready(&self, after: SessionNo, limit: usize) -> Result<Vec<(SessionNo, SessionId)>, Error> {
        self.read(|connection| reader::ready(connection, after, limit))
    }

    fn driven_by(&self, host: HostId) -> Result<Vec<SessionId>, Error> {
        self.read(|connection| reader::driven_by(connection, host))
    }

    fn hosts(&self) -> Result<Vec<HostRow>, Error> {
        self.read(|connection| SqliteRows::reading(connection).hosts())
    }

    fn strays(&self) -> Result<Vec<HostId>, Error> {
        self.read(reader::strays)
    }

    fn recipients(
        &self,
        session: SessionId,
        run: RunId,
        kind: &str,
    ) -> Result<Vec<RecipientRow>, Error> {
        self.read(|connection| recipients::of_run(connection, session, run, kind))
    }

    fn open_recipients(
        &self,
        kind: &str,
        of: Of,
        limit: usize,
    ) -> Result<Vec<OpenRecipient>, Error> {
        self.read(|connection| recipients::open(connection, kind, of, limit))
    }

    fn tally(&self, now: Timestamp) -> Pending<Tally, Error> {
        self.aside(move |store| {
            store.catch_up()?;
            let mut tally = store.read(|connection| tally::tally(connection, now))?;
            let Some(mut after) = tally.1 else { return Ok(tally.0) };
            // Each page is a read of its own, so that none keeps the log from being written back.
            while let Some(last) =
                store.read(|connection| tally::standing(connection, after, &mut tally.0.states))?
            {
                after = last;
            }
            Ok(tally.0)
        })
    }

    fn query(&self, query: Query) -> Pending<Page, Error> {
        self.aside(move |store| {
            store.catch_up()?;
            let mut answer = Answer::new(query);
            loop {
                match store.read(|connection| answer.go_on(connection, &store.0.cache))? {
                    ControlFlow::Break(page) => return Ok(page),
                    ControlFlow::Continue(rest) => answer = rest,
                }
            }
        })
    }

    fn count(&self, filter: Filter) -> Pending<Counted, Error> {
        self.aside(move |store| {
            store.catch_up()?;
            let mut counted = Counted::default();
            let mut query = Query::new(filter, usize::MAX);
            loop {
                let states = &mut counted.states;
                let (next, behind) = store
                    .read(|connection| query::count(connection, &store.0.cache, &query, states))?;
                counted.behind = behind;
                match next {
                    Some(next) => query.after = Some(next),
                    None => return Ok(counted),
                }
            }
        })
    }

    fn unlisted(&self) -> Result<u64, Error> {
        self.read(listing::behind)
    }

    fn follow(&self) -> Pending<bool, Error> {
        self.aside(Self::follow_a_batch)
    }

    fn session_of(&self, run: RunId) -> Result<Option<SessionId>, Error> {
        self.read(|connection| query::session_of(connection, run))
    }

    fn size(&self) -> Result<Size, Error> {
        self.read(|connection| reader::size(connection, self.0.opened.path()))
    }

    fn backup(&self, to: &Path) -> Result<(), Error> {
        self.read(|connection| reader::backup(connection, to))
    }

    fn still_there(&self) -> Result<(), Error> {
        self.0.opened.still_there()
    }

    fn environment(&self) -> &dyn Environment {
        &*self.0.environment
    }

    fn metrics(&self) -> Metrics {
        let counters = &self.0.counters;
        Metrics {
            commits: counters.commits.load(Ordering::Relaxed),
            commands: counters.commands.load(Ordering::Relaxed),
            retries: counters.retries.load(Ordering::Relaxed),
            reads: counters.reads.load(Ordering::Relaxed),
        }
    }
}
