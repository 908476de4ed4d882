//! Segments: a message that was committed piece by piece, put together again.

use std::collections::HashMap;

use crate::content::{Block, Message};

/// Where a message that is not over is found, and how many bytes of words it has so far.
struct Open {
    index: usize,
    length: u64,
}

/// Returns the messages that were said to their end, each where it began.
///
/// A segment goes on with the message that is open under its id if it begins where that one ends;
/// messages may be said at the same time. One whose last segment never came, one with a hole, and
/// one that says itself that it was broken off are left out.
pub(crate) fn whole_messages(mut entries: Vec<Message>) -> Vec<Message> {
    // Most conversations have none: what is whole need not be moved.
    if entries.iter().all(|entry| entry.segment.is_none()) {
        entries.retain(|message| !message.aborted);
        return entries;
    }
    let mut messages: Vec<Message> = Vec::with_capacity(entries.len());
    let mut open: HashMap<Option<String>, Open> = HashMap::new();
    for entry in entries {
        let Some(segment) = entry.segment else {
            messages.push(entry);
            continue;
        };
        let id = entry.id.clone();
        let length = entry.words_len();
        let goes_on = open.get_mut(&id).filter(|place| place.length == segment.offset);
        match goes_on.and_then(|place| Some((messages.get_mut(place.index)?, place))) {
            Some((message, place)) => {
                place.length += length;
                append(message, &entry);
            }
            None => {
                let index = messages.len();
                if let Some(left) = open.insert(id.clone(), Open { index, length }) {
                    break_off(&mut messages, &left);
                }
                // What does not begin with its beginning is not whole.
                let aborted = entry.aborted || segment.offset > 0;
                messages.push(Message { aborted, ..entry });
            }
        }
        if segment.last {
            open.remove(&id);
        }
    }
    for left in open.values() {
        break_off(&mut messages, left);
    }
    messages.retain(|message| !message.aborted);
    messages
}

/// Puts messages together whose segments come one after the other.
#[derive(Debug, Clone, Default)]
pub struct Joining {
    /// Messages that are not over, each under the number of its first segment.
    open: Vec<(u64, Message)>,
}

impl Joining {
    /// Takes an entry of the transcript, and returns the message that is over with it, under the
    /// number of its first entry.
    pub fn take(&mut self, number: u64, entry: &Message) -> Option<(u64, Message)> {
        let Some(segment) = entry.segment else { return Some((number, entry.clone())) };
        let index = self.open.iter().position(|(_, open)| open.id == entry.id);
        let index = match index {
            Some(index) => {
                if let Some((_, message)) = self.open.get_mut(index) {
                    append(message, entry);
                }
                index
            }
            None => {
                self.open.push((number, entry.clone()));
                self.open.len() - 1
            }
        };
        (segment.last || entry.aborted).then(|| whole(self.open.remove(index)))
    }

    /// Returns the messages that are not over, as far as they were said.
    pub fn open(&self) -> impl Iterator<Item = (u64, Message)> {
        self.open.iter().cloned().map(whole)
    }

    /// Returns the messages that were never said to their end, when their step is over.
    pub fn break_off(&mut self) -> Vec<(u64, Message)> {
        let open = std::mem::take(&mut self.open).into_iter().map(whole);
        open.map(|(number, message)| (number, Message { aborted: true, ..message })).collect()
    }
}

fn whole((number, message): (u64, Message)) -> (u64, Message) {
    (number, Message { segment: None, ..message })
}

fn break_off(messages: &mut [Message], left: &Open) {
    if let Some(message) = messages.get_mut(left.index) {
        message.aborted = true;
    }
}

/// Adds a segment to its message.
fn append(message: &mut Message, segment: &Message) {
    let mut more = segment.blocks.iter();
    // A block is cut where a segment ends, and goes on with the next one's first.
    if let (Some(last), Some(next)) = (message.blocks.last_mut(), segment.blocks.first())
        && continues(last, next)
    {
        last.push_words(next.words().unwrap_or_default());
        more.next();
    }
    message.blocks.extend(more.cloned());
    message.calls.extend(segment.calls.iter().cloned());
    message.answers = message.answers.take().or_else(|| segment.answers.clone());
    message.structured = message.structured.take().or_else(|| segment.structured.clone());
    message.fate = message.fate.or(segment.fate);
    message.is_error |= segment.is_error;
    message.aborted |= segment.aborted;
}

/// Returns whether the words of a block go on with those of another: it says nothing about itself
/// that the first did not say.
fn continues(last: &Block, next: &Block) -> bool {
    let (last, fields) = (last.fields(), next.fields());
    let mut fields = fields.iter();
    next.words().is_some()
        && fields.all(|(name, value)| name == "text" || last.get(name) == Some(value))
}
