//! What the agent says and thinks, as it comes, as messages that stay apart.
//!
//! Words are told when they come, if the session runs in this process, or else when they are
//! committed; [`Account`] sees to it that each is told once.
//!
//! Several clients of today take no notice of message ids and put what an agent says one behind
//! the other. So in v1, if nothing that a client shows lies between two messages, a blank line is
//! added to the first one before the second begins; the second is sent as it was said, and the
//! transcript has neither changed. Clients of v2 tell messages apart by their ids.

use std::sync::atomic::Ordering;

use adjourn::Account;
use adjourn::driver::{Block, Words};
use adjourn::store::Store;
use adjourn::telling::Piece;
use serde_json::Value;

use crate::agent_update::agent_pieces;
use crate::peer::Version;
use crate::rpc::Error;
use crate::session::Attachment;

/// What keeps two messages apart.
const BLANK_LINE: &str = "\n\n";

impl<S: Store> Attachment<S> {
    /// Tells words that have come and are not committed; returns whether all are told.
    pub(crate) fn preview(&mut self) -> bool {
        let Some(view) = &mut self.view else { return true };
        if !self.attached.load(Ordering::Relaxed) {
            view.account.forget_heard();
            return true;
        }
        // What the client is not shown lies before them.
        let due = match view.session().revision + 1 < self.visible_from {
            true => Vec::new(),
            false => view.account.due(),
        };
        let all = !view.account.waits();
        for piece in due {
            self.agent_says(&[piece]);
        }
        all
    }

    /// Begins to count with the session as the client knows it. A message that is being said is told
    /// from its beginning in v2, where that takes the place of what the client may have of it; a
    /// client of v1 is told how it goes on.
    pub(crate) async fn introduce_words(&mut self, account: &mut Account<S>) -> Result<(), Error> {
        for pieces in account.introduce().await? {
            if self.peer.version == Version::V2 {
                self.agent_says(&pieces);
            }
        }
        Ok(())
    }

    /// Tells a message that stands in no transcript.
    pub(crate) fn say(&mut self, message: String, words: &str) {
        let (words, content) = (Words::Said, Some(Block::text(words)));
        let (begins, apart, aborted) = (true, false, false);
        self.agent_says(&[Piece { message, words, begins, apart, content, aborted }]);
    }

    /// Tells pieces of the agent's messages.
    pub(crate) fn agent_says(&mut self, pieces: &[Piece]) {
        let version = self.peer.version;
        for pieces in
            pieces.chunk_by(|one, next| version == Version::V2 && one.message == next.message)
        {
            for piece in pieces {
                if version == Version::V1 && piece.content.is_some() {
                    self.keep_apart(piece);
                }
                self.last_message = Some((piece.message.clone(), piece.words));
            }
            for update in agent_pieces(version, pieces) {
                self.update(&update);
            }
        }
    }

    /// Adds a blank line to the message before, if another begins right behind it.
    fn keep_apart(&mut self, next: &Piece) {
        let Some((message, words)) = self.last_message.take() else { return };
        if words != next.words || (message == next.message && !next.apart) {
            return;
        }
        let content = Some(Block::text(BLANK_LINE));
        let (begins, apart, aborted) = (false, false, false);
        let blank = Piece { message, words, begins, apart, content, aborted };
        for update in agent_pieces(Version::V1, &[blank]) {
            self.update(&update);
        }
    }

    /// Takes note of what lies behind the agent's last message, as far as clients show it.
    pub(crate) fn lies_between(&mut self, update: &Value) {
        let shown = ["user_message_chunk", "tool_call", "tool_call_update", "plan"];
        if shown.iter().any(|kind| update["sessionUpdate"] == *kind) {
            self.last_message = None;
        }
    }
}
