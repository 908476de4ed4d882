//! Where the store is, and how it is opened.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adjourn::clock::{Clock, Machine};
use adjourn::core::Session;
use adjourn::core::actor::{Actor, Face};
use adjourn::core::id::SessionId;
use adjourn::driver::Drivers as _;
use adjourn::keys::KeyDir;
use adjourn::store::SetAside;
use adjourn::{Adjourn, AdjournBuilder, Meant};

use crate::failure::Failure;
use crate::founding::NAME;
use crate::liveness::Living;
use crate::native::{NamedServers, ProgramDrivers};
use crate::settings::{Held, Settings, Source};
use crate::terminal::{Output, warn};
use crate::view::View;

/// The tenant that owns sessions, unless configured.
pub const TENANT: &str = "local";

/// How often and how long apart an empty file is looked at: a store is made in less time.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(20);
/// The least of an id that is taken for one.
const LEAST: usize = 4;

/// An open store, with the settings that hold.
#[derive(Clone)]
pub struct Place {
    /// How commands are given, sessions watched and hosts run.
    pub adjourn: Adjourn,
    pub clock: Arc<dyn Clock>,
    pub settings: Settings,
    /// The MCP servers that the command has named, whose values its host has for sessions with them.
    pub named_servers: Option<NamedServers>,
}

impl Place {
    /// Opens a store that must be there: a mistyped path is no new and empty store.
    pub async fn open(settings: &Settings) -> Result<Self, Failure> {
        must_be_there(settings)?;
        Self::open_or_make(settings).await
    }

    /// Opens a store that must be there for reading alone: without keys, and also where nothing
    /// can be written.
    pub async fn look(settings: &Settings) -> Result<Self, Failure> {
        let path = must_be_there(settings)?;
        Self::of(Adjourn::builder(path).read_only(), settings).await
    }

    /// Opens the store for reading alone, if it is there.
    pub async fn look_if_there(settings: &Settings) -> Result<Option<Self>, Failure> {
        match settings.store()?.value.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) | Err(_) => Self::look(settings).await.map(Some),
        }
    }

    /// Opens the store, and makes one first if there is none.
    pub async fn open_or_make(settings: &Settings) -> Result<Self, Failure> {
        Self::open_with(settings, keys_of(settings)?, false).await
    }

    /// Opens the store to go on with a key that it may never have seen.
    pub async fn open_with_new_key(settings: &Settings) -> Result<Option<Self>, Failure> {
        match settings.store()?.value.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) | Err(_) => {
                Self::open_with(settings, keys_of(settings)?, true).await.map(Some)
            }
        }
    }

    /// Opens a store that goes away with its directory, and leaves nothing elsewhere.
    pub async fn scratch(settings: &Settings, directory: &Path) -> Result<Self, Failure> {
        let keys = KeyDir::new(directory.join("keys"));
        Self::open_with(&settings.with_store(directory.join("store.db")), keys, false).await
    }

    async fn open_with(settings: &Settings, keys: KeyDir, new_key: bool) -> Result<Self, Failure> {
        let Held { value: path, source } = settings.store()?;
        if let (Source::Default, Some(directory)) = (source, path.parent()) {
            let mut private = std::fs::DirBuilder::new();
            private.recursive(true).mode(0o700).create(directory).map_err(|error| {
                Failure::store(format!("cannot make {}: {error}", directory.display()))
            })?;
        }
        let nowhere =
            path.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.exists());
        let opening = Adjourn::builder(path).key_directory(keys.path());
        let opening = if new_key { opening.with_new_key() } else { opening };
        Self::of(opening, settings).await.map_err(|failure| match nowhere {
            true => failure.hint("make its directory first"),
            false => failure,
        })
    }

    async fn of(opening: AdjournBuilder, settings: &Settings) -> Result<Self, Failure> {
        let adjourn = opening
            .cache(settings.cache.value)
            .tenant(settings.tenant.value.clone())
            .acting_as(Actor::new(Face::Cli, settings.principal.value.clone()))
            .open()
            .await?;
        if let Some(SetAside { log, now }) = adjourn.set_aside() {
            warn(&format!(
                "{} was not written for {}, and was not read: it is {} now; if it belongs to \
                 another file, put it beside that one",
                log.display(),
                adjourn.path().display(),
                now.display()
            ));
        }
        if let Some(log) = adjourn.unread_log().await {
            warn(&format!(
                "{} cannot be read here: what was committed last may be missing; a copy of both \
                 files where you can write has all of it",
                log.display()
            ));
        }
        let (clock, settings) = (Arc::new(Machine), settings.clone());
        Ok(Self { adjourn, clock, settings, named_servers: None })
    }

    /// Lets hosts have the values of the MCP servers that the command has named.
    #[must_use]
    pub fn naming(self, named_servers: Option<NamedServers>) -> Self {
        Self { named_servers, ..self }
    }

    /// Finds a session by its id, the id of one of its runs, its name, or by how its id begins, or
    /// the end of it that lists show.
    pub async fn find(&self, text: &str) -> Result<SessionId, Failure> {
        match self.adjourn.find(text).await? {
            Meant::One(session) => return Ok(session.id()),
            Meant::NoRun(_) => {
                return Err(Failure::not_found(format!("no session has had the run {text}")));
            }
            Meant::Several => {
                let message = format!("more than one open session is called {text:?}");
                let hint = format!("`adjourn ls --label {NAME}={text}` lists them");
                return Err(Failure::usage(message).hint(hint));
            }
            Meant::Unknown => {}
        }
        let found = match text.len() {
            0..LEAST => Vec::new(),
            _ => self.adjourn.sessions_like(text).await?,
        };
        match found.as_slice() {
            [session] => Ok(session.id()),
            [] => Err(Failure::not_found(format!("there is no session {text:?}")).hint(
                "`adjourn ls` lists them; the first or last four characters of an id that it shows \
                 are enough",
            )),
            _ => Err(Failure::usage(format!("more than one session has an id like {text:?}"))
                .hint("give more of it")),
        }
    }

    /// Returns a session that must be there. One that was erased is not.
    pub async fn session(&self, id: SessionId) -> Result<Arc<Session>, Failure> {
        Ok(self.adjourn.session(id).load().await?)
    }

    /// Prints where a session stands.
    pub async fn tell(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        self.tell_with(session, None, output).await
    }

    /// Prints where a session stands, and what is to be noticed about it.
    pub async fn tell_with(
        &self,
        session: &Session,
        notice: Option<String>,
        output: &Output,
    ) -> Result<(), Failure> {
        let living = Living::of(self).await?;
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
        let session = self.session(id).await?;
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

    /// Returns why a host of this program could not run a session, if it could not.
    pub async fn unable(&self, id: SessionId) -> Result<Option<String>, Failure> {
        let Some(created) = self.adjourn.session(id).created().await? else { return Ok(None) };
        let drivers = ProgramDrivers::new(self);
        let lacks = drivers.lacks(id, &created.driver);
        Ok(lacks.or_else(|| drivers.make(&created.driver).err()))
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

/// Which commands make a store.
const MAKE_ONE: &str =
    "`adjourn run`, `new`, `event`, `serve`, `acp`, `import` and `restore` make one";

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
            format!("{MAKE_ONE}; `adjourn demo` needs none")
        }
        _ => format!("{MAKE_ONE}; --store names another"),
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
