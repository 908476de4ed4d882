//! Transcript entries: what was said, by whom, as it is stored.

use adjourn_core::json;
use adjourn_core::ledger::CallId;
use adjourn_core::transcript::Content;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Said {
    /// A person, or a program in their place.
    User {
        /// What was said; a value that is not text is given as it is.
        content: Value,
    },
    /// The agent.
    Agent {
        /// What it said.
        text: String,
        /// Whether it was broken off; the model does not see it then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        aborted: bool,
    },
    /// A tool.
    Tool {
        /// The call it answers.
        call: CallId,
        /// What it answered.
        result: String,
    },
    /// The host: wake reports, digests, notes.
    Host {
        /// What it said, marked as its own.
        text: String,
        /// The call it answers, if it answers one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
    },
}

impl Said {
    /// A person's words.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { content: Value::String(text.into()) }
    }

    /// Returns the entry's bytes.
    pub fn encode(&self) -> Vec<u8> {
        // No map with keys that are not text, no failing impl: this always encodes.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// The bytes are no entry.
    pub fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        json::stored(bytes)
    }

    /// Returns what the core may know of this entry.
    pub fn content(&self) -> Content {
        let content = Content::new(&self.encode(), &self.text());
        Content { blank: content.blank && !self.shows(), ..content }
    }

    /// Returns whether there is more to it than words: a picture, a file.
    fn shows(&self) -> bool {
        let Self::User { content: Value::Array(blocks) } = self else { return false };
        blocks.iter().any(|block| block.get("type").is_some_and(|kind| kind != "text"))
    }

    /// Returns the words.
    pub fn text(&self) -> String {
        match self {
            Self::User { content: Value::String(text) }
            | Self::Agent { text, .. }
            | Self::Host { text, .. } => text.clone(),
            // Blocks of content are read by their words.
            Self::User { content: Value::Array(blocks) } if blocks.iter().all(Value::is_object) => {
                let texts = blocks.iter().filter_map(|block| block.get("text")?.as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
            Self::User { content } => content.to_string(),
            Self::Tool { result, .. } => result.clone(),
        }
    }
}
