//! What a step begins with.

use adjourn_core::ledger::CallId;
use adjourn_core::session::WakeReport;

use crate::content::{Fate, Message, Role};

/// What a step begins with.
#[derive(Debug, Clone, PartialEq)]
pub enum Opening {
    /// A prompt, which is the last message of a person in the transcript.
    Prompt,
    /// The session was woken; the report stands in the transcript, too, unless it says nothing
    /// that the agent need know.
    Wake(Box<WakeReport>),
    /// The run goes on: the step before ended at a boundary, or it was broken off and what it began
    /// with has been told. What that was stands in the transcript.
    Next,
}

/// What is known of a turn that was broken off. An agent with a loop of its own is never sent the
/// same prompt again: it is told this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Continuation {
    /// Calls that ended, with the tool's name.
    pub ended: Vec<(CallId, String)>,
    /// Calls that were started, and whose outcome is unknown.
    pub unknown: Vec<(CallId, String)>,
    /// Calls that did not run.
    pub not_run: Vec<(CallId, String)>,
}

impl Continuation {
    /// Reads off a turn's messages, from its prompt or wake on, what became of its calls.
    pub fn of(messages: &[Message]) -> Self {
        let mut continuation = Self::default();
        for call in messages.iter().flat_map(|message| &message.calls) {
            let mut answers =
                messages.iter().filter(|message| message.answers.as_ref() == Some(&call.id));
            let list = match answers.next_back() {
                Some(Message { role: Role::Tool, .. }) => &mut continuation.ended,
                Some(Message { fate: Some(Fate::NotRun), .. }) => &mut continuation.not_run,
                Some(Message { fate: Some(Fate::Unknown), .. }) | None => &mut continuation.unknown,
                // The host has answered it: it is the call by which the agent parked itself.
                Some(_) => &mut continuation.ended,
            };
            list.push((call.id.clone(), call.tool.clone()));
        }
        continuation
    }
}
