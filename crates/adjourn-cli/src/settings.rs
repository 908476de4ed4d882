//! What holds: flags over environment variables over one file over defaults.
//!
//! Every setting is one [`Key`]; the commented file, the list of what holds and the reader all go
//! by them.

mod agents;
mod failures;
mod file;
mod keys;
mod tree;
mod user;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjourn::core::limits::NAME_BYTES;
use adjourn_agent::Prices;
use adjourn_server::PublicName;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::arguments::{
    Arguments, LogFormat, LogLevel, OnDisconnect, Profile, Push, StatusWords, Verb,
};
use crate::durations::{duration, exact};
use crate::failure::Failure;
use crate::input_file::{self, SETTINGS_BYTES};
use crate::place::{TENANT, directory};
pub use agents::SettledAgent;
pub use failures::FailureSettings;
use file::{File, Written};
pub use keys::KEYS;
use keys::{
    A2A_PROFILE, AS, CACHE, CANCEL_GRACE, DRAIN, ENDED, Key, LISTEN, LOG, LOG_FORMAT, MAX_RUNNING,
    MAX_WARM, ON_DISCONNECT, PROFILE, PUBLIC_NAME, PUSH, SOURCE, STATUS_WORDS, STORE, TENANT_KEY,
    TOKEN, TOKEN_FILE, TOKENS_FILE, WARM_FOR,
};

/// How it is said that something is kept for ever.
const NEVER: &str = "never";

/// Where a value came from; what is first overrides what is later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Flag(&'static str),
    Variable(&'static str),
    File { path: PathBuf, line: usize },
    Default,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value, and where it came from.
#[derive(Debug, Clone)]
pub struct Held<T> {
    pub value: T,
    pub source: Source,
}

impl<T: Copy> Held<T> {
    /// Returns the value if it was set.
    pub fn configured(&self) -> Option<T> {
        (self.source != Source::Default).then_some(self.value)
    }
}

/// The settings that hold for this command.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file that was read, or would be if it were there.
    pub file: Option<PathBuf>,
    /// Whether it is there.
    pub file_is_there: bool,
    /// Without a home, and without a name for it, there is none.
    store: Option<Held<PathBuf>>,
    pub tenant: Held<String>,
    /// Who asks for what is typed.
    pub principal: Held<String>,
    pub source: Held<String>,
    pub listen: Held<Option<SocketAddr>>,
    token: Held<Option<String>>,
    token_file: Held<Option<PathBuf>>,
    /// The file of the tokens that callers show.
    pub tokens_file: Held<Option<PathBuf>>,
    /// What others call the server.
    pub public_name: Held<Option<PublicName>>,
    /// Where push notifications may go.
    pub push: Held<Push>,
    /// In whose words other agents are told about pauses.
    pub a2a_profile: Held<Profile>,
    pub max_running: Held<usize>,
    pub warm_for: Held<Duration>,
    pub max_warm: Held<usize>,
    pub drain: Held<Duration>,
    pub cancel_grace: Held<Duration>,
    pub cache: Held<usize>,
    pub failures: FailureSettings,
    /// How long what has ended is kept; nothing if it is kept for ever.
    pub ended: Held<Option<Duration>>,
    /// What is logged; nothing if each command has its own default.
    pub log: Held<Option<LogLevel>>,
    pub log_format: Held<LogFormat>,
    pub profile: Held<Profile>,
    pub status_words: Held<StatusWords>,
    pub on_disconnect: Held<OnDisconnect>,
    /// The agents of the file, by name.
    pub agents: BTreeMap<String, SettledAgent>,
    /// What models cost.
    pub prices: Prices,
    /// The same, for those who look.
    price_rows: Vec<Row>,
}

