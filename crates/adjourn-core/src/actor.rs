//! Who gives a command: on every command and, through its facts, on every event.

use serde::{Deserialize, Serialize};

use crate::id::{HostId, SessionId};

/// Where a command came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Face {
    /// A person or script at the command line.
    Cli,
    /// An editor, over ACP.
    Acp,
    /// Another agent, over A2A.
    A2a,
    /// A caller of the HTTP interface.
    Http,
    /// The agent itself, through its driver.
    Agent,
    /// A host: deadlines, deliveries, recovery.
    Host,
    /// A standing rule: budgets, panics.
    Policy,
    /// A program that embeds the library.
    Library,
}

/// Who gave a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    /// Where it came in.
    pub face: Face,
    /// The person, service or process, as the face knows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// The host that passed it on or gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// The session on whose behalf an agent spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

impl Actor {
    /// Names an actor by face and principal.
    pub fn new(face: Face, principal: impl Into<String>) -> Self {
        Self { face, principal: principal.into(), host: None, session: None }
    }

    /// Adds the host.
    #[must_use]
    pub fn on(mut self, host: HostId) -> Self {
        self.host = Some(host);
        self
    }

    /// Adds the session on whose behalf the actor speaks.
    #[must_use]
    pub fn for_session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }

    /// Returns the actor's name for a person to read: the principal, or what speaks at its face.
    pub fn who(&self) -> String {
        let nameless = match self.face {
            // A budget and a panic are told by what they are, not by whose they are.
            Face::Policy if !self.principal.is_empty() => {
                return format!("the policy {}", self.principal);
            }
            Face::Agent => return "the agent".to_owned(),
            Face::Host => return "the host".to_owned(),
            Face::Cli => "a user at the command line",
            Face::Acp => "an editor",
            Face::A2a => "another agent",
            Face::Http => "a caller over HTTP",
            Face::Policy => "a policy",
            Face::Library => "a program",
        };
        if self.principal.is_empty() { nameless.to_owned() } else { self.principal.clone() }
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let face = match self.face {
            Face::Cli => "cli",
            Face::Acp => "acp",
            Face::A2a => "a2a",
            Face::Http => "http",
            Face::Agent => "agent",
            Face::Host => "host",
            Face::Policy => "policy",
            Face::Library => "library",
        };
        if self.principal.is_empty() {
            f.write_str(face)
        } else {
            write!(f, "{face}:{}", self.principal)
        }
    }
}
