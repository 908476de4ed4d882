//! The calls of an answer in the format of `OpenAI`, put together from their pieces.

use std::collections::{HashMap, HashSet};

use genai::chat::ToolCall;
use serde_json::Value;

/// The calls that have begun. What is kept grows with what was received, and with nothing else.
#[derive(Debug, Default)]
pub(super) struct Calls {
    begun: Vec<Begun>,
    /// The call that the pieces with an index belong to: its place in `begun`.
    indexed: HashMap<u64, usize>,
}

/// A call as far as it has come.
#[derive(Debug, Default)]
struct Begun {
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    /// Takes a piece of a call: an entry of `delta.tool_calls`.
    ///
    /// - One with an index belongs to the call with that index, unless it brings a name together with
    ///   another id: there are servers that give every call the same index.
    /// - One without an index goes on with the last call, unless it brings another id, or a name and
    ///   no id.
    pub(super) fn take(&mut self, index: Option<u64>, piece: &Value) {
        let function = piece.get("function");
        let id = text(piece.get("id"));
        let name = text(function.and_then(|function| function.get("name")));
        let at = match index {
            Some(index) => self.indexed.get(&index).copied(),
            None => self.begun.len().checked_sub(1),
        };
        let begins = match (at.and_then(|at| self.begun.get(at)), index) {
            (None, Some(_)) => function.is_some() || id.is_some(),
            (None, None) => name.is_some() || id.is_some(),
            (Some(call), Some(_)) => {
                name.is_some() && id.is_some_and(|id| !call.id.is_empty() && call.id != id)
            }
            (Some(call), None) => id.map_or(name.is_some(), |id| call.id != id),
        };
        let at = if begins { Some(self.begin(index)) } else { at };
        let Some(call) = at.and_then(|at| self.begun.get_mut(at)) else { return };
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            id.clone_into(&mut call.id);
        }
        if let Some(name) = name {
            name.clone_into(&mut call.name);
        }
        match function.and_then(|function| function.get("arguments")) {
            Some(Value::String(arguments)) => call.arguments.push_str(arguments),
            None | Some(Value::Null) => {}
            // There are servers that write them as they are.
            Some(arguments) => call.arguments.push_str(&arguments.to_string()),
        }
    }

    /// Begins a call, and returns its place.
    fn begin(&mut self, index: Option<u64>) -> usize {
        let at = self.begun.len();
        self.begun.push(Begun::default());
        if let Some(index) = index {
            self.indexed.insert(index, at);
        }
        at
    }

    /// Returns the calls in the order in which they began. One without an id gets one that no other
    /// call of the answer has.
    pub(super) fn whole(self) -> Vec<ToolCall> {
        let taken: HashSet<String> = self.begun.iter().map(|call| call.id.clone()).collect();
        let mut numbers = 0_usize..;
        let calls = self.begun.into_iter().map(|Begun { id, name, arguments }| {
            // There are more numbers than calls.
            let mut free = numbers.by_ref().map(numbered).filter(|id| !taken.contains(id));
            let call_id = if id.is_empty() { free.next().unwrap_or_default() } else { id };
            let fn_arguments = match arguments.trim() {
                "null" => Value::Null,
                _ => Value::String(arguments),
            };
            ToolCall { call_id, fn_name: name, fn_arguments, thought_signatures: None }
        });
        calls.collect()
    }
}

fn numbered(number: usize) -> String {
    format!("call_{number}")
}

/// Returns a text that is not empty.
fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty())
}
