//! How an agent is made.

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::id::SessionId;
use adjourn_core::limits;
use adjourn_driver::{Client, NoClient};
use adjourn_record::keys::{Keys, RandomnessError};

use crate::agent::{Agent, Inner};
use crate::clock::{Clock, SystemClock};
use crate::consumed::{ConsumedLedger, MemoryLedger};
use crate::guardrails::{AgentGuardrails, InvalidGuardrail};
use crate::model::Model;
use crate::prices::Prices;
use crate::recovery::{DefaultPolicy, RecoveryPolicy};
use crate::tool::builtin::ParkingTool;
use crate::tool::{Tool, ToolSource, Toolbox, ToolboxError};

/// What of an agent can be written down: in settings, for instance.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// The agent's name. A record is resumed by an agent of the same name only.
    pub name: Option<String>,
    /// Whose sessions it runs. A record is resumed by an agent of the same tenant only.
    pub tenant: String,
    /// What the model is told that it is, and how it is to work.
    pub instructions: String,
    /// How far it may go.
    pub guardrails: AgentGuardrails,
    /// The prices that the cost of a model call is computed with.
    pub prices: Prices,
    /// For how many seconds an agent resumes a record that this one wrote. The caller of `resume`
    /// can shorten that, and cannot lengthen it.
    pub record_lifetime_s: Option<f64>,
    /// Whether it may ask a person by itself, with the tool `ask_user`.
    pub ask_user: bool,
    /// Whether it may park itself until something happens, with the tool `await_resumption`.
    pub await_resumption: bool,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            name: None,
            tenant: "local".to_owned(),
            instructions: String::new(),
            guardrails: AgentGuardrails::default(),
            prices: Prices::default(),
            record_lifetime_s: None,
            ask_user: true,
            await_resumption: false,
        }
    }
}

/// Why an agent cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// It has no keys to sign records with. There is no default: a guessable secret is none.
    #[error(
        "an agent needs keys to sign its records with; `ephemeral_keys` makes some for this process"
    )]
    NoKeys,
    /// There is no randomness for ephemeral keys.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
    /// A tool cannot be taken.
    #[error(transparent)]
    Tool(#[from] ToolboxError),
    /// A guardrail makes no sense.
    #[error(transparent)]
    Guardrail(#[from] InvalidGuardrail),
    /// The agent's name or tenant cannot be used.
    #[error("{0}")]
    Name(String),
    /// Cost is limited, and what the model costs is not known: the limit would never be reached.
    #[error(
        "guardrail max_cost_usd: what {model} costs is not known; give its price, or limit tokens"
    )]
    NoPrice {
        /// The model's id, as prices name it.
        model: String,
    },
    /// The lifetime of records is no length of time, or so long that its end cannot be written.
    #[error("record_lifetime_s: expected a number of seconds, of a hundred years at most")]
    RecordLifetime,
}

/// The longest lifetime of a record.
const LONGEST_LIFETIME: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// How an agent is made; see [`Agent::builder`].
#[must_use = "an agent is made by `build`"]
pub struct AgentBuilder {
    model: Arc<dyn Model>,
    config: AgentConfig,
    tools: Vec<Arc<dyn Tool>>,
    sources: Vec<Arc<dyn ToolSource>>,
    policy: Option<Arc<dyn RecoveryPolicy>>,
    keys: Option<AgentKeys>,
    clock: Arc<dyn Clock>,
    ledger: Arc<dyn ConsumedLedger>,
    client: Arc<dyn Client>,
    session: Option<SessionId>,
}

enum AgentKeys {
    Given(Arc<Keys>),
    Ephemeral,
}

