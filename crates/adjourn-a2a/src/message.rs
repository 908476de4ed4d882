//! Messages: what peers say to the agent, and what a task says of itself.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use adjourn::core::limits::NAME_BYTES;
use adjourn::driver::{Block, Message as Entry, Role, write_in_order};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::caller::Caller;
use crate::error::Error;
use crate::part::{self, Part, WrittenPart, shown};
use crate::version::Version;

/// Says in a block's `_meta` that it is a digest of another session's, and not the sender's words.
const DIGEST: &str = "adjourn/digest";

/// Says in the `_meta` of a block that the agent answers with this message: a run that completes with
/// nothing else to show is answered with the message itself, where it is waited for.
pub const DIRECT_ANSWER: &str = "adjourn/a2a-message";

/// The key under which an entry has what its message had beside its parts.
const PROTOCOL: &str = "a2a";
const METADATA: &str = "metadata";
const EXTENSIONS: &str = "extensions";
const REFERENCES: &str = "referenceTaskIds";

/// A message that a peer sends.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The id that its sender gave it.
    pub id: String,
    /// The task that it is for.
    pub task: Option<String>,
    /// The context that it is for.
    pub context: Option<String>,
    /// What the sender adds.
    pub metadata: Map<String, Value>,
    /// The extensions that it was made with.
    extensions: Vec<String>,
    /// The tasks that it refers to.
    references: Vec<String>,
    blocks: Vec<Block>,
}

impl Sent {
    /// Reads a message of any version.
    ///
    /// # Errors
    /// A field is missing or malformed.
    pub fn read(message: &Value, version: Version) -> Result<Self, Error> {
        let wrong = |field: &str, problem: &str| Error::invalid(format!("message{field}"), problem);
        let Some(fields) = message.as_object() else { return Err(wrong("", "expected a message")) };
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            // ProtoJSON writes what is absent as an empty text.
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(_) => Err(wrong(&format!(".{name}"), "expected a text")),
        };
        let texts = |name: &str| {
            let list = match fields.get(name) {
                None | Some(Value::Null) => Some(Vec::new()),
                Some(Value::Array(list)) => {
                    list.iter().map(|text| text.as_str().map(str::to_owned)).collect()
                }
                Some(_) => None,
            };
            list.ok_or_else(|| wrong(&format!(".{name}"), "expected a list of texts"))
        };
        let metadata = match fields.get(METADATA) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(metadata)) => metadata.clone(),
            Some(_) => return Err(wrong(".metadata", "expected an object")),
        };
        match text("role")?.as_deref() {
            None | Some("user" | "ROLE_USER" | "ROLE_UNSPECIFIED") => {}
            Some(_) => return Err(wrong(".role", "expected user or ROLE_USER")),
        }
        // The proto file of 0.3 calls them content.
        let parts = fields.get("parts").or_else(|| fields.get("content"));
        let parts = match parts {
            Some(Value::Array(parts)) if !parts.is_empty() => parts,
            _ => return Err(wrong(".parts", "expected a list of at least one part")),
        };
        let read = |(index, part)| part::read(&format!("message.parts[{index}]"), part, version);
        let blocks = parts.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self {
            id: text("messageId")?.ok_or_else(|| wrong(".messageId", "is required"))?,
            task: text("taskId")?,
            context: text("contextId")?,
            metadata,
            extensions: texts(EXTENSIONS)?,
            references: texts(REFERENCES)?,
            blocks,
        })
    }

    /// Drops what it says, and keeps who it is and what it is for.
    pub(crate) fn drop_words(&mut self) {
        self.blocks.clear();
        self.metadata.clear();
        self.extensions.clear();
        self.references.clear();
    }

    /// Returns the id that the journal has of it: senders number their messages each for itself.
    pub(crate) fn journaled_id(&self, caller: &Caller) -> String {
        // The name of a caller has no space in it.
        format!("{} {}", caller.name, self.id)
    }

    /// Refuses an id that the journal has no room for beside the name of the caller.
    pub(crate) fn check_id(&self, caller: &Caller) -> Result<(), Error> {
        let most = NAME_BYTES.saturating_sub(self.journaled_id(caller).len() - self.id.len());
        let wrong = |problem: &str| Err(Error::invalid("message.messageId", problem));
        match &self.id {
            id if id.len() > most => wrong(&format!("expected at most {most} bytes")),
            id if id.chars().any(char::is_control) => wrong("must not hold control characters"),
            _ => Ok(()),
        }
    }

    /// Returns the key under which its sender's tenant takes it once, whichever session of its
    /// context it goes to.
    pub(crate) fn key(&self, caller: &Caller) -> String {
        json!(["a2a", &*caller.name, self.context, self.id]).to_string()
    }

    /// Returns the key under which its sender's tenant takes it once as a pause of its task.
    pub(crate) fn pause_key(&self, caller: &Caller) -> String {
        json!(["a2a", &*caller.name, "pause", self.task, self.id]).to_string()
    }

    /// Returns the entry of a transcript that it becomes.
    pub fn entry(&self) -> Entry {
        let blocks = self.blocks.clone();
        Entry { id: Some(self.id.clone()), meta: self.meta(), ..Entry::new(Role::User, blocks) }
    }

    /// Returns what the entry keeps of it beside its parts.
    fn meta(&self) -> Option<Map<String, Value>> {
        let Self { metadata, extensions, references, .. } = self;
        let mut added = Map::new();
        if !metadata.is_empty() {
            added.insert(METADATA.to_owned(), metadata.clone().into());
        }
        for (name, texts) in [(EXTENSIONS, extensions), (REFERENCES, references)] {
            if !texts.is_empty() {
                added.insert(name.to_owned(), texts.clone().into());
            }
        }
        (!added.is_empty()).then(|| [(PROTOCOL.to_owned(), added.into())].into_iter().collect())
    }

    /// Returns the entry that it becomes in a session that begins with the digest of another one.
    pub fn entry_after(&self, digest: String) -> Entry {
        let mut entry = self.entry();
        let digest = json!({ "type": "text", "text": digest, "_meta": { DIGEST: true } });
        let digest = digest.as_object().cloned().and_then(Block::from_fields);
        entry.blocks.splice(0..0, digest);
        entry
    }
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A peer.
    User,
    /// The agent, or its host.
    Agent,
}

