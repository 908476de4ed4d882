//! The model's view: what was said, in the shape that model providers take.
//!
//! - Nothing from before the last digest.
//! - The segments of a message are one message; one that was broken off is left out.
//! - Each call has its one result right behind the message that asks for it. A call whose result
//!   never came is answered by the host; further results of it, and results without a call, are
//!   shown as the host's text.
//! - What only people are shown is left out, and so is what says nothing.

use std::collections::HashMap;

use adjourn_core::MARK;
use adjourn_core::ledger::CallId;
use serde_json::Value;

use crate::content::{Block, CallContent, Message, Role};

/// Who a model is told that something comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelRole {
    /// A person, or the host in its own marked words.
    User,
    /// The model itself.
    Agent,
    /// A tool, right behind the message that asks for its call.
    Tool,
}

/// One message of a model's view.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelMessage {
    /// Who says it.
    pub role: ModelRole,
    /// What is said.
    pub blocks: Vec<Block>,
    /// The calls that the model asks for with it.
    pub calls: Vec<CallContent>,
    /// The call that it answers.
    pub answers: Option<CallId>,
    /// The result as a value.
    pub structured: Option<Value>,
    /// Whether the result is that of a call that failed or did not run.
    pub is_error: bool,
}

/// Returns what a model is shown of a transcript.
pub fn model_view(entries: &[Message]) -> Vec<ModelMessage> {
    let from = entries.iter().rposition(|entry| entry.digest).unwrap_or(0);
    let whole = joined(entries.get(from..).unwrap_or_default());
    let mut answers = Answers::of(&whole);
    let mut view = Vec::new();
    for (index, message) in whole.iter().enumerate() {
        if message.aborted {
            continue;
        }
        match message.role {
            Role::User => push(&mut view, plain(ModelRole::User, message.blocks.clone())),
            Role::Agent => {
                let calls = message.calls.clone();
                push(
                    &mut view,
                    ModelMessage {
                        calls: calls.clone(),
                        ..plain(ModelRole::Agent, message.blocks.clone())
                    },
                );
                for call in &calls {
                    view.push(answers.take(&whole, call));
                }
            }
            Role::Tool | Role::Host if answers.is_result(index) => {}
            Role::Tool | Role::Host => {
                let text = match &message.answers {
                    Some(call) if message.role == Role::Tool => {
                        format!("{MARK} A further result of call {call}: {}", message.text())
                    }
                    _ => message.text(),
                };
                push(&mut view, plain(ModelRole::User, vec![Block::text(text)]));
            }
        }
    }
    view
}

fn plain(role: ModelRole, blocks: Vec<Block>) -> ModelMessage {
    ModelMessage {
        role,
        blocks,
        calls: Vec::new(),
        answers: None,
        structured: None,
        is_error: false,
    }
}

/// Adds a message, unless it says nothing.
fn push(view: &mut Vec<ModelMessage>, message: ModelMessage) {
    let says = |block: &Block| block.words().is_none_or(|words| !words.trim().is_empty());
    if !message.calls.is_empty() || message.blocks.iter().any(says) {
        view.push(message);
    }
}

/// Which entries are the results of which calls.
struct Answers {
    /// The entry that answers each call that was asked for.
    results: HashMap<CallId, usize>,
    used: Vec<usize>,
}

impl Answers {
    fn of(whole: &[Message]) -> Self {
        let mut results = HashMap::new();
        let mut asked: HashMap<&CallId, usize> = HashMap::new();
        for (index, message) in whole.iter().enumerate() {
            if message.aborted {
                continue;
            }
            for call in &message.calls {
                asked.insert(&call.id, index);
            }
            // A tool's own word counts for more than what the host said before it was heard.
            if let Some(call) = message.answers.as_ref().filter(|call| asked.contains_key(call)) {
                let known = results.get(call).and_then(|at: &usize| whole.get(*at));
                let better = known.is_none_or(|known: &Message| {
                    known.role == Role::Host && message.role == Role::Tool
                });
                if better {
                    results.insert(call.clone(), index);
                }
            }
        }
        let used = results.values().copied().collect();
        Self { results, used }
    }

    fn is_result(&self, index: usize) -> bool {
        self.used.contains(&index)
    }

    fn take(&mut self, whole: &[Message], call: &CallContent) -> ModelMessage {
        let found = self.results.remove(&call.id).and_then(|index| whole.get(index));
        let (blocks, structured, is_error) = match found {
            Some(found) => {
                let failed = found.is_error || found.role == Role::Host;
                (found.blocks.clone(), found.structured.clone(), failed)
            }
            None => {
                let text = format!("{MARK} {}: no result of this call is known", call.tool);
                (vec![Block::text(text)], None, true)
            }
        };
        let answers = Some(call.id.clone());
        ModelMessage { answers, structured, is_error, ..plain(ModelRole::Tool, blocks) }
    }
}

/// Joins the segments of messages; a message whose last segment never came was broken off.
fn joined(entries: &[Message]) -> Vec<Message> {
    let mut whole: Vec<Message> = Vec::new();
    let mut open: Option<usize> = None;
    for entry in entries.iter().filter(|entry| entry.shown.is_none()) {
        let Some(segment) = entry.segment else {
            whole.push(entry.clone());
            continue;
        };
        let continued = open
            .and_then(|index| whole.get_mut(index))
            .filter(|message| message.id == entry.id && segment.offset > 0);
        match continued {
            Some(message) => {
                append(&mut message.blocks, &entry.blocks);
                message.calls.extend(entry.calls.iter().cloned());
                message.aborted = !segment.last || entry.aborted;
            }
            None => {
                open = Some(whole.len());
                whole.push(Message { aborted: !segment.last || entry.aborted, ..entry.clone() });
            }
        }
    }
    whole
}

/// Adds blocks to a message: words go on with the block they belong to.
fn append(blocks: &mut Vec<Block>, more: &[Block]) {
    for block in more {
        let joined = match (blocks.last(), block.words()) {
            (Some(last), Some(words)) if last.kind() == block.kind() => {
                last.words().map(|before| format!("{before}{words}"))
            }
            _ => None,
        };
        match joined {
            Some(text) => {
                let is_thought = block.is_thought();
                blocks.pop();
                blocks.push(if is_thought { Block::thought(text) } else { Block::text(text) });
            }
            None => blocks.push(block.clone()),
        }
    }
}
