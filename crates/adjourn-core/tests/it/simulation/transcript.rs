//! What was said: the second log of a session, kept as a store would keep it.
//!
//! It outlives the host. The agent finds its place in its script by it, as a model finds its place
//! in a conversation by reading it; so whatever dies between two commits, no step that is on
//! record is taken again.

use std::collections::BTreeSet;

use adjourn_core::ledger::CallId;
use adjourn_core::transcript::{Digest, Head};

/// One entry.
#[derive(Debug, Clone)]
pub struct Line {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// A person's words, or a note of the host's.
    Words,
    /// The model finished the item of its script, and asked for these calls.
    Spoken { item: usize, calls: Vec<CallId> },
    /// What became of a call.
    Answer(CallId),
}

impl Line {
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Words }
    }

    pub fn spoken(item: usize, text: impl Into<String>, calls: Vec<CallId>) -> Self {
        Self { text: text.into(), kind: Kind::Spoken { item, calls } }
    }

    pub fn answer(call: CallId, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Answer(call) }
    }

    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }
}

/// Everything that was said in a session.
#[derive(Debug, Clone)]
pub struct Transcript {
    head: Head,
    lines: Vec<Line>,
    /// Where the run under way begins.
    run: usize,
}

impl Transcript {
    pub fn new() -> Self {
        Self { head: Head::EMPTY, lines: Vec::new(), run: 0 }
    }

    pub fn head(&self) -> Head {
        self.head
    }

    pub fn append(&mut self, lines: Vec<Line>) {
        for line in lines {
            self.head = self.head.with(line.digest());
            self.lines.push(line);
        }
    }

    /// Marks that a run begins with what was appended last.
    pub fn begin_run(&mut self) {
        self.run = self.lines.len();
    }

    /// Returns the item of the script that the model finished last in this run.
    pub fn last_item(&self) -> Option<usize> {
        self.lines.iter().skip(self.run).rev().find_map(|line| match &line.kind {
            Kind::Spoken { item, .. } => Some(*item),
            Kind::Words | Kind::Answer(_) => None,
        })
    }

    /// Returns the calls that have no answer; a model may be handed none such.
    pub fn dangling(&self) -> BTreeSet<&CallId> {
        let mut open = BTreeSet::new();
        for line in &self.lines {
            match &line.kind {
                Kind::Words => {}
                Kind::Spoken { calls, .. } => open.extend(calls),
                Kind::Answer(call) => {
                    assert!(open.remove(call), "call {call} is answered once, after it was asked");
                }
            }
        }
        open
    }
}
