//! The modes of a script: what an editor can choose between.

use adjourn_core::limits;
use adjourn_core::option::OptionValue;
use serde_json::Value;

use super::reading::{Fields, Wrong, list};

/// Reads modes, each an object with an id.
pub(super) fn parse(modes: Value) -> Result<Vec<OptionValue>, Wrong> {
    let mut read: Vec<OptionValue> = Vec::new();
    for (number, mode) in list("modes", modes)?.enumerate() {
        let place = format!("modes[{number}]");
        let mut fields = Fields::of(&place, mode)?;
        let id = fields.text("id")?;
        let name = fields.optional_text("name")?.unwrap_or_else(|| id.clone());
        let description = fields.optional_text("description")?;
        fields.end(&["id", "name", "description"])?;
        let wrong = |field: &str, problem: String| Err((format!("{place}.{field}"), problem));
        for (field, text) in
            [("id", Some(&id)), ("name", Some(&name)), ("description", description.as_ref())]
        {
            let checked = text.map_or(Ok(()), |text| limits::name(field, text));
            if let Err(adjourn_core::Rejected::Invalid { problem, .. }) = checked {
                return wrong(field, problem);
            }
        }
        if read.iter().any(|mode| mode.id == id) {
            return wrong("id", format!("there is a mode {id:?} already"));
        }
        read.push(OptionValue { id, name, description });
    }
    Ok(read)
}
