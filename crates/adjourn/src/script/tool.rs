//! The tools that a script has its agent call, and what comes of the calls.

use adjourn_core::command::CallResult;
use adjourn_core::ledger::CallId;
use adjourn_core::limits;
use adjourn_driver::{Block, CallContent, CallPart, RequestedCall};
use serde_json::{Value, json};

use super::reading::{self, Fields, Wrong, within};

/// The kinds of tools that ACP knows.
const KINDS: &[&str] = &[
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

/// One call of a tool.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    name: String,
    /// What the tool is given.
    arguments: Value,
    title: Option<String>,
    kind: Option<String>,
    /// The files that it touches.
    locations: Vec<String>,
    /// How long it takes.
    pub(super) ms: u64,
    idempotent: bool,
    /// Whether a person has to allow it first.
    pub(super) permission: bool,
    /// What comes of it; nothing in particular if it is null.
    result: Value,
    fails: bool,
}

impl Tool {
    /// Reads a call.
    pub(super) fn parse(place: &str, value: Value) -> Result<Self, Wrong> {
        let mut fields = Fields::of(place, value)?;
        let tool = Self {
            name: fields.text("name")?,
            arguments: fields.take("args"),
            title: fields.optional_text("title")?,
            kind: fields.choice("kind", KINDS)?,
            locations: fields.texts("locations")?,
            ms: fields.count("ms")?,
            idempotent: fields.truth("idempotent")?,
            permission: fields.truth("permission")?,
            result: fields.take("result"),
            fails: fields.truth("fails")?,
        };
        fields.end(&[
            "name",
            "args",
            "title",
            "kind",
            "locations",
            "ms",
            "idempotent",
            "permission",
            "result",
            "fails",
        ])?;
        within(place, limits::name("name", &tool.name))?;
        if let Some(title) = &tool.title {
            within(place, limits::name("title", title))?;
        }
        for (index, path) in tool.locations.iter().enumerate() {
            // ACP knows no other: a client need not know where the agent was started.
            if !path.starts_with('/') {
                let problem = format!("expected an absolute path, found {path:?}");
                return Err((format!("{place}.locations[{index}]"), problem));
            }
        }
        Ok(tool)
    }

    /// Returns the call as the driver asks for it.
    pub(super) fn request(self, id: CallId, in_order: bool) -> RequestedCall {
        let content = CallContent {
            title: self.title,
            kind: self.kind,
            arguments: self.arguments,
            locations: self.locations.into_iter().map(|path| json!({ "path": path })).collect(),
            ..CallContent::new(id, self.name)
        };
        RequestedCall {
            idempotent: self.idempotent,
            permission: self.permission,
            in_order,
            ..RequestedCall::new(content)
        }
    }

    /// Returns what comes of the call.
    pub(super) fn end(self) -> CallPart {
        let (result, how) = match self.fails {
            false => (CallResult::Done, "done"),
            true => (CallResult::Failed, "failed"),
        };
        let (content, structured) = match self.result {
            Value::Null => (vec![Block::text(format!("{} {how}", self.name))], None),
            Value::String(text) => (vec![Block::text(text)], None),
            // It is said in words where it is shown.
            value => (Vec::new(), Some(value)),
        };
        CallPart::Ended { result, content, structured }
    }
}

/// Reads the calls of one step.
pub(super) fn list(place: &str, value: Value) -> Result<Vec<Tool>, Wrong> {
    let tools = reading::list(place, value)?.enumerate();
    let wrong = |problem: String| Err((place.to_owned(), problem));
    if tools.len() == 0 {
        return wrong("must not be empty".to_owned());
    }
    if tools.len() > limits::OPEN_CALLS {
        return wrong(format!("more than {} tools in one item", limits::OPEN_CALLS));
    }
    tools.map(|(index, value)| Tool::parse(&format!("{place}[{index}]"), value)).collect()
}
