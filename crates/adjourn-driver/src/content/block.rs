//! Blocks: what a message consists of.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

const TYPE: &str = "type";
const TEXT: &str = "text";
const THOUGHT: &str = "thought";

/// A block of content, as ACP and MCP have them: text, image, audio, resource, resource link.
///
/// A thought of an agent's is a block of the type `thought` with its words as `text`.
///
/// Clones share what is in it: a conversation is copied for every request to a model.
#[derive(Debug, Clone)]
pub struct Block(Kind);

/// Nearly all blocks of a conversation are words and nothing else. They are kept as such, because
/// every suspension reads and writes all of them.
#[derive(Debug, Clone)]
enum Kind {
    /// `{"type": …, "text": …}`, in this order.
    Words { thought: bool, text: Arc<String> },
    /// Any other one, as a protocol has it.
    Fields(Arc<Map<String, Value>>),
}

impl Block {
    /// Makes a block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(Kind::Words { thought: false, text: Arc::new(text.into()) })
    }

    /// Makes a thought.
    pub fn thought(text: impl Into<String>) -> Self {
        Self(Kind::Words { thought: true, text: Arc::new(text.into()) })
    }

    /// Takes a block as a protocol has it; nothing if it has no type, or is a text without words.
    pub fn from_fields(mut fields: Map<String, Value>) -> Option<Self> {
        let kind = fields.get(TYPE)?.as_str()?;
        if !matches!(kind, TEXT | THOUGHT) {
            return Some(Self(Kind::Fields(Arc::new(fields))));
        }
        let thought = kind == THOUGHT;
        let Some(Value::String(text)) = fields.get_mut(TEXT) else { return None };
        let text = std::mem::take(text);
        if fields.keys().eq([TYPE, TEXT]) {
            return Some(Self(Kind::Words { thought, text: Arc::new(text) }));
        }
        fields.insert(TEXT.to_owned(), Value::String(text));
        Some(Self(Kind::Fields(Arc::new(fields))))
    }

    /// Reads a list of blocks that a person can say; nothing if the value is none. A list of anything
    /// else is a value, also if its members have a type of their own.
    pub(super) fn list(value: &Value) -> Option<Vec<Self>> {
        let block = |value: &Value| {
            let block = Self::from_fields(value.as_object()?.clone())?;
            block.is_a_persons().then_some(block)
        };
        value.as_array()?.iter().map(block).collect()
    }

    /// Returns whether a person can say it, and it holds what its type says.
    fn is_a_persons(&self) -> bool {
        let Kind::Fields(fields) = &self.0 else { return !self.is_thought() };
        let has_text = |name: &str| fields.get(name).is_some_and(Value::is_string);
        match self.kind() {
            TEXT => has_text(TEXT),
            "image" | "audio" => has_text("data"),
            "resource" => fields.get("resource").is_some_and(Value::is_object),
            "resource_link" => has_text("uri"),
            _ => false,
        }
    }

    /// Returns its fields.
    pub fn fields(&self) -> Cow<'_, Map<String, Value>> {
        match &self.0 {
            Kind::Words { text, .. } => {
                let mut fields = Map::new();
                fields.insert(TYPE.to_owned(), self.kind().into());
                fields.insert(TEXT.to_owned(), Value::String(String::clone(text)));
                Cow::Owned(fields)
            }
            Kind::Fields(fields) => Cow::Borrowed(fields),
        }
    }

    /// Returns its type.
    pub fn kind(&self) -> &str {
        match &self.0 {
            Kind::Words { thought: true, .. } => THOUGHT,
            Kind::Words { thought: false, .. } => TEXT,
            Kind::Fields(fields) => fields.get(TYPE).and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// Returns whether it is a thought.
    pub fn is_thought(&self) -> bool {
        self.kind() == THOUGHT
    }

    /// Returns the words of a text or a thought.
    pub fn words(&self) -> Option<&str> {
        match &self.0 {
            Kind::Words { text, .. } => Some(text),
            Kind::Fields(fields) => match self.kind() {
                TEXT | THOUGHT => fields.get(TEXT).and_then(Value::as_str),
                _ => None,
            },
        }
    }

    /// Adds words to those of a text or a thought.
    pub(crate) fn push_words(&mut self, words: &str) {
        if let Some(text) = self.words_mut() {
            text.push_str(words);
        }
    }

    /// Cuts the words of a text or a thought after `length` bytes, where a character ends.
    pub(crate) fn truncate_words(&mut self, length: usize) {
        if let Some(text) = self.words_mut() {
            text.truncate(length);
        }
    }

    fn words_mut(&mut self) -> Option<&mut String> {
        match &mut self.0 {
            Kind::Words { text, .. } => Some(Arc::make_mut(text)),
            Kind::Fields(fields) => match Arc::make_mut(fields).get_mut(TEXT) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            },
        }
    }

    /// Returns it as a JSON value.
    pub fn to_value(&self) -> Value {
        Value::Object(self.fields().into_owned())
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (
                Kind::Words { thought, text },
                Kind::Words { thought: other_thought, text: other_text },
            ) => (thought, text) == (other_thought, other_text),
            _ => self.fields() == other.fields(),
        }
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Kind::Words { text, .. } => {
                let mut fields = serializer.serialize_map(Some(2))?;
                fields.serialize_entry(TYPE, self.kind())?;
                fields.serialize_entry(TEXT, text.as_str())?;
                fields.end()
            }
            Kind::Fields(fields) => fields.as_ref().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BlockVisitor)
    }
}

