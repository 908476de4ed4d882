//! An agent to embed: it runs, asks, recovers, suspends to a signed record, and resumes it.
//!
//! ```
#![doc = include_str!("../examples/ask.rs")]
//! ```
//!
//! The four types to know are [`Agent`], [`Tool`], [`AgentEvent`] and [`SuspensionRecord`].
//!
//! - An [`Agent`] is a [`Model`] with [`Tool`]s. [`Agent::run`] returns a stream of [`AgentEvent`]s.
//! - When the agent needs a person, because its model calls `ask_user` or because its
//!   [`RecoveryPolicy`] asks about a [`Failure`], the run suspends: the last event has the question
//!   and a [`SuspensionRecord`], which is JSON and all that is needed.
//! - [`Agent::resume`] checks a record and goes on with a reply, in whatever process has the keys. A
//!   [`ConsumedLedger`] that processes share lets one of them do so.
//! - [`AgentGuardrails`] say how far a run may go before it asks, and how long one call may take.
//! - A [`CancellationRequest`] ends a run, and leaves nothing to resume.
//! - An engine with a store runs the same agent: it is an [`adjourn_driver::Driver`].
//! - Tools are functions ([`FunctionTool`]), those for a [`directory`], and those of MCP servers
//!   (`mcp::McpServers`, with the feature `mcp`).
//!
//! [`named_model`] makes a model from its name: `openai/…`, `anthropic/…` and others over the network
//! with the feature `models`, or a [`ScriptedModel`] that answers offline. Records are signed, not
//! encrypted.

mod agent;
mod builder;
mod cancellation;
mod clock;
mod consumed;
mod driver;
pub mod events;
mod failure;
mod guardrails;
mod host;
mod model;
mod prices;
mod record;
mod recovery;
mod result;
mod resume;
mod run;
#[cfg(any(feature = "mcp", feature = "models"))]
mod tls;
mod tool;

pub use adjourn_core::carry::AddBudget;
pub use adjourn_record::keys::{Key, KeyDir, Keys};

pub use agent::Agent;
pub use builder::{AgentBuilder, AgentConfig, BuildError};
pub use cancellation::{CancelReason, CancellationRequest};
pub use clock::{Clock, SystemClock};
pub use consumed::{ConsumedLedger, Consumption, End, FileLedger, LedgerError, MemoryLedger};
pub use events::AgentEvent;
pub use failure::{Action, Failure, FailureKind};
pub use guardrails::{AgentGuardrails, InvalidGuardrail};
#[cfg(feature = "models")]
pub use model::NetworkModel;
pub use model::{
    ApiKey, FinishReason, Model, ModelCall, ModelError, ModelOptions, ModelPart, ModelRequest,
    ModelUsage, NamedModelError, ScriptError, ScriptedModel, Variables, named_model,
};
pub use prices::{Price, Prices};
pub use record::{Payload, PayloadError, SuspensionRecord};
pub use recovery::{DefaultPolicy, RecoveryPolicy};
pub use result::{AgentResult, RunOutcome};
pub use resume::ResumeError;
pub use run::{Resume, Run};
#[cfg(any(feature = "mcp", feature = "models"))]
pub use tls::choose_cryptography;
pub use tool::directory;
#[cfg(feature = "mcp")]
pub use tool::mcp;
pub use tool::{
    CallDescription, Effect, FunctionTool, InvalidArguments, Tool, ToolCall, ToolError, ToolOutput,
    ToolSource, ToolSpec, Toolbox, ToolboxError,
};
