//! How a host is known to others: its row in the store, its files, and its signs of life.

use std::sync::Arc;
use std::time::Instant;

use adjourn_store::{Error, Store};
use tokio::runtime::Handle;

use super::{Host, LOOK, SIGN};
use crate::doorbell::Hosts;

impl<S: Store> Host<S> {
    /// Sees to it that others know this host to be alive, also if its files were cleared away.
    ///
    /// What it had may be others' by then, and is refused to it; what it claims from now on is its
    /// own.
    pub(super) async fn be_known(&mut self) -> Result<(), Error> {
        self.give_sign();
        // Not by the wall clock, which may be set back.
        if Instant::now() < self.be_known_at {
            return Ok(());
        }
        self.be_known_at = Instant::now() + LOOK;
        // What is done in a file that is no longer the store would be lost.
        self.store.still_there()?;
        if self.presence.renew().map_err(|error| unannounced(&self.hosts, error))? {
            self.claimant.renew_lists();
            self.announce().await?;
        }
        Ok(())
    }

    /// Gives a sign of life, every few seconds: a host that is stopped or stuck gives none.
    pub(super) fn give_sign(&mut self) {
        if Instant::now() >= self.sign_at {
            self.sign_at = Instant::now() + SIGN;
            self.presence.sign();
        }
    }

    /// Tells others what this host says about itself.
    pub(super) async fn announce(&self) -> Result<(), Error> {
        let row = self.claimant.row().clone();
        self.store.transact(move |tx| tx.announce(&row)).await?;
        self.hosts.ring();
        Ok(())
    }
}

/// A host that is about to be known to others.
///
/// Dropped before it is, its row is removed again, if it came to be in the store; its files stay
/// until then, so that no other host takes it for one that died.
pub(super) struct Announcing<S: Store> {
    host: Option<Host<S>>,
    /// Where the host was to be started.
    runtime: Option<Handle>,
}

impl<S: Store> Announcing<S> {
    pub(super) fn new(host: Host<S>) -> Self {
        Self { host: Some(host), runtime: Handle::try_current().ok() }
    }

    /// Tells others of the host, and returns it when that is durable.
    pub(super) async fn announced(mut self) -> Result<Host<S>, Error> {
        if let Some(host) = &self.host {
            host.announce().await?;
        }
        self.host.take().ok_or(Error::Closed)
    }
}

impl<S: Store> Drop for Announcing<S> {
    fn drop(&mut self) {
        let (Some(host), Some(runtime)) = (self.host.take(), self.runtime.take()) else { return };
        let (store, id) = (host.store.clone(), host.id);
        // It is queued behind the row, if that is.
        let forgotten = store.transact(move |tx| tx.forget(id));
        runtime.spawn(async move {
            // A row that stays is that of a host that died: other hosts remove it.
            let _: Result<(), Error> = forgotten.await;
            drop(host);
        });
    }
}

/// Says that a host cannot be announced.
pub(super) fn unannounced(hosts: &Hosts, error: std::io::Error) -> Error {
    let what = format!("cannot announce the host in {}", hosts.directory().display());
    Error::Io { what, source: Arc::new(error) }
}
