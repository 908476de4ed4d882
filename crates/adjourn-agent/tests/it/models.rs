//! Models over the network, against servers on loopback that speak the providers' formats.

#![expect(clippy::indexing_slicing, reason = "a test that fails should stop where it fails")]

mod anthropic;
mod failures;
mod openai;
mod runs;
mod schemas;
mod sizes;
mod views;

use std::future::poll_fn;
use std::sync::Arc;

use adjourn_agent::{
    ApiKey, Model, ModelError, ModelOptions, ModelPart, ModelRequest, ToolSpec, named_model,
};
use adjourn_driver::{Block, BoxStream, CallContent, Environment, ModelMessage, ModelRole};
use adjourn_testkit::provider::Server;
use serde_json::Value;

/// The key that no output may hold.
pub const KEY: &str = "sk-secret-0123456789-abcdef";

/// A model of a provider that a server stands for.
pub fn model_at(name: &str, server: &Server) -> Arc<dyn Model> {
    named_model(name, &options_at(server)).unwrap()
}

pub fn options_at(server: &Server) -> ModelOptions {
    ModelOptions {
        base_url: Some(format!("{}/v1", server.url())),
        api_key: Some(ApiKey::new(KEY)),
        ..ModelOptions::default()
    }
}

/// A request with one message of a person's.
pub fn request(text: &str) -> ModelRequest {
    asking(vec![message(ModelRole::User, vec![Block::text(text)])])
}

pub fn asking(messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        answers: 0,
        instructions: "You are brief.".to_owned(),
        messages,
        tools: Arc::new([]),
        environment: Arc::new(Environment::default()),
    }
}

pub fn message(role: ModelRole, blocks: Vec<Block>) -> ModelMessage {
    ModelMessage {
        role,
        blocks,
        calls: Vec::new(),
        answers: None,
        structured: None,
        is_error: false,
    }
}

/// A message of the agent's that asks for calls.
pub fn calling(text: &str, calls: &[(&str, &str, Value)]) -> ModelMessage {
    let call = |(id, tool, arguments): &(&str, &str, Value)| CallContent {
        arguments: arguments.clone(),
        ..CallContent::new(adjourn_core::ledger::CallId((*id).to_owned()), *tool)
    };
    let blocks = if text.is_empty() { Vec::new() } else { vec![Block::text(text)] };
    ModelMessage { calls: calls.iter().map(call).collect(), ..message(ModelRole::Agent, blocks) }
}

/// The result of a call.
pub fn result(id: &str, blocks: Vec<Block>) -> ModelMessage {
    let answers = Some(adjourn_core::ledger::CallId(id.to_owned()));
    ModelMessage { answers, ..message(ModelRole::Tool, blocks) }
}

pub fn block(value: Value) -> Block {
    serde_json::from_value(value).unwrap()
}

pub fn tools(specs: &[ToolSpec]) -> Arc<[ToolSpec]> {
    specs.into()
}

pub type Answer = BoxStream<'static, Result<ModelPart, ModelError>>;

pub async fn next(answer: &mut Answer) -> Option<Result<ModelPart, ModelError>> {
    poll_fn(|context| answer.as_mut().poll_next(context)).await
}

/// Asks a model, and returns all parts of its answer but for signs of life.
pub async fn heard(model: &dyn Model, request: ModelRequest) -> Vec<Result<ModelPart, ModelError>> {
    let mut answer = model.respond(request);
    let mut parts = Vec::new();
    while let Some(part) = next(&mut answer).await {
        if part != Ok(ModelPart::Alive) {
            parts.push(part);
        }
    }
    parts
}

/// Asks a model that is to fail, and returns how it does.
pub async fn failure(model: &dyn Model) -> ModelError {
    match heard(model, request("Hello?")).await.pop() {
        Some(Err(error)) => error,
        other => panic!("the answer ended with {other:?}"),
    }
}
