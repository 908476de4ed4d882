//! What a step has said and done so far.

use adjourn_core::carry::{Notes, Usage};
use adjourn_core::command::{RunEnd, StepEnd};
use adjourn_core::ledger::AskedCall;
use adjourn_core::{Session, limits};
use adjourn_driver::told::digests;
use adjourn_driver::{Block, Message, Park, Part, RequestedCall, Role, Words, ask_calls};

/// What a step has said and done so far. Nothing of it is taken into the session before its end, but
/// for what the driver wants kept.
#[derive(Debug)]
pub(super) struct Speech {
    /// The step's number within its run.
    step: u64,
    /// The session's revision when it began; the id of its message begins with it.
    since: u64,
    /// The words of its message.
    words: Vec<(Words, String)>,
    entries: Vec<Message>,
    /// How long the transcript was when it began.
    transcript: u64,
    usage: Usage,
    notes: Notes,
    state: Option<String>,
    pub(super) calls: Vec<RequestedCall>,
    pub(super) park: Option<Park>,
    pub(super) ends: Option<RunEnd>,
    pub(super) is_broken: bool,
}

/// What the host does with a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It polls on.
    GoOn,
    /// It takes what there is into the session first.
    Keep,
    /// The step is over.
    Over,
}

impl Speech {
    pub(super) fn new(step: u64, session: &Session) -> Self {
        Self {
            step,
            since: session.revision,
            words: Vec::new(),
            entries: Vec::new(),
            transcript: session.transcript.length,
            usage: Usage::default(),
            notes: Notes::default(),
            state: None,
            calls: Vec::new(),
            park: None,
            ends: None,
            is_broken: false,
        }
    }

    /// Takes a part, and says what the host does next.
    pub(super) fn take(&mut self, part: Part) -> Taken {
        match part {
            Part::Delta { words, text, .. } => match self.words.last_mut() {
                Some((last, before)) if *last == words => before.push_str(&text),
                _ => self.words.push((words, text)),
            },
            Part::Message(message) => {
                self.close(false);
                self.entries.push(message.in_step(Some(self.step)));
            }
            Part::Calls(calls) => self.calls = calls,
            Part::Spent(usage) => self.usage = self.usage.and(usage),
            Part::Noted(notes) => {
                self.notes.failures.extend(notes.failures);
                self.notes.lessons.extend(notes.lessons);
            }
            Part::State(state) => {
                self.state = Some(state);
                return Taken::Keep;
            }
            Part::Park(park) => self.park = Some(park),
            Part::Finished(finish) => {
                self.state = finish.state.or(self.state.take());
                self.ends = finish.ends;
                self.notes.model_silent = finish.model_silent;
                return Taken::Over;
            }
            Part::Broken => {
                self.is_broken = true;
                return Taken::Over;
            }
            // This agent lets its host run every call and has a policy of its own. What it shows
            // beside words is in its events, too.
            Part::Reported(_) | Part::Shown(_) | Part::Failed(_) => {}
        }
        Taken::GoOn
    }

    /// Returns the words that were said, thoughts left out.
    pub(super) fn said(&self) -> String {
        let said = self.words.iter().filter(|(words, _)| *words == Words::Said);
        said.map(|(_, text)| text.as_str()).collect()
    }

    /// Takes out what the driver wants kept before the step is over.
    pub(super) fn kept(&mut self) -> (Usage, Notes, Option<String>) {
        (std::mem::take(&mut self.usage), std::mem::take(&mut self.notes), self.state.take())
    }

    /// Ends the message; one that is `aborted` is not whole.
    fn close(&mut self, aborted: bool) {
        let words = std::mem::take(&mut self.words);
        let block = |(words, text)| match words {
            Words::Said => Block::text(text),
            Words::Thought => Block::thought(text),
        };
        let blocks: Vec<_> = words.into_iter().map(block).collect();
        if !blocks.is_empty() {
            let id = Some(format!("s{}.{}", self.since, self.entries.len() + 1));
            let message = Message { id, aborted, ..Message::new(Role::Agent, blocks) };
            self.entries.push(message.in_step(Some(self.step)));
        }
    }

    /// Returns the calls that the step ends with, as the ledger has them, and adds them to what was
    /// said.
    pub(super) fn ask(&mut self) -> Vec<AskedCall> {
        self.close(false);
        let calls = std::mem::take(&mut self.calls);
        ask_calls(&mut self.entries, calls, self.step, self.transcript)
    }

    /// Ends the step: returns what it leaves behind, and what was said.
    pub(super) fn end(&mut self) -> (StepEnd, Vec<Message>) {
        self.close(self.is_broken);
        let said = std::mem::take(&mut self.entries);
        let last = said.iter().rev().find(|message| message.role == Role::Agent);
        let last_words = last.map(Message::text).filter(|text| !text.is_empty());
        let step = StepEnd {
            entries: digests(&said),
            last_words: last_words.map(|text| limits::excerpt(&text, limits::EXCERPT_BYTES)),
            usage: std::mem::take(&mut self.usage),
            notes: std::mem::take(&mut self.notes),
            driver_state: self.state.take(),
        };
        (step, said)
    }
}
