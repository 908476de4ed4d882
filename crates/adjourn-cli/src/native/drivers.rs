//! The drivers of this program: scripts, and its own agent.

use std::sync::Arc;

use adjourn::clock::Clock;
use adjourn::permission::Permissions;
use adjourn::script::Scripted;
use adjourn_agent::{Agent, DefaultPolicy, Prices};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::SessionId;
use adjourn_driver::{Client, Driver, Drivers, Environment};

use super::config::NativeConfig;
use super::models;
use super::policy::SettledPolicy;
use crate::place::Place;

/// Makes the drivers of every session that this program can run.
pub struct ProgramDrivers {
    scripted: Scripted,
    prices: Prices,
}

impl ProgramDrivers {
    /// Makes drivers where no client can be asked for permissions.
    pub fn new(place: &Place) -> Self {
        let scripted = Scripted::new(Arc::<dyn Clock>::clone(&place.clock));
        Self { scripted, prices: place.settings.prices.clone() }
    }

    /// Says which clients can be asked for permissions.
    #[must_use]
    pub fn asking(mut self, permissions: Arc<dyn Permissions>) -> Self {
        self.scripted = self.scripted.asking(permissions);
        self
    }

    /// Makes an agent.
    fn agent(&self, name: &str, config: &NativeConfig) -> Result<Agent, String> {
        let model = models::make(config)?;
        let otherwise = DefaultPolicy { llm_max_retries: config.guardrails.llm_max_retries };
        let policy = SettledPolicy { actions: config.policy.clone(), otherwise };
        Agent::builder_with(model)
            .name(name)
            .instructions(config.instructions.clone())
            .guardrails(config.guardrails)
            .prices(self.prices.clone())
            .recovery_policy(policy)
            .await_resumption()
            // An engine has the store for what a record would hold: nothing is signed with them.
            .ephemeral_keys()
            .build()
            .map_err(|error| error.to_string())
    }
}

impl Drivers for ProgramDrivers {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        match (&spec.kind, NativeConfig::of(spec)) {
            (DriverKind::Named { name, .. }, Some(config)) => {
                Ok(Box::new(self.agent(name, &config?)?))
            }
            _ => self.scripted.make(spec),
        }
    }

    fn lacks(&self, session: SessionId, spec: &DriverSpec) -> Option<String> {
        self.scripted.lacks(session, spec)
    }

    fn environment(&self, spec: &DriverSpec) -> Environment {
        Environment::of_process(spec)
    }

    fn client(&self, session: SessionId) -> Arc<dyn Client> {
        self.scripted.client(session)
    }
}
