//! What is to run a session, as it was typed: an agent with a model, or a script.

use std::path::{Path, PathBuf};

use adjourn::core::carry::Budget;
use adjourn::core::driver::{DriverSpec, Need};
use adjourn::core::limits::DRIVER_SPEC_BYTES;
use adjourn::script::Script;
use adjourn_agent::AgentGuardrails;

use crate::arguments::AgentFlags;
use crate::conformance_agent;
use crate::failure::Failure;
use crate::input_file;
use crate::native::{Definition, ModelSettings, NamedServers, models, tools};
use crate::settings::Settings;

/// What is to run a session.
pub struct Chosen {
    pub driver: DriverSpec,
    /// The MCP servers that the flags name, with their values, which are kept in memory alone.
    pub named_servers: Option<NamedServers>,
    /// What a session may use before it parks, unless its maker says otherwise.
    pub budget: Option<Budget>,
    /// How many prompts it is made for.
    pub runs: usize,
    /// Whether it is a script, which needs no task.
    pub is_script: bool,
    /// Whether it has tools that a person has to allow.
    pub asks: bool,
    /// Whether it has the tools of MCP servers that a client names.
    pub mcp: bool,
    /// Why it cannot be run by this process, which other hosts may be able to.
    lacks: Option<String>,
    /// The name of its model, if it is not known what that costs.
    unpriced: Option<String>,
}

impl Chosen {
    /// Finds out what is meant by flags.
    pub fn by(flags: &AgentFlags, settings: &Settings) -> Result<Self, Failure> {
        if let Some(path) = &flags.script {
            return Self::script(path);
        }
        if flags.agent.as_deref() == Some(conformance_agent::NAME) {
            return Self::conformance(flags);
        }
        let definition = match (&flags.agent, &flags.model) {
            (Some(name), None) => settings.agent(name)?.definition.clone(),
            (Some(name), Some(model)) => {
                let settled = settings.agent(name)?.definition.clone();
                // Another model is not where the agent's own is, and does not take its key.
                let model_settings = ModelSettings::default();
                Definition { model: model.clone(), model_settings, ..settled }
            }
            (None, Some(model)) => Definition::with_model(model.clone()),
            (None, None) => return Err(nothing_chosen(settings)),
        };
        let tools = tools(flags.tools.iter().map(String::as_str))
            .map_err(|problem| Failure::usage(format!("--tools: {problem}")))?;
        let definition = Definition {
            tools: if tools.is_empty() { definition.tools.clone() } else { tools },
            allow_all: definition.allow_all || flags.allow_all,
            mcp: flags.mcp.clone().or_else(|| definition.mcp.clone()),
            ..definition
        };
        let servers = definition.servers()?;
        let driver = definition.spec(&servers)?;
        // Those of the settings are every host's.
        let agent = definition.called().to_owned();
        let named_servers = flags.mcp.is_some().then_some(NamedServers { agent, servers });
        let (lacks, budget) = (definition.lacks(), definition.budget);
        let unpriced = definition.unpriced(&settings.prices);
        if let Some(model) = unpriced.as_ref().filter(|_| limited(&definition.guardrails)) {
            return Err(no_price("guardrails.max_cost_usd", model));
        }
        let (runs, is_script, asks, mcp) = (1, false, definition.asks(), true);
        Ok(Self { driver, named_servers, budget, runs, is_script, asks, mcp, lacks, unpriced })
    }

    /// Says what a session may use: what is typed, or else what the settings say. A limit on what a
    /// model costs whose price is not known is refused: it would never be reached.
    pub fn within(mut self, typed: Option<Budget>) -> Result<Self, Failure> {
        self.budget = typed.or(self.budget);
        let limited = self.budget.is_some_and(|budget| budget.cost_micro_usd.is_some());
        match self.unpriced.as_ref().filter(|_| limited) {
            Some(model) => Err(no_price("a budget in usd", model)),
            None => Ok(self),
        }
    }

    /// Takes the agent that test kits talk to, which is made of nothing else.
    fn conformance(flags: &AgentFlags) -> Result<Self, Failure> {
        if flags.model.is_some() || !flags.tools.is_empty() || flags.mcp.is_some() {
            let message =
                format!("the agent {:?} has no model and no tools", conformance_agent::NAME);
            return Err(Failure::usage(message).hint("name another agent, or leave these away"));
        }
        let (driver, named_servers) = (conformance_agent::spec(), None);
        let (budget, lacks, unpriced) = (None, None, None);
        let (runs, is_script, asks, mcp) = (1, false, false, false);
        Ok(Self { driver, named_servers, budget, runs, is_script, asks, mcp, lacks, unpriced })
    }

    /// Refuses what this process cannot run itself, before there is a session that waits for it.
    pub fn run_here(self) -> Result<Self, Failure> {
        match &self.lacks {
            Some(why) => Err(Failure::usage(why.clone())),
            None => Ok(self),
        }
    }

    /// Reads a script from its file.
    fn script(path: &Path) -> Result<Self, Failure> {
        let source = input_file::read_regular(path, DRIVER_SPEC_BYTES)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
        let script = Script::parse(&source)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        let (needs, options) = (script.needs(), script.options());
        let driver = DriverSpec { needs, options, ..DriverSpec::script(source) };
        let runs = script.runs().unwrap_or(1).max(1);
        let named_servers = None;
        let asks = driver.needs.contains(&Need::Permissions);
        let (budget, is_script, mcp, lacks, unpriced) = (None, true, false, None, None);
        Ok(Self { driver, named_servers, budget, runs, is_script, asks, mcp, lacks, unpriced })
    }

    /// Says which directory the session works in: the one that is named, or for an agent the current
    /// one.
    pub fn working_in(mut self, named: Option<&PathBuf>) -> Result<Self, Failure> {
        let directory = match named {
            Some(named) => named.as_path(),
            None if self.is_script => return Ok(self),
            None => Path::new("."),
        };
        self.driver.cwd = Some(working_directory(directory)?);
        Ok(self)
    }
}

/// Returns the whole path of the directory that `--cwd` names, if a session can work in it.
pub fn working_directory(named: &Path) -> Result<String, Failure> {
    let wrong =
        |why: &dyn std::fmt::Display| Failure::usage(format!("--cwd {}: {why}", named.display()));
    let directory = named.canonicalize().map_err(|error| wrong(&error))?;
    if !directory.is_dir() {
        return Err(wrong(&"it is no directory"));
    }
    directory.into_os_string().into_string().map_err(|_| wrong(&"its path is not UTF-8"))
}

fn limited(guardrails: &AgentGuardrails) -> bool {
    guardrails.max_cost_usd.is_some()
}

/// Says that a limit on cost cannot hold, and how it could.
fn no_price(limit: &str, model: &str) -> Failure {
    Failure::usage(format!("{limit} can never be reached: what {model} costs is not known")).hint(
        format!(
            "write its price for a million tokens to the settings: [prices.{model:?}] with prompt \
             and completion; or limit tokens"
        ),
    )
}

/// Says that nothing was chosen, and what there is.
fn nothing_chosen(settings: &Settings) -> Failure {
    let failure = Failure::usage("what is to run it is missing: --model, --agent or --script");
    match settings.agents.keys().next() {
        Some(name) => failure.hint(format!("--agent {name}, or --model {}", models::EXAMPLE)),
        None => failure.hint(format!("--model {}, or --model scripted:FILE", models::EXAMPLE)),
    }
}
