//! Those who give commands: several handles on one store, as several processes have.

use std::sync::Arc;

use adjourn::{Adjourn, Error, Event, Published};
use adjourn_core::Command;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{Seq, SessionId};
use adjourn_driver::Message;
use adjourn_store::{CommandError, Done, Request, Sqlite, Store as _};
use adjourn_testkit::store::founding_by;

use crate::scene::Scene;

/// How many handles there are; each has its own writer and takes its own turns at the lock.
const HANDLES: usize = 3;
/// Where the events come from.
const SOURCE: &str = "soak";

/// Somebody with several handles on the store of a trial. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    programs: Arc<[Adjourn]>,
}

impl Client {
    /// Opens the store.
    pub fn new(scene: &Scene) -> Self {
        Self { programs: (0..HANDLES).map(|_| scene.embed()).collect() }
    }

    /// Returns the handle to read through.
    pub fn store(&self) -> &Sqlite {
        self.handle(0).store()
    }

    fn handle(&self, number: usize) -> &Adjourn {
        self.programs.get(number % HANDLES).expect("there are some")
    }

    /// Makes a session from a script.
    ///
    /// # Errors
    /// It is refused, or the store fails.
    pub async fn create(&self, script: &str) -> Result<Done, CommandError> {
        let adjourn = self.handle(0);
        let founding = founding_by(adjourn.store().environment(), DriverSpec::script(script));
        adjourn.transact(move |tx| tx.create(named("maker"), founding)).await
    }

    /// Gives a command through one of the handles.
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
        self.handle(handle).transact(move |tx| tx.command(request)).await
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
    ) -> Result<(Seq, bool), Error> {
        let event = Event::new(name).id(id).source(SOURCE).subject(subject);
        let Published { seq, fresh } = self.handle(handle).publish(event).await?;
        Ok((seq, fresh))
    }
}

/// Somebody with a name, to tell the winner of a race by.
pub fn named(principal: impl Into<String>) -> Actor {
    Actor::new(Face::Library, principal)
}
