//! Tools: what an agent can do.

mod arguments;
pub(crate) mod builtin;
pub mod directory;
mod function;
#[cfg(feature = "mcp")]
pub mod mcp;
mod process;
mod toolbox;

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::ledger::CallId;
use adjourn_driver::{Block, BoxFuture, CallPart, Client, Emitter, Environment, NoClient};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use arguments::InvalidArguments;
pub use function::FunctionTool;
pub use toolbox::{Toolbox, ToolboxError};

use crate::failure::{Failure, FailureKind};

/// Something that an agent can call.
///
/// # Contract
/// Arguments have been checked against the schema before a call. Dropping the future gives the call
/// up: a tool that has something outside of it ends that. A future that blocks its thread cannot be
/// stopped by a time-out or a cancel; such work belongs on a thread of its own.
pub trait Tool: Send + Sync + 'static {
    /// Returns what models and hosts are told of the tool.
    fn spec(&self) -> &ToolSpec;

    /// Says what people are shown of a call with these arguments, before it runs and while a
    /// permission is asked for. The arguments may be any that a model has written.
    fn describe(&self, arguments: &Value) -> CallDescription {
        let _ = arguments;
        CallDescription { title: self.spec().title.clone(), locations: Vec::new() }
    }

    /// Runs a call.
    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}

/// What people are shown of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallDescription {
    /// What it does, in a few words; without any, the tool's name.
    pub title: Option<String>,
    /// The files that it touches, as ACP has them: `{"path": …, "line": …}`.
    pub locations: Vec<Value>,
}

/// Tools that are found when they are needed, such as those of a server that has to be started.
pub trait ToolSource: Send + Sync + 'static {
    /// Returns a source like this one for a driver of its own, if two sessions are not to share what
    /// it has outside of this process. Without any, all drivers of an agent share this one.
    fn instance(&self) -> Option<Arc<dyn ToolSource>> {
        None
    }

    /// Returns what it is called wherever the session runs, if it has a name that no other source of an
    /// agent has. A person who was asked about a source is then known to have been asked about this
    /// one, also where the agent has other sources, or has them in another order.
    fn name(&self) -> Option<String> {
        None
    }

    /// Returns the tools there are. It is asked before every model call and every tool call, so a
    /// source keeps what it has found.
    ///
    /// One that has none says why. The model is told, and goes on without them.
    fn tools(
        &self,
        session: Arc<Session>,
        environment: Arc<Environment>,
    ) -> BoxFuture<'static, Result<Arc<Toolbox>, ToolError>>;

    /// Returns whether a tool of this name may be one of its. A source that can tell by the name is not
    /// asked for tools when a call is of another one.
    fn may_have(&self, tool: &str) -> bool {
        let _ = tool;
        true
    }

    /// Returns how long it is waited for before the model is told of its tools: a minute, unless it says
    /// otherwise. One that bounds this itself says no less here.
    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// Returns whether it has something outside of this process that is worth keeping while the
    /// session is parked.
    fn is_open(&self) -> bool {
        false
    }

    /// Ends what it has outside of this process. It may be asked for tools again afterwards.
    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What models and hosts are told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name by which a model calls it.
    pub name: String,
    /// What people call it; without any, its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the model is told that it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// What running it twice does.
    pub effect: Effect,
    /// Whether a person has to allow each call first.
    #[serde(default)]
    pub permission: bool,
    /// What kind of tool it is, in ACP's words (`read`, `edit`, `execute`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// What running a call twice does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// No harm: after a crash the call is run again, and it runs beside others.
    Idempotent,
    /// The call changes something: it is never run twice, it waits for the calls before it, and if
    /// its outcome is unknown a person is told.
    #[default]
    SideEffecting,
}

impl ToolSpec {
    /// Describes a side-effecting tool that needs no permission.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            parameters,
            effect: Effect::default(),
            permission: false,
            kind: None,
        }
    }
}

/// What a tool is given for one call.
#[derive(Clone)]
pub struct ToolCall {
    /// The call's id.
    pub id: CallId,
    /// The arguments, which the tool's schema accepts.
    pub arguments: Value,
    /// The session that calls, as it was when the call was dispatched; nothing in a test.
    pub session: Option<Arc<Session>>,
    /// What a client that sees the session can be asked.
    pub client: Arc<dyn Client>,
    /// Values that are never stored.
    pub environment: Arc<Environment>,
    /// How long the call may take. Then it is given up, and what it has found so far is lost; a tool
    /// that takes long returns that a little earlier. Nothing in a test.
    pub within: Option<Duration>,
    pub(crate) out: Option<Emitter<CallPart>>,
}

impl ToolCall {
    /// Makes a call outside of a run, to try a tool.
    pub fn new(arguments: Value) -> Self {
        Self {
            id: CallId::from("call"),
            arguments,
            session: None,
            client: Arc::new(NoClient),
            environment: Arc::default(),
            within: None,
            out: None,
        }
    }

    /// Tells watchers something about the call while it runs: the fields of an ACP tool-call update
    /// that have changed.
    pub async fn tell(&self, update: Map<String, Value>) {
        if let Some(out) = &self.out {
            out.emit(CallPart::Updated(update)).await;
        }
    }
}

impl std::fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut call = f.debug_struct("ToolCall");
        call.field("id", &self.id).field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model is shown.
    pub blocks: Vec<Block>,
    /// The result as a value.
    pub structured: Option<Value>,
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self { blocks: vec![Block::text(text)], structured: None }
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        Self::from("done")
    }
}

impl From<Value> for ToolOutput {
    /// Shows the value as JSON, and keeps it as a value.
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::from(text),
            value => Self { blocks: vec![Block::text(value.to_string())], structured: Some(value) },
        }
    }
}

/// A call that failed, and what kind of failure the run takes it for.
///
/// Every error can be turned into one with `?`: a `tool_error`, which the model is told and may try
/// again. A tool that knows more says so: [`ToolError::of`] with `ambiguous_input` makes the agent
/// ask a person, `auth_required` asks for credentials, `policy_violation` hands off.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    /// What the run takes it for.
    pub failure: Box<Failure>,
    /// What the model is shown; without any, the failure's explanation.
    pub blocks: Vec<Block>,
    /// The result as a value, if the tool gave one all the same.
    pub structured: Option<Value>,
}

impl ToolError {
    /// Makes a `tool_error`.
    pub fn new(message: impl std::fmt::Display) -> Self {
        Self::of(FailureKind::ToolError, message)
    }

    /// Makes an error of a kind.
    pub fn of(kind: FailureKind, message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        let failure = Box::new(Failure::new(kind, &message));
        // The failure keeps the beginning; the model is shown all of it.
        Self { failure, blocks: vec![Block::text(message)], structured: None }
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        Self { failure: Box::new(failure.bounded()), blocks: Vec::new(), structured: None }
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}
