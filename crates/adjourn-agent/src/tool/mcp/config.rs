//! Which servers there are: described for the journal, and put together to be connected.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adjourn_driver::mcp_address::QUERY;
use adjourn_driver::{Environment, McpValues};
use serde_json::{Map, Value, json};

use super::address::{query_secrets, with_values, without_values};
use super::source::McpSource;
use super::values::{McpValue, Secrets, expand, header_variable, is_no_secret, put_in, resolve};
use crate::tool::ToolSource;

/// How long a server may take to be connected, unless it is said otherwise: some install themselves
/// when they are started.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// MCP servers that an agent has the tools of. Values of variables and headers, and secrets of addresses, are not shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpServers {
    servers: Vec<McpServer>,
    directory: Option<PathBuf>,
    connect_within: Option<Duration>,
    asks_nothing: bool,
}

/// One MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    /// Its name, which is that of no other one.
    pub name: String,
    /// How it is spoken with.
    pub transport: McpTransport,
    /// Tools that run without a permission, by the names that the server gives them; `*` is all.
    pub always_allow: BTreeSet<String>,
    /// Whether variables are put into its command, arguments and address.
    pub(super) expands: bool,
}

/// How an MCP server is spoken with.
#[derive(Debug, Clone, PartialEq)]
pub enum McpTransport {
    /// A program is started, and spoken with on its stdin and stdout.
    ///
    /// Of this process's environment it sees what every program needs (`PATH`, `HOME`, `LANG` and the
    /// like), and nothing else.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables.
        env: BTreeMap<String, McpValue>,
        /// Where it runs; without it, where the agent works.
        cwd: Option<String>,
    },
    /// It is spoken with by streamable HTTP.
    Http {
        /// Its address, with `…` for every secret of its query.
        url: String,
        /// What requests to it have, and the values that its address leaves out, by their names behind
        /// a `?`.
        headers: BTreeMap<String, McpValue>,
    },
}

/// What is needed to connect a server, with all values. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Launch {
    Process {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        directory: Option<PathBuf>,
        /// The values that variables have in its command and its arguments.
        expanded: Vec<String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        /// The values that variables have in its address, and those of its query.
        expanded: Vec<String>,
    },
}

impl Launch {
    /// Returns the values that nothing may show.
    pub(super) fn secrets(&self) -> Secrets {
        match self {
            Self::Process { env: values, expanded, .. }
            | Self::Http { headers: values, expanded, .. } => {
                Secrets::of(values.values().chain(expanded))
            }
        }
    }
}

impl McpServers {
    /// Takes servers whose names differ.
    pub(super) fn of(servers: Vec<McpServer>) -> Self {
        Self { servers, ..Self::default() }
    }

