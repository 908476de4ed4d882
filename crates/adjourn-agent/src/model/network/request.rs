//! Requests: the engine's model view, as a provider takes it.
//!
//! - What people and the host say without anything in between is one message, and the last message
//!   is never the agent's: there are providers that take no other.
//! - The results of the calls of one message are one message right behind it. Images of results
//!   follow in the user's role with providers that take none in a result, or in that of a failure.
//! - Thoughts go back to the providers that want them, signed ones to the model that they are of.

use adjourn_core::MARK;
use adjourn_driver::{Block, CallContent, ModelMessage, ModelRole};
use genai::adapter::AdapterKind;
use genai::chat::{
    CacheControl, ChatMessage, ChatRequest, ChatRole, ContentPart, MessageContent, MessageOptions,
    Tool, ToolCall, ToolResponse,
};
use serde_json::{Value, json};

use super::blocks::{Shown, shown};
use super::names::{CallIds, ToolNames};
use super::provider::Provider;
use super::schema::object_schema;
use crate::model::ModelRequest;
use crate::tool::ToolSpec;

/// Makes the request for a provider, and returns the names that its tools go by.
pub(super) fn chat_request(
    provider: &Provider,
    request: &ModelRequest,
) -> (ChatRequest, ToolNames) {
    let mut talk = Talk {
        provider,
        names: ToolNames::default(),
        ids: CallIds::default(),
        said: Vec::new(),
        files: Vec::new(),
    };
    let mut tools: Vec<Tool> = request.tools.iter().map(|spec| talk.tool(spec)).collect();
    for message in &request.messages {
        talk.say(message);
    }
    talk.end();
    if tools.is_empty() {
        tools = talk.gone(&request.messages);
    }
    let Talk { names, said, .. } = talk;
    let mut chat = ChatRequest::new(said);
    if !request.instructions.trim().is_empty() {
        chat = chat.with_system(request.instructions.as_str());
    }
    if !tools.is_empty() {
        chat = chat.with_tools(tools);
    }
    (chat, names)
}

/// A conversation, as a provider is told it.
struct Talk<'a> {
    provider: &'a Provider,
    names: ToolNames,
    ids: CallIds,
    said: Vec<ChatMessage>,
    /// Files of results that a provider does not take in them.
    files: Vec<ContentPart>,
}

