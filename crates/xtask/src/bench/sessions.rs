//! A store, and sessions in it, as all benchmarks use them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjourn::Adjourn;
use adjourn::clock::Machine;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::{Resume, Suspend};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Founding};
use adjourn_store::{CommandError, Environment, Request, Sqlite, Store as _};
use adjourn_testkit::store;
use anyhow::Result;
use uuid::Uuid;

/// Opens a store, or makes one.
pub fn open(path: &Path) -> Result<Sqlite> {
    open_at(path, Arc::new(Machine))
}

/// Opens a store, or makes one, as a program does that embeds the library.
pub fn embed(path: &Path) -> Result<Adjourn> {
    Ok(adjourn_testkit::host::embed(open(path)?, Arc::new(Machine))?.acting_as(by()))
}

/// Opens a store with a clock of its own.
pub fn open_at(path: &Path, clock: Arc<dyn Environment>) -> Result<Sqlite> {
    Ok(Sqlite::open(store::options(path, clock))?)
}

/// The machine's clock, so much earlier: what waits for an hour from there on is due.
#[derive(Debug)]
pub struct Earlier(pub Duration);

impl Environment for Earlier {
    fn now(&self) -> Timestamp {
        let by = i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(Machine.now().as_millis().saturating_sub(by))
    }

    fn uuid(&self) -> Uuid {
        Machine.uuid()
    }
}

/// Who gives the commands.
pub fn by() -> Actor {
    Actor::new(Face::Library, "bench")
}

/// A session that a script drives.
pub fn founding(script: &str) -> Founding {
    store::founding_by(&Machine, DriverSpec::script(script))
}

/// Makes a session.
pub fn create(store: &Sqlite, script: &str) -> Result<SessionId> {
    let founding = founding(script);
    Ok(store.transact(|tx| tx.create(by(), founding)).wait()?.session.id)
}

/// Gives a command, and waits until it is durable.
pub fn give(store: &Sqlite, request: Request) -> Result<(), CommandError> {
    store.transact(move |tx| tx.command(request).map(|_| ())).wait()
}

/// A prompt, and what it says.
pub fn prompt(id: SessionId, text: &str) -> Request {
    store::prompt_request(id, by(), text)
}

/// A suspension without conditions.
pub fn suspend(id: SessionId) -> Request {
    let suspend = Suspend { reason: Some("bench".to_owned()), ..Suspend::default() };
    Request::new(id, by(), Command::Suspend(suspend))
}

/// A plain resume.
pub fn resume(id: SessionId) -> Request {
    Request::new(id, by(), Command::Resume(Resume::default()))
}
