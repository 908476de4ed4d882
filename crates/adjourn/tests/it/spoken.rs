//! What an agent has said, as a transcript has it.

use adjourn_driver::{Joining, Message, Role};

/// Returns the words of the agent's messages in their order, and whether each is whole: what was
/// broken off is not.
pub fn spoken(transcript: &[Message]) -> Vec<(String, bool)> {
    let mut joining = Joining::default();
    let own = transcript.iter().zip(0..).filter(|(said, _)| said.role == Role::Agent);
    let mut messages: Vec<_> =
        own.filter_map(|(said, number)| joining.take(number, said)).collect();
    messages.extend(joining.break_off());
    messages.sort_by_key(|(number, _)| *number);
    let spoken = messages.into_iter().map(|(_, message)| (message.text(), !message.aborted));
    spoken.filter(|(words, _)| !words.is_empty()).collect()
}
