//! What the client at the other end understands, as far as it has shown.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use adjourn::driver::ClientAbilities;
use serde_json::Value;

/// The key of our extension, in `_meta`.
pub const EXTENSION: &str = "adjourn/suspend";

/// The version of the protocol that was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The stable version.
    V1,
    /// The draft: message ids, states, replay by cursor.
    V2,
}

/// In which words a client is told about suspensions; a later one says more.
///
/// Unknown updates make today's clients log errors or drop data, so a client is told no more than
/// it has shown to understand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// It has shown nothing: standard messages, with ours in `_meta`.
    Today,
    /// It has used the extension: also phases, past lifecycle, and requests that begin with `_`.
    Extension,
    /// It has used the methods or fields of the proposal: they are used to it, too.
    Rfc,
}

/// Which words clients are taken to understand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// A client is told what it has shown to understand.
    #[default]
    Adjourn,
    /// Every client is told in the words of the proposal, and a bare resume always wakes.
    Rfc,
}

/// What is known of a connected client.
#[derive(Debug)]
pub struct Peer {
    /// The version that was agreed on.
    pub version: Version,
    /// Which words clients are taken to understand.
    pub profile: Profile,
    /// Its name, as it introduced itself.
    pub name: String,
    /// What it can be asked for.
    pub abilities: ClientAbilities,
    /// Whether it shows notices.
    pub notices: bool,
    dialect: AtomicU8,
    harn: AtomicBool,
}

impl Peer {
    /// Reads what a client says about itself in `initialize`.
    pub fn new(version: Version, profile: Profile, info: &Value, capabilities: &Value) -> Self {
        // Journals and refusals name the client so.
        let said = |field: &str| info.get(field).and_then(Value::as_str);
        let names = [said("name"), said("title")].into_iter().flatten().map(str::trim);
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let name = name.chars().filter(|c| !c.is_control()).take(64).collect();
        let is = |path: &str| capabilities.pointer(path).is_some_and(|value| !value.is_null());
        let says = |path: &str| capabilities.pointer(path).and_then(Value::as_bool) == Some(true);
        let forms = is("/elicitation/form");
        // Files and terminals of clients are gone from version 2.
        let abilities = match version {
            Version::V1 => ClientAbilities {
                read_files: says("/fs/readTextFile"),
                write_files: says("/fs/writeTextFile"),
                terminals: says("/terminal"),
                forms,
            },
            Version::V2 => ClientAbilities { forms, ..ClientAbilities::default() },
        };
        let peer = Self {
            version,
            profile,
            name,
            abilities,
            notices: version == Version::V2 || is("/session/notices"),
            dialect: AtomicU8::new(Dialect::Today as u8),
            harn: AtomicBool::new(false),
        };
        let proposed = capabilities.get("supportsSuspend").and_then(Value::as_bool);
        if profile == Profile::Rfc || proposed == Some(true) {
            peer.shows(Dialect::Rfc);
        }
        peer.notes(capabilities.get("_meta"));
        peer
    }

    /// Takes note of what a client understands.
    pub fn shows(&self, dialect: Dialect) {
        self.dialect.fetch_max(dialect as u8, Ordering::Relaxed);
    }

    /// Takes note of what `_meta` shows.
    pub fn notes(&self, meta: Option<&Value>) {
        let Some(meta) = meta else { return };
        if meta.get(EXTENSION).is_some_and(|value| !value.is_null()) {
            self.shows(Dialect::Extension);
        }
        if meta.pointer("/harn/suspend").is_some_and(|value| !value.is_null()) {
            self.shows(Dialect::Extension);
            self.harn.store(true, Ordering::Relaxed);
        }
    }

    /// Returns in which words it is told.
    pub fn dialect(&self) -> Dialect {
        match self.dialect.load(Ordering::Relaxed) {
            0 => Dialect::Today,
            1 => Dialect::Extension,
            _ => Dialect::Rfc,
        }
    }

    /// Returns whether it has asked to be told more than today's protocol says.
    pub fn opted_in(&self) -> bool {
        self.dialect() > Dialect::Today
    }

    /// Returns whether it uses the old tunnel.
    pub fn harn(&self) -> bool {
        self.harn.load(Ordering::Relaxed)
    }
}
