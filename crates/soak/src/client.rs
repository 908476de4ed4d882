//! Those who give commands: several handles on one store, as several processes have.

use std::sync::Arc;

use adjourn::core::actor::{Actor, Face};
use adjourn::core::driver::DriverSpec;
use adjourn::core::id::{Seq, SessionId};
use adjourn::store::Done;
use adjourn::{Adjourn, Error, Event, Published, SessionRef};

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
    pub fn adjourn(&self) -> &Adjourn {
        self.handle(0)
    }

    fn handle(&self, number: usize) -> &Adjourn {
        self.programs.get(number % HANDLES).expect("there are some")
    }

    /// Makes a session from a script.
    ///
    /// # Errors
    /// It is refused, or the store fails.
    pub async fn create(&self, script: &str) -> Result<Done, Error> {
        let create = self.handle(0).create_with(DriverSpec::script(script)).by(named("maker"));
        Ok(create.with_commit().await?.1)
    }

    /// Returns the way to a session through one of the handles, in somebody's name.
    pub fn session(&self, handle: usize, id: SessionId, by: Actor) -> SessionRef {
        self.handle(handle).clone().acting_as(by).session(id)
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
