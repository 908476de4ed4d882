//! What the scripted agent says and thinks.

use adjourn_core::carry::Usage;
use serde_json::Value;

use super::reading::{Fields, Wrong, expected};
use super::spend;

/// What the agent thinks and says in one step, how long its model takes for it, and what that
/// costs.
#[derive(Debug, Clone)]
pub struct Say {
    /// What it thinks first.
    pub think: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// How long its model takes: at once if it is 0, and word by word otherwise.
    pub ms: u64,
    /// What that costs.
    pub spend: Usage,
}

impl Say {
    /// Reads what is said.
    pub(super) fn parse(place: &str, value: Value) -> Result<Self, Wrong> {
        if let Value::String(text) = value {
            return Ok(Self { think: None, text: Some(text), ms: 0, spend: Usage::default() });
        }
        if !value.is_object() {
            return Err(expected(place, r#"a text, or {"text": "hello", "ms": 100}"#, &value));
        }
        let mut fields = Fields::of(place, value)?;
        let (text, think) = (fields.text("text")?, fields.optional_text("think")?);
        let (ms, spend) = (fields.count("ms")?, spend::field(&mut fields)?);
        fields.end(&["text", "think", "ms", "spend"])?;
        Ok(Self { think, text: Some(text), ms, spend })
    }

    /// Reads what is only thought.
    pub(super) fn parse_thought(place: &str, value: Value) -> Result<Self, Wrong> {
        if let Value::String(think) = value {
            return Ok(Self { think: Some(think), text: None, ms: 0, spend: Usage::default() });
        }
        if !value.is_object() {
            return Err(expected(place, r#"a text, or {"text": "hm", "ms": 100}"#, &value));
        }
        let mut fields = Fields::of(place, value)?;
        let (think, ms) = (fields.text("text")?, fields.count("ms")?);
        let spend = spend::field(&mut fields)?;
        fields.end(&["text", "ms", "spend"])?;
        Ok(Self { think: Some(think), text: None, ms, spend })
    }
}
