//! A store, and sessions in it, as all benchmarks use them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjourn::Adjourn;
use adjourn::clock::Machine;
use adjourn::doorbell::Hosts;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::Budget;
use adjourn_core::command::{Prompt, Reach, Resume, Suspend};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use adjourn_core::transcript::Content;
use adjourn_core::{Command, Founding};
use adjourn_record::keys::{Key, Keys};
use adjourn_store::sqlite::Options;
use adjourn_store::{CommandError, Environment, Request, Sqlite, Store as _};
use anyhow::Result;
use uuid::Uuid;

/// Whose the sessions are.
pub const TENANT: &str = "bench";

/// Opens a store, or makes one.
pub fn open(path: &Path) -> Result<Sqlite> {
    open_at(path, Arc::new(Machine))
}

/// Opens a store, or makes one, as a program does that embeds the library.
pub fn embed(path: &Path) -> Result<Adjourn> {
    let store = open(path)?;
    let hosts = Hosts::beside(store.path());
    Ok(Adjourn::on(store, hosts, Arc::new(Machine))?.in_tenant(TENANT).acting_as(by()))
}

/// Opens a store with a clock of its own.
pub fn open_at(path: &Path, clock: Arc<dyn Environment>) -> Result<Sqlite> {
    let key = Key::from_secrets(Timestamp::from_millis(0), &[1; 32], &[2; 32]);
    Ok(Sqlite::open(Options::new(path, clock, Keys::only(key)))?)
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
    Founding {
        id: SessionId::new(Machine.uuid()),
        tenant: TENANT.to_owned(),
        labels: BTreeMap::new(),
        parent: None,
        driver: DriverSpec::script(script),
        budget: Budget::default(),
        title: None,
    }
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
    let prompt = Prompt {
        content: Content::text(text),
        message_id: None,
        handle: None,
        reach: Reach::OwnFace,
    };
    Request::new(id, by(), Command::Prompt(prompt)).saying(vec![text.as_bytes().to_vec()])
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
