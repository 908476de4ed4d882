//! An agent that is to be given a session: what flags and settings say of it.

use std::collections::BTreeMap;

use adjourn_agent::{Action, AgentGuardrails, FailureKind};
use adjourn_core::carry::Budget;
use adjourn_core::driver::DriverSpec;

use super::models;
use crate::failure::Failure;

/// What an agent is called that is not one of the settings.
const NAME: &str = "native";

/// An agent, as it was asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Definition {
    /// Its name in the settings.
    pub name: Option<String>,
    /// The model, as it is typed.
    pub model: String,
    /// What the model is told that it is, and how it is to work.
    pub instructions: String,
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

    /// Returns what a session is made with that this agent is to run.
    pub fn spec(&self) -> Result<DriverSpec, Failure> {
        let from = match &self.name {
            Some(name) => format!("agent.{name}.model"),
            None => "--model".to_owned(),
        };
        let mut config = models::named(&self.model)
            .map_err(|problem| Failure::usage(format!("{from}: {problem}")))?;
        config.instructions.clone_from(&self.instructions);
        config.guardrails = self.guardrails;
        config.policy.clone_from(&self.policy);
        let name = self.name.as_deref().unwrap_or(NAME);
        Ok(DriverSpec::named(name, config.to_value()))
    }
}
