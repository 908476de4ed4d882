//! One tool of a server.

use std::sync::Arc;

use adjourn_core::{json, limits};
use adjourn_driver::{Block, BoxFuture};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ToolAnnotations};
use rmcp::service::ServiceError;
use rmcp::{Peer, RoleClient};
use serde::Serialize;
use serde_json::{Value, json};

use super::config::McpServer;
use super::connection::{Connection, TooLong, cause, chain, kind_of};
use super::names::tool_name;
use super::values::Secrets;
use crate::tool::{Effect, Tool, ToolCall, ToolError, ToolOutput, ToolSpec};

/// How long a tool's schema may be.
const SCHEMA_BYTES: usize = 256 * 1024;
/// How long a result may be, before a host cuts it.
const RESULT_BYTES: usize = 16 * 1024 * 1024;

/// One tool of a server.
pub(super) struct McpTool {
    spec: ToolSpec,
    /// What the server calls it.
    name: String,
    server: Arc<McpServer>,
    peer: Peer<RoleClient>,
    secrets: Secrets,
    too_long: TooLong,
}

impl McpTool {
    /// Takes a tool as its server describes it.
    ///
    /// # Errors
    /// Its schema is too long, or nested too deep.
    pub(super) fn new(
        server: &Arc<McpServer>,
        tool: &rmcp::model::Tool,
        connection: &Connection,
        secrets: Secrets,
    ) -> Result<Self, ToolError> {
        let name = tool.name.to_string();
        // The model is told the schema, and what it says is quoted where arguments are refused.
        let parameters = checked(tool.input_schema.as_ref(), SCHEMA_BYTES)?;
        let mut parameters = secrets.redact_schema(parameters);
        if let Some(fields) = parameters.as_object_mut() {
            // Some servers leave out what all others say.
            fields.entry("type").or_insert_with(|| json!("object"));
            fields.entry("properties").or_insert_with(|| json!({}));
        }
        let hints = tool.annotations.clone().unwrap_or_default();
        let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or(&name);
        let description = secrets.redact(description);
        let title = tool.title.as_deref().or(hints.title.as_deref());
        let spec = ToolSpec {
            title: title.map(|title| secrets.redact(title)),
            effect: effect(&hints),
            permission: hints.read_only_hint != Some(true) && !server.allows(&name),
            kind: Some(kind(&hints).to_owned()),
            ..ToolSpec::new(tool_name(&server.name, &name), description, parameters)
        };
        let (peer, too_long) = (connection.peer().clone(), connection.too_long());
        Ok(Self { spec, name, server: Arc::clone(server), peer, secrets, too_long })
    }
}

/// Returns what running a tool twice does, as its server says.
fn effect(hints: &ToolAnnotations) -> Effect {
    match hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true) {
        true => Effect::Idempotent,
        false => Effect::SideEffecting,
    }
}

/// Returns what kind of tool it is, in ACP's words.
fn kind(hints: &ToolAnnotations) -> &'static str {
    match (hints.read_only_hint, hints.open_world_hint) {
        (Some(true), Some(true)) => "fetch",
        (Some(true), _) => "read",
        _ => "other",
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (peer, server) = (self.peer.clone(), Arc::clone(&self.server));
        let (name, secrets) = (self.name.clone(), self.secrets.clone());
        let too_long = self.too_long.clone();
        Box::pin(async move {
            let request = match call.arguments {
                Value::Object(fields) => {
                    CallToolRequestParams::new(name.clone()).with_arguments(fields)
                }
                _ => CallToolRequestParams::new(name.clone()),
            };
            // When the future is dropped, the server is told that the call is cancelled.
            match peer.call_tool_once(request).await {
                Ok(CallToolResponse::Complete(result)) => output(&result, &secrets),
                Ok(CallToolResponse::InputRequired(_)) => Err(ToolError::new(format!(
                    "{name} wants to ask a person something, which it cannot here"
                ))),
                Ok(_) => Err(ToolError::new(format!("{name} answered with something else"))),
                Err(ServiceError::TransportClosed) => Err(ToolError::new(format!(
                    "MCP server {:?} {} while {name} ran; whether it was done is not known",
                    server.name,
                    too_long.how()
                ))),
                Err(error) => Err(failed(&server.name, &name, &error, &secrets)),
            }
        })
    }
}

/// Takes what came of a call: all of it but the values that the server was given, or nothing.
fn output(result: &CallToolResult, secrets: &Secrets) -> Result<ToolOutput, ToolError> {
    let blocks = match secrets.redact_all(checked(&result.content, RESULT_BYTES)?) {
        Value::Array(blocks) => blocks,
        _ => Vec::new(),
    };
    let block = |value: Value| match value {
        Value::Object(fields) => Block::from_fields(fields),
        _ => None,
    };
    let blocks: Vec<Block> = blocks.into_iter().filter_map(block).collect();
    let structured = result.structured_content.as_ref();
    let structured = structured.map(|value| checked(value, RESULT_BYTES)).transpose()?;
    let structured = structured.map(|value| secrets.redact_all(value));
    if result.is_error != Some(true) {
        return Ok(ToolOutput { blocks, structured });
    }
    let words: Vec<_> = blocks.iter().filter_map(Block::words).collect();
    let words = limits::excerpt(&words.join("\n"), limits::EXCERPT_BYTES);
    let why = if words.trim().is_empty() { "it failed without a word" } else { &words };
    let ToolError { failure, .. } = ToolError::new(why);
    Err(ToolError { failure, blocks, structured })
}

/// Says why a call has no result.
fn failed(server: &str, tool: &str, error: &ServiceError, secrets: &Secrets) -> ToolError {
    match error {
        ServiceError::McpError(error) => {
            ToolError::new(secrets.redact(&format!("{tool} failed: {}", error.message)))
        }
        error => {
            let error = cause(error);
            let why = format!("MCP server {server:?}: {}", chain(error));
            ToolError::of(kind_of(error), secrets.redact(&why))
        }
    }
}

/// Reads what a server has sent as everything from outside is read, so that it can be stored.
fn checked(value: &impl Serialize, limit: usize) -> Result<Value, ToolError> {
    let bytes = serde_json::to_vec(value)?;
    json::read(&bytes, limit)
        .map_err(|error| ToolError::new(format!("what it has sent cannot be taken: {error}")))
}
