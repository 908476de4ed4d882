//! Who calls: a name for the journal, a tenant, and what is allowed.

use std::sync::Arc;

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Scope {
    /// Reads tasks, lists them and watches them.
    Read = 1,
    /// Says something to the agent, and ends what came of it.
    Send = 1 << 1,
    /// Pauses tasks.
    Pause = 1 << 2,
    /// Wakes tasks, and is shown the handles of their suspensions.
    Resume = 1 << 3,
    /// Speaks for the agent of a task.
    Agent = 1 << 4,
    /// Tells of events.
    Event = 1 << 5,
    /// Does everything.
    Admin = 1 << 6,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Send, Self::Pause, Self::Resume, Self::Agent, Self::Event, Self::Admin];

    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Agent => "agent",
            Self::Event => "event",
            Self::Admin => "admin",
        }
    }

    /// Finds a scope by its word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Returns whether the set has a scope; `admin` has all of them.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & (scope as u8 | Scope::Admin as u8) != 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | scope as u8))
    }
}

/// The peer that sends a request: its name, its tenant and what it may do.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name, as the journal has it.
    pub name: Arc<str>,
    /// Whose tasks the caller sees and makes.
    pub tenant: Arc<str>,
    /// What the caller may do.
    pub scopes: Scopes,
}

impl Caller {
    /// Returns whether the caller may do something.
    pub const fn may(&self, scope: Scope) -> bool {
        self.scopes.allow(scope)
    }
}
