//! How a session comes to be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::carry::Budget;
use crate::driver::DriverSpec;
use crate::event::{Event, SessionCreated, What};
use crate::facts::Facts;
use crate::id::SessionId;
use crate::limits;
use crate::rejected::Rejected;
use crate::session::Session;

/// What a session is made from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Founding {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub tenant: String,
    /// What operators find it by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The session on whose behalf it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// What it takes to run it.
    pub driver: DriverSpec,
    /// What it may use.
    #[serde(default)]
    pub budget: Budget,
    /// What the conversation is called, until the agent calls it otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl Founding {
    /// The label that has the name of a session: no two open sessions of a tenant have the same.
    pub const NAME: &str = "name";

    /// The label that has the name of the context which a session belongs to, if that is another than
    /// its own id: one that other agents gave it, or the id of the session that it goes on from.
    pub const CONTEXT: &str = "a2a.context";

    /// Returns the name it is to have, if it is to have one.
    pub fn name(&self) -> Option<&str> {
        self.labels.get(Self::NAME).map(String::as_str)
    }

    /// Refuses what is out of its limits.
    pub(super) fn check(&self) -> Result<(), Rejected> {
        limits::name("tenant", &self.tenant)?;
        if self.labels.len() > limits::LABELS {
            return Err(Rejected::invalid("labels", format!("more than {}", limits::LABELS)));
        }
        for (key, value) in &self.labels {
            limits::name("labels", key)?;
            limits::text(format_args!("labels.{key}"), value, limits::NAME_BYTES)?;
        }
        if let Some(title) = &self.title {
            limits::name("title", title)?;
        }
        self.driver.check()
    }
}

impl From<SessionCreated> for Founding {
    fn from(created: SessionCreated) -> Self {
        let SessionCreated { id, tenant, labels, parent, driver, budget, title } = created;
        Self { id, tenant, labels, parent, driver, budget, title }
    }
}

impl From<Founding> for SessionCreated {
    fn from(founding: Founding) -> Self {
        let Founding { id, tenant, labels, parent, driver, budget, title } = founding;
        Self { id, tenant, labels, parent, driver, budget, title }
    }
}

impl Session {
    /// Decides whether a session can be made from `founding`.
    ///
    /// # Errors
    /// Which field is out of its limits.
    pub fn create(facts: &Facts, founding: Founding) -> Result<Vec<Event>, Rejected> {
        founding.check()?;
        let what = What::SessionCreated(founding.into());
        Ok(vec![Event { at: facts.now, by: facts.by.clone(), what }])
    }
}
