//! The key of a request, to be left out of all that a provider says: it is told, logged and recorded.

use std::collections::VecDeque;

use adjourn_core::json;
use serde_json::Value;

use crate::model::{FinishReason, ModelCall, ModelError, ModelPart};

/// Keys shorter than this are no secrets, but words that stand for none.
const KEY_BYTES: usize = 8;
/// What stands where a key was.
const MARK: &str = "(key)";

/// The key of a request. It is not shown.
#[derive(Clone)]
pub(super) struct Concealed(Option<String>);

impl Concealed {
    pub(super) fn new(key: Option<&str>) -> Self {
        Self(key.filter(|key| key.len() >= KEY_BYTES).map(str::to_owned))
    }

    /// Returns a text without the key.
    pub(super) fn without(&self, text: &str) -> String {
        match &self.0 {
            Some(key) => text.replace(key.as_str(), MARK),
            None => text.to_owned(),
        }
    }

    /// Returns how many bytes at the end of a text may be the beginning of the key.
    fn begun(&self, text: &str) -> usize {
        let Some(key) = &self.0 else { return 0 };
        let (text, key) = (text.as_bytes(), key.as_bytes());
        let most = text.len().min(key.len().saturating_sub(1));
        let begins = |length: &usize| {
            let end = text.get(text.len() - *length..);
            end.is_some_and(|end| key.starts_with(end))
        };
        (1..=most).rev().find(begins).unwrap_or(0)
    }

    fn call(&self, call: ModelCall) -> ModelCall {
        let ModelCall { id, tool, arguments, signed } = call;
        ModelCall {
            id: self.without(&id),
            tool: self.without(&tool),
            arguments: self.arguments(&arguments),
            // What is signed is of no use to anybody once it is changed.
            signed: signed.filter(|signed| !self.is_in(signed)),
        }
    }

    /// Returns the arguments of a call without the key, however its characters are escaped.
    fn arguments(&self, text: &str) -> String {
        let mut arguments = json::read(text.as_bytes(), text.len()).unwrap_or(Value::Null);
        if !self.is_in(&arguments) {
            return self.without(text);
        }
        self.leave_out(&mut arguments);
        arguments.to_string()
    }

