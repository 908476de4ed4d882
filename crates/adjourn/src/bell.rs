//! A bell of a test: it hears the rings of other processes, as those do who wait for them.

use std::time::Duration;

use adjourn_core::id::{HostId, SessionId};

use crate::clock::Clock;
use crate::doorbell::{Hosts, Presence};
use crate::ring::Ring;

/// How often a watcher looks without being rung.
const LOOK: Duration = Duration::from_millis(250);

/// Rings when another process has committed something; a process that only watches has one.
#[derive(Debug)]
pub struct Bell(Option<Presence>);

impl Bell {
    /// Hangs up a bell among those of the hosts.
    pub fn new(hosts: &Hosts, clock: &dyn Clock) -> Self {
        // Watchers end by Ctrl-C, and no host may be there that clears away after them.
        hosts.sweep();
        // Where none can be hung up, one looks a few times a second.
        Self(hosts.join(HostId::new(clock.uuid())).ok())
    }

    /// Waits until there may be something new.
    pub async fn rung(&self) {
        self.rung_for(|_| true).await;
    }

    /// Waits until there may be something new of a session.
    pub async fn rung_of(&self, id: SessionId) {
        self.rung_for(|ring| ring.concerns(id)).await;
    }

    async fn rung_for(&self, concerns: impl Fn(&Ring) -> bool) {
        let rung = async {
            match &self.0 {
                Some(presence) => while !concerns(&presence.rung().await) {},
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = rung => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