    /// Adds others. One of the same name takes the place of the one that is here.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.servers.retain(|server| others.servers.iter().all(|other| other.name != server.name));
        self.servers.extend(others.servers);
        self
    }

    /// Says where programs run that have no directory of their own.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Says how long a server may take to be connected; without it, 30 seconds.
    #[must_use]
    pub const fn connect_within(mut self, time: Duration) -> Self {
        self.connect_within = Some(time);
        self
    }

    /// Lets all tools run without a permission.
    #[must_use]
    pub const fn allow_all(mut self) -> Self {
        self.asks_nothing = true;
        self
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Returns the names of the servers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|server| server.name.as_str())
    }

    /// Returns the servers.
    pub fn iter(&self) -> impl Iterator<Item = &McpServer> {
        self.servers.iter()
    }

    /// Describes the servers for
    /// [`DriverSpec::mcp_servers`](adjourn_core::driver::DriverSpec::mcp_servers), as
    /// [`McpServers::read`] reads them again. Of values, those are in it that only name variables.
    pub fn descriptions(&self) -> Vec<Value> {
        self.servers.iter().map(McpServer::description).collect()
    }

    /// Returns the values that the [descriptions](McpServers::descriptions) leave out, for
    /// `SessionRef::provide`, by server.
    pub fn values(&self) -> BTreeMap<String, McpValues> {
        let values = self.servers.iter().map(|server| (server.name.clone(), server.values()));
        values.filter(|(_, values)| *values != McpValues::default()).collect()
    }

    /// Returns those of these servers that are also in others: by the same name and at the same place
    /// (the same command, arguments and directory, or the same address), each with the variables or
    /// headers that it has there, too. Their [values](McpServers::values) are what a session may be
    /// given whose servers the others are: one that only has its name in common is at another place,
    /// where no value goes that was written down for this one.
    #[must_use]
    pub fn also_in(&self, others: &Self) -> Self {
        let there =
            |server: &McpServer| others.servers.iter().find_map(|other| server.also_in(other));
        let servers = self.servers.iter().filter_map(there).collect();
        Self { servers, directory: self.directory.clone(), ..*self }
    }

    /// Says which values there are none of, neither in what the session was given nor in the
    /// environment of this process, in words for a person. It is for
    /// [`Drivers::lacks_values`](adjourn_driver::Drivers::lacks_values).
    pub fn lacks(&self, environment: &Environment) -> Option<String> {
        let lacking = |server: &McpServer| {
            let missing = server.launch(None, environment).err()?;
            Some(format!("{} of MCP server {:?}", missing.join(", "), server.name))
        };
        let all: Vec<_> = self.servers.iter().filter_map(lacking).collect();
        (!all.is_empty()).then(|| format!("it lacks values: {}", all.join("; ")))
    }

    /// Says which servers cannot be started because their programs are not there, by their names.
    /// Nothing is started for it; a program that is given a `PATH` of its own is not looked for.
    pub fn missing_programs(&self) -> Vec<(&str, String)> {
        let missing = |server: &McpServer| {
            let McpTransport::Stdio { command, env, cwd, .. } = &server.transport else {
                return None;
            };
            let is_template = |text: &String| server.expands && text.contains("${");
            if env.contains_key("PATH")
                || [Some(command), cwd.as_ref()].into_iter().flatten().any(is_template)
            {
                return None;
            }
            let directory = self.directory.clone().unwrap_or_default();
            let directory = cwd.as_ref().map_or(directory.clone(), |cwd| directory.join(cwd));
            let is_there = program_is_there(command, &directory);
            (!is_there).then(|| format!("there is no program {command:?}"))
        };
        let all = self.servers.iter();
        all.filter_map(|server| Some((server.name.as_str(), missing(server)?))).collect()
    }

    /// Returns where an agent finds the tools, one source for each server.
    pub fn sources(&self) -> Vec<Arc<dyn ToolSource>> {
        let source = |server: &McpServer| -> Arc<dyn ToolSource> {
            let mut server = server.clone();
            if self.asks_nothing {
                server.always_allow.insert(ALL.to_owned());
            }
            let within = self.connect_within.unwrap_or(CONNECT_WITHIN);
            Arc::new(McpSource::new(server, self.directory.clone(), within))
        };
        self.servers.iter().map(source).collect()
    }
}

/// What stands for all tools of a server.
const ALL: &str = "*";

/// Where programs are looked for by a process that has no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Returns whether a program is there: a path from where it is started, or a name that is looked for
/// where this process looks for programs.
fn program_is_there(command: &str, directory: &Path) -> bool {
    let is_program = |path: PathBuf| {
        let found = path.metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        return is_program(directory.join(command));
    }
    let places = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    std::env::split_paths(&places).any(|place| is_program(place.join(command)))
}

impl McpServer {
    /// Returns whether a tool runs without a permission, whatever it says of itself.
    pub(super) fn allows(&self, tool: &str) -> bool {
        self.always_allow.contains(tool) || self.always_allow.contains(ALL)
    }

    /// Keeps the secrets of its address's query where the values of its headers are.
    pub(super) fn keep_query_apart(&mut self) {
        if let McpTransport::Http { url, headers } = &mut self.transport {
            *url = without_values(url, self.expands, headers);
        }
    }

    fn description(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("name".to_owned(), json!(self.name));
        match &self.transport {
            McpTransport::Stdio { command, args, env, cwd } => {
                fields.insert("command".to_owned(), json!(command));
                fields.insert("args".to_owned(), json!(args));
                fields.insert("env".to_owned(), self.described(env));
                if let Some(cwd) = cwd {
                    fields.insert("cwd".to_owned(), json!(cwd));
                }
            }
            McpTransport::Http { url, headers } => {
                fields.insert("type".to_owned(), json!("http"));
                fields.insert("url".to_owned(), json!(url));
                fields.insert("headers".to_owned(), self.described(headers));
            }
        }
        if !self.always_allow.is_empty() {
            fields.insert("alwaysAllow".to_owned(), json!(self.always_allow));
        }
        Value::Object(fields)
    }

