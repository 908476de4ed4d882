//! What the scripted agent says and thinks, and how it comes out: at once, or word by word.

use std::time::Duration;

use adjourn_core::carry::Usage;
use adjourn_driver::{Block, Emitter, Message, Part, Role, Words};
use serde_json::Value;

use super::reading::{Fields, Wrong, expected};
use super::spend;
use crate::clock::Clock;

/// What the agent thinks and says in one step, how long its model takes for it, and what that
/// costs.
#[derive(Debug, Clone)]
pub(super) struct Say {
    think: Option<String>,
    text: Option<String>,
    ms: u64,
    spend: Usage,
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

    /// Thinks and says it: at once, or word by word in the time that it takes. What it costs is
    /// known at the end, as with a model.
    pub(super) async fn emit(self, out: &Emitter<Part>, clock: &dyn Clock) {
        if self.ms == 0 {
            let thought = self.think.map(Block::thought);
            let blocks = thought.into_iter().chain(self.text.map(Block::text)).collect();
            out.emit(Part::Message(Message::new(Role::Agent, blocks))).await;
        } else {
            self.stream(out, clock).await;
        }
        spend::emit(self.spend, out).await;
    }

    async fn stream(&self, out: &Emitter<Part>, clock: &dyn Clock) {
        let pieces = |words, text: &Option<String>| -> Vec<_> {
            let pieces = text.iter().flat_map(|text| text.split_inclusive(char::is_whitespace));
            pieces.map(|piece| (words, piece.to_owned())).collect()
        };
        let mut pieces =
            [pieces(Words::Thought, &self.think), pieces(Words::Said, &self.text)].concat();
        // No words take their time, too.
        if pieces.is_empty() {
            pieces.push((Words::Said, String::new()));
        }
        let total = Duration::from_millis(self.ms);
        let (start, count) = (clock.elapsed(), pieces.len());
        let due = |number: usize| total.mul_f64(number as f64 / count as f64);
        let mut pieces = (1..).zip(pieces).peekable();
        while let Some((number, (words, mut text))) = pieces.next() {
            let passed = clock.elapsed().saturating_sub(start);
            clock.sleep(due(number).saturating_sub(passed)).await;
            // A clock has no time between two of many words: those that are due by now come out
            // together.
            let passed = clock.elapsed().saturating_sub(start);
            let is_due = |(number, (kind, _)): &(usize, (Words, String))| {
                *kind == words && due(*number) <= passed
            };
            while let Some((_, (_, more))) = pieces.next_if(is_due) {
                text.push_str(&more);
            }
            out.emit(Part::Delta { message: 0, words, text }).await;
        }
    }
}
