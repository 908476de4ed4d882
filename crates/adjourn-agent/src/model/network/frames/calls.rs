//! The calls of an answer in the format of `OpenAI`, put together from their pieces.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use genai::chat::ToolCall;
use serde_json::Value;

/// The calls that have begun. What is kept grows with what was received, and with nothing else.
#[derive(Debug, Default)]
pub(super) struct Calls {
    begun: Vec<Begun>,
    /// The call that the pieces with an index belong to: its place in `begun`.
    indexed: HashMap<u64, usize>,
    /// The calls by their ids.
    named: HashMap<String, usize>,
}

/// A call as far as it has come.
#[derive(Debug, Default)]
struct Begun {
    id: String,
    name: String,
    arguments: Arguments,
}

/// The arguments of a call as far as they have come.
#[derive(Debug, Default)]
struct Arguments {
    text: String,
    /// How many objects and lists are open.
    depth: usize,
    /// Whether a text is open, and whether its next letter is escaped.
    quoted: bool,
    escaped: bool,
}

impl Arguments {
    fn push(&mut self, piece: &str) {
        for letter in piece.chars() {
            match letter {
                _ if self.escaped => self.escaped = false,
                '\\' if self.quoted => self.escaped = true,
                '"' => self.quoted = !self.quoted,
                '{' | '[' if !self.quoted => self.depth += 1,
                '}' | ']' if !self.quoted => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.text.push_str(piece);
    }

    /// Returns whether they are an object to its end: what comes behind it belongs to another call.
    fn are_whole(&self) -> bool {
        self.depth == 0 && !self.quoted && self.text.trim_end().ends_with('}')
    }
}

impl Calls {
    /// Takes a piece of a call: an entry of `delta.tool_calls`.
    ///
    /// - One with an index belongs to the call with that index. There are servers that give every call
    ///   the same index: a name begins another call if it comes with another id, or without one behind
    ///   arguments that are whole.
    /// - One without an index belongs to the call with its id. Without an id it goes on with the last
    ///   call, unless it brings a name and does not come amid the arguments of a call of that name.
    pub(super) fn take(&mut self, index: Option<u64>, piece: &Value) {
        let function = piece.get("function");
        let (id, name) = (text(piece.get("id")), text(function.and_then(|f| f.get("name"))));
        let arguments = match function.and_then(|function| function.get("arguments")) {
            Some(Value::String(arguments)) => Cow::Borrowed(arguments.as_str()),
            None | Some(Value::Null) => Cow::Borrowed(""),
            // There are servers that write them as they are.
            Some(arguments) => Cow::Owned(arguments.to_string()),
        };
        let at = match (index, id) {
            (Some(index), _) => self.indexed.get(&index).copied(),
            (None, Some(id)) => self.named.get(id).copied(),
            (None, None) => self.begun.len().checked_sub(1),
        };
        let begins = match (at.and_then(|at| self.begun.get(at)), index, id) {
            (None, Some(_), _) => function.is_some() || id.is_some(),
            (None, None, _) => name.is_some() || id.is_some(),
            (Some(call), Some(_), Some(id)) => {
                name.is_some() && !call.id.is_empty() && call.id != id
            }
            (Some(call), Some(_), None) => name.is_some_and(|name| {
                call.arguments.are_whole() && (call.name != name || !arguments.is_empty())
            }),
            (Some(_), None, Some(_)) => false,
            (Some(call), None, None) => name.is_some_and(|name| {
                call.name != name || call.arguments.are_whole() || call.arguments.text.is_empty()
            }),
        };
        let Some(at) = (if begins { Some(self.begin(index)) } else { at }) else { return };
        let Some(call) = self.begun.get_mut(at) else { return };
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            id.clone_into(&mut call.id);
            self.named.insert(id.to_owned(), at);
        }
        if let Some(name) = name {
            name.clone_into(&mut call.name);
        }
        call.arguments.push(&arguments);
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
    /// call of the answer has. Of copies the one that has come furthest is left: there are servers that
    /// say one call again under other indexes.
    pub(super) fn whole(self) -> Vec<ToolCall> {
        let mut furthest: HashMap<(&str, &str), &Begun> = HashMap::new();
        for call in self.begun.iter().filter(|call| !call.id.is_empty()) {
            let known = furthest.entry((&call.id, &call.name)).or_insert(call);
            if call.arguments.text.len() > known.arguments.text.len() {
                *known = call;
            }
        }
        let is_copy = |call: &&Begun| {
            let other = furthest.get(&(call.id.as_str(), call.name.as_str()));
            other.is_some_and(|other| {
                !std::ptr::eq(*other, *call)
                    && other.arguments.text.starts_with(&call.arguments.text)
            })
        };
        let taken: HashSet<&str> = self.begun.iter().map(|call| call.id.as_str()).collect();
        let mut numbers = 0_usize..;
        let calls = self.begun.iter().filter(|call| !is_copy(call)).map(|call| {
            let Begun { id, name, arguments } = call;
            // There are more numbers than calls.
            let mut free = numbers.by_ref().map(numbered).filter(|id| !taken.contains(&**id));
            let call_id = if id.is_empty() { free.next().unwrap_or_default() } else { id.clone() };
            let fn_arguments = match arguments.text.trim() {
                "null" => Value::Null,
                _ => Value::String(arguments.text.clone()),
            };
            ToolCall { call_id, fn_name: name.clone(), fn_arguments, thought_signatures: None }
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
