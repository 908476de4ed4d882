//! Listening to other processes in one that has no host, while something waits for their commits.
//!
//! No task runs for it: of all futures of the process that wait for a session, one listens for the
//! others, and when it is dropped the next one does. One that listens and is not polled, as a
//! stream in a `select!` may be for a while, keeps the others waiting no longer than a look takes.

use std::convert::Infallible;

use adjourn_core::id::HostId;
use adjourn_store::Store;
use tokio::sync::{Mutex, MutexGuard};

use crate::doorbell::Presence;
use crate::feed::LOOK;
use crate::process::Process;

/// The place that other processes ring at, once something has waited for them.
#[derive(Default)]
pub(crate) struct OtherProcesses(Mutex<Option<Presence>>);

impl OtherProcesses {
    /// Brings what other processes commit to the feed, for as long as it is polled.
    pub(crate) async fn listen<S: Store>(&self, process: &Process<S>) -> Infallible {
        loop {
            // A host listens for all, and looks by itself: while there is one, no timer runs here.
            process.feed.host_gone().await;
            tokio::select! {
                presence = self.0.lock() => listen_at(presence, process).await,
                // A store that cannot be read says so to those who read it.
                () = tokio::time::sleep(LOOK) => drop(process.feed.catch_up_unless_recent()),
            }
        }
    }
}

/// Listens for all futures of the process, until it has a host.
async fn listen_at<S: Store>(mut presence: MutexGuard<'_, Option<Presence>>, process: &Process<S>) {
    while !process.feed.has_host() {
        if presence.is_none() {
            // Processes that only watch are often killed, and no host may be there to clear away.
            process.hosts.sweep();
            let id = HostId::new(process.clock.uuid());
            // Where nothing can be written, the journal is looked at a few times a second.
            *presence = process.hosts.join(id).ok();
            if presence.is_some() {
                process.feed.spare(id);
            }
        }
        let rung = async {
            match presence.as_ref() {
                Some(presence) => presence.rung().await,
                None => std::future::pending().await,
            }
        };
        // A store that cannot be read says so to those who read it.
        let _ = tokio::select! {
            ring = rung => process.feed.heard(&ring),
            () = tokio::time::sleep(LOOK) => process.feed.catch_up(),
        };
    }
}