impl Settings {
    /// Finds out what holds for a command.
    pub fn of(arguments: &Arguments) -> Result<Self, Failure> {
        let (file, file_is_there) = File::find(arguments.config.as_deref())?;
        let path = file.path.clone();
        let agents = agents::agents(&file)?;
        let (prices, price_rows) = agents::prices(&file)?;
        let layers = Layers { file };
        let serve = match &arguments.verb {
            Verb::Serve(serve) => Some(serve),
            _ => None,
        };
        let event = match &arguments.verb {
            Verb::Event(event) => Some(event),
            _ => None,
        };
        let acp = match &arguments.verb {
            Verb::Acp(acp) => Some(acp),
            _ => None,
        };
        let text = |text: &str| match text.trim().is_empty() {
            true => Err("expected a text that is not blank".to_owned()),
            false => Ok(text.to_owned()),
        };
        let path_of = |text: &str| match text.is_empty() {
            true => Err("expected a path".to_owned()),
            false => Ok(PathBuf::from(text)),
        };
        let (store, listen) = (arguments.store.clone(), serve.and_then(|serve| serve.listen));
        let token = serve.and_then(|serve| serve.token.clone());
        let token_file = serve.and_then(|serve| serve.token_file.clone());
        let tokens_file = serve.and_then(|serve| serve.tokens_file.clone());
        let tenant = event.and_then(|event| event.tenant.clone());
        let source = event.and_then(|event| event.source.clone());
        let named = arguments.verb.named().map(str::to_owned);
        // An empty variable means none; an empty flag is one that a script failed to fill.
        for (key, flag) in [(&TOKEN, &token), (&TENANT_KEY, &tenant), (&SOURCE, &source)] {
            if let Some(flag) = flag {
                text(flag).map_err(|problem| Failure::usage(format!("{}: {problem}", key.flag)))?;
            }
        }
        let (running, drain) = serve.map_or((None, None), |serve| (serve.max_running, serve.drain));
        let cache = serve.and_then(|serve| serve.cache);
        let host = adjourn::Config::default();
        Ok(Self {
            store: match layers.path(layers.pick(&STORE, store, path_of)?)? {
                Some(held) => Some(held),
                None => directory("XDG_DATA_HOME", ".local/share")
                    .ok()
                    .map(|own| Held { value: own.join("store.db"), source: Source::Default }),
            },
            tenant: layers.pick(&TENANT_KEY, tenant, text)?.by_default(TENANT.to_owned()),
            principal: layers.pick(&AS, named, principal)?.by_default(user::user()),
            source: layers.pick(&SOURCE, source, text)?.by_default("cli".to_owned()),
            listen: layers.pick(&LISTEN, listen, address)?.optional(),
            token: layers.pick(&TOKEN, token, text)?.optional(),
            token_file: layers.path(layers.pick(&TOKEN_FILE, token_file, path_of)?)?.optional(),
            tokens_file: layers.path(layers.pick(&TOKENS_FILE, tokens_file, path_of)?)?.optional(),
            public_name: layers
                .pick(
                    &PUBLIC_NAME,
                    serve.and_then(|serve| serve.public_name.clone()),
                    PublicName::read,
                )?
                .optional(),
            push: layers
                .pick(&PUSH, serve.and_then(|serve| serve.push), one_of)?
                .by_default(Push::Public),
            a2a_profile: layers
                .pick(&A2A_PROFILE, serve.and_then(|serve| serve.profile), one_of)?
                .by_default(Profile::Adjourn),
            max_running: layers.pick(&MAX_RUNNING, running, count)?.by_default(host.max_running),
            warm_for: layers.pick(&WARM_FOR, None, duration)?.by_default(host.warm_for),
            max_warm: layers.pick(&MAX_WARM, None, count_or_none)?.by_default(host.max_warm),
            drain: layers.pick(&DRAIN, drain, duration)?.by_default(host.drain),
            cancel_grace: layers
                .pick(&CANCEL_GRACE, None, grace)?
                .by_default(adjourn::core::limits::CANCEL_GRACE),
            cache: layers.pick(&CACHE, cache, count)?.by_default(adjourn::store::CACHE),
            failures: FailureSettings::of(&layers, host.failures)?,
            ended: layers
                .pick(&ENDED, None, kept)?
                .by_default(Some(adjourn::store::Retention::ENDED)),
            log: layers.pick(&LOG, arguments.log, one_of)?.optional(),
            log_format: layers
                .pick(&LOG_FORMAT, arguments.log_format, one_of)?
                .by_default(LogFormat::Text),
            profile: layers
                .pick(&PROFILE, acp.and_then(|acp| acp.profile), one_of)?
                .by_default(Profile::Adjourn),
            status_words: layers
                .pick(&STATUS_WORDS, acp.and_then(|acp| acp.status_words), one_of)?
                .by_default(StatusWords::Auto),
            on_disconnect: layers
                .pick(&ON_DISCONNECT, acp.and_then(|acp| acp.on_disconnect), one_of)?
                .by_default(OnDisconnect::Continue),
            agents,
            prices,
            price_rows,
            file: path,
            file_is_there,
        })
    }

    /// Returns an agent of the file.
    pub fn agent(&self, name: &str) -> Result<&SettledAgent, Failure> {
        self.agents.get(name).ok_or_else(|| {
            let known: Vec<_> = self.agents.keys().map(String::as_str).collect();
            let hint = match (known.as_slice(), &self.file) {
                ([], Some(file)) => {
                    format!("write [agent.{name}] with a model into {}", file.display())
                }
                ([], None) => "--config names a file with agents".to_owned(),
                (known, _) => format!("there are {}", known.join(", ")),
            };
            Failure::usage(format!("there is no agent {name:?} in the settings")).hint(hint)
        })
    }

