//! How a store is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adjourn_core::actor::Actor;
use adjourn_record::keys::{KeyDir, KeyId, Keys};
use adjourn_store::Sqlite;
use adjourn_store::sqlite::{CACHE, Options};

use crate::adjourn::{Adjourn, TENANT};
use crate::clock::{Clock, Machine};
use crate::doorbell::Hosts;
use crate::error::{Error, StoreError};
use crate::sealing::Sealing;

/// A store that is about to be opened; see [`Adjourn::builder`].
#[must_use = "nothing is opened before it is asked to"]
pub struct AdjournBuilder {
    pub(crate) path: PathBuf,
    keys: Signing,
    clock: Arc<dyn Clock>,
    tenant: String,
    by: Option<Actor>,
    cache: usize,
    new_key: bool,
}

/// Where the keys come from that commits are signed with.
enum Signing {
    /// From beside the store.
    Beside,
    /// From a directory.
    In(PathBuf),
    /// From the caller.
    With(Keys),
    /// From nowhere: nothing is committed.
    Never,
}

impl AdjournBuilder {
    pub(crate) fn new(path: PathBuf) -> Self {
        let (keys, clock) = (Signing::Beside, Arc::new(Machine));
        Self {
            path,
            keys,
            clock,
            tenant: TENANT.to_owned(),
            by: None,
            cache: CACHE,
            new_key: false,
        }
    }

    /// Signs commits with keys of a directory; a first one is made if it has none.
    pub fn key_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.keys = Signing::In(directory.into());
        self
    }

    /// Signs commits with these keys.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys = Signing::With(keys);
        self
    }

    /// Goes on with the current key of the directory, also if the store has never seen it and the
    /// key of its last commit is no longer there.
    pub const fn with_new_key(mut self) -> Self {
        self.new_key = true;
        self
    }

    /// Opens the store to look at it: without keys, and also where nothing can be written. It must
    /// be there. Whatever would commit something fails.
    pub fn read_only(mut self) -> Self {
        self.keys = Signing::Never;
        self
    }

    /// Goes by another clock, which also makes the ids: one that a test moves by hand.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Works for a tenant; see [`Adjourn::in_tenant`].
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Gives commands in the name of an actor; see [`Adjourn::acting_as`].
    pub fn acting_as(mut self, by: Actor) -> Self {
        self.by = Some(by);
        self
    }

    /// Keeps so many sessions in memory, at one or two KiB each, so that most commands need not
    /// read them.
    pub const fn cache(mut self, sessions: usize) -> Self {
        self.cache = sessions;
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    /// What is there is no store, or one of a newer program, or cannot be read or written; or its
    /// keys cannot be read.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, the store is closed again, and nothing is in it.
    pub async fn open(self) -> Result<Adjourn, Error> {
        // It waits for files and for locks of other processes.
        let opened = tokio::task::spawn_blocking(|| self.open_blocking()).await;
        opened.unwrap_or_else(|_| Err(StoreError::Panicked.into()))
    }

    /// Opens the store on this thread, which waits for files and for locks of other processes: for
    /// a program that has no runtime yet.
    ///
    /// # Errors
    /// As for [`AdjournBuilder::open`].
    pub fn open_blocking(self) -> Result<Adjourn, Error> {
        let Self { path, keys, clock, tenant, by, cache, new_key } = self;
        let environment = Arc::clone(&clock);
        let directory = match &keys {
            Signing::Beside => Some(keys_of(&path, &environment)?),
            Signing::In(directory) => Some(KeyDir::new(directory)),
            Signing::With(_) | Signing::Never => None,
        };
        let keys = match (&directory, keys) {
            (Some(directory), _) => Some(load(&path, directory, &environment, new_key)?),
            (None, Signing::With(keys)) => Some(keys),
            (None, _) => None,
        };
        let given = keys.as_ref().filter(|_| directory.is_none()).cloned();
        let store = match keys {
            Some(keys) => {
                let options = Options::new(path, environment, keys);
                Sqlite::open(Options { cache, new_signer: new_key, ..options })?
            }
            None => Sqlite::look(&path, environment, cache)?,
        };
        let hosts = Hosts::beside(store.path());
        let adjourn = Adjourn::of(store, hosts, clock)?.in_tenant(tenant);
        if let Some(directory) = directory {
            adjourn.follow_keys(directory);
        }
        if let Some(keys) = given {
            adjourn.seal_with(Sealing::With(Box::new(keys)));
        }
        Ok(match by {
            Some(by) => adjourn.acting_as(by),
            None => adjourn,
        })
    }
}

/// Returns the directory of the keys that lie beside a store, whatever links lead to it.
pub fn key_directory(store: &Path) -> KeyDir {
    let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let mut name = store.into_os_string();
    name.push(".keys");
    KeyDir::new(PathBuf::from(name))
}

/// Returns where the command line keeps the keys of this user; nothing without a home.
pub fn user_key_directory() -> Option<KeyDir> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))?;
    Some(KeyDir::new(config.join("adjourn").join("keys")))
}

/// Returns the key that the last commit of a store was signed with, if there are both.
fn signer(path: &Path, environment: &Arc<dyn Clock>) -> Result<Option<KeyId>, Error> {
    match path.metadata() {
        Ok(about) if about.is_file() && about.len() > 0 => {
            Ok(Sqlite::look(path, Arc::<dyn Clock>::clone(environment), 0)?.signer()?)
        }
        // Opening it says what is wrong, if anything is.
        _ => Ok(None),
    }
}

/// Returns the keys beside a store; those of the user if that has none, and the command line made it.
fn keys_of(path: &Path, environment: &Arc<dyn Clock>) -> Result<KeyDir, Error> {
    let beside = key_directory(path);
    if !beside.path().is_dir()
        && let Some(signer) = signer(path, environment)?
        && let Some(user) = user_key_directory()
        && user.ring()?.get(signer).is_some()
    {
        return Ok(user);
    }
    Ok(beside)
}

/// Returns the keys of a directory, and makes a first one where there is none: but a key that is
/// missing is not replaced by another in silence.
fn load(
    path: &Path,
    directory: &KeyDir,
    environment: &Arc<dyn Clock>,
    new_key: bool,
) -> Result<Keys, Error> {
    if let Some(keys) = directory.existing()? {
        return Ok(keys);
    }
    if !new_key
        && let Some(missing) = signer(path, environment)?
        && directory.ring()?.get(missing).is_none()
    {
        return Err(StoreError::UnknownSigner(missing).into());
    }
    Ok(directory.load(environment.now())?)
}