struct BlockVisitor;

impl<'de> Visitor<'de> for BlockVisitor {
    type Value = Block;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block of content")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Block, A::Error> {
        let mut fields = Map::new();
        let mut first = map.next_key::<Word>()?;
        // Words and nothing else are read without a map.
        if let Some(Word::Type) = first {
            let kind = map.next_value::<Word>()?;
            let second = map.next_key::<Word>()?;
            match (kind, second) {
                (kind @ (Word::Text | Word::Thought), Some(Word::Text)) => {
                    let text = map.next_value::<Value>()?;
                    let third = map.next_key::<Word>()?;
                    match (text, third) {
                        (Value::String(text), None) => {
                            let thought = matches!(kind, Word::Thought);
                            return Ok(Block(Kind::Words { thought, text: Arc::new(text) }));
                        }
                        (text, third) => {
                            fields.insert(TYPE.to_owned(), kind.into_string().into());
                            fields.insert(TEXT.to_owned(), text);
                            first = third;
                        }
                    }
                }
                (kind, second) => {
                    fields.insert(TYPE.to_owned(), kind.into_string().into());
                    first = second;
                }
            }
        }
        while let Some(name) = first {
            fields.insert(name.into_string(), map.next_value()?);
            first = map.next_key()?;
        }
        let problem = "a block without a type, or a text without words";
        Block::from_fields(fields).ok_or_else(|| serde::de::Error::custom(problem))
    }
}

/// A name or a type of a block; those that most blocks have take no room.
enum Word {
    Type,
    Text,
    Thought,
    Other(String),
}

impl Word {
    fn into_string(self) -> String {
        match self {
            Self::Type => TYPE.to_owned(),
            Self::Text => TEXT.to_owned(),
            Self::Thought => THOUGHT.to_owned(),
            Self::Other(word) => word,
        }
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        WordSeed.deserialize(deserializer)
    }
}

struct WordSeed;

impl<'de> DeserializeSeed<'de> for WordSeed {
    type Value = Word;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Word, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for WordSeed {
    type Value = Word;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Word, E> {
        Ok(match word {
            TYPE => Word::Type,
            TEXT => Word::Text,
            THOUGHT => Word::Thought,
            other => Word::Other(other.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use adjourn_core::json;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Block, serde_json::Error> {
        json::stored(text.as_bytes())
    }

    /// The journal vouches for the bytes of an entry, so the order of fields stays as it was.
    #[test]
    fn a_block_is_written_as_it_was_read() {
        for text in [
            r#"{"type":"text","text":"Grüße \"park\""}"#,
            r#"{"type":"thought","text":"hm"}"#,
            r#"{"text":"first","type":"text"}"#,
            r#"{"type":"text","text":"a","annotations":{"audience":["user"]}}"#,
            r#"{"type":"text","annotations":null,"text":"a"}"#,
            r#"{"type":"image","data":"AA==","mimeType":"image/png","text":5}"#,
            r#"{"type":"type","thought":"text"}"#,
        ] {
            let block = read(text).unwrap();
            assert_eq!(serde_json::to_string(&block).unwrap(), text);
            let fields = block.fields().into_owned();
            assert_eq!(serde_json::to_string(&fields).unwrap(), text);
            assert_eq!(Block::from_fields(fields), Some(block));
        }
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for text in [
            r#"{}"#,
            r#"{"text":"a"}"#,
            r#"{"type":5,"text":"a"}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"text","text":5}"#,
            r#"{"text":5,"type":"thought"}"#,
            r#"["text"]"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let no_words = json!({ "type": "text", "text": null });
        assert_eq!(Block::from_fields(no_words.as_object().unwrap().clone()), None);
    }

    #[test]
    fn words_are_the_same_in_either_order() {
        let one = read(r#"{"type":"text","text":"a"}"#).unwrap();
        assert_eq!(one, read(r#"{"text":"a","type":"text"}"#).unwrap());
        assert_eq!(one, Block::text("a"));
        assert_ne!(one, Block::thought("a"));
        assert_ne!(one, read(r#"{"type":"text","text":"a","x":1}"#).unwrap());
    }
}
