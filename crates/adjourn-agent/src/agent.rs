//! The agent.

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::SessionId;
use adjourn_driver::{BoxFuture, BoxStream, Call, CallPart, Client, Driver, Message, Part, Step};
use adjourn_record::keys::Keys;
use serde_json::json;

use crate::builder::{AgentBuilder, AgentConfig};
use crate::clock::Clock;
use crate::consumed::{ConsumedLedger, Consumption};
use crate::driver::AgentDriver;
use crate::guardrails::Limits;
use crate::host::is_own;
use crate::model::Model;
use crate::record::{Payload, SuspensionRecord};
use crate::recovery::RecoveryPolicy;
use crate::resume::ResumeError;
use crate::run::{Resume, Run};
use crate::tool::{ToolSource, ToolSpec, Toolbox};

/// An agent: a model with tools that runs, asks, recovers, and suspends to a signed record.
///
/// Clones are the same agent. As a [`Driver`] it is run by an engine with a store; a clone for each
/// session. By [`Agent::run`] it runs alone.
pub struct Agent {
    inner: Arc<Inner>,
    driver: AgentDriver,
}

/// What an agent is made of.
pub(crate) struct Inner {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) config: AgentConfig,
    pub(crate) limits: Limits,
    pub(crate) record_lifetime: Option<Duration>,
    pub(crate) toolbox: Arc<Toolbox>,
    /// What the tools of the toolbox tell of themselves.
    pub(crate) specs: Arc<[ToolSpec]>,
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) policy: Arc<dyn RecoveryPolicy>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ledger: Arc<dyn ConsumedLedger>,
    pub(crate) client: Arc<dyn Client>,
    pub(crate) session: Option<SessionId>,
}

impl Agent {
    /// Begins to make an agent with a model.
    pub fn builder(model: impl Model) -> AgentBuilder {
        AgentBuilder::new(Arc::new(model))
    }

    /// Begins to make an agent with a model that is shared.
    pub fn builder_with(model: Arc<dyn Model>) -> AgentBuilder {
        AgentBuilder::new(model)
    }

    pub(crate) fn new(inner: Inner) -> Self {
        let inner = Arc::new(inner);
        let driver = AgentDriver::new(Arc::clone(&inner), Arc::clone(&inner.clock), None);
        Self { inner, driver }
    }

    /// Runs the agent with a message, and returns what happens as a stream of events.
    ///
    /// Nothing runs before the stream is polled, and nothing runs on when it is dropped.
    pub fn run(&self, message: impl Into<Message>) -> Run {
        Run::start(Arc::clone(&self.inner), message.into())
    }

    /// Resumes a suspended run with a reply, by default if it was suspended within the last day.
    ///
    /// What is returned is awaited for the stream of events, or for why there is none:
    ///
    /// ```no_run
    /// # use adjourn_agent::{Agent, ResumeError, SuspensionRecord};
    /// # async fn go(agent: Agent, record: SuspensionRecord) -> Result<(), ResumeError> {
    /// let mut events = agent.resume(&record, "The monthly one.").await?;
    /// while let Some(event) = events.next().await {
    ///     println!("{}", event.tag());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn resume(&self, record: &SuspensionRecord, reply: impl Into<Message>) -> Resume {
        Resume::new(Arc::clone(&self.inner), record.clone(), reply.into())
    }

    /// Returns what a record holds, once its signature was checked; however old it is, and whether
    /// or not it was resumed.
    ///
    /// # Errors
    /// The record was changed, signed with a key that the agent does not have, or is not the agent's:
    /// of another tenant, agent or session, or of a driver that is none.
    pub fn read(&self, record: &SuspensionRecord) -> Result<Payload, ResumeError> {
        let payload = <Payload>::decode(record.open(&self.inner.keys)?.payload)?;
        is_own(&self.inner, &payload)?;
        Ok(payload)
    }

    /// Revokes a record: it cannot be resumed any more. Returns what had become of it before.
    ///
    /// # Errors
    /// As [`Agent::read`] has them; or the ledger cannot be used.
    pub async fn revoke(&self, record: &SuspensionRecord) -> Result<Consumption, ResumeError> {
        self.read(record)?;
        let handle = record.open(&self.inner.keys)?.header.handle;
        Ok(self.inner.ledger.revoke(handle).await?)
    }

    /// Returns what the agent was made with.
    pub fn config(&self) -> &AgentConfig {
        &self.inner.config
    }

    /// Returns what a session is created with that this agent is to run.
    pub fn driver_spec(&self) -> DriverSpec {
        self.inner.driver_spec()
    }
}

impl Inner {
    pub(crate) fn driver_spec(&self) -> DriverSpec {
        let model = self.model.id().to_owned();
        match &self.config.name {
            Some(name) => DriverSpec::named(name.clone(), json!({ "model": model })),
            None => DriverSpec::new(DriverKind::Native { model }),
        }
    }
}

impl Clone for Agent {
    fn clone(&self) -> Self {
        // A clone drives another session: it shares nothing of what a driver measures.
        let inner = Arc::clone(&self.inner);
        let driver = AgentDriver::new(Arc::clone(&inner), Arc::clone(&inner.clock), None);
        Self { inner, driver }
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("model", &self.inner.model.id())
            .field("name", &self.inner.config.name)
            .field("tools", &self.inner.toolbox)
            .finish_non_exhaustive()
    }
}

impl Driver for Agent {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        self.driver.step(step)
    }

    fn parks_unasked(&self) -> bool {
        self.driver.parks_unasked()
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        self.driver.call(call)
    }

    fn finish(&mut self, session: &Session) -> Option<adjourn_core::command::RunEnd> {
        self.driver.finish(session)
    }

    fn keep(&mut self) -> bool {
        self.driver.keep()
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        self.driver.kill()
    }
}
