//! A store in a directory that goes away, and commands in one line.

use std::path::PathBuf;
use std::sync::Arc;

use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::Budget;
use adjourn_core::command::{Prompt, Reach};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use adjourn_core::transcript::Content;
use adjourn_core::{Command, Founding};
use adjourn_record::keys::{Key, Keys};
use adjourn_store::sqlite::Options;
use adjourn_store::{CommandError, Done, Request, Sqlite, Store as _};
use adjourn_testkit::VirtualEnvironment;
use tempfile::TempDir;

pub struct Fixture {
    pub directory: TempDir,
    pub environment: Arc<VirtualEnvironment>,
}

impl Fixture {
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        Self { directory, environment: Arc::new(VirtualEnvironment::new(1)) }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("store.db")
    }

    pub fn options(&self) -> Options {
        Options::new(self.path(), self.environment.clone(), keys())
    }

    pub fn open(&self) -> Sqlite {
        Sqlite::open(self.options()).unwrap()
    }

    pub fn open_as(&self, keys: Keys) -> Sqlite {
        Sqlite::open(Options { keys, ..self.options() }).unwrap()
    }

    pub fn create(&self, store: &Sqlite) -> SessionId {
        create(store)
    }
}

/// Creates a session, with an id of the store's own environment.
pub fn create(store: &Sqlite) -> SessionId {
    try_create(store).unwrap()
}

pub fn try_create(store: &Sqlite) -> Result<SessionId, CommandError> {
    let founding = founding(store);
    let done = store.transact(move |tx| tx.create(ann(), founding)).wait()?;
    Ok(done.session.id)
}

pub fn founding(store: &Sqlite) -> Founding {
    Founding {
        id: SessionId::new(store.environment().uuid()),
        tenant: "acme".to_owned(),
        labels: std::collections::BTreeMap::new(),
        parent: None,
        driver: DriverSpec::script("{}"),
        budget: Budget::default(),
        title: None,
    }
}

/// The same key in every test, so that stores can be compared.
pub fn keys() -> Keys {
    Keys::only(Key::from_secrets(Timestamp::from_millis(0), &[7; 32], &[8; 32]))
}

pub fn ann() -> Actor {
    Actor::new(Face::Cli, "ann")
}

pub fn give(store: &Sqlite, id: SessionId, command: Command) -> Result<Done, CommandError> {
    store.transact(move |tx| tx.command(Request::new(id, ann(), command))).wait()
}

pub fn prompt(store: &Sqlite, id: SessionId, text: &str) -> Result<Done, CommandError> {
    let command = Command::Prompt(Prompt {
        content: Content::text(text),
        message_id: None,
        handle: None,
        reach: Reach::OwnFace,
    });
    let request = Request::new(id, ann(), command).saying(vec![text.as_bytes().to_vec()]);
    store.transact(move |tx| tx.command(request)).wait()
}
