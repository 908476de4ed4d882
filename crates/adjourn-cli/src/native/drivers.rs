//! The drivers of this program: scripts, its own agent, and the one that test kits talk to.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use adjourn::clock::Clock;
use adjourn::core::driver::{DriverKind, DriverSpec};
use adjourn::core::id::SessionId;
use adjourn::driver::{Client, Driver, Drivers, Environment, Unusable};
use adjourn::permission::Permissions;
use adjourn::script::Scripted;
use adjourn_agent::directory::DirectoryTools;
use adjourn_agent::mcp::{McpConfigError, McpServers};
use adjourn_agent::{Agent, DefaultPolicy, Prices};
use serde_json::Value;

use super::config::NativeConfig;
use super::definition::Definition;
use super::models;
use super::policy::SettledPolicy;
use crate::conformance_agent::ConformanceAgent;
use crate::place::Place;

/// The MCP servers that a command names for an agent, with their values. They are read once: what the
/// command was given may be a pipe.
#[derive(Clone)]
pub struct NamedServers {
    /// What sessions call the agent.
    pub agent: String,
    pub servers: McpServers,
}

/// Makes the drivers of every session that this program can run.
pub struct ProgramDrivers {
    clock: Arc<dyn Clock>,
    scripted: Scripted,
    prices: Prices,
    /// The agents of this host's settings, whose files have values for their MCP servers.
    agents: BTreeMap<String, Definition>,
    /// What the command of this process has named for one of them, or for the agent that is not one
    /// of the settings.
    named: Option<NamedServers>,
}

impl ProgramDrivers {
    /// Makes drivers where no client can be asked for permissions.
    pub fn new(place: &Place) -> Self {
        let clock = Arc::clone(&place.clock);
        let scripted = Scripted::new(Arc::clone(&clock));
        let settings = &place.settings;
        let agents = settings.agents.iter();
        let agents = agents.map(|(name, agent)| (name.clone(), agent.definition.clone())).collect();
        let (prices, named) = (settings.prices.clone(), place.named_servers.clone());
        Self { clock, scripted, prices, agents, named }
    }

    /// Says which clients can be asked for permissions.
    #[must_use]
    pub fn asking(mut self, permissions: Arc<dyn Permissions>) -> Self {
        self.scripted = self.scripted.asking(permissions);
        self
    }

    /// Makes an agent.
    fn agent(&self, spec: &DriverSpec, config: &NativeConfig) -> Result<Agent, String> {
        let model = models::make(config)?;
        let mut servers = servers(spec, config)?;
        let mut tools = Vec::new();
        if let Some(cwd) = &spec.cwd {
            servers = servers.in_directory(cwd);
        }
        if config.allow_all {
            servers = servers.allow_all();
        }
        if !config.tools.is_empty() {
            let cwd = spec.cwd.as_deref().unwrap_or(".");
            let directory = DirectoryTools::open(cwd)
                .map_err(|error| format!("its directory {cwd} cannot be used: {error}"))?;
            let directory = if config.allow_all { directory.allow_all() } else { directory };
            tools = directory.tools(config.tools.iter().copied());
        }
        let otherwise = DefaultPolicy { llm_max_retries: config.guardrails.llm_max_retries };
        let policy = SettledPolicy { actions: config.policy.clone(), otherwise };
        let agent = match &spec.kind {
            DriverKind::Named { name, .. } => Agent::builder_with(model).name(name),
            _ => Agent::builder_with(model),
        };
        agent
            .instructions(config.instructions.clone())
            .guardrails(config.guardrails)
            .prices(self.prices.clone())
            .recovery_policy(policy)
            .tools(tools)
            .mcp_servers(&servers)
            .await_resumption()
            // An engine has the store for what a record would hold: nothing is signed with them.
            .ephemeral_keys()
            .build()
            .map_err(|error| error.to_string())
    }
}

/// Returns the MCP servers of a session: its agent's, and in their place those that a client calls by
/// the same name.
fn servers(spec: &DriverSpec, config: &NativeConfig) -> Result<McpServers, String> {
    let read = |servers: &Vec<Value>| {
        McpServers::read(&Value::Array(servers.clone()))
            .map_err(|error| format!("its MCP servers: {error}"))
    };
    Ok(read(&config.servers)?.with(read(&spec.mcp_servers)?))
}

impl Drivers for ProgramDrivers {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        if let Some(agent) = ConformanceAgent::of(spec, &self.clock) {
            return Ok(Box::new(agent));
        }
        match NativeConfig::of(spec) {
            Some(config) => Ok(Box::new(self.agent(spec, &config?)?)),
            None => self.scripted.make(spec),
        }
    }

    fn check(&self, spec: &DriverSpec) -> Result<(), Unusable> {
        let Some(config) = NativeConfig::of(spec) else { return self.scripted.check(spec) };
        let config = config.map_err(|problem| Unusable::new("driver", problem))?;
        models::check_stored(&config).map_err(|problem| Unusable::new("model", problem))?;
        if let Some(cwd) = &spec.cwd
            && !Path::new(cwd).is_dir()
        {
            return Err(Unusable::new("cwd", format!("{cwd} is no directory")));
        }
        let servers = McpServers::read(&Value::Array(spec.mcp_servers.clone()));
        let servers = servers.map_err(|error| match error {
            McpConfigError::Invalid { at, problem } => Unusable::new(at, problem),
            other => Unusable::new("mcpServers", other.to_string()),
        })?;
        let servers = match &spec.cwd {
            Some(cwd) => servers.in_directory(cwd),
            None => servers,
        };
        if let Some((name, problem)) = servers.missing_programs().into_iter().next() {
            let is_it = |server: &Value| server.get("name").and_then(Value::as_str) == Some(name);
            let index = spec.mcp_servers.iter().position(is_it).unwrap_or_default();
            return Err(Unusable::new(format!("mcpServers[{index}].command"), problem));
        }
        Ok(())
    }

    fn lacks(&self, session: SessionId, spec: &DriverSpec) -> Option<String> {
        self.scripted.lacks(session, spec)
    }

    fn lacks_values(&self, spec: &DriverSpec, environment: &Environment) -> Option<String> {
        // What cannot be read is told when the driver is made.
        let lacks = servers(spec, &NativeConfig::of(spec)?.ok()?).ok()?.lacks(environment)?;
        Some(format!("{lacks}; give the host variables with these names"))
    }

    fn environment(&self, spec: &DriverSpec) -> Environment {
        let environment = Environment::of_process(spec);
        let DriverKind::Named { name, .. } = &spec.kind else { return environment };
        // What cannot be read is told when the driver is made.
        let config = NativeConfig::of(spec).and_then(Result::ok);
        let Some(servers) = config.and_then(|config| servers(spec, &config).ok()) else {
            return environment;
        };
        // The file is read each time: its values may change while this host runs.
        let settled = self.agents.get(name).and_then(|agent| agent.servers().ok());
        let named = self.named.as_ref().filter(|named| named.agent == *name);
        let known = [settled.as_ref(), named.map(|named| &named.servers)];
        let known = known.into_iter().flatten().map(|known| known.also_in(&servers));
        // Where the command names the same server, what it says goes before the settings.
        let mcp_servers = known.fold(McpServers::default(), McpServers::with).values();
        environment.with(Environment { mcp_servers, ..Environment::default() })
    }

    fn client(&self, session: SessionId) -> Arc<dyn Client> {
        self.scripted.client(session)
    }
}
