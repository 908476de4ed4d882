//! An agent to embed: it runs, asks, recovers, suspends to a signed record, and resumes it.

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
pub use model::{
    FinishReason, Model, ModelCall, ModelError, ModelPart, ModelRequest, ModelUsage, ScriptError,
    ScriptedModel,
};
pub use prices::{Price, Prices};
pub use record::{Payload, PayloadError, SuspensionRecord};
pub use recovery::{DefaultPolicy, RecoveryPolicy};
pub use result::{AgentResult, RunOutcome};
pub use resume::ResumeError;
pub use run::{Resume, Run};
pub use tool::{
    Effect, FunctionTool, InvalidArguments, Tool, ToolCall, ToolError, ToolOutput, ToolSource,
    ToolSpec, Toolbox, ToolboxError,
};
