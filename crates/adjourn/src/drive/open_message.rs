//! A message that is being said, and its words as they come.

use adjourn_core::id::Epoch;
use adjourn_core::limits;
use adjourn_driver::{Block, Message, Role, Segment, Words};

use super::speech::excerpt;

/// Words that have just come, for those who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The message that they belong to.
    pub message: String,
    /// How many bytes of the message come before them.
    pub offset: u64,
    /// Whether they are said or thought.
    pub words: Words,
    /// The words.
    pub text: String,
    /// The claim under which they are said.
    pub epoch: Epoch,
    /// The session's revision when the step began that they belong to.
    pub since: u64,
    /// The number that the entry with them will have in the transcript.
    pub entry: u64,
}

/// A message that is being said.
#[derive(Debug)]
pub(super) struct OpenMessage {
    /// Its number, as the driver has it.
    pub(super) number: u32,
    pub(super) id: String,
    /// The beginning of what is said in it, as far as an excerpt goes.
    pub(super) beginning: String,
    /// How many bytes of its words are committed.
    pub(super) committed: u64,
    /// Words that are not.
    pub(super) fresh: Vec<(Words, String)>,
    pub(super) fresh_bytes: u64,
}

impl OpenMessage {
    pub(super) fn add(&mut self, words: Words, text: &str) {
        self.fresh_bytes += text.len() as u64;
        if words == Words::Said && self.beginning.len() < limits::EXCERPT_BYTES {
            self.beginning.push_str(&excerpt(text));
        }
        match self.fresh.last_mut() {
            Some((last, before)) if *last == words => before.push_str(text),
            _ => self.fresh.push((words, text.to_owned())),
        }
    }

    /// Takes out what was said since the last segment; nothing if that is nothing, and the message
    /// is not over or has no segments.
    pub(super) fn segment(&mut self, last: bool) -> Option<Message> {
        if self.fresh.is_empty() && !(last && self.committed > 0) {
            return None;
        }
        let segment = Segment { offset: self.committed, last };
        let block = |(words, text)| match words {
            Words::Said => Block::text(text),
            Words::Thought => Block::thought(text),
        };
        let blocks = std::mem::take(&mut self.fresh).into_iter().map(block).collect();
        self.committed += std::mem::take(&mut self.fresh_bytes);
        let id = Some(self.id.clone());
        Some(Message { id, segment: Some(segment), ..Message::new(Role::Agent, blocks) })
    }
}
