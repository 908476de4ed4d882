//! What hosts take over: sessions of hosts that died, and those of their own that no task drives.

use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::command::{Loss, Recover};
use adjourn_core::id::HostId;
use adjourn_store::{CommandError, Error, Request, Store};

use super::{BATCH, Claim, Host, store_error};
use crate::trace::{self, Ids};

/// How often a host clears away what dead watchers have left beside the store.
const SWEEP: Duration = Duration::from_secs(10);

impl<S: Store> Host<S> {
    /// Takes over what dead hosts have left.
    pub(super) async fn recover(&mut self) -> Result<(), Error> {
        self.others.clear();
        for host in self.store.hosts()? {
            self.recover_from(host.id).await?;
        }
        let now = self.clock.now();
        // A time that is too far off is one of before the clock was set back.
        if self.sweep_at <= now || self.sweep_at > now.after(SWEEP) {
            self.sweep_at = now.after(SWEEP);
            self.hosts.sweep();
            // No session stays with a host that is not there, however it came to that.
            for host in self.store.strays()? {
                self.recover_from(host).await?;
            }
            self.undriven = true;
        }
        Ok(())
    }

    /// Takes over what another host has left, if it is dead.
    async fn recover_from(&mut self, host: HostId) -> Result<(), Error> {
        if host == self.id {
            return Ok(());
        }
        match self.hosts.is_alive(host) {
            Ok(false) => {}
            Ok(true) => {
                self.others.push(host);
                return Ok(());
            }
            // One whose lock cannot be looked at is neither alive nor dead: nothing is taken
            // from it, it is not waited for, and it is looked at again in the next round.
            Err(_) => return Ok(()),
        }
        tracing::warn!(host = %self.id, lost_host = %host, "another host died; this one takes over what it had");
        self.take_from(host).await?;
        self.hosts.bury(host);
        Ok(())
    }

    /// Takes from a host whatever it owns, and forgets the host.
    pub(super) async fn take_from(&self, host: HostId) -> Result<(), Error> {
        let by = self.by();
        loop {
            let by = by.clone();
            let left = self
                .store
                .transact(move |tx| -> Result<usize, CommandError> {
                    let owned = tx.owned_by(host, BATCH)?;
                    for (_, session) in &owned {
                        let how = Loss::Died;
                        let recover = Recover { host, epoch: session.epoch, how };
                        let command = Command::Recover(recover);
                        tx.command(Request::new(session.id, by.clone(), command))?;
                    }
                    if owned.is_empty() {
                        tx.forget(host)?;
                    }
                    Ok(owned.len())
                })
                .await
                .map_err(store_error)?;
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Gives back the sessions that this host owns and no task of it drives.
    pub(super) async fn give_back_undriven(&mut self) -> Result<(), Error> {
        for id in self.store.driven_by(self.id)? {
            if self.claimant.slots().holds(id) {
                continue;
            }
            let read = self.store.session(id);
            // It may have been claimed meanwhile; a claim behind this look has another epoch.
            if self.claimant.slots().holds(id) {
                continue;
            }
            match read {
                Ok(session) => {
                    let owner = session.as_ref().and_then(|session| session.owner());
                    let Some(owner) = owner.filter(|owner| owner.host == self.id) else { continue };
                    self.give_back((id, owner.epoch)).await?;
                }
                Err(error) if error.is_of_a_session() => {
                    let then = format!("{error}; it is driven again when it can be read");
                    trace::came_across(&Ids::unread(id, self.id), &then);
                    self.store.transact(move |tx| tx.let_unreadable_go(id)).await?;
                }
                Err(error) => return Err(error),
            }
        }
        self.undriven = false;
        Ok(())
    }

    /// Gives a session back as if the host had died.
    async fn give_back(&self, (id, epoch): Claim) -> Result<(), Error> {
        let recover = Recover { host: self.id, epoch, how: Loss::Died };
        let request = Request::new(id, self.by(), Command::Recover(recover));
        match self.store.transact(move |tx| tx.command(request)).await {
            Ok(_) | Err(CommandError::Rejected(_) | CommandError::NotFound(_)) => Ok(()),
            Err(CommandError::Store(error)) => Err(error),
        }
    }
}
