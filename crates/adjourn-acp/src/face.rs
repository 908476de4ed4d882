//! What all connections of a process share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use adjourn::clock::Clock;
use adjourn::doorbell::Hosts;
use adjourn::{Claimant, Notes};
use adjourn_core::actor::{Actor, Face as Where};
use adjourn_core::carry::Budget;
use adjourn_core::driver::{DriverKind, DriverSpec, Need};
use adjourn_core::event::What;
use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_core::{Command, Founding, Session, command};
use adjourn_store::{CommandError, Done, Request, Store};
use serde_json::{Map, Value};

use crate::connection::absolute;
use crate::content::without_secrets;
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
    /// What drives a new session.
    pub driver: DriverKind,
    /// What a new session needs from a connected client.
    pub needs: BTreeSet<Need>,
    /// The tenant that owns the sessions.
    pub tenant: String,
    /// Which words a client is taken to understand.
    pub profile: Profile,
    /// In which words `session/status` answers.
    pub status: StatusWords,
    /// What becomes of running sessions when the client goes away.
    pub on_disconnect: OnDisconnect,
    /// How long calls in flight may go on when their run is canceled, if it was configured.
    pub cancel_grace: Option<Duration>,
}

impl Options {
    /// Returns the command that ends a run.
    pub(crate) fn cancel(&self) -> Command {
        let millis = |grace: Duration| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let grace_ms = self.cancel_grace.map(millis);
        Command::Cancel(command::Cancel { reason: None, grace_ms })
    }
}

/// What a connection works with: the store, its hosts, a clock, the host of this process, the open
/// permission requests, and the options.
#[derive(Clone)]
pub struct Face<S> {
    /// The store that has the sessions.
    pub store: S,
    /// The hosts that are told of commits.
    pub hosts: Hosts,
    /// Gives the time and fresh ids.
    pub clock: Arc<dyn Clock>,
    /// How commands are given, so that the host of this process runs what they make ready.
    pub claimant: Claimant<S>,
    /// The permission requests of this process.
    pub permissions: PendingPermissions,
    /// The log of the process.
    pub notes: Notes,
    /// How connections behave.
    pub options: Options,
}

impl<S: Store> Face<S> {
    /// Gives a command, and rings the hosts that may have to act on it; what a prompt or a resume
    /// makes ready is run in this process, if it can be.
    pub(crate) async fn give(&self, request: Request) -> Result<Done, Error> {
        Ok(self.claimant.give(request).await?)
    }

    /// Registers a client that sees a session.
    pub(crate) fn attend(&self, id: SessionId) -> Viewer {
        self.permissions.attend(id, self.claimant.show(id))
    }

    /// Makes a session.
    pub(crate) async fn create(
        &self,
        peer: &Peer,
        cwd: String,
        servers: Vec<Map<String, Value>>,
    ) -> Result<Arc<Session>, Error> {
        let cwd = absolute(&cwd)?;
        for (index, server) in servers.iter().enumerate() {
            if !server.get("name").is_some_and(Value::is_string) {
                let path = format!("mcpServers[{index}].name");
                return Err(Error::invalid(path, "expected a text"));
            }
        }
        let driver = DriverSpec {
            kind: self.options.driver.clone(),
            cwd: Some(cwd),
            mcp_servers: servers.into_iter().map(without_secrets).collect(),
            env: Vec::new(),
            needs: self.options.needs.clone(),
        };
        let founding = Founding {
            id: SessionId::new(self.clock.uuid()),
            tenant: self.options.tenant.clone(),
            labels: BTreeMap::new(),
            parent: None,
            driver,
            budget: Budget::default(),
            title: None,
        };
        let by = Self::by(peer);
        Ok(self.store.transact(move |tx| tx.create(by, founding)).await?.session)
    }

    /// Ends a session, and erases what happened in it.
    pub(crate) async fn erase(&self, id: SessionId, by: Actor) -> Result<(), Error> {
        let close = Request::new(id, by, Command::Close(command::Close::default()));
        let erased = self.store.transact(move |tx| {
            tx.command(close)?;
            tx.erase(id).map_err(CommandError::from)
        });
        let mut erased = erased.await?;
        self.hosts.ring();
        while erased.more {
            erased = self.store.transact(move |tx| tx.erase(id)).await?;
        }
        Ok(())
    }

    /// Finds a session that a client names; one that was erased is none.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Session>, Error> {
        let found = match name.parse() {
            Ok(id) => self.store.session(id)?,
            Err(_) => None,
        };
        let found = found.filter(|session| session.tenant == self.options.tenant);
        let Some(session) = found else { return Err(Error::no_session(name)) };
        if matches!(session.state, State::Ended(_)) && self.store.founding(session.id)?.is_none() {
            return Err(Error::no_session(name));
        }
        Ok(session)
    }

    /// Finds the session that a command is for. Where it stands is for the command to find out, so
    /// a session that this process has just changed is not read again.
    pub(crate) fn find_to_command(&self, name: &str) -> Result<SessionId, Error> {
        let known = name.parse().ok().and_then(|id| self.claimant.feed().session(id));
        let is_own = |session: &Arc<Session>| {
            session.tenant == self.options.tenant && !matches!(session.state, State::Ended(_))
        };
        match known.filter(is_own) {
            Some(session) => Ok(session.id),
            None => Ok(self.find(name)?.id),
        }
    }

    /// Returns the directory a session works in.
    pub(crate) fn cwd(&self, id: SessionId) -> Result<Option<String>, adjourn_store::Error> {
        Ok(self.store.founding(id)?.and_then(|entry| match entry.event.what {
            What::SessionCreated(created) => created.driver.cwd,
            _ => None,
        }))
    }

    /// Returns whether a living host drives a session.
    pub(crate) fn is_driven(&self, session: &Session) -> bool {
        session.owner().is_some_and(|owner| self.hosts.is_alive(owner.host).unwrap_or(false))
    }

    /// Returns the actor that a client's commands are journaled under.
    pub(crate) fn by(peer: &Peer) -> Actor {
        Actor::new(Where::Acp, peer.name.clone())
    }
}
