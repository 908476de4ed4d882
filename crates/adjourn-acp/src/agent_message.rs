//! What the agent says, as messages that stay apart.
//!
//! Several clients of today take no notice of message ids and put what an agent says one behind
//! the other. So in v1, if nothing that a client shows lies between two messages, a blank line is
//! added to the first one before the second begins; the second is sent as it was said, and the
//! transcript has neither changed. Clients of v2 tell messages apart by their ids.

use adjourn_driver::Message;
use adjourn_store::Store;
use serde_json::Value;

use crate::peer::Version;
use crate::session::Attachment;
use crate::update;

/// What keeps two messages apart.
const BLANK_LINE: &str = "\n\n";

impl<S: Store> Attachment<S> {
    /// Tells what the agent says.
    pub(crate) fn agent_says(&mut self, id: &str, words: &str) {
        self.agent_message(id, &Message::agent(words));
    }

    /// Tells a message of the agent's, or a segment of one.
    pub(crate) fn agent_message(&mut self, id: &str, said: &Message) {
        let version = self.peer.version;
        // Blocks of text are kept apart like messages.
        let mut behind_text = false;
        for update in update::agent_message(version, id, said) {
            let has = |path, word| update.pointer(path).is_some_and(|value| value == word);
            let says = has("/sessionUpdate", "agent_message_chunk");
            let is_text = says && has("/content/type", "text");
            if version == Version::V1
                && says
                && let Some(last) = self.last_message.take()
                && (last != id || (behind_text && is_text))
            {
                let apart = update::agent_message(version, &last, &Message::agent(BLANK_LINE));
                apart.iter().for_each(|update| self.update(update));
            }
            self.update(&update);
            if says {
                self.last_message = Some(id.to_owned());
            }
            behind_text = is_text;
        }
    }

    /// Takes note of what lies behind the agent's last message, as far as clients show it.
    pub(crate) fn lies_between(&mut self, update: &Value) {
        let shown = ["user_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"];
        if shown.iter().any(|kind| update["sessionUpdate"] == *kind) {
            self.last_message = None;
        }
    }
}
