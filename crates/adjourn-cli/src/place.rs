//! Where the store is, and how it is opened.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adjourn::Adjourn;
use adjourn::clock::{Clock, Machine};
use adjourn::doorbell::Hosts;
use adjourn::script::Scripted;
use adjourn_core::Session;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::event::What;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::session::State;
use adjourn_driver::Drivers as _;
use adjourn_record::keys::{KeyDir, KeyId};
use adjourn_store::rows::SessionNo;
use adjourn_store::sqlite::{Options, SetAside};
use adjourn_store::{Environment as _, Error, Sqlite, StateKind, Store as _};

use crate::failure::Failure;
use crate::founding::{NAME, named};
use crate::liveness::Living;
use crate::settings::{Held, Settings, Source};
use crate::terminal::{Output, warn};
use crate::view::View;

/// The tenant that owns sessions, unless configured.
pub const TENANT: &str = "local";

/// How often and how long apart an empty file is looked at: a store is made in less time.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(20);
/// Ids looked at at a time, to find one by a part of it.
const PAGE: usize = 4096;

/// An open store, with the settings that hold.
#[derive(Clone)]
pub struct Place {
    /// How commands are given, sessions watched and hosts run.
    pub adjourn: Adjourn,
    pub store: Sqlite,
    pub hosts: Hosts,
    pub clock: Arc<dyn Clock>,
    pub settings: Settings,
}

impl Place {
    /// Opens a store that must be there: a mistyped path is no new and empty store.
    pub fn open(settings: &Settings) -> Result<Self, Failure> {
        must_be_there(settings)?;
        Self::open_or_make(settings)
    }

    /// Opens a store that must be there for reading alone: without keys, and also where nothing
    /// can be written.
    pub fn look(settings: &Settings) -> Result<Self, Failure> {
        let path = must_be_there(settings)?;
        let store = Sqlite::look(path, Arc::new(Machine), settings.cache.value)?;
        Self::of(store, settings)
    }

