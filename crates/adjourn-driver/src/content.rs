//! Content: what was said, by whom, as the transcript holds it.
//!
//! A transcript entry is one [`Message`], or one [`Segment`] of a message that took longer than a
//! moment to be said. Its blocks are kept as the protocol had them that they came by, so that
//! nothing is lost between ACP, A2A, MCP and a model.

mod block;

use std::borrow::Cow;

use adjourn_core::ledger::CallId;
use adjourn_core::transcript::Content;
use adjourn_core::{MARK, json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use block::Block;

/// The version of the encoding that is written.
const VERSION: u32 = 1;

/// What ACP calls a line that people are told.
const NOTICE: &str = "notice";

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or a program in their place.
    User,
    /// The agent.
    Agent,
    /// A tool, with the result of a call.
    Tool,
    /// The host: wake reports, digests, what became of calls without a result.
    Host,
}

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The version of the encoding.
    pub v: u32,
    /// The message's id, where it has one of its own; else it goes by its number in the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The speaker.
    pub role: Role,
    /// What is said, thoughts included, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// The calls that the agent asks for with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallContent>,
    /// The call that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<CallId>,
    /// What is given as a value: a tool's result beside the blocks that show it, or all that a
    /// person or a program says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether the result is that of a call that failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// What became of the call that it answers, if the call has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<Fate>,
    /// Whether it was broken off; a model does not see it then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// Whether it is a digest: a model sees nothing of what was said before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub digest: bool,
    /// The step of its run that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Which part of its message it is, if it is not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
    /// What people are shown beside words; a model does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Shown>,
    /// What the message had beside what is said, under the name of the protocol that it came by; a
    /// model does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

/// The one field that a message of every version has.
#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

/// What became of a call that has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was stopped before it started.
    NotRun,
    /// It was cut off while it ran.
    Unknown,
}

/// A part of a message that was committed while the message was being said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Segment {
    /// How many bytes of the message's words come before it.
    pub offset: u64,
    /// Whether the message ends with it. One that never ends was broken off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
}

/// The kinds of tools that ACP knows. Its first version has no others.
pub const TOOL_KINDS: [&str; 10] = [
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
];

/// A call that an agent asks for, with what only the transcript keeps of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallContent {
    /// The call's id.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// What people are told that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What kind of tool it is, in ACP's words: one of [`TOOL_KINDS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What the tool is given.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
    /// The files that it touches, as ACP has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Value>,
    /// What the model's provider wants back with the call as it is: thoughts that it has signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Box<Value>>,
}

/// Something that people are shown beside words. The last one of its kind holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// What the agent plans to do, as entries of an ACP plan.
    Plan(Vec<Value>),
    /// How much of the model's context is used.
    Context {
        /// Tokens in the context.
        used: u64,
        /// Tokens that it has room for; 0 if that is not known.
        size: u64,
    },
    /// Commands that a person can type, as ACP has them.
    Commands(Vec<Value>),
    /// The mode that the agent works in.
    Mode(String),
    /// News of a call that runs: the fields of an ACP tool-call update.
    Call {
        /// The call.
        id: CallId,
        /// The fields that have changed, as ACP names them.
        update: Map<String, Value>,
    },
    /// An update of the agent's own protocol, passed on as it is.
    Raw(Value),
}

impl Shown {
    /// Makes a line that people are told beside what is said, as ACP has it; a model does not see it.
    pub fn notice(words: impl Into<String>) -> Self {
        let words: String = words.into();
        Self::Raw(json!({ "sessionUpdate": NOTICE, "severity": "warning", "title": words }))
    }

    /// Returns the words of a line that people are told.
    pub fn notice_words(&self) -> Option<String> {
        let Self::Raw(update) = self else { return None };
        let text = |field: &str| update.get(field).and_then(Value::as_str);
        text("sessionUpdate").filter(|kind| *kind == NOTICE)?;
        let words: Vec<_> = [text("title"), text("description")].into_iter().flatten().collect();
        Some(words.join(": "))
    }
}

impl From<&str> for Message {
    /// Makes a person's words.
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl From<String> for Message {
    /// Makes a person's words.
    fn from(text: String) -> Self {
        Self::user(text)
    }
}

impl Message {
    /// Makes a message of one role.
    pub const fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self {
            v: VERSION,
            id: None,
            role,
            blocks,
            calls: Vec::new(),
            answers: None,
            structured: None,
            is_error: false,
            fate: None,
            aborted: false,
            digest: false,
            step: None,
            segment: None,
            shown: None,
            meta: None,
        }
    }