    /// Describes values without what may be a secret: by name where templates are read, and as a
    /// list where all is taken as it is written.
    fn described(&self, values: &BTreeMap<String, McpValue>) -> Value {
        let shown = |value: &McpValue| match value {
            McpValue::Template(template) if is_no_secret(template) => json!(template),
            _ => Value::Null,
        };
        // The address names those of its query.
        let named = values.iter().filter(|(name, _)| !name.starts_with(QUERY));
        match self.expands {
            true => named.map(|(name, value)| (name.clone(), shown(value))).collect(),
            false => named.map(|(name, _)| json!({ "name": name })).collect(),
        }
    }

    fn values(&self) -> McpValues {
        let own = |values: &BTreeMap<String, McpValue>| {
            let value = |(name, value): (&String, &McpValue)| {
                let value = match value {
                    McpValue::Text(text) => text.clone(),
                    McpValue::Template(template) if !is_no_secret(template) => {
                        expand(template, &Environment::default()).ok()?
                    }
                    McpValue::Template(_) | McpValue::Named => return None,
                };
                Some((name.clone(), value))
            };
            values.iter().filter_map(value).collect()
        };
        match &self.transport {
            McpTransport::Stdio { env, .. } => {
                McpValues { variables: own(env), ..McpValues::default() }
            }
            McpTransport::Http { headers, .. } => {
                McpValues { headers: own(headers), ..McpValues::default() }
            }
        }
    }

    /// Returns it with the variables or headers that another one has, too; nothing if that one has
    /// another name or is at another place.
    fn also_in(&self, other: &Self) -> Option<Self> {
        if (&self.name, self.expands) != (&other.name, other.expands) {
            return None;
        }
        let mut both = self.clone();
        let (is_there, own, others) = match (&mut both.transport, &other.transport) {
            (
                McpTransport::Stdio { command, args, cwd, env },
                McpTransport::Stdio { command: program, args: with, cwd: place, env: others },
            ) => ((&*command, &*args, &*cwd) == (program, with, place), env, others),
            (
                McpTransport::Http { url, headers },
                McpTransport::Http { url: place, headers: others },
            ) => (url == place, headers, others),
            (McpTransport::Stdio { .. }, McpTransport::Http { .. })
            | (McpTransport::Http { .. }, McpTransport::Stdio { .. }) => return None,
        };
        own.retain(|name, _| others.contains_key(name));
        is_there.then_some(both)
    }

    /// Puts together what is needed to connect it, or says which variables have no values.
    pub(super) fn launch(
        &self,
        directory: Option<&Path>,
        environment: &Environment,
    ) -> Result<Launch, Vec<String>> {
        let (mut missing, mut expanded) = (Vec::new(), Vec::new());
        let given = environment.mcp_servers.get(&self.name);
        let mut put = |text: &str| {
            if !self.expands {
                return text.to_owned();
            }
            expanded.extend(put_in(text, environment));
            expand(text, environment).unwrap_or_else(|names| {
                missing.extend(names);
                String::new()
            })
        };
        let launch = match &self.transport {
            McpTransport::Stdio { command, args, env, cwd } => {
                let (command, args) = (put(command), args.iter().map(|arg| put(arg)).collect());
                let own = cwd.as_ref().map(|cwd| PathBuf::from(put(cwd)));
                let directory = match (directory, own) {
                    (Some(directory), Some(own)) => Some(directory.join(own)),
                    (directory, own) => own.or(directory.map(Path::to_owned)),
                };
                let (given, named) = (given.map(|given| &given.variables), str::to_owned);
                let env = resolve(env, given, environment, named, &mut missing);
                Launch::Process { command, args, env, directory, expanded }
            }
            McpTransport::Http { url, headers } => {
                let (given, mut unnamed) = (given.map(|given| &given.headers), Vec::new());
                let named = |header: &str| header_variable(&self.name, header);
                let mut headers = resolve(headers, given, environment, named, &mut unnamed);
                let url = with_values(url, self.expands, &mut headers, put);
                missing.extend(unnamed);
                expanded.extend(query_secrets(&url));
                Launch::Http { url, headers, expanded }
            }
        };
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() { Ok(launch) } else { Err(missing) }
    }
}