    /// Returns where the store is, or would be.
    pub fn store(&self) -> Result<&Held<PathBuf>, Failure> {
        match &self.store {
            Some(store) => Ok(store),
            // It says what is missing.
            None => Err(directory("XDG_DATA_HOME", ".local/share")
                .err()
                .unwrap_or_else(|| Failure::usage("there is no place for a store"))
                .hint("--store names a file; or set HOME, or XDG_DATA_HOME and XDG_CONFIG_HOME")),
        }
    }

    /// The same, but for another store.
    pub fn with_store(&self, path: PathBuf) -> Self {
        let store = Some(Held { value: path, source: Source::Flag(STORE.flag) });
        Self { store, ..self.clone() }
    }

    /// Returns what callers must show, and where that is kept if others can read it, too.
    pub fn token(&self) -> Result<(Option<String>, Option<PathBuf>), Failure> {
        let named = match &self.token_file.value {
            // A token that was given by stronger means overrides the name of a file.
            Some(_)
                if self.token.value.is_some() && self.token.source <= self.token_file.source =>
            {
                None
            }
            named => named.as_ref(),
        };
        let Some(path) = named else { return Ok((self.token.value.clone(), None)) };
        let wrong = |problem: String| {
            Failure::usage(format!("{}: {problem}", path.display()))
                .hint(format!("{} names it, by {}", self.token_file.source, TOKEN_FILE.name))
        };
        let text = input_file::read(path, SETTINGS_BYTES)
            .map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let token = text.trim();
        if token.is_empty() {
            return Err(wrong("holds no token".to_owned()));
        }
        Ok((Some(token.to_owned()), open_to_others(path).then(|| path.clone())))
    }

    /// Returns every setting with its value and where it came from, for people and for programs.
    pub fn rows(&self) -> Vec<Row> {
        let path = |path: &Path| json!(path.display().to_string());
        let some_path = |held: &Held<Option<PathBuf>>| held.value.as_deref().map(path);
        let row = |key: &Key, value: Option<Value>, source: &Source| Row {
            key: key.name.into(),
            value,
            source: source.to_string(),
        };
        let token = self.token.value.as_ref().map(|_| json!("(hidden)"));
        let listen = self.listen.value.map(|address| json!(address.to_string()));
        let public_name = self.public_name.value.as_ref().map(|name| json!(name.to_string()));
        let drain = Some(json!(exact(self.drain.value)));
        let warm_for = Some(json!(exact(self.warm_for.value)));
        let ended = self.ended.value.map_or_else(|| NEVER.to_owned(), exact);
        let cancel_grace = Some(json!(exact(self.cancel_grace.value)));
        let mut rows = vec![
            row(
                &STORE,
                self.store.as_ref().map(|store| path(&store.value)),
                self.store.as_ref().map_or(&Source::Default, |store| &store.source),
            ),
            row(&TENANT_KEY, Some(json!(self.tenant.value)), &self.tenant.source),
            row(&AS, Some(json!(self.principal.value)), &self.principal.source),
            row(&SOURCE, Some(json!(self.source.value)), &self.source.source),
            row(&LISTEN, listen, &self.listen.source),
            row(&TOKEN, token, &self.token.source),
            row(&TOKEN_FILE, some_path(&self.token_file), &self.token_file.source),
            row(&TOKENS_FILE, some_path(&self.tokens_file), &self.tokens_file.source),
            row(&PUBLIC_NAME, public_name, &self.public_name.source),
            row(&PUSH, word(&self.push.value), &self.push.source),
            row(&MAX_RUNNING, Some(json!(self.max_running.value)), &self.max_running.source),
            row(&WARM_FOR, warm_for, &self.warm_for.source),
            row(&MAX_WARM, Some(json!(self.max_warm.value)), &self.max_warm.source),
            row(&DRAIN, drain, &self.drain.source),
            row(&CANCEL_GRACE, cancel_grace, &self.cancel_grace.source),
            row(&CACHE, Some(json!(self.cache.value)), &self.cache.source),
        ];
        rows.extend(self.failures.rows());
        rows.extend([
            row(&ENDED, Some(json!(ended)), &self.ended.source),
            row(&LOG, self.log.value.as_ref().and_then(word), &self.log.source),
            row(&LOG_FORMAT, word(&self.log_format.value), &self.log_format.source),
            row(&PROFILE, word(&self.profile.value), &self.profile.source),
            row(&STATUS_WORDS, word(&self.status_words.value), &self.status_words.source),
            row(&ON_DISCONNECT, word(&self.on_disconnect.value), &self.on_disconnect.source),
            row(&A2A_PROFILE, word(&self.a2a_profile.value), &self.a2a_profile.source),
        ]);
        rows.extend(self.agents.values().flat_map(SettledAgent::rows));
        rows.extend(self.price_rows.iter().cloned());
        rows
    }
}

