//! What leaves the thread of its caller: long reads, and the list that they bring up to the journal.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::connection::{self, Sees};
use super::points::Points;
use super::rows::{Known, SqliteRows, Unwritten};
use super::{Sqlite, listing, schema};
use crate::error::Error;
use crate::rows::{Batch, Listing as _};
use crate::store::{Pending, Store as _};

/// How long a query brings its list up to the journal before it answers from what is there.
const FOLLOWING: Duration = Duration::from_secs(1);

impl Sqlite {
    /// Does something that may take a while on a thread of its own.
    pub(super) fn aside<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Pending<T, Error> {
        let (caller, answer) = oneshot::channel();
        let store = self.clone();
        let reader = std::thread::Builder::new().name("adjourn-reader".to_owned());
        let started = reader.spawn(move || {
            // A caller that has gone away is not told.
            let _ = caller.send(read(&store));
        });
        Pending::new(async move {
            started.map_err(|error| Error::io("cannot start a reader", error))?;
            answer.await.unwrap_or(Err(Error::Closed))
        })
    }

    /// Brings the list that queries answer from up to the journal, if it is far behind, for at most
    /// a moment. Where nothing can be written, it stays as it is, and the answer says so.
    pub(super) fn catch_up(&self) -> Result<(), Error> {
        let start = Instant::now();
        while self.unlisted()? > listing::TAIL && start.elapsed() < FOLLOWING {
            if !self.follow_a_batch().unwrap_or(false) {
                break;
            }
        }
        Ok(())
    }

    /// Brings the list up by a batch; returns whether there may be more.
    pub(super) fn follow_a_batch(&self) -> Result<bool, Error> {
        if self.unlisted()? == 0 {
            return Ok(false);
        }
        let batch = self.read(|connection| listing::next(connection, &self.0.cache))?;
        let Some(batch) = batch else { return Ok(false) };
        match &self.0.queue {
            Some(_) => self.transact(move |tx| tx.enter(&batch)).wait()?,
            None => self.enter_alone(&batch)?,
        }
        Ok(true)
    }

    /// Enters a batch in a store that was opened for reading, as such a store is brought to the
    /// newest version: where that is possible.
    fn enter_alone(&self, batch: &Batch) -> Result<(), Error> {
        if self.0.sees != Sees::All {
            return Err(Error::Closed);
        }
        self.0.opened.still_there()?;
        let (connection, mut turnstile) =
            connection::open_writer(self.path(), &Points::default(), None)?;
        // Whoever asks waits no longer for the lock than for the rest.
        turnstile.patience = FOLLOWING;
        turnstile.begin(&connection)?;
        schema::not_newer(&connection)?;
        let unwritten = Unwritten::default();
        unwritten.begin();
        SqliteRows::writing(&connection, &Known::default(), &unwritten).enter(batch)?;
        unwritten.write_out(&connection)?;
        connection.execute_batch("COMMIT")?;
        Ok(())
    }
}
