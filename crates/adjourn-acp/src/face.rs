//! What all connections of a process share.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjourn::core::Session;
use adjourn::core::actor::{Actor, Face as Where};
use adjourn::core::carry::Budget;
use adjourn::core::driver::DriverSpec;
use adjourn::core::id::{HostId, SessionId};
use adjourn::core::session::State;
use adjourn::driver::{ClientAbilities, Environment, Unusable};
use adjourn::store::Store;
use adjourn::{Adjourn, Claimant, Meant, SessionRef};
use serde_json::{Map, Value};

use crate::connection::absolute;
use crate::content::{secrets, without_secrets};
use crate::peer::{Peer, Profile};
use crate::permissions::{PendingPermissions, Viewer};
use crate::rpc::Error;

/// What becomes of the sessions that run when a client goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDisconnect {
    /// They run on, here or on another host.
    #[default]
    Continue,
    /// They are suspended until a resume.
    Suspend,
    /// Their runs are canceled.
    Cancel,
}

/// In which words `session/status` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatusWords {
    /// Those of the version that was agreed on.
    #[default]
    ByVersion,
    /// `live` and `not_found`.
    Live,
    /// `open`, `saved` and `_suspended`.
    Open,
}

/// How the face behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// What drives a new session, but for the directory and the MCP servers that its client names.
    pub driver: DriverSpec,
    /// What a new session may use before it parks.
    pub budget: Budget,
    /// Whether sessions have the tools of MCP servers that clients name.
    pub mcp: bool,
    /// Which words a client is taken to understand.
    pub profile: Profile,
    /// In which words `session/status` answers.
    pub status: StatusWords,
    /// What becomes of running sessions when the client goes away.
    pub on_disconnect: OnDisconnect,
    /// How long calls in flight may go on when their run is canceled, if it was configured.
    pub cancel_grace: Option<Duration>,
}

/// What a connection works with: the store with the host of this process, the open permission
/// requests, and the options.
#[derive(Clone)]
pub struct Face<S: Store> {
    /// Where the sessions are, and whose; its host runs what clients make ready.
    pub adjourn: Adjourn<S>,
    /// How that host is told which sessions clients of this process see.
    pub claimant: Claimant<S>,
    /// The permission requests of this process.
    pub permissions: PendingPermissions,
    /// How connections behave.
    pub options: Options,
}

/// Checks that MCP servers have names.
fn named(servers: &[Map<String, Value>]) -> Result<(), Error> {
    let nameless = |server: &Map<String, Value>| !server.get("name").is_some_and(Value::is_string);
    match servers.iter().position(nameless) {
        Some(index) => Err(Error::invalid(format!("mcpServers[{index}].name"), "expected a text")),
        None => Ok(()),
    }
}

/// Says which field of a request cannot be used.
fn unusable(Unusable { field, problem }: Unusable) -> Error {
    Error::invalid(field, &problem)
}

impl<S: Store> Face<S> {
    /// Registers a client that sees a session, and what it can be asked for besides permissions.
    pub(crate) fn attend(&self, id: SessionId, abilities: ClientAbilities) -> Viewer {
        let host = self.claimant.host();
        self.permissions.attend(id, host, self.claimant.show(id), abilities)
    }

    /// Makes a session.
    pub(crate) async fn create(
        &self,
        peer: &Peer,
        cwd: String,
        servers: Vec<Map<String, Value>>,
    ) -> Result<SessionId, Error> {
        let cwd = absolute(&cwd)?;
        named(&servers)?;
        let values = secrets(&servers);
        let mut driver = self.options.driver.clone();
        driver.cwd = Some(cwd);
        driver.mcp_servers = servers.into_iter().map(without_secrets).collect();
        self.claimant.check(&driver).map_err(unusable)?;
        let creating = self.adjourn.create_with(driver).budget(self.options.budget);
        let session = creating.by(Self::by(peer)).await?;
        if !values.is_empty() {
            let values = Environment { mcp_servers: values, ..Environment::default() };
            session.provide(values).await;
        }
        Ok(session.id())
    }

