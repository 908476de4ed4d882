//! A store in a directory that goes away, and commands in one line.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::collections::BTreeMap;
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
use adjourn_store::{CommandError, Done, Environment, Request, Sqlite, Store as _};
use tempfile::TempDir;

use crate::VirtualClock;

/// Whose sessions they are.
pub const TENANT: &str = "acme";

/// A directory with a store in it, and the clock of that. The last clone removes it.
#[derive(Debug, Clone)]
pub struct Fixture<E = VirtualClock> {
    /// Where everything is.
    pub directory: Arc<TempDir>,
    /// The clock, and the source of ids.
    pub environment: Arc<E>,
}

impl Fixture {
    /// Makes a directory for a store whose clock is moved by hand.
    #[expect(clippy::new_without_default, reason = "a test says that it makes a directory")]
    pub fn new() -> Self {
        Self::with(VirtualClock::new())
    }
}

impl<E: Environment> Fixture<E> {
    /// Makes a directory for a store with another clock.
    ///
    /// # Panics
    /// The machine has no room for it.
    pub fn with(environment: E) -> Self {
        Self { directory: Arc::new(TempDir::new().unwrap()), environment: Arc::new(environment) }
    }

    /// Returns where the store is.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("store.db")
    }

    /// Returns how it is opened.
    pub fn options(&self) -> Options {
        options(self.path(), self.environment.clone())
    }

    /// Opens the store, once more if it is open: as another process would.
    ///
    /// # Panics
    /// It cannot be opened.
    pub fn open(&self) -> Sqlite {
        Sqlite::open(self.options()).unwrap()
    }

    /// Opens the store with other keys.
    ///
    /// # Panics
    /// It cannot be opened.
    pub fn open_as(&self, keys: Keys) -> Sqlite {
        Sqlite::open(Options { keys, ..self.options() }).unwrap()
    }

    /// Creates a session.
    pub fn create(&self, store: &Sqlite) -> SessionId {
        create(store)
    }
}

/// Returns how a store is opened, with the keys that all tests have.
pub fn options(path: impl Into<PathBuf>, environment: Arc<dyn Environment>) -> Options {
    Options::new(path, environment, keys())
}

/// Returns the keys of all tests: the same ones, so that stores can be compared.
pub fn keys() -> Keys {
    Keys::only(Key::from_secrets(Timestamp::from_millis(0), &[7; 32], &[8; 32]))
}

/// Returns who gives commands.
pub fn ann() -> Actor {
    Actor::new(Face::Cli, "ann")
}

/// Creates a session, with an id of the store's own environment.
///
/// # Panics
/// It is refused, or the store fails.
pub fn create(store: &Sqlite) -> SessionId {
    try_create(store).unwrap()
}

/// Creates a session, or says why not.
///
/// # Errors
/// It is refused, or the store fails.
pub fn try_create(store: &Sqlite) -> Result<SessionId, CommandError> {
    let founding = founding(store);
    let done = store.transact(move |tx| tx.create(ann(), founding)).wait()?;
    Ok(done.session.id)
}

/// Describes a session that is not there yet, with an id of the store's own environment.
pub fn founding(store: &Sqlite) -> Founding {
    founding_by(store.environment(), DriverSpec::script("{}"))
}

/// Describes a session that is not there yet.
pub fn founding_by(environment: &dyn Environment, driver: DriverSpec) -> Founding {
    Founding {
        id: SessionId::new(environment.uuid()),
        tenant: TENANT.to_owned(),
        labels: BTreeMap::new(),
        parent: None,
        driver,
        budget: Budget::default(),
        title: None,
    }
}

/// Gives a command, and waits for its answer.
///
/// # Errors
/// It is refused, or the store fails.
pub fn give(store: &Sqlite, id: SessionId, command: Command) -> Result<Done, CommandError> {
    store.transact(move |tx| tx.command(Request::new(id, ann(), command))).wait()
}

/// Gives a prompt, and waits for its answer.
///
/// # Errors
/// It is refused, or the store fails.
pub fn prompt(store: &Sqlite, id: SessionId, text: &str) -> Result<Done, CommandError> {
    let request = prompt_request(id, ann(), text);
    store.transact(move |tx| tx.command(request)).wait()
}

/// Returns a prompt, with its text as the store keeps it: it looks into no entry.
pub fn prompt_request(id: SessionId, by: Actor, text: &str) -> Request {
    let command = Command::Prompt(Prompt {
        content: Content::text(text),
        message_id: None,
        handle: None,
        reach: Reach::OwnFace,
    });
    Request::new(id, by, command).saying(vec![text.as_bytes().to_vec()])
}
