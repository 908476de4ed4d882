//! Looking after a store: how much it holds, backups, verification, and what is dropped.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adjourn_core::time::Timestamp;
use adjourn_record::commit::Head;
use adjourn_record::keys::{KeyId, KeyRing};
use adjourn_store::sqlite::{self, Fault, Restored, SetAside, Verified};
use adjourn_store::{Metrics, Pruned, Retention, Size, Store};

use crate::adjourn::Adjourn;
use crate::clock::Machine;
use crate::doorbell::Hosts;
use crate::error::Error;
use crate::off_thread::off_thread;

/// How much is dropped in one transaction.
const PRUNED_AT_ONCE: usize = 1000;

impl<S: Store> Adjourn<S> {
    /// Returns what is stored, and how much room it takes. It counts on another thread.
    ///
    /// # Errors
    /// The store fails.
    pub async fn size(&self) -> Result<Size, Error> {
        let store = self.process().store.clone();
        off_thread(move || store.size()).await
    }

    /// Returns how much this process has done with the store since it opened it.
    pub fn metrics(&self) -> Metrics {
        self.process().store.metrics()
    }

    /// Returns the earliest deadline of all sessions.
    ///
    /// # Errors
    /// The store fails.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        Ok(self.process().store.next_due()?)
    }

    /// Drops what is kept no longer: events, answers to idempotency keys, and what happened in
    /// sessions that ended. It resolves when all of it is dropped, a portion in each commit. Hosts
    /// do this by themselves.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropped, the portion that was begun is dropped, and the rest is kept.
    pub async fn prune(&self, retention: Retention) -> Result<Pruned, Error> {
        let mut all = Pruned::default();
        loop {
            let portion = self.transact(move |tx| tx.prune(&retention, PRUNED_AT_ONCE)).await?;
            all.events += portion.events;
            all.answers += portion.answers;
            all.sessions += portion.sessions;
            if !portion.more {
                return Ok(all);
            }
        }
    }

    /// Brings the list that queries answer from up to the journal. Hosts do this by themselves;
    /// nothing but the speed of queries depends on it.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropped, the batch that was begun is written, and the rest is left.
    pub async fn catch_up_list(&self) -> Result<(), Error> {
        while self.process().store.follow().await? {}
        Ok(())
    }

    /// Writes a copy of the store, as it is at one moment, to a file that is not there yet.
    ///
    /// # Errors
    /// The store fails, or the file is there already or cannot be written.
    ///
    /// # Cancel safety
    /// Dropped after it was polled, the copy is written all the same, and whether it was is not
    /// told.
    pub async fn backup(&self, to: impl Into<PathBuf>) -> Result<(), Error> {
        let (store, to) = (self.process().store.clone(), to.into());
        off_thread(move || store.backup(&to)).await
    }
}

impl Adjourn {
    /// Returns the head of the commits, to be kept elsewhere: a store that was rolled back does not
    /// lead to it.
    ///
    /// # Errors
    /// The store fails.
    pub async fn head(&self) -> Result<Head, Error> {
        Ok(self.process().store.head()?)
    }

    /// Verifies every entry, every link, every commit and its signature.
    ///
    /// `trusted` decides which keys count; take it from the key directory, because a program that
    /// can write to the store can add a key to it. `known` is a head that was kept elsewhere.
    ///
    /// # Errors
    /// The store fails. Damage is no error but the result.
    pub async fn verify(
        &self,
        trusted: KeyRing,
        known: Option<Head>,
    ) -> Result<Result<Verified, Fault>, Error> {
        let store = self.process().store.clone();
        off_thread(move || store.verify(&trusted, known)).await
    }

    /// Returns the key that the last commit was signed with; nothing in a store without one.
    ///
    /// # Errors
    /// The store fails.
    pub async fn signer(&self) -> Result<Option<KeyId>, Error> {
        Ok(self.process().store.signer()?)
    }

    /// Returns the public halves of all keys that the store was ever opened with.
    ///
    /// # Errors
    /// The store fails.
    pub async fn known_keys(&self) -> Result<KeyRing, Error> {
        Ok(self.process().store.keys()?)
    }

    /// Returns the log that lay beside the store's file when it was opened and was not written for
    /// it, if there was one. It was not read, and has another name since.
    pub fn set_aside(&self) -> Option<&SetAside> {
        self.process().store.set_aside()
    }

    /// Returns the log that cannot be read where the store was opened, if there is one: what is
    /// read may lack what was committed last.
    pub async fn unread_log(&self) -> Option<PathBuf> {
        self.process().store.unread_log()
    }
}

/// Returns how many hosts and watchers of a store are alive, of all processes, without opening it.
pub async fn living_at(store: &Path) -> usize {
    let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    Hosts::beside(&store).living().len()
}

/// Puts a copy of the store in `from` in the place of `store`, and keeps what was there.
///
/// # Errors
/// What is in `from` is no store or cannot be read, a process has `store` open, or it cannot be
/// written.
///
/// # Cancel safety
/// Dropped after it was polled, the store is replaced all the same, and where the old files are is
/// not told.
pub async fn restore(from: &Path, store: &Path) -> Result<Restored, Error> {
    let (from, store) = (from.to_owned(), store.to_owned());
    off_thread(move || sqlite::restore(&from, &store, Arc::new(Machine))).await
}