    /// Opens the store for reading alone, if it is there.
    pub fn look_if_there(settings: &Settings) -> Result<Option<Self>, Failure> {
        match settings.store()?.value.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) | Err(_) => Self::look(settings).map(Some),
        }
    }

    /// Opens the store, and makes one first if there is none.
    pub fn open_or_make(settings: &Settings) -> Result<Self, Failure> {
        Self::open_with(settings, keys_of(settings)?, false)
    }

    /// Opens the store to go on with a key that it may never have seen.
    pub fn open_with_new_key(settings: &Settings) -> Result<Option<Self>, Failure> {
        match settings.store()?.value.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) | Err(_) => Self::open_with(settings, keys_of(settings)?, true).map(Some),
        }
    }

    /// Opens a store that goes away with its directory, and leaves nothing elsewhere.
    pub fn scratch(settings: &Settings, directory: &Path) -> Result<Self, Failure> {
        let keys = KeyDir::new(directory.join("keys"));
        Self::open_with(&settings.with_store(directory.join("store.db")), keys, false)
    }

    fn open_with(settings: &Settings, keys: KeyDir, new_signer: bool) -> Result<Self, Failure> {
        let Held { value: path, source } = settings.store()?.clone();
        if let (Source::Default, Some(directory)) = (&source, path.parent()) {
            let mut private = std::fs::DirBuilder::new();
            private.recursive(true).mode(0o700).create(directory).map_err(|error| {
                Failure::store(format!("cannot make {}: {error}", directory.display()))
            })?;
        }
        let loaded = match keys.existing()? {
            Some(loaded) => loaded,
            None => {
                // A key that is missing is not replaced by another in silence.
                let missing = signer(&path)?.filter(|_| !new_signer);
                if let Some(missing) = missing
                    && keys.ring()?.get(missing).is_none()
                {
                    return Err(Error::UnknownSigner(missing).into());
                }
                keys.load(Machine.now())?
            }
        };
        let nowhere =
            path.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.exists());
        let cache = settings.cache.value;
        let options =
            Options { cache, new_signer, ..Options::new(path, Arc::new(Machine), loaded) };
        let store = Sqlite::open(options).map_err(|error| match nowhere {
            true => Failure::from(error).hint("make its directory first"),
            false => error.into(),
        })?;
        let place = Self::of(store, settings)?;
        place.adjourn.follow_keys(keys);
        Ok(place)
    }

    fn of(store: Sqlite, settings: &Settings) -> Result<Self, Failure> {
        if let Some(SetAside { log, now }) = store.set_aside() {
            warn(&format!(
                "{} was not written for {}, and was not read: it is {} now; if it belongs to \
                 another file, put it beside that one",
                log.display(),
                store.path().display(),
                now.display()
            ));
        }
        if let Some(log) = store.unread_log() {
            warn(&format!(
                "{} cannot be read here: what was committed last may be missing; a copy of both \
                 files where you can write has all of it",
                log.display()
            ));
        }
        let (hosts, clock) = (Hosts::beside(store.path()), Arc::new(Machine));
        let by = Actor::new(Face::Cli, settings.principal.value.clone());
        let adjourn = Adjourn::on(store.clone(), hosts.clone(), clock.clone())?
            .in_tenant(settings.tenant.value.clone())
            .acting_as(by);
        Ok(Self { adjourn, store, hosts, clock, settings: settings.clone() })
    }

    /// Finds a session by its id, the id of one of its runs, its name, or an unambiguous part of its
    /// id.
    pub fn find(&self, text: &str) -> Result<SessionId, Failure> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        if let Ok(run) = text.parse() {
            return self
                .store
                .session_of(run)?
                .ok_or_else(|| Failure::not_found(format!("no session has had the run {text}")));
        }
        if let Some(id) = self.find_named(text)? {
            return Ok(id);
        }
        let mut found = Vec::new();
        let mut after = SessionNo(0);
        if text.len() >= 4 {
            loop {
                let page = self.store.ids(after, PAGE)?;
                let Some((last, _)) = page.last() else { break };
                after = *last;
                let ids = page.iter().map(|(_, id)| *id);
                found.extend(ids.filter(|id| id.to_string().contains(text)));
            }
        }
        // `ls` shows how ids end: that is meant before anything in their middle.
        let ends = |id: &&SessionId| id.to_string().ends_with(text);
        if let (Some(id), 1) = (found.iter().find(ends), found.iter().filter(ends).count()) {
            return Ok(*id);
        }
        match found.as_slice() {
            [id] => Ok(*id),
            [] => Err(Failure::not_found(format!("there is no session {text:?}"))
                .hint("`adjourn ls` lists them; four characters of an id are enough")),
            many => {
                Err(Failure::usage(format!("{} sessions have {text:?} in their id", many.len()))
                    .hint("give more of it"))
            }
        }
    }

    /// Finds the session with a name: the open one, or else the last that has ended.
    fn find_named(&self, name: &str) -> Result<Option<SessionId>, Failure> {
        match named(self, name, &StateKind::OPEN)?.as_slice() {
            [] => Ok(named(self, name, &[StateKind::Ended])?.first().copied()),
            [id] => Ok(Some(*id)),
            _ => {
                let message = format!("more than one open session is called {name:?}");
                let hint = format!("`adjourn ls --label {NAME}={name}` lists them");
                Err(Failure::usage(message).hint(hint))
            }
        }
    }

    /// Returns a session that must be there. One that was erased is not.
    pub fn session(&self, id: SessionId) -> Result<Arc<Session>, Failure> {
        let session = self.store.session(id)?.ok_or_else(|| Failure::no_session(id))?;
        match self.is_erased(&session)? {
            true => Err(Failure::no_session(id)),
            false => Ok(session),
        }
    }

    /// Returns whether what happened in a session was erased.
    pub fn is_erased(&self, session: &Session) -> Result<bool, Failure> {
        let ended = matches!(session.state, State::Ended(_));
        Ok(ended && self.store.founding(session.id)?.is_none())
    }

    /// Prints where a session stands.
    pub fn tell(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        self.tell_with(session, None, output)
    }

    /// Prints where a session stands, and what is to be noticed about it.
    pub fn tell_with(
        &self,
        session: &Session,
        notice: Option<String>,
        output: &Output,
    ) -> Result<(), Failure> {
        let living = Living::of(self)?;
        let view = View { session, now: self.clock.now(), living: &living };
        let mut object = view.json();
        if let (Some(object), Some(notice)) = (object.as_object_mut(), &notice) {
            object.insert("notice".to_owned(), notice.as_str().into());
        }
        output.object(&object, &format!("{}  {}", session.id, view.text()));
        if let Some(notice) = notice {
            output.talk(&notice);
        }
        Ok(())
    }

    /// Returns a session that must be there; if its host died, it is taken over first, and that is
    /// said.
    pub async fn recovered(&self, id: SessionId, output: &Output) -> Result<Arc<Session>, Failure> {
        let session = self.session(id)?;
        let Some(taken) = self.adjourn.recover(&session).await? else { return Ok(session) };
        let unknown = taken.status().unknown_calls.join(", ");
        output.talk(&match unknown.as_str() {
            "" => "its host died; it is taken over".to_owned(),
            calls => {
                format!("its host died; it is taken over, and nobody knows what became of {calls}")
            }
        });
        Ok(taken)
    }

    /// Returns whether a host is alive. One whose lock cannot be looked at is not waited for.
    pub fn lives(&self, host: HostId) -> bool {
        self.hosts.is_alive(host).unwrap_or(false)
    }

    /// Returns why a host of this program could not run a session, if it could not.
    pub fn unable(&self, id: SessionId) -> Result<Option<String>, Failure> {
        let founding = self.store.founding(id)?;
        let Some(What::SessionCreated(created)) = founding.map(|entry| entry.event.what) else {
            return Ok(None);
        };
        let drivers = Scripted::new(Arc::clone(&self.clock));
        let lacks = drivers.lacks(id, &created.driver);
        Ok(lacks.or_else(|| drivers.make(&created.driver).err()))
    }
}