/// A message of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// Who says it.
    pub speaker: Speaker,
    /// What is said.
    pub parts: Vec<Part>,
    /// What its sender has added beside that: `metadata`, `extensions`, `referenceTaskIds`.
    pub added: Map<String, Value>,
}

impl Message {
    /// Makes a message of the agent in words.
    pub fn agent(id: impl Into<String>, words: impl Into<String>) -> Self {
        Self::of_parts(id, vec![Part::text(words)])
    }

    /// Makes a message of the agent.
    pub fn of_parts(id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self { id: id.into(), speaker: Speaker::Agent, parts, added: Map::new() }
    }

    /// Makes the message that an entry of the transcript is, under its number.
    pub fn of_entry(number: u64, entry: &Entry, speaker: Speaker) -> Self {
        let id = entry.id.clone().unwrap_or_else(|| format!("entry-{number}"));
        let added = entry.meta.as_ref().and_then(|meta| meta.get(PROTOCOL)?.as_object());
        Self { id, speaker, parts: parts_of(entry), added: added.cloned().unwrap_or_default() }
    }

    /// Returns the message as a version writes it.
    pub fn written<'a>(
        &'a self,
        task: &'a str,
        context: &'a str,
        version: Version,
    ) -> WrittenMessage<'a> {
        let parts = self.parts.iter().map(|part| part.written(version)).collect();
        let (kind, role) = match (version, self.speaker) {
            (Version::V03, Speaker::User) => (Some("message"), "user"),
            (Version::V03, Speaker::Agent) => (Some("message"), "agent"),
            (Version::V03Proto | Version::V10, Speaker::User) => (None, "ROLE_USER"),
            (Version::V03Proto | Version::V10, Speaker::Agent) => (None, "ROLE_AGENT"),
        };
        let (content, parts) = match version {
            Version::V03Proto => (Some(parts), None),
            Version::V03 | Version::V10 => (None, Some(parts)),
        };
        let added = |name: &str| self.added.get(name).and_then(shown);
        WrittenMessage {
            kind,
            message_id: &self.id,
            context_id: context,
            task_id: Some(task),
            role,
            parts,
            content,
            metadata: added(METADATA),
            extensions: added(EXTENSIONS),
            // The proto file of 0.3 knows no references, and its clients refuse what it does not know.
            reference_task_ids: added(REFERENCES).filter(|_| version != Version::V03Proto),
        }
    }
}