/// One setting, as it is shown.
#[derive(Debug, Clone)]
pub struct Row {
    pub key: Cow<'static, str>,
    pub value: Option<Value>,
    pub source: String,
}

/// Flags, variables and a file, over each other.
struct Layers {
    file: File,
}

impl Layers {
    /// Returns the uppermost value.
    fn pick<T>(
        &self,
        key: &Key,
        flag: Option<T>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<Held<T>>, Failure> {
        if let Some(value) = flag {
            return Ok(Some(Held { value, source: Source::Flag(key.flag) }));
        }
        // An empty variable is what people set to have none.
        if let Some(text) = std::env::var_os(key.variable).filter(|text| !text.is_empty()) {
            let text = text.into_string();
            let value = text.map_err(|_| "expected UTF-8".to_owned()).and_then(|text| read(&text));
            let value =
                value.map_err(|problem| Failure::usage(format!("{}: {problem}", key.variable)))?;
            return Ok(Some(Held { value, source: Source::Variable(key.variable) }));
        }
        let Some(written) = self.file.get(key.name) else { return Ok(None) };
        let Written { text, line, .. } = written;
        let value = written.expect(key.whole).and_then(|()| read(text));
        let value =
            value.map_err(|problem| self.file.wrong(*line, format!("{}: {problem}", key.name)))?;
        let path = self.file.path.clone().unwrap_or_default();
        Ok(Some(Held { value, source: Source::File { path, line: *line } }))
    }

    /// A path in the file is meant from where the file is, or from home.
    fn path(&self, held: Option<Held<PathBuf>>) -> Result<Option<Held<PathBuf>>, Failure> {
        let Some(Held { value, source }) = held else { return Ok(None) };
        let value = match &source {
            Source::File { path, .. } => match value.strip_prefix("~") {
                Ok(rest) => crate::place::home()?.join(rest),
                Err(_) => path.parent().unwrap_or(Path::new("")).join(value),
            },
            _ => value,
        };
        Ok(Some(Held { value, source }))
    }
}

trait OrDefault<T> {
    fn by_default(self, value: T) -> Held<T>;
    fn optional(self) -> Held<Option<T>>;
}

impl<T> OrDefault<T> for Option<Held<T>> {
    fn by_default(self, value: T) -> Held<T> {
        self.unwrap_or(Held { value, source: Source::Default })
    }

    fn optional(self) -> Held<Option<T>> {
        match self {
            Some(Held { value, source }) => Held { value: Some(value), source },
            None => Held { value: None, source: Source::Default },
        }
    }
}

/// Reads the name of the principal.
pub fn principal(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() || name.len() > NAME_BYTES || name.chars().any(char::is_control) {
        return Err(format!("expected a name on one line, of at most {NAME_BYTES} bytes"));
    }
    Ok(name.to_owned())
}

/// Reads one of some words.
fn one_of<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let words: Vec<_> = T::value_variants().iter().filter_map(name).collect();
        format!("expected one of {}", words.join(", "))
    })
}

fn name<T: ValueEnum>(value: &T) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

fn word<T: ValueEnum>(value: &T) -> Option<Value> {
    name(value).map(Value::from)
}

/// Reads a number that is at least one.
pub fn count(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a whole number from 1 on".to_owned())
}

/// Reads a count that may be 0.
fn count_or_none(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number from 0 on".to_owned())
}

/// Reads how long calls in flight may go on.
fn grace(text: &str) -> Result<Duration, String> {
    let most = adjourn::core::limits::MAX_GRACE;
    let grace = duration(text)?;
    if grace > most { Err("expected at most 1d".to_owned()) } else { Ok(grace) }
}

/// Reads where to listen. No other name than this one is looked up: it is loopback everywhere.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").and_then(|port| port.parse::<u16>().ok());
    let local = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    local.or_else(|| text.parse().ok()).ok_or_else(|| {
        "expected an address and a port: 127.0.0.1:7070 or localhost:7070".to_owned()
    })
}

/// Reads how long something is kept, or that it never goes.
fn kept(text: &str) -> Result<Option<Duration>, String> {
    match text {
        NEVER => Ok(None),
        text => duration(text).map(Some).map_err(|problem| format!("{problem}; or {NEVER}")),
    }
}

/// Returns whether others than its owner can read a file.
pub fn open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}
