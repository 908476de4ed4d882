//! What a runner must be able to do with a session, and what it is answered.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde_json::Value;

use crate::scenario::{Event, Restart, Resume, Suspend, Why};

/// One session as one face shows it, and the host that runs it.
///
/// The crate's own page says how to write one. Every verb returns at once; its [`Reply`] says what
/// became of it.
pub trait Face {
    /// Sends a message: the next run, or the answer to a question.
    fn prompt(&mut self, text: &str) -> Reply;

    /// Pauses the session; what it is answered are the fields that `answer` may expect, or `null`
    /// where the face answers with something else than the suspension.
    fn suspend(&mut self, suspend: &Suspend) -> Reply;

    /// Wakes the session; what it is answered are the fields that `answer` may expect.
    fn resume(&mut self, resume: &Resume) -> Reply;

    /// Sends an event from outside, with any fixed source and an id of its own if it has none.
    fn event(&mut self, event: &Event) -> Reply;

    /// Ends the run.
    fn cancel(&mut self, why: &Why) -> Reply;

    /// Ends the session.
    fn close(&mut self, why: &Why) -> Reply;

    /// Replaces the host, and answers when the next one is there.
    fn restart(&mut self, restart: &Restart) -> Reply;

    /// Returns the status in the fields of the command line's `--json`.
    ///
    /// # Errors
    /// There is none to be had.
    fn status(&mut self) -> Result<Value, String>;

    /// Looks back on the whole.
    ///
    /// # Errors
    /// What happened cannot be read.
    fn ending(&mut self) -> Result<Ending, String>;
}

/// What became of a verb: what it was answered, if anything, or why it was refused.
pub type Answer = Result<Value, Refusal>;

/// Why a verb was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The word, as every face spells it; `INVALID` for what is malformed.
    pub reason: String,
    /// Where it is malformed.
    pub path: Option<String>,
    /// The sentence that came with it.
    pub message: String,
}

impl Refusal {
    /// Something else than a refusal: a crash, or an answer that makes no sense.
    pub fn broken(message: impl Into<String>) -> Self {
        Self { reason: "(broken)".to_owned(), path: None, message: message.into() }
    }
}

/// The answer to a verb, now or later.
#[derive(Debug)]
pub struct Reply {
    answer: Receiver<Answer>,
    /// Whether the player goes on without it.
    pub(crate) at_the_end: bool,
}

impl Reply {
    /// An answer that is there already.
    pub fn now(answer: Answer) -> Self {
        let (sender, reply) = Self::pair();
        // The other end is in our hands.
        let _ = sender.send(answer);
        reply
    }

    /// An answer that `work` finds out, on a thread of its own.
    pub fn later(work: impl FnOnce() -> Answer + Send + 'static) -> Self {
        let (sender, reply) = Self::pair();
        std::thread::spawn(move || {
            // Whoever gave the verb may not care any more.
            let _ = sender.send(work());
        });
        reply
    }

    /// An answer that comes through the sender.
    pub fn pair() -> (Sender<Answer>, Self) {
        let (sender, answer) = channel();
        (sender, Self { answer, at_the_end: false })
    }

    /// Says that an answer comes only at the end: when a suspend has taken effect, or when the turn
    /// that a prompt began is over.
    ///
    /// The player does not wait for it unless the verb is to be refused, and goes on as soon as the
    /// status shows what is expected; it must have come when the scenario is over. Whoever can answer at once should: then the player knows
    /// that the verb was taken before it looks, and how long that took.
    #[must_use]
    pub fn at_the_end(self) -> Self {
        Self { at_the_end: true, ..self }
    }

    /// Returns the answer if it comes in time.
    pub(crate) fn within(&self, time: Duration) -> Option<Answer> {
        match self.answer.recv_timeout(time) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(Refusal::broken("nobody answers"))),
        }
    }
}

/// Everything a scenario looks back on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ending {
    /// The lifecycle notices: `{"suspended": {…}}` and `{"resumed": {…}}`.
    pub timeline: Vec<Value>,
    /// What each turn was given; `told` as one text.
    pub turns: Vec<Value>,
    /// How often each tool was started.
    pub tools: BTreeMap<String, u32>,
    /// What the agent said to the end.
    pub said: Vec<String>,
    /// What the driver was given for each step, if the runner can tell.
    pub given: Option<Vec<Value>>,
}