    /// Returns whether a text within a value holds the key.
    fn is_in(&self, value: &Value) -> bool {
        let Some(key) = &self.0 else { return false };
        match value {
            Value::String(text) => text.contains(key.as_str()),
            Value::Array(items) => items.iter().any(|item| self.is_in(item)),
            Value::Object(members) => {
                members.iter().any(|(name, item)| name.contains(key.as_str()) || self.is_in(item))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Leaves the key out of every text within a value.
    fn leave_out(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.without(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.leave_out(item)),
            Value::Object(members) => {
                for (name, mut item) in std::mem::take(members) {
                    self.leave_out(&mut item);
                    members.insert(self.without(&name), item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// An answer without the key, part by part. Words that may be the beginning of the key are held back
/// until those that follow show whether they are.
pub(super) struct ConcealedAnswer {
    key: Concealed,
    held: Option<Held>,
    parts: VecDeque<Result<ModelPart, ModelError>>,
}

/// Words that were held back.
enum Held {
    Text(String),
    Thought(String),
}

impl ConcealedAnswer {
    pub(super) const fn new(key: Concealed) -> Self {
        Self { key, held: None, parts: VecDeque::new() }
    }

    /// Takes the next part of the answer.
    pub(super) fn take(&mut self, part: Result<ModelPart, ModelError>) {
        let part = match part {
            Ok(ModelPart::Text(words)) => return self.words(words, Held::Text, ModelPart::Text),
            Ok(ModelPart::Thought(words)) => {
                return self.words(words, Held::Thought, ModelPart::Thought);
            }
            Ok(part @ (ModelPart::Alive | ModelPart::Usage(_))) => {
                self.parts.push_back(Ok(part));
                return;
            }
            Ok(ModelPart::Call(call)) => Ok(ModelPart::Call(self.key.call(call))),
            Ok(ModelPart::Finished(FinishReason::Other(word))) => {
                Ok(ModelPart::Finished(FinishReason::Other(self.key.without(&word))))
            }
            other => other,
        };
        self.end_words();
        self.parts.push_back(part);
    }

    /// Takes note that no words follow those that are held back.
    pub(super) fn end_words(&mut self) {
        let words = self.held.take().map(|held| match held {
            Held::Text(words) => ModelPart::Text(words),
            Held::Thought(words) => ModelPart::Thought(words),
        });
        self.parts.extend(words.map(Ok));
    }

    /// Returns the next part that can be passed on.
    pub(super) fn next(&mut self) -> Option<Result<ModelPart, ModelError>> {
        self.parts.pop_front()
    }

    fn words(&mut self, words: String, held: fn(String) -> Held, part: fn(String) -> ModelPart) {
        let mut words = match (self.held.take(), held(String::new())) {
            (Some(Held::Text(before)), Held::Text(_))
            | (Some(Held::Thought(before)), Held::Thought(_)) => before + &words,
            // The others end where these begin.
            (before, _) => {
                self.held = before;
                self.end_words();
                words
            }
        };
        words = self.key.without(&words);
        let kept = words.split_off(words.len() - self.key.begun(&words));
        self.held = (!kept.is_empty()).then(|| held(kept));
        // Words that are held back are a sign of life.
        self.parts.push_back(Ok(if words.is_empty() { ModelPart::Alive } else { part(words) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-secret-0123";

    /// Returns what is passed on of an answer: its words joined, a thought in brackets.
    fn told(parts: Vec<ModelPart>) -> String {
        let mut answer = ConcealedAnswer::new(Concealed::new(Some(KEY)));
        let mut told = String::new();
        for part in parts {
            answer.take(Ok(part));
            while let Some(part) = answer.next() {
                match part.unwrap() {
                    ModelPart::Text(words) => told += &words,
                    ModelPart::Thought(words) => told += &format!("[{words}]"),
                    ModelPart::Call(call) => told += &call.arguments,
                    ModelPart::Finished(_) => told.push('.'),
                    ModelPart::Alive | ModelPart::Usage(_) => {}
                }
            }
        }
        told
    }

    #[test]
    fn a_key_is_left_out_however_it_is_cut() {
        let whole = format!("it is {KEY}, sk-secretly");
        for size in 1..=whole.len() {
            let pieces = whole.as_bytes().chunks(size);
            let text = |piece: &[u8]| ModelPart::Text(String::from_utf8(piece.to_vec()).unwrap());
            let mut parts: Vec<_> = pieces.map(text).collect();
            parts.push(ModelPart::Finished(FinishReason::Stop));
            assert_eq!(told(parts), "it is (key), sk-secretly.", "in pieces of {size}");
        }
    }

    #[test]
    fn what_only_begins_like_a_key_is_told_before_what_follows() {
        let text = |words: &str| ModelPart::Text(words.to_owned());
        let thought = |words: &str| ModelPart::Thought(words.to_owned());
        let stop = || ModelPart::Finished(FinishReason::Stop);
        assert_eq!(
            told(vec![text("a sk-"), thought("sk-secret-0123 é"), stop()]),
            "a sk-[(key) é]."
        );
        assert_eq!(told(vec![text("a s"), ModelPart::Alive, text("ail"), stop()]), "a sail.");
        assert_eq!(told(vec![thought("és"), text("k"), stop()]), "[é][s]k.");
    }

    #[test]
    fn what_is_signed_is_dropped_with_a_key_in_it() {
        let signed = |text: &str| Some(serde_json::json!({ "thinking": text }));
        let call = |signed| ModelCall {
            id: "1".to_owned(),
            tool: "look".to_owned(),
            arguments: format!(r#"{{"at":"{KEY}"}}"#),
            signed,
        };
        let key = Concealed::new(Some(KEY));
        assert_eq!(key.call(call(signed(KEY))).signed, None);
        let kept = key.call(call(signed("hm")));
        assert_eq!((kept.signed, kept.arguments.as_str()), (signed("hm"), r#"{"at":"(key)"}"#));
        assert_eq!(Concealed::new(Some("none")).without("none of it"), "none of it");
    }

    #[test]
    fn a_key_is_found_however_its_characters_are_escaped() {
        let key = Concealed::new(Some("abc/def-12345"));
        let spelt = r#"{"a":[1.50,"at abc\/def\u002d12345"],"abc/def-12345":null}"#;
        assert_eq!(key.arguments(spelt), r#"{"a":[1.5,"at (key)"],"(key)":null}"#);
        assert_eq!(key.arguments(r#"{"a": 1.50}"#), r#"{"a": 1.50}"#);
        assert_eq!(key.arguments("{ abc/def-12345"), "{ (key)");
    }
}