    /// Checks the MCP servers that a client names when it comes back to a session.
    pub(crate) fn check_servers(
        &self,
        spec: Option<&DriverSpec>,
        servers: &[Map<String, Value>],
    ) -> Result<(), Error> {
        named(servers)?;
        let Some(spec) = spec else { return Ok(()) };
        // A directory that is gone by now keeps no client from looking at what was said; what would be
        // started there cannot be looked for.
        if spec.cwd.as_ref().is_some_and(|cwd| !Path::new(cwd).is_dir()) {
            return Ok(());
        }
        let mcp_servers = servers.iter().cloned().map(without_secrets).collect();
        let spec = DriverSpec { mcp_servers, ..spec.clone() };
        self.claimant.check(&spec).map_err(unusable)
    }

    /// Gives a session the MCP servers that a client names when it comes back, in memory alone: they
    /// take the place of those that the session was made with.
    pub(crate) async fn replace_servers(&self, session: SessionId, servers: &[Map<String, Value>]) {
        let described = servers.iter().cloned().map(without_secrets).collect();
        let values = Environment {
            mcp_servers: secrets(servers),
            servers: Some(described),
            ..Environment::default()
        };
        self.adjourn.session(session).provide(values).await;
    }

    /// Returns the way to a session, in the name of a client.
    pub(crate) fn session(&self, id: SessionId, peer: &Peer) -> SessionRef<S> {
        self.adjourn.clone().acting_as(Self::by(peer)).session(id)
    }

    /// Finds a session that a client names; one that was erased is none.
    pub(crate) async fn find(&self, name: &str) -> Result<Arc<Session>, Error> {
        let Ok(id) = name.parse() else { return Err(Error::no_session(name)) };
        match self.adjourn.session(id).load().await {
            Ok(session) if session.tenant == self.adjourn.tenant() => Ok(session),
            Ok(_) | Err(adjourn::Error::NotFound(_)) => Err(Error::no_session(name)),
            Err(error) => Err(error.into()),
        }
    }

    /// Finds the session that a client means: by its id, the id of one of its runs, or its name.
    pub(crate) async fn find_meant(&self, text: &str) -> Result<Arc<Session>, Error> {
        match self.adjourn.find(text).await? {
            Meant::One(session) => self.find(&session.id().to_string()).await,
            Meant::Several => {
                Err(Error::invalid("sessionId", "more than one open session has this name"))
            }
            Meant::NoRun(_) | Meant::Unknown => Err(Error::no_session(text)),
        }
    }

    /// Finds the session that a command is for. Where it stands is for the command to find out, so
    /// a session that this process has just changed is not read again.
    pub(crate) async fn find_to_command(&self, name: &str) -> Result<SessionId, Error> {
        let known = name.parse().ok().and_then(|id| self.adjourn.feed().session(id));
        let is_own = |session: &Arc<Session>| {
            session.tenant == self.adjourn.tenant() && !matches!(session.state, State::Ended(_))
        };
        match known.filter(is_own) {
            Some(session) => Ok(session.id),
            None => Ok(self.find(name).await?.id),
        }
    }

    /// Returns the directory a session works in.
    pub(crate) async fn cwd(&self, id: SessionId) -> Result<Option<String>, adjourn::Error> {
        Ok(self.adjourn.session(id).created().await?.and_then(|created| created.driver.cwd))
    }

    /// Returns whether a living host drives a session.
    pub(crate) async fn is_driven(&self, session: &Session) -> bool {
        match session.owner() {
            Some(owner) => self.adjourn.is_alive(owner.host).await.unwrap_or(false),
            None => false,
        }
    }

    /// Returns the living host that keeps the agent of a session warm, if one does.
    pub(crate) async fn keeper_of(&self, id: SessionId) -> Option<HostId> {
        self.adjourn.keeper_of(id).await
    }

    /// Returns the actor that a client's commands are journaled under.
    pub(crate) fn by(peer: &Peer) -> Actor {
        Actor::new(Where::Acp, peer.name.clone())
    }
}
