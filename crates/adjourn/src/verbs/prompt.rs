//! Prompts: what starts a run, or answers what a session waits for.

use std::future::IntoFuture;

use adjourn_core::Command;
use adjourn_core::actor::Actor;
use adjourn_core::command::{Prompt, Reach};
use adjourn_core::event::What;
use adjourn_core::id::{Handle, RunId, SessionId};
use adjourn_core::session::Resumption;
use adjourn_core::transcript::Content;
use adjourn_driver::Message;
use adjourn_store::{Done, Request, Sqlite, Store};

use super::unheard_of;
use crate::committing::Committing;
use crate::error::Error;
use crate::session_ref::SessionRef;

/// Something that is about to be said to an agent; see [`SessionRef::prompt`].
///
/// Awaited, it resolves at the commit that takes the message. A host of this process that can run
/// the session claims it with the same commit; any other host does afterwards. If the commit leaves
/// the message untaken, because the session is busy or paused by another, it is refused.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the message is taken all the same.
#[must_use = "nothing happens before it is awaited"]
pub struct PromptBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    message: Message,
    content: Option<Content>,
    message_id: Option<String>,
    once: Option<String>,
    handle: Option<Handle>,
    reach: Reach,
}

/// A message that was taken.
#[derive(Debug, Clone)]
pub struct Prompted {
    /// The run that goes on with it.
    pub run: RunId,
    /// The pause that it ended, if it did.
    pub woke: Option<Resumption>,
    /// The commit that took it.
    pub commit: Done,
}

impl<S: Store> PromptBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>, message: Message) -> Self {
        let by = session.by();
        let (content, message_id, once, handle) = (None, None, None, None);
        Self { session, by, message, content, message_id, once, handle, reach: Reach::Waits }
    }

    /// Says which question it answers, by the handle of the suspension that asks it.
    pub fn answering(mut self, handle: impl Into<Option<Handle>>) -> Self {
        self.handle = handle.into();
        self
    }

    /// Gives the message an id: the same one is taken once, however often it is sent.
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.message_id = Some(id.into());
        self
    }

    /// Gives the message a key: the tenant takes one message under it, whichever of its sessions,
    /// those that are created for one ([`CreateBuilder::once`](crate::CreateBuilder::once))
    /// included. Another one is refused as a duplicate, with the session that took the first.
    pub fn once(mut self, key: impl Into<String>) -> Self {
        self.once = Some(key.into());
        self
    }

    /// Says which pauses the message may end: questions and the agent's own waits, unless another
    /// is named.
    pub const fn reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// Describes the message otherwise than by its words, for lists and digests.
    pub fn described(mut self, content: Content) -> Self {
        self.content = Some(content);
        self
    }

    /// Names who says it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    async fn commit(self) -> Result<Prompted, Error> {
        let Self { session, by, message, content, message_id, once, handle, reach } = self;
        let content = content.unwrap_or_else(|| message.content());
        let prompt = Command::Prompt(Prompt { content, message_id, handle, reach });
        let request = Request::new(session.id(), by, prompt).saying(vec![message.encode()]);
        let request = request.once(once);
        let commit = session.adjourn().give(request).await?;
        let run = commit.session.run().map(|run| run.id);
        let run = run.ok_or_else(|| unheard_of(&commit, "a prompt began no run"))?;
        let woke = commit.events.iter().find_map(|event| match &event.what {
            What::Resumed(resumed) => Some(resumed.resumption.clone()),
            _ => None,
        });
        Ok(Prompted { run, woke, commit })
    }
}

impl<S: Store> IntoFuture for PromptBuilder<S> {
    type Output = Result<Prompted, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(self.commit())
    }
}

/// Makes the request of a plain prompt.
pub(crate) fn request(
    session: SessionId,
    by: Actor,
    message: &Message,
    message_id: Option<String>,
) -> Request {
    let (content, reach) = (message.content(), Reach::Waits);
    let prompt = Prompt { content, message_id, handle: None, reach };
    Request::new(session, by, Command::Prompt(prompt)).saying(vec![message.encode()])
}
