//! What a session needs to run: journaled when it is created, so that any host can tell whether it can take it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::option::{self, SessionOption};
use crate::rejected::Rejected;

/// Everything a host needs to run a session, on whatever machine it wakes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriverSpec {
    /// What drives it.
    pub kind: DriverKind,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// MCP servers, as the client that made the session described them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<serde_json::Value>,
    /// Names of environment variables it reads; values are never stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// What it needs from a connected client.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<Need>,
    /// What clients can choose of how the agent works, and what it begins with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<SessionOption>,
}

/// What drives a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DriverKind {
    /// The scripted driver, with the script as it was given.
    Script {
        /// The script's text.
        source: String,
    },
    /// The agent of this project.
    Native {
        /// The model it talks to.
        model: String,
    },
    /// An ACP agent as a child process.
    Acp {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// A driver that programs know by its name: every host that has one of that name can run it.
    Named {
        /// The name, as hosts register their drivers under it.
        name: String,
        /// What the driver is made with; its meaning is the driver's own.
        #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
        config: serde_json::Value,
    },
}

/// Something only a connected client can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Reads and writes files through the client.
    Files,
    /// Runs terminals through the client.
    Terminal,
    /// Asks the client for permissions.
    Permissions,
}

/// The part of a [`DriverSpec`] that stays in the state: enough to tell who can run it.
///
/// The rest (scripts, servers) may be large and is read from the entry that created the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriverSummary {
    /// `script`, `native`, `acp` or `named`.
    pub kind: String,
    /// The name of a named driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it needs from a connected client.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<Need>,
}

impl DriverSummary {
    /// Returns what operators call the agent: the name of its driver, or else the driver's kind.
    pub fn agent(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.kind)
    }
}

impl DriverSpec {
    /// A spec of the scripted driver.
    pub fn script(source: impl Into<String>) -> Self {
        Self::new(DriverKind::Script { source: source.into() })
    }

    /// A spec of a driver that hosts know by its name.
    pub fn named(name: impl Into<String>, config: serde_json::Value) -> Self {
        Self::new(DriverKind::Named { name: name.into(), config })
    }

    /// A spec of a driver that needs nothing else.
    pub const fn new(kind: DriverKind) -> Self {
        Self {
            kind,
            cwd: None,
            mcp_servers: Vec::new(),
            env: Vec::new(),
            needs: BTreeSet::new(),
            options: Vec::new(),
        }
    }

    /// Returns what stays in the state.
    pub fn summary(&self) -> DriverSummary {
        let name = match &self.kind {
            DriverKind::Named { name, .. } => Some(name.clone()),
            DriverKind::Script { .. } | DriverKind::Native { .. } | DriverKind::Acp { .. } => None,
        };
        DriverSummary { kind: self.kind.name().to_owned(), name, needs: self.needs.clone() }
    }

    pub(crate) fn check(&self) -> Result<(), Rejected> {
        for (index, name) in self.env.iter().enumerate() {
            // `NAME=value` here would put a secret into the journal.
            if name.is_empty() || name.contains('=') {
                return Err(Rejected::invalid(
                    format!("driver.env[{index}]"),
                    "expected the name of a variable, without a value",
                ));
            }
        }
        if let DriverKind::Named { name, .. } = &self.kind {
            limits::name("driver.kind.named.name", name)?;
        }
        option::check(&self.options)?;
        // What is too long is named as clients name it, and not by the object around it.
        let parts = [
            ("cwd", limits::json_bytes(&self.cwd)),
            ("mcpServers", limits::json_bytes(&self.mcp_servers)),
            ("driver", limits::json_bytes(&self.kind)),
        ];
        let longest = parts.iter().max_by_key(|(_, bytes)| *bytes).map_or("driver", |part| part.0);
        limits::json(longest, self, limits::DRIVER_SPEC_BYTES)
    }
}

impl DriverSummary {
    /// Returns how long a cancel waits for what is in flight, unless it says so itself.
    pub fn cancel_grace(&self) -> Duration {
        // An ACP agent has a loop of its own.
        match self.kind.as_str() {
            "acp" => limits::OWN_LOOP_CANCEL_GRACE,
            _ => limits::CANCEL_GRACE,
        }
    }
}

impl DriverKind {
    /// Returns the kind's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Script { .. } => "script",
            Self::Native { .. } => "native",
            Self::Acp { .. } => "acp",
            Self::Named { .. } => "named",
        }
    }
}
