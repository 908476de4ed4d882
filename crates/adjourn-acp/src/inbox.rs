//! What a client asks of a session, also while it is being told something.
//!
//! Telling it may take as long as it likes to read. What it takes back or cancels meanwhile is
//! taken back and canceled at once; everything else waits its turn.

use adjourn::core::command::Suspend;
use adjourn::core::facts::SpanLinks;
use adjourn::driver::Message;
use adjourn::store::Store;
use serde_json::Value;

use crate::options::Choice;
use crate::requests::Wish;
use crate::room::Kept;
use crate::rpc::{CANCELLED, Error, INTERNAL_ERROR, Id};
use crate::session::Attachment;

/// What is kept for later; beyond that the client is not heard before it reads.
pub(crate) const LATER: usize = 16;

/// What a connection asks of one of its sessions.
#[derive(Debug)]
pub(crate) enum Ask {
    /// `session/new`; the session is there.
    Begin { id: Id },
    /// `session/prompt`, and how much had been written to the client when it was read.
    Prompt { id: Id, said: Kept<Message>, written: u64 },
    /// `session/suspend`.
    Suspend { id: Id, suspend: Suspend, spans: SpanLinks },
    /// `session/resume` and `session/load`, and how much had been written to the client when it was
    /// read.
    Resume { id: Id, wish: Box<Kept<Wish>>, load: bool, written: u64 },
    /// `session/set_mode` and `session/set_config_option`.
    SetOption { id: Id, choice: Choice },
    /// `session/cancel`.
    Cancel,
    /// `session/close`.
    Close { id: Id },
    /// `session/delete`.
    Delete { id: Id },
    /// `$/cancel_request` for a request of this session.
    TakeBack { id: Id },
    /// The answer to a request of ours.
    Answered { id: Id, result: Kept<Result<Value, Value>> },
}

impl<S: Store> Attachment<S> {
    /// Returns the next request; nothing once the connection is over.
    pub(crate) async fn next_ask(&mut self) -> Option<Ask> {
        match self.later.pop_front() {
            Some(ask) => Some(ask),
            None => {
                let ask = self.inbox.recv().await?;
                self.heard += 1;
                Some(ask)
            }
        }
    }

    /// Sends what has been written, and listens while that takes.
    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let (out, bytes) = (self.out.clone(), self.lines.take());
        let mut sending = std::pin::pin!(out.send(bytes, self.mark.take()));
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => {
                    return sent.map_err(|_| Error::new(INTERNAL_ERROR, "the client is gone"));
                }
                Some(ask) = self.inbox.recv(), if self.later.len() < LATER => self.hear(ask).await,
            }
        }
    }

    /// Hears what has been said meanwhile.
    pub(crate) async fn listen(&mut self) {
        // The task that reads the client's lines has to have a turn, too.
        tokio::task::yield_now().await;
        while self.later.len() < LATER {
            let Ok(ask) = self.inbox.try_recv() else { return };
            self.hear(ask).await;
        }
    }

    pub(crate) async fn hear(&mut self, ask: Ask) {
        self.heard += 1;
        match ask {
            Ask::Cancel => {
                // If nothing runs yet, what was asked before may make it run.
                self.cancel().await;
                if !self.later.is_empty() {
                    self.later.push_back(Ask::Cancel);
                }
            }
            Ask::TakeBack { id } => {
                if self.replaying.as_ref() == Some(&id) {
                    self.replaying = None;
                } else if self.forget(&id) {
                    let error = Error::new(CANCELLED, "the request was taken back");
                    self.lines.respond(&id, &Err(error));
                } else {
                    self.take_back(&id).await;
                }
            }
            other => self.later.push_back(other),
        }
    }

    /// Forgets a request that nothing was done for yet; returns whether there was one.
    fn forget(&mut self, request: &Id) -> bool {
        let before = self.later.len();
        self.later.retain(|ask| ask.id() != Some(request));
        self.later.len() < before
    }
}

impl Ask {
    /// Returns the id of the request that it is.
    const fn id(&self) -> Option<&Id> {
        match self {
            Self::Begin { id }
            | Self::Prompt { id, .. }
            | Self::Suspend { id, .. }
            | Self::Resume { id, .. }
            | Self::SetOption { id, .. }
            | Self::Close { id }
            | Self::Delete { id } => Some(id),
            Self::Cancel | Self::TakeBack { .. } | Self::Answered { .. } => None,
        }
    }
}
