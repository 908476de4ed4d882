//! Artifacts as they are made: each chunk once, and an end for each of them.
//!
//! A message of the agent is committed in segments while it is said. The first one that has words
//! begins its artifact, the others append to it, and one ends it: the last segment, also if that
//! says nothing more, or the end of its step, which breaks it off.

use adjourn::Moment;
use adjourn::driver::Message as Entry;
use adjourn::telling::{ends_words, message_id};

use crate::part::Part;
use crate::projection::artifact;
use crate::task::{Artifact, Update};

/// The artifacts of a task that a watcher was told of, and that are not over.
#[derive(Debug, Clone, Default)]
pub(crate) struct Making {
    open: Vec<String>,
}

impl Making {
    /// Begins with artifacts that a watcher was told of, by their ids.
    pub(crate) const fn with(open: Vec<String>) -> Self {
        Self { open }
    }

    /// Begins within a message that is being said, behind what is committed of it: each segment under
    /// its number in the transcript.
    pub(crate) fn within(said: &[(u64, Entry)]) -> Self {
        let mut making = Self::default();
        for (number, entry) in said {
            making.entry(*number, entry);
        }
        making
    }

    /// Takes a moment, and returns what a watcher is told of it.
    pub(crate) fn take(&mut self, moment: &Moment) -> Vec<Update> {
        let said = moment.said.iter();
        let mut told: Vec<_> =
            said.filter_map(|(number, entry)| self.entry(*number, entry)).collect();
        if ends_words(&moment.event.what) {
            told.extend(std::mem::take(&mut self.open).into_iter().map(|id| ended(id, true)));
        }
        told
    }

    fn entry(&mut self, number: u64, entry: &Entry) -> Option<Update> {
        let id = message_id(number, entry);
        let known = self.open.iter().position(|open| *open == id);
        let is_over = entry.aborted || entry.segment.is_none_or(|segment| segment.last);
        let made = artifact(number, entry);
        match (made.is_some(), known) {
            (true, None) if !is_over => self.open.push(id.clone()),
            (_, Some(index)) if is_over => drop(self.open.remove(index)),
            _ => {}
        }
        match made {
            Some(artifact) => {
                Some(Update::Artifact { artifact, append: known.is_some(), last: is_over })
            }
            None if is_over && known.is_some() => Some(ended(id, entry.aborted)),
            None => None,
        }
    }
}

/// Tells that an artifact is over, and nothing more of it.
fn ended(id: String, aborted: bool) -> Update {
    // A chunk without a part is none to some clients.
    let artifact = Artifact { id, parts: vec![Part::text("")], aborted };
    Update::Artifact { artifact, append: true, last: true }
}
