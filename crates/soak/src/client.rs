//! Those who give commands: several handles on one store, as several processes have.

use std::sync::Arc;

use adjourn::clock::Machine;
use adjourn::doorbell::Hosts;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::Budget;
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{Seq, SessionId};
use adjourn_core::{Command, Founding};
use adjourn_driver::Message;
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Done, Environment as _, Request, Sqlite, Store as _};

use crate::scene::Scene;

/// How many handles there are; each has its own writer and takes its own turns at the lock.
const HANDLES: usize = 3;
/// Whose sessions the agents are.
const TENANT: &str = "acme";
/// Where the events come from.
const SOURCE: &str = "soak";

/// Somebody with several handles on the store of a trial. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    stores: Arc<[Sqlite]>,
    hosts: Hosts,
}

impl Client {
    /// Opens the store.
    pub fn new(scene: &Scene) -> Self {
        let stores = (0..HANDLES).map(|_| scene.open()).collect();
        Self { stores, hosts: scene.hosts() }
    }

    /// Returns the handle to read through.
    pub fn store(&self) -> &Sqlite {
        self.handle(0)
    }

    fn handle(&self, number: usize) -> &Sqlite {
        self.stores.get(number % HANDLES).expect("there are some")
    }

    /// Makes a session from a script.
    ///
    /// # Errors
    /// It is refused, or the store fails.
    pub async fn create(&self, script: &str) -> Result<Done, CommandError> {
        let founding = Founding {
            id: SessionId::new(Machine.uuid()),
            tenant: TENANT.to_owned(),
            labels: std::collections::BTreeMap::new(),
            parent: None,
            driver: DriverSpec::script(script),
            budget: Budget::default(),
            title: None,
        };
        self.store().transact(move |tx| tx.create(named("maker"), founding)).await
    }

    /// Gives a command through one of the handles, and rings.
    ///
    /// # Errors
    /// It is refused, or the store fails.
    pub async fn give(
        &self,
        handle: usize,
        session: SessionId,
        by: Actor,
        command: Command,
        said: Option<Message>,
    ) -> Result<Done, CommandError> {
        let said = said.iter().map(Message::encode).collect();
        let request = Request::new(session, by, command).saying(said);
        let done = self.handle(handle).transact(move |tx| tx.command(request)).await;
        self.hosts.ring();
        done
    }

    /// Says that something happened; returns its number, and whether it was news.
    ///
    /// # Errors
    /// It is refused, or the store fails.
    pub async fn happens(
        &self,
        handle: usize,
        id: String,
        name: &str,
        subject: String,
    ) -> Result<(Seq, bool), CommandError> {
        let event = NewEvent {
            id,
            source: SOURCE.to_owned(),
            name: name.to_owned(),
            subject: Some(subject),
            time: Machine.now(),
            tenant: TENANT.to_owned(),
            session: None,
            data: None,
        };
        let acknowledged = self.handle(handle).transact(move |tx| tx.acknowledge(&event)).await;
        self.hosts.ring();
        acknowledged
    }
}

/// Somebody with a name, to tell the winner of a race by.
pub fn named(principal: impl Into<String>) -> Actor {
    Actor::new(Face::Library, principal)
}