impl Talk<'_> {
    fn tool(&mut self, spec: &ToolSpec) -> Tool {
        let name = self.names.told(self.provider.kind, &spec.name);
        Tool::new(name)
            .with_description(&spec.description)
            .with_schema(object_schema(&spec.parameters))
    }

    /// Returns tools for calls of a conversation that has tools no more: there are providers that
    /// take no call of a tool that they are not told of.
    fn gone(&mut self, messages: &[ModelMessage]) -> Vec<Tool> {
        let mut tools: Vec<Tool> = Vec::new();
        for call in messages.iter().flat_map(|message| &message.calls) {
            let name = self.names.told(self.provider.kind, &call.tool);
            if tools.iter().all(|tool| tool.name.as_str() != name) {
                let gone = "It is not there any more; calls of it fail.";
                tools.push(
                    Tool::new(name).with_description(gone).with_schema(object_schema(&Value::Null)),
                );
            }
        }
        tools
    }

    fn say(&mut self, message: &ModelMessage) {
        if message.role != ModelRole::Tool {
            self.add_files();
        }
        match message.role {
            ModelRole::User => self.add(ChatRole::User, self.parts(&message.blocks)),
            ModelRole::Agent => self.answer(message),
            ModelRole::Tool => self.result(message),
        }
    }

    /// Adds parts to the last message if that has the same role, or else a message.
    fn add(&mut self, role: ChatRole, parts: Vec<ContentPart>) {
        if parts.is_empty() {
            return;
        }
        match self.said.last_mut() {
            Some(last) if last.role == role => last.content.extend(parts),
            _ => self.said.push(ChatMessage::new(role, MessageContent::from_parts(parts))),
        }
    }

    /// Returns what is said to the model.
    fn parts(&self, blocks: &[Block]) -> Vec<ContentPart> {
        let part = |block: &Block| match shown(self.provider, block) {
            Shown::Words(words) => ContentPart::Text(words),
            Shown::File(file) => ContentPart::Binary(file.into()),
        };
        blocks.iter().map(part).collect()
    }

    /// Adds what the agent has said, and the calls that it has asked for.
    fn answer(&mut self, message: &ModelMessage) {
        let mut parts = Vec::new();
        if self.provider.kind == AdapterKind::Anthropic {
            let thoughts =
                message.calls.iter().filter_map(|call| signed(self.provider, call, "thoughts"));
            parts.extend(
                thoughts.flatten().map(|block| ContentPart::from_custom(block.clone(), None)),
            );
        }
        for block in &message.blocks {
            if block.is_thought() {
                let words = block.words().filter(|_| self.provider.takes_thoughts());
                parts.extend(words.map(|words| ContentPart::ReasoningContent(words.to_owned())));
            } else {
                // No provider takes files of its own model's role.
                parts.push(ContentPart::Text(shown(self.provider, block).into_words()));
            }
        }
        for call in &message.calls {
            let fn_arguments = match call.arguments() {
                Value::Object(arguments) => Value::Object(arguments),
                // What was no object was refused, and the model is told so; providers take it only
                // in one.
                other => json!({ "arguments": other }),
            };
            parts.push(ContentPart::ToolCall(ToolCall {
                call_id: self.ids.told(self.provider.kind, &call.id.0),
                fn_name: self.names.told(self.provider.kind, &call.tool),
                fn_arguments,
                thought_signatures: signatures(self.provider, call),
            }));
        }
        self.add(ChatRole::Assistant, parts);
    }

    /// Adds the result of a call.
    fn result(&mut self, message: &ModelMessage) {
        let Some(call) = &message.answers else { return };
        let id = self.ids.told(self.provider.kind, &call.0);
        let shown: Vec<Shown> =
            message.blocks.iter().map(|block| shown(self.provider, block)).collect();
        let anthropic = self.provider.kind == AdapterKind::Anthropic;
        // Anthropic takes files in a result, unless the call has failed.
        let takes_files = anthropic && !message.is_error;
        let shown = if takes_files { shown } else { self.without_files(&id, shown) };
        if anthropic {
            let content: Vec<Value> = shown.into_iter().map(anthropic_block).collect();
            let result = json!({ "type": "tool_result", "tool_use_id": id, "content": content,
                                 "is_error": message.is_error });
            return self.add(ChatRole::Tool, vec![ContentPart::from_custom(result, None)]);
        }
        let words: Vec<String> = shown.into_iter().map(Shown::into_words).collect();
        let words = words.join("\n");
        let words = if message.is_error { format!("error: {words}") } else { words };
        let asked = self.said.iter().rev().find(|said| said.role == ChatRole::Assistant);
        let asked = asked.map(|said| said.content.tool_calls()).unwrap_or_default();
        let asked = asked.into_iter().find(|call| call.call_id == id);
        let mut response = ToolResponse::new(id, words);
        response.fn_name = asked.map(|call| call.fn_name.clone());
        self.add(ChatRole::Tool, vec![ContentPart::ToolResponse(response)]);
    }

    /// Puts the files of a call's result behind all results, and says so in their places.
    fn without_files(&mut self, id: &str, shown: Vec<Shown>) -> Vec<Shown> {
        let mut words = Vec::with_capacity(shown.len());
        for part in shown {
            words.push(match part {
                Shown::File(file) => {
                    let follows = format!("{MARK} {} follows the results.", file.media_type);
                    let of = format!("{MARK} From the result of call {id}:");
                    self.files.extend([ContentPart::Text(of), ContentPart::Binary(file.into())]);
                    Shown::Words(follows)
                }
                words => words,
            });
        }
        words
    }

    /// Adds the files of results, behind all of them.
    fn add_files(&mut self) {
        let files = std::mem::take(&mut self.files);
        self.add(ChatRole::User, files);
    }

    /// Lets the model go on where the last word is its own, and marks what its provider is to cache.
    fn end(&mut self) {
        self.add_files();
        if self.said.last().is_none_or(|last| last.role == ChatRole::Assistant) {
            let words = format!("{MARK} Go on.");
            self.add(ChatRole::User, vec![ContentPart::Text(words)]);
        }
        // All that comes before is sent again with the next request, and costs a tenth if cached.
        // Others do that by themselves.
        if self.provider.kind == AdapterKind::Anthropic
            && let Some(last) = self.said.last_mut()
        {
            let options = MessageOptions::default().with_cache_control(CacheControl::Ephemeral);
            last.options = Some(options);
        }
    }
}

/// Returns what the provider has signed of a call, if it is the same model's.
fn signed<'a>(provider: &Provider, call: &'a CallContent, what: &str) -> Option<&'a Vec<Value>> {
    let signed = call.signed.as_ref()?;
    let by = signed.get("by").and_then(Value::as_str);
    signed.get(what)?.as_array().filter(|_| by == Some(provider.id.as_str()))
}

fn signatures(provider: &Provider, call: &CallContent) -> Option<Vec<String>> {
    let signatures = signed(provider, call, "signatures")?;
    Some(signatures.iter().filter_map(|text| Some(text.as_str()?.to_owned())).collect())
}

/// Returns whether the last calls have no thoughts with them: Anthropic lets a model think about
/// their results only if it is given what the model thought before it asked for them.
pub(super) fn lacks_thoughts(provider: &Provider, messages: &[ModelMessage]) -> bool {
    let last = messages.iter().rev().find(|message| message.role == ModelRole::Agent);
    let calls = last.map(|message| message.calls.as_slice()).unwrap_or_default();
    let thought = calls.iter().any(|call| signed(provider, call, "thoughts").is_some());
    provider.kind == AdapterKind::Anthropic && !calls.is_empty() && !thought
}

fn anthropic_block(shown: Shown) -> Value {
    match shown {
        Shown::Words(words) => json!({ "type": "text", "text": words }),
        Shown::File(file) => {
            let kind = if file.is_image() { "image" } else { "document" };
            json!({ "type": kind,
                    "source": { "type": "base64", "media_type": file.media_type, "data": file.data } })
        }
    }
}