/// A message as a version writes it. Its fields are in the order in which they are written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    message_id: &'a str,
    context_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_id: Option<&'a str>,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<WrittenPart<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<WrittenPart<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference_task_ids: Option<&'a Value>,
}

/// What tells the words of one message from those of another, without keeping them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordsMark(u64);

impl WordsMark {
    /// Makes the mark of what an entry says, digests left out. Values are the same in whatever order
    /// their fields come.
    pub(crate) fn of(entry: &Entry) -> Self {
        let mut said = Vec::new();
        for part in parts_of(entry) {
            let part = serde_json::to_value(part.written(Version::V10)).unwrap_or_default();
            write_in_order(&part, &mut said);
        }
        let mut hasher = DefaultHasher::new();
        said.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Returns the parts of what an entry says, thoughts and digests left out.
pub(crate) fn parts_of(entry: &Entry) -> Vec<Part> {
    let is_digest =
        |block: &Block| block.fields().get("_meta").is_some_and(|meta| meta.get(DIGEST).is_some());
    let said = entry.blocks.iter().filter(|block| !is_digest(block));
    let parts: Vec<_> = said.filter_map(Part::of_block).collect();
    match &entry.structured {
        Some(value) if parts.is_empty() => vec![Part::data(value.clone())],
        _ => parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_either_version_is_read_and_comes_back() {
        let v03 = json!({ "kind": "message", "messageId": "m", "contextId": "c", "taskId": "t",
                          "role": "user", "parts": [{ "kind": "text", "text": "hi" }] });
        let v10 = json!({ "messageId": "m", "contextId": "c", "taskId": "t",
                          "role": "ROLE_USER", "parts": [{ "text": "hi" }] });
        for given in [&v03, &v10] {
            let sent = Sent::read(given, Version::V10).unwrap();
            assert_eq!((sent.task.as_deref(), sent.context.as_deref()), (Some("t"), Some("c")));
            let message = Message::of_entry(0, &sent.entry(), Speaker::User);
            assert_eq!(json!(message.written("t", "c", Version::V03)), v03);
            assert_eq!(json!(message.written("t", "c", Version::V10)), v10);
        }
    }

    #[test]
    fn a_digest_is_told_to_the_model_and_not_to_peers() {
        let given = json!({ "messageId": "m", "parts": [{ "text": "hi" }], "taskId": "" });
        let sent = Sent::read(&given, Version::V10).unwrap();
        assert_eq!(sent.task, None, "an empty text is none");
        let entry = sent.entry_after("before".to_owned());
        assert_eq!(entry.text(), "before\nhi");
        assert_eq!(parts_of(&entry), [Part::text("hi")]);
    }

    #[test]
    fn what_is_wrong_with_a_message_is_named() {
        for (given, path) in [
            (json!("x"), "message"),
            (json!({ "messageId": "m" }), "message.parts"),
            (json!({ "messageId": "m", "parts": [] }), "message.parts"),
            (json!({ "parts": [{ "text": "x" }] }), "message.messageId"),
            (json!({ "messageId": 1, "parts": [{ "text": "x" }] }), "message.messageId"),
            (
                json!({ "messageId": "m", "role": "agent", "parts": [{ "text": "x" }] }),
                "message.role",
            ),
            (json!({ "messageId": "m", "parts": [{}] }), "message.parts[0]"),
            (
                json!({ "messageId": "m", "parts": [{ "text": "x" }], "metadata": [] }),
                "message.metadata",
            ),
            (
                json!({ "messageId": "m", "parts": [{ "text": "x" }], "extensions": "urn:x" }),
                "message.extensions",
            ),
            (
                json!({ "messageId": "m", "parts": [{ "text": "x" }], "referenceTaskIds": [1] }),
                "message.referenceTaskIds",
            ),
        ] {
            assert_eq!(
                Sent::read(&given, Version::V10).unwrap_err().details["path"],
                path,
                "{given}"
            );
        }
    }
}
