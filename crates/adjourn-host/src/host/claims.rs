//! Which sessions a host takes, and which it leaves to others.

use std::collections::HashSet;

use adjourn_core::Command;
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::What;
use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_store::rows::SessionNo;
use adjourn_store::{CommandError, Error, Request, Store};

use super::{Host, about};
use crate::config::Claims;
use crate::declined::{Again, Declined};
use crate::driver::Driver;

/// How many ready sessions are looked at to find those this host can run.
const CANDIDATES: usize = 256;
/// How many sessions a host remembers that it will not try again.
const DECLINED: usize = 4096;

impl<S: Store> Host<S> {
    /// Claims what is ready and can be run here, and tells others what cannot.
    pub(super) async fn claim(&mut self) -> Result<(), Error> {
        match self.config.claims {
            Claims::All => self.claim_as_there_is_room().await?,
            Claims::Only(id) => self.claim_only(id).await?,
        }
        self.say_what_is_declined().await
    }

    /// Claims the one session that this host is for.
    async fn claim_only(&mut self, id: SessionId) -> Result<(), Error> {
        let session = self.store.session(id)?;
        if !session.is_some_and(|session| matches!(session.state, State::Ready(_))) {
            self.declined.clear();
            return Ok(());
        }
        // One that was taken from this host is claimed again when its task has let go.
        if self.running.contains_key(&id) {
            return Ok(());
        }
        match self.driver(id)? {
            Some(driver) => self.claim_all(vec![(id, driver)]).await,
            None => Ok(()),
        }
    }

    /// Claims whatever is ready, as far as there is room.
    async fn claim_as_there_is_room(&mut self) -> Result<(), Error> {
        let mut after = SessionNo(0);
        let mut declined = HashSet::new();
        while self.running.len() < self.config.max_running {
            let ready = self.store.ready(after, CANDIDATES)?;
            let Some((last, _)) = ready.last() else {
                // All were looked at: whoever is not among them has moved on.
                self.declined.retain(|id, known| known.is_final() || declined.contains(id));
                break;
            };
            after = *last;
            let room = self.config.max_running - self.running.len();
            let mut drivers = Vec::new();
            for (_, id) in ready {
                // One that was taken from this host is claimed again when its task has let go.
                if drivers.len() < room
                    && !self.running.contains_key(&id)
                    && let Some(driver) = self.driver(id)?
                {
                    drivers.push((id, driver));
                }
                if self.declined.contains_key(&id) {
                    declined.insert(id);
                }
            }
            self.claim_all(drivers).await?;
        }
        Ok(())
    }

    /// Tells others what this host cannot run, if that has changed.
    async fn say_what_is_declined(&mut self) -> Result<(), Error> {
        let declined = self.declined.iter().map(|(id, declined)| (*id, declined.why.as_str()));
        let about = about(&self.config).declining(declined).to_text();
        if self.row.about == about {
            return Ok(());
        }
        self.row.about = about;
        self.announce().await
    }

    /// Makes the driver of a session, if it can be run here.
    fn driver(&mut self, id: SessionId) -> Result<Option<Box<dyn Driver>>, Error> {
        match self.try_driver(id) {
            // One that cannot be read keeps nobody from the others.
            Err(error) if error.is_of_a_session() => {
                self.decline(id, Declined::unreadable(&error));
                Ok(None)
            }
            made => made,
        }
    }

    fn try_driver(&mut self, id: SessionId) -> Result<Option<Box<dyn Driver>>, Error> {
        let now = self.clock.now();
        if let Some(known) = self.declined.get(&id)
            && let Some(session) = self.store.session(id)?
            && known.holds(&session, now)
        {
            return Ok(None);
        }
        let Some(spec) = self.spec(id)? else { return Ok(None) };
        let made = match self.drivers.lacks(id, &spec) {
            Some(why) => Err((why, Again::Soon)),
            None => self.drivers.make(&spec).map_err(|why| (why, Again::After(now))),
        };
        Ok(match made {
            Ok(driver) => {
                self.declined.remove(&id);
                Some(driver)
            }
            Err((why, again)) => {
                if let Some(session) = self.store.session(id)? {
                    self.decline(id, Declined::new(why, &session, again));
                }
                None
            }
        })
    }

    /// Claims sessions in one commit, and drives those that nobody else was faster with.
    async fn claim_all(&mut self, drivers: Vec<(SessionId, Box<dyn Driver>)>) -> Result<(), Error> {
        if drivers.is_empty() {
            return Ok(());
        }
        let by = self.by();
        let row = self.row.clone();
        let ids: Vec<_> = drivers.iter().map(|(id, _)| *id).collect();
        let claims = self.store.transact(move |tx| -> Result<Vec<_>, Error> {
            // Others look for what a dead host had by its row. Whoever took this one for dead has
            // dropped it; nothing is written if it is there.
            tx.announce(&row)?;
            let claim = |id| match tx.command(Request::new(id, by.clone(), Command::Claim)) {
                Ok(done) => Ok(Some(done.session)),
                // Another host was faster, or a gate is shut.
                Err(CommandError::Rejected(_) | CommandError::NotFound(_)) => Ok(None),
                // One that cannot be read keeps nobody from the others.
                Err(CommandError::Store(error)) if error.is_of_a_session() => Ok(None),
                Err(CommandError::Store(error)) => Err(error),
            };
            ids.into_iter().map(claim).collect()
        });
        for ((_, driver), claimed) in drivers.into_iter().zip(claims.await?) {
            if let Some(session) = claimed {
                self.drive(session, driver);
            }
        }
        Ok(())
    }

    /// Leaves a session to others, for a while or for good.
    pub(super) fn decline(&mut self, id: SessionId, declined: Declined) {
        // Which of them are still there cannot be told cheaply; those that are come back at once.
        if self.declined.len() >= DECLINED {
            self.declined.clear();
        }
        self.declined.insert(id, declined);
    }

    /// Reads what a session was created with.
    fn spec(&self, id: SessionId) -> Result<Option<DriverSpec>, Error> {
        Ok(self.store.founding(id)?.and_then(|entry| match entry.event.what {
            What::SessionCreated(created) => Some(created.driver),
            _ => None,
        }))
    }
}