impl AgentBuilder {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            config: AgentConfig::default(),
            tools: Vec::new(),
            sources: Vec::new(),
            policy: None,
            keys: None,
            clock: Arc::new(SystemClock),
            ledger: MemoryLedger::of_process(),
            client: Arc::new(NoClient),
            session: None,
        }
    }

    /// Takes everything that can be written down at once.
    pub fn config(mut self, config: AgentConfig) -> Self {
        self.config = config;
        self
    }

    /// Names the agent. All agents without a name are one: the native agent.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// Says whose sessions it runs.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.config.tenant = tenant.into();
        self
    }

    /// Says what the model is told that it is, and how it is to work.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.config.instructions = instructions.into();
        self
    }

    /// Says how far it may go.
    pub fn guardrails(mut self, guardrails: AgentGuardrails) -> Self {
        self.config.guardrails = guardrails;
        self
    }

    /// Says what models cost.
    pub fn prices(mut self, prices: Prices) -> Self {
        self.config.prices = prices;
        self
    }

    /// Says for how long an agent resumes a record that this one wrote. The caller of `resume` can
    /// shorten that with [`max_suspension_age`](crate::Resume::max_suspension_age), and cannot
    /// lengthen it.
    pub fn record_lifetime(mut self, lifetime: Duration) -> Self {
        self.config.record_lifetime_s = Some(lifetime.as_secs_f64());
        self
    }

    /// Lets it park itself until something happens, with the tool `await_resumption`.
    pub fn await_resumption(mut self) -> Self {
        self.config.await_resumption = true;
        self
    }

    /// Gives it a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Gives it several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Gives it the tools of MCP servers, which are connected when they are needed.
    #[cfg(feature = "mcp")]
    pub fn mcp_servers(mut self, servers: &crate::mcp::McpServers) -> Self {
        self.sources.extend(servers.sources());
        self
    }

    /// Gives it tools that are found when they are needed.
    pub fn tool_source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Says what is done about failures; without it, [`DefaultPolicy`].
    pub fn recovery_policy(mut self, policy: impl RecoveryPolicy) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Gives it the keys that sign its records, and those whose records it takes. Agents of several
    /// processes that resume one another's records have the same keys.
    pub fn keys(mut self, keys: impl Into<Arc<Keys>>) -> Self {
        self.keys = Some(AgentKeys::Given(keys.into()));
        self
    }

    /// Makes a key for this agent alone: no other process can resume its records, nor this one once
    /// it was restarted.
    pub fn ephemeral_keys(mut self) -> Self {
        self.keys = Some(AgentKeys::Ephemeral);
        self
    }

    /// Gives it a clock; without it, the machine's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Says where it is remembered which records were resumed. Without it, that is the memory of this
    /// process; agents that share records between processes share a ledger.
    pub fn ledger(mut self, ledger: Arc<dyn ConsumedLedger>) -> Self {
        self.ledger = ledger;
        self
    }

    /// Says who is asked for permissions; without it, a run parks with the question.
    pub fn client(mut self, client: Arc<dyn Client>) -> Self {
        self.client = client;
        self
    }

    /// Gives its runs the id of one session, and lets it resume records of that session only.
    pub const fn session_id(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }

    /// Makes the agent.
    ///
    /// # Errors
    /// [`BuildError`]: keys are missing, or something of what it was given cannot be used.
    pub fn build(self) -> Result<Agent, BuildError> {
        let keys = match self.keys {
            Some(AgentKeys::Given(keys)) => keys,
            Some(AgentKeys::Ephemeral) => Arc::new(Keys::ephemeral(self.clock.now())?),
            None => return Err(BuildError::NoKeys),
        };
        for (path, name) in
            [("tenant", Some(&self.config.tenant)), ("name", self.config.name.as_ref())]
        {
            let checked = name.map_or(Ok(()), |name| limits::name(path, name));
            checked.map_err(|refused| BuildError::Name(refused.to_string()))?;
        }
        let limits = self.config.guardrails.limits()?;
        let model = self.model.id();
        let is_priced = self.config.prices.knows(model) || self.model.states_cost();
        if limits.max_cost_micro_usd.is_some() && !is_priced {
            return Err(BuildError::NoPrice { model: model.to_owned() });
        }
        let lifetime = self.config.record_lifetime_s.map(Duration::try_from_secs_f64);
        let record_lifetime = match lifetime.transpose() {
            Ok(lifetime) if lifetime.is_none_or(|lifetime| lifetime <= LONGEST_LIFETIME) => {
                lifetime
            }
            Ok(_) | Err(_) => return Err(BuildError::RecordLifetime),
        };
        let mut toolbox = Toolbox::new();
        if self.config.ask_user {
            toolbox.add(Arc::new(ParkingTool::ask_user()))?;
        }
        if self.config.await_resumption {
            toolbox.add(Arc::new(ParkingTool::await_resumption()))?;
        }
        for tool in self.tools {
            toolbox.add(tool)?;
        }
        let llm_max_retries = self.config.guardrails.llm_max_retries;
        Ok(Agent::new(Inner {
            model: self.model,
            config: self.config,
            limits,
            record_lifetime,
            specs: toolbox.specs().cloned().collect(),
            toolbox: Arc::new(toolbox),
            sources: self.sources,
            policy: self.policy.unwrap_or_else(|| Arc::new(DefaultPolicy { llm_max_retries })),
            keys,
            clock: self.clock,
            ledger: self.ledger,
            client: self.client,
            session: self.session,
        }))
    }
}