/// Returns the key that the last commit of a store was signed with, if there are both.
fn signer(path: &Path) -> Result<Option<KeyId>, Failure> {
    match path.metadata() {
        Ok(about) if about.is_file() && about.len() > 0 => {
            Ok(Sqlite::look(path, Arc::new(Machine), 0)?.signer()?)
        }
        // Opening it says what is wrong, if anything is.
        _ => Ok(None),
    }
}

/// Returns where the keys are that a store is signed with: beside it, if a program has put them
/// there, and else where this user's are.
pub fn keys_of(settings: &Settings) -> Result<KeyDir, Failure> {
    let beside = settings.store().ok().map(|store| adjourn::key_directory(&store.value));
    match beside.filter(|keys| keys.path().is_dir()) {
        Some(beside) => Ok(beside),
        None => key_directory(),
    }
}

/// Returns where this user's keys are.
fn key_directory() -> Result<KeyDir, Failure> {
    // Without a home, it says so.
    adjourn::user_key_directory().map_or_else(|| Err(no_home()), Ok)
}

/// Returns where a store is that must be there, or says that there is none.
fn must_be_there(settings: &Settings) -> Result<&Path, Failure> {
    let Held { value: path, source } = settings.store()?;
    let missing = match path.metadata() {
        Ok(_) if stays_empty(path) => format!("{} is not a store: it is empty", path.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("there is no store {}", path.display())
        }
        // One that cannot be looked at is opened, which says what is wrong.
        Ok(_) | Err(_) => return Ok(path),
    };
    Err(Failure::store(missing).hint(match source {
        Source::Default => {
            "`adjourn run`, `new`, `event` and `serve` make one; `adjourn demo` needs none"
        }
        _ => "`adjourn run`, `new`, `event` and `serve` make one; --store names another",
    }))
}

/// Returns whether a file has nothing in it, and gets nothing soon: one that another process makes
/// just now is a store in a moment.
fn stays_empty(path: &Path) -> bool {
    let is_empty = || path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
    for _ in 0..LOOKS {
        if !is_empty() {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    is_empty()
}

/// Returns where the user keeps files of a kind, and we ours.
pub fn directory(variable: &str, fallback: &str) -> Result<PathBuf, Failure> {
    let base = match std::env::var_os(variable).filter(|value| !value.is_empty()) {
        Some(base) => PathBuf::from(base),
        None => home()?.join(fallback),
    };
    Ok(base.join("adjourn"))
}

/// Returns the user's home.
pub fn home() -> Result<PathBuf, Failure> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    home.map(PathBuf::from).ok_or_else(no_home)
}

fn no_home() -> Failure {
    Failure::usage("there is no HOME to keep things in")
        .hint("set HOME, or XDG_DATA_HOME and XDG_CONFIG_HOME")
}