    /// Makes a person's words.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Block::text(text)])
    }

    /// Makes a value that a person or a program gives: words if it is a text, a prompt if it is a
    /// list of blocks.
    pub fn user_value(value: Value) -> Self {
        match Block::list(&value) {
            Some(blocks) => Self::new(Role::User, blocks),
            None => Self::plain_value(value),
        }
    }

    /// Makes a value that is given over a protocol without blocks: words if it is a text.
    pub fn plain_value(value: Value) -> Self {
        match value {
            Value::String(text) => Self::user(text),
            value => Self { structured: Some(value), ..Self::new(Role::User, Vec::new()) },
        }
    }

    /// Makes an agent's words.
    pub fn agent(text: impl Into<String>) -> Self {
        Self::new(Role::Agent, vec![Block::text(text)])
    }

    /// Makes the host's words.
    pub fn host(text: impl Into<String>) -> Self {
        Self::new(Role::Host, vec![Block::text(text)])
    }

    /// Makes the result of a call.
    pub fn result(call: CallId, blocks: Vec<Block>) -> Self {
        Self { answers: Some(call), ..Self::new(Role::Tool, blocks) }
    }

    /// Makes the host's answer to a call that has no result.
    pub fn fate(call: CallId, tool: &str, fate: Fate) -> Self {
        let what = match fate {
            Fate::NotRun => "not run: it was stopped before it started",
            Fate::Unknown => "its outcome is unknown: it was cut off while it ran",
        };
        let message = Self::host(format!("{MARK} {tool}: {what}"));
        Self { answers: Some(call), is_error: true, fate: Some(fate), ..message }
    }

    /// Makes an entry that only shows something.
    pub fn showing(shown: Shown) -> Self {
        Self { shown: Some(shown), ..Self::new(Role::Agent, Vec::new()) }
    }

    /// Says which call it answers.
    #[must_use]
    pub fn answering(mut self, call: Option<CallId>) -> Self {
        self.answers = call;
        self
    }

    /// Says which step it belongs to.
    #[must_use]
    pub const fn in_step(mut self, step: Option<u64>) -> Self {
        self.step = step;
        self
    }

    /// Returns the entry's bytes.
    pub fn encode(&self) -> Vec<u8> {
        // No map with keys that are not text, no failing impl: this always encodes.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// The bytes are no entry, or one of a later version.
    pub fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let message = json::stored::<Self>(bytes);
        // A later version may have what this one cannot read, and says so first.
        let version = message.as_ref().map(|message| message.v);
        match version.or_else(|_| json::stored::<Versioned>(bytes).map(|versioned| versioned.v)) {
            Ok(v) if v > VERSION => {
                let problem = format!("a message of version {v}, which is newer than {VERSION}");
                Err(serde::de::Error::custom(problem))
            }
            _ => message,
        }
    }

    /// Returns what the core may know of this entry.
    pub fn content(&self) -> Content {
        let content = Content::new(&self.encode(), &self.text());
        let shows = self.blocks.iter().any(|block| block.words().is_none());
        Content { blank: content.blank && !shows, ..content }
    }

    /// Returns its blocks; a message that is only a value says it in words.
    pub fn said_blocks(&self) -> Cow<'_, [Block]> {
        match &self.structured {
            Some(value) if self.blocks.is_empty() => vec![Block::text(value.to_string())].into(),
            _ => (&self.blocks).into(),
        }
    }

    /// Returns the words of its text blocks, thoughts left out.
    pub fn text(&self) -> String {
        let blocks = self.said_blocks();
        let texts = blocks.iter().filter(|block| !block.is_thought());
        texts.filter_map(Block::words).collect::<Vec<_>>().join("\n")
    }

    /// Returns how many bytes of words it has, thoughts included: the unit of [`Segment::offset`].
    pub fn words_len(&self) -> u64 {
        self.blocks.iter().filter_map(Block::words).map(|words| words.len() as u64).sum()
    }
}

impl CallContent {
    /// Makes a call without arguments.
    pub fn new(id: CallId, tool: impl Into<String>) -> Self {
        Self {
            id,
            tool: tool.into(),
            title: None,
            kind: None,
            arguments: Value::Null,
            locations: Vec::new(),
            signed: None,
        }
    }

    /// Returns what people are told that it does.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.tool)
    }

    /// Returns the arguments as a model gave them: an object, also where there are none.
    pub fn arguments(&self) -> Value {
        match &self.arguments {
            Value::Null => json!({}),
            arguments => arguments.clone(),
        }
    }
}
