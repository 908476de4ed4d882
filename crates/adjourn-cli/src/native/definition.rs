//! An agent that is to be given a session: what flags and settings say of it.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::PathBuf;

use adjourn::core::carry::Budget;
use adjourn::core::driver::DriverSpec;
use adjourn_agent::directory::DirectoryTool;
use adjourn_agent::mcp::McpServers;
use adjourn_agent::{Action, AgentGuardrails, FailureKind, Prices};

use super::config::ModelSettings;
use super::models;
use crate::failure::Failure;

/// What an agent is called that is not one of the settings.
const NAME: &str = "native";

/// Tools that change something, which a person has to allow.
const CHANGING: &[DirectoryTool] = &[DirectoryTool::Write, DirectoryTool::Edit, DirectoryTool::Run];

/// Reads a list of tools; `all` is all of them.
///
/// # Errors
/// What is none of them.
pub fn tools<'a>(words: impl Iterator<Item = &'a str>) -> Result<Vec<DirectoryTool>, String> {
    let mut tools = Vec::new();
    for word in words {
        match word.trim() {
            "all" => tools.extend(DirectoryTool::ALL),
            word => tools.push(word.parse().map_err(|error| format!("{error}; or all"))?),
        }
    }
    tools.sort_unstable();
    tools.dedup();
    Ok(tools)
}

/// An agent, as it was asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Definition {
    /// Its name in the settings.
    pub name: Option<String>,
    /// The model, as it is typed.
    pub model: String,
    /// How the model is reached and asked.
    pub model_settings: ModelSettings,
    /// What the model is told that it is, and how it is to work.
    pub instructions: String,
    /// The tools that it has for files and commands.
    pub tools: Vec<DirectoryTool>,
    /// Whether its tools run without a permission.
    pub allow_all: bool,
    /// The file of its MCP servers.
    pub mcp: Option<PathBuf>,
    /// What a session may use before it parks.
    pub budget: Option<Budget>,
    /// How far it may go before it asks.
    pub guardrails: AgentGuardrails,
    /// What is done about failures of some kinds, where that is not the default.
    pub policy: BTreeMap<FailureKind, Action>,
}

impl Definition {
    /// Describes an agent with a model and nothing else.
    pub fn with_model(model: String) -> Self {
        Self { model, ..Self::default() }
    }

    /// Returns what a session is made with that this agent is to run; `servers` are its MCP servers.
    pub fn spec(&self, servers: &McpServers) -> Result<DriverSpec, Failure> {
        let mut config = models::named(&self.model, &self.model_settings).map_err(|wrong| {
            let from = match &self.name {
                Some(name) => format!("agent.{name}.{}", wrong.setting),
                None => "--model".to_owned(),
            };
            Failure::usage(format!("{from}: {}", wrong.problem))
        })?;
        config.instructions.clone_from(&self.instructions);
        config.tools.clone_from(&self.tools);
        config.allow_all = self.allow_all;
        config.guardrails = self.guardrails;
        config.policy.clone_from(&self.policy);
        config.servers = servers.descriptions();
        // A call that a person has to allow needs no client: where none is there, the agent parks
        // with the question.
        Ok(DriverSpec::named(self.called(), config.to_value()))
    }

    /// Returns what sessions call it.
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(NAME)
    }

    /// Returns whether it has tools that a person has to allow. Which tools of MCP servers ask is known
    /// when these are connected.
    pub fn asks(&self) -> bool {
        !self.allow_all && self.tools.iter().any(|tool| CHANGING.contains(tool))
    }

    /// Returns the name of its model if it is not known what that costs.
    pub fn unpriced(&self, prices: &Prices) -> Option<String> {
        let config = models::named(&self.model, &self.model_settings).ok()?;
        (!models::is_priced(&config, prices)).then_some(config.model)
    }

    /// Returns why its model cannot be had in this process, such as a key that is missing.
    pub fn lacks(&self) -> Option<String> {
        let config = models::named(&self.model, &self.model_settings).ok()?;
        models::make(&config).err()
    }

    /// Reads its MCP servers from their file, with their values, which are kept in memory alone.
    pub fn servers(&self) -> Result<McpServers, Failure> {
        let Some(path) = &self.mcp else { return Ok(McpServers::default()) };
        let from = match &self.name {
            Some(name) => format!("--mcp, or agent.{name}.mcp"),
            None => "--mcp".to_owned(),
        };
        McpServers::load(path).map_err(|error| {
            let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
            Failure::usage(format!("{from}: {error}{why}"))
        })
    }
}
