//! What a step begins with.

use adjourn_core::ledger::CallId;
use adjourn_core::session::WakeReport;

use crate::content::{Message, Role};

/// What a step begins with.
#[derive(Debug, Clone, PartialEq)]
pub enum Opening {
    /// A prompt, which is the last message of a person in the transcript.
    Prompt,
    /// The session was woken; the report stands in the transcript, too, unless it says nothing
    /// that the agent need know.
    Wake(Box<WakeReport>),
    /// The step before ended at a boundary, and the run goes on.
    Next,
    /// The step before was broken off. An agent with a loop of its own is never sent the same
    /// prompt again: it is told this.
    Continuation(Continuation),
}

/// What is known of a turn that was broken off.
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
    ///
    /// `unknown` and `not_run` are the calls without a result, as the ledger had them.
    pub fn of(messages: &[Message], unknown: &[CallId], not_run: &[CallId]) -> Self {
        let mut continuation = Self::default();
        let calls = messages.iter().flat_map(|message| &message.calls);
        for call in calls {
            let named = (call.id.clone(), call.tool.clone());
            let answered = |message: &Message| {
                message.role == Role::Tool && message.answers.as_ref() == Some(&call.id)
            };
            if unknown.contains(&call.id) {
                continuation.unknown.push(named);
            } else if not_run.contains(&call.id) {
                continuation.not_run.push(named);
            } else if messages.iter().any(answered) {
                continuation.ended.push(named);
            }
        }
        continuation
    }
}
