//! What the scripted agent shows beside its words: a plan, its context, the commands it takes.

use crate::Shown;
use adjourn_core::limits;
use serde_json::{Map, Value, json};

use super::reading::{Fields, Wrong, expected, list, within};

/// How important an entry of a plan is; the second is meant where nothing is said.
const PRIORITIES: &[&str] = &["high", "medium", "low"];
/// How far an entry of a plan is; the first is meant where nothing is said.
const STATUSES: &[&str] = &["pending", "in_progress", "completed"];

/// Reads a plan: entries, or what is to be done in plain words.
pub(super) fn plan(place: &str, value: Value) -> Result<Shown, Wrong> {
    let entry = |(index, value)| plan_entry(&format!("{place}[{index}]"), value);
    Ok(Shown::Plan(list(place, value)?.enumerate().map(entry).collect::<Result<_, _>>()?))
}

fn plan_entry(place: &str, value: Value) -> Result<Value, Wrong> {
    let (content, priority, status) = match value {
        Value::String(content) => (content, None, None),
        Value::Object(_) => {
            let mut fields = Fields::of(place, value)?;
            let content = fields.text("content")?;
            let priority = fields.choice("priority", PRIORITIES)?;
            let status = fields.choice("status", STATUSES)?;
            fields.end(&["content", "priority", "status"])?;
            (content, priority, status)
        }
        other => {
            let what =
                r#"a text, or {"content": "build", "priority": "high", "status": "pending"}"#;
            return Err(expected(place, what, &other));
        }
    };
    Ok(json!({
        "content": content,
        "priority": priority.as_deref().unwrap_or("medium"),
        "status": status.as_deref().unwrap_or("pending"),
    }))
}

/// Reads how much of the context is used.
pub(super) fn context(place: &str, value: Value) -> Result<Shown, Wrong> {
    let mut fields = Fields::of(place, value)?;
    let (used, size) = (fields.number("used")?, fields.number("size")?);
    fields.end(&["used", "size"])?;
    Ok(Shown::Context { used, size })
}

/// Reads the commands that a person can type.
pub(super) fn commands(place: &str, value: Value) -> Result<Shown, Wrong> {
    let command = |(index, value)| {
        let place = format!("{place}[{index}]");
        let mut fields = Fields::of(&place, value)?;
        let (name, description) = (fields.text("name")?, fields.text("description")?);
        fields.end(&["name", "description"])?;
        within(&place, limits::name("name", &name))?;
        let command = [("name", name), ("description", description)];
        let fields = command.map(|(name, text)| (name.to_owned(), Value::String(text)));
        Ok(Value::Object(Map::from_iter(fields)))
    };
    Ok(Shown::Commands(list(place, value)?.enumerate().map(command).collect::<Result<_, Wrong>>()?))
}
