//! What it takes to drive a session, reserved and made before the session is claimed.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use adjourn_core::Command;
use adjourn_core::command::Resume;
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::session::{Prior, State};
use adjourn_driver::{Client, Driver, Environment, Unusable};
use adjourn_store::{Error, Request, Store};
use tokio::sync::mpsc::OwnedPermit;
use tokio::sync::watch;

use super::{Claimant, Driving};
use crate::config::Claims;
use crate::declined::Again;
use crate::drive::Signal;
use crate::feed::Place;
use crate::slots::Slot;

/// How many sessions it is remembered of what they were created with.
const SPECS: usize = 256;

/// All that it takes to drive a session, but for the claim.
pub(crate) struct Prepared {
    pub(crate) id: SessionId,
    pub(crate) slot: Slot,
    pub(crate) equipment: Equipment,
    pub(super) signal: (watch::Sender<Signal>, watch::Receiver<Signal>),
    /// Held while the session is driven: its task is told what happens from before the claim on.
    pub(super) told: Place,
}

/// The driver of a session, and what it is given that is not durable.
pub(crate) struct Equipment {
    pub(super) driver: Box<dyn Driver>,
    pub(super) client: Arc<dyn Client>,
    pub(super) environment: Environment,
    /// Which MCP servers the driver was made with, as [`Values`](crate::values::Values) counts
    /// them.
    pub(super) servers: u64,
}

/// The driver of a session, or why the host cannot run it, and when it tries again.
type Made = Result<Equipment, (String, Again)>;

impl<S: Store> Claimant<S> {
    /// Reserves what it takes to drive a session that a command is about to make ready; nothing if
    /// this host cannot have it, which says why when it finds the session ready.
    pub(crate) async fn prepare_for(
        &self,
        request: &Request,
    ) -> Option<(Prepared, OwnedPermit<Driving>)> {
        let (id, command) = (request.session, &*request.command);
        if !matches!(command, Command::Prompt(_) | Command::Resume(_)) || !self.claims(id) {
            return None;
        }
        // Only whether it is worth trying: the claim is decided in the commit.
        let session = match self.0.feed.session(id) {
            Some(session) => session,
            None => self.0.store.session(id).ok()??,
        };
        if !may_make_ready(command, &session.state) {
            return None;
        }
        self.prepare(id).await
    }

    /// Reserves what it takes to drive a session that is about to be created with a prompt; nothing
    /// if this host cannot have it.
    pub(crate) async fn prepare_new(
        &self,
        id: SessionId,
        spec: &DriverSpec,
    ) -> Option<(Prepared, OwnedPermit<Driving>)> {
        if !self.claims(id) {
            return None;
        }
        self.remember(id, Arc::new(spec.clone()));
        let prepared = self.prepare(id).await;
        if prepared.is_none() {
            self.specs().remove(&id);
        }
        prepared
    }

    /// Gives up what was reserved to drive a session: its claim was refused, or another host was
    /// faster.
    pub(crate) fn discard(&self, prepared: Prepared) {
        self.end_apart(prepared.equipment.driver, None);
    }

    /// Reserves what it takes to drive a session, and makes its driver.
    async fn prepare(&self, id: SessionId) -> Option<(Prepared, OwnedPermit<Driving>)> {
        let slot = self.slots().reserve_after_last(id).await?;
        let host = self.0.handed_over.clone().try_reserve_owned().ok()?;
        let equipment = self.driver(id).ok()??.ok()?;
        Some((self.prepared(id, slot, equipment), host))
    }

    /// Puts together what it takes to drive a session, before it is claimed.
    pub(crate) fn prepared(&self, id: SessionId, slot: Slot, equipment: Equipment) -> Prepared {
        let signal = watch::channel(Signal::default());
        let told = self.0.feed.tell_drive(id, signal.0.clone());
        Prepared { id, slot, equipment, signal, told }
    }

    /// Returns whether the host drives a session, if it can.
    pub(crate) fn claims(&self, id: SessionId) -> bool {
        match self.0.claims {
            Claims::All => true,
            Claims::Only(only) => only == id,
        }
    }

    /// Makes the driver of a session, or says why it cannot be run here; nothing if there is no
    /// such session.
    pub(crate) fn driver(&self, id: SessionId) -> Result<Option<Made>, Error> {
        let Some(mut spec) = self.spec(id)? else { return Ok(None) };
        let (given, count) = self.0.values.of(id);
        if let Some(servers) =
            given.servers.as_ref().filter(|servers| **servers != spec.mcp_servers)
        {
            spec =
                Arc::new(DriverSpec { mcp_servers: servers.clone(), ..DriverSpec::clone(&spec) });
        }
        let drivers = &self.0.drivers;
        let environment = drivers.environment(&spec).with(given);
        let lacks = drivers.lacks(id, &spec);
        Ok(Some(match lacks.or_else(|| drivers.lacks_values(&spec, &environment)) {
            Some(why) => Err((why, Again::Soon)),
            None => {
                let (made, client) = (drivers.make(&spec), drivers.client(id));
                let now = self.0.clock.now();
                made.map(|driver| Equipment { driver, client, environment, servers: count })
                    .map_err(|why| (why, Again::After(now)))
            }
        }))
    }

    /// Checks what a session is about to be created with, as far as that can be without starting
    /// anything.
    ///
    /// # Errors
    /// Which field cannot be used here, and why.
    pub fn check(&self, spec: &DriverSpec) -> Result<(), Unusable> {
        self.0.drivers.check(spec)
    }

    /// Returns what a session was created with, unless that was erased; it is read once for those
    /// that are claimed again and again.
    ///
    /// # Errors
    /// The store fails.
    pub fn spec(&self, id: SessionId) -> Result<Option<Arc<DriverSpec>>, Error> {
        if let Some(spec) = self.specs().get(&id) {
            return Ok(Some(Arc::clone(spec)));
        }
        let founding = self.0.store.founding(id)?;
        let spec = founding.as_ref().and_then(|entry| entry.event.what.founding());
        let spec = spec.map(|founding| Arc::new(founding.driver.clone()));
        if let Some(spec) = &spec {
            self.remember(id, Arc::clone(spec));
        }
        Ok(spec)
    }

    fn remember(&self, id: SessionId, spec: Arc<DriverSpec>) {
        let mut specs = self.specs();
        // Which of them are in use cannot be told cheaply; those that are come back at once.
        if specs.len() >= SPECS {
            specs.clear();
        }
        specs.insert(id, spec);
    }

    pub(super) fn specs(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<DriverSpec>>> {
        // Nothing that is done with it can leave it half done.
        self.0.specs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a prompt or a resume may leave a session ready: none does for one that is at
/// work or over, and a resume that brings no input does not for one that has no run to go on with.
const fn may_make_ready(command: &Command, state: &State) -> bool {
    match (command, state) {
        (Command::Resume(Resume { input: None, .. }), State::Suspended(suspended)) => {
            matches!(suspended.prior, Prior::Run(_))
        }
        (_, State::Idle | State::Suspended(_)) => true,
        (_, State::Ready(_) | State::Running(_) | State::Quiescing(_) | State::Ended(_)) => false,
    }
}
