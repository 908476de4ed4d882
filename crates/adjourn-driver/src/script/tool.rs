//! The tools that a script has its agent call, and what comes of the calls.

use adjourn_core::limits;
use serde_json::{Map, Value, json};

use crate::content::TOOL_KINDS;

use super::reading::{self, Fields, Wrong, expected, within};

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// What it is called.
    pub name: String,
    /// What the tool is given.
    pub arguments: Value,
    /// What a client shows of it.
    pub title: Option<String>,
    /// Which of the kinds that ACP knows it is.
    pub kind: Option<String>,
    /// The files that it touches, as ACP has them.
    pub locations: Vec<Value>,
    /// How long it takes.
    pub ms: u64,
    /// What it tells of itself in that time, one after the other and evenly, as the fields of an
    /// ACP tool-call update.
    pub updates: Vec<Map<String, Value>>,
    /// Whether it may run twice.
    pub idempotent: bool,
    /// Whether a person has to allow it first.
    pub permission: bool,
    /// What comes of it; nothing in particular if it is null.
    pub result: Value,
    /// Whether it fails.
    pub fails: bool,
}

impl Tool {
    /// Reads a call.
    pub(super) fn parse(place: &str, value: Value) -> Result<Self, Wrong> {
        let mut fields = Fields::of(place, value)?;
        let tool = Self {
            name: fields.text("name")?,
            arguments: fields.take("args"),
            title: fields.optional_text("title")?,
            kind: fields.choice("kind", &TOOL_KINDS)?,
            locations: locations(&mut fields)?,
            ms: fields.count("ms")?,
            updates: updates(&mut fields)?,
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
            "updates",
            "idempotent",
            "permission",
            "result",
            "fails",
        ])?;
        within(place, limits::name("name", &tool.name))?;
        if let Some(title) = &tool.title {
            within(place, limits::name("title", title))?;
        }
        Ok(tool)
    }
}

/// Reads paths, and returns them as ACP has them.
fn locations(fields: &mut Fields) -> Result<Vec<Value>, Wrong> {
    let at = fields.at("locations");
    let location = |(index, path): (usize, String)| {
        // ACP knows no other: a client need not know where the agent was started.
        if !path.starts_with('/') {
            let problem = format!("expected an absolute path, found {path:?}");
            return Err((format!("{at}[{index}]"), problem));
        }
        Ok(json!({ "path": path }))
    };
    fields.texts("locations")?.into_iter().enumerate().map(location).collect()
}

/// Reads what a call tells of itself, and returns it as the fields of an ACP tool-call update.
fn updates(fields: &mut Fields) -> Result<Vec<Map<String, Value>>, Wrong> {
    let at = fields.at("updates");
    match fields.take("updates") {
        Value::Null => Ok(Vec::new()),
        value => reading::list(&at, value)?
            .enumerate()
            .map(|(index, value)| update(&format!("{at}[{index}]"), value))
            .collect(),
    }
}

fn update(place: &str, value: Value) -> Result<Map<String, Value>, Wrong> {
    let mut update = Map::new();
    let text = match value {
        Value::String(text) => Some(text),
        value @ Value::Object(_) => {
            let mut fields = Fields::of(place, value)?;
            if let Some(title) = fields.optional_text("title")? {
                within(place, limits::name("title", &title))?;
                update.insert("title".to_owned(), title.into());
            }
            let touched = locations(&mut fields)?;
            if !touched.is_empty() {
                update.insert("locations".to_owned(), touched.into());
            }
            let text = fields.optional_text("text")?;
            fields.end(&["title", "text", "locations"])?;
            text
        }
        other => return Err(expected(place, r#"a text, or {"title": "linking"}"#, &other)),
    };
    if let Some(text) = text {
        let block = json!({ "type": "content", "content": { "type": "text", "text": text } });
        update.insert("content".to_owned(), json!([block]));
    }
    if update.is_empty() {
        return Err((place.to_owned(), "expected title, text or locations".to_owned()));
    }
    Ok(update)
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
