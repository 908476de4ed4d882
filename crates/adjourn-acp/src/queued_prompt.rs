//! A prompt that waits its turn, while the session does something that no prompt of this client
//! asked for, or is on its way to rest.
//!
//! There is one for each session and connection. The client is shown what goes on meanwhile, as it
//! is during any prompt, and at each rest the prompt is decided as if it came then. A question that
//! comes up meanwhile is not answered by it: it was not there when the prompt was written.

use std::sync::atomic::Ordering;

use adjourn::core::id::RunId;
use adjourn::core::ledger::CallState;
use adjourn::core::session::{Phase, State, Wait};
use adjourn::core::{Rejected, Session};
use adjourn::driver::{CallContent, Message};
use adjourn::store::Store;
use serde_json::{Value, json};

use crate::peer::Version;
use crate::question;
use crate::refusal::BUSY;
use crate::resume::revisions;
use crate::room::Kept;
use crate::rpc::{CANCELLED, Error, Id};
use crate::session::{Attachment, Fate, WaitingPrompt};
use crate::update::{self, Call};

/// What a client is told whose own prompt the agent is at work on.
const AT_WORK: &str = "The agent is still at work on your last message, so this one was not taken. \
                       Send it again when that is done, or cancel first.";
/// What a client is told whose own prompt waits already.
const ANOTHER_WAITS: &str = "Another message of yours is waiting for the agent already, so this one \
                             was not taken. Send it again when that is done, or cancel first.";

/// A prompt that waits its turn.
pub(crate) struct Queued {
    pub(crate) id: Id,
    said: Kept<Message>,
}

/// One turn of one run.
pub(crate) type Turn = (RunId, u64);

/// Returns the turn that a session is in.
pub(crate) fn turn(session: &Session) -> Option<Turn> {
    session.run().map(|run| (run.id, run.turn))
}

impl<S: Store> Attachment<S> {
    /// Takes a prompt; `written` is how much had been written to the client when it was read.
    pub(crate) async fn prompt(&mut self, id: Id, said: Kept<Message>, written: u64) {
        // The client shows it by itself, behind what the agent has said.
        self.last_message = None;
        if let Err(error) = self.watch().await {
            return self.lines.respond(&id, &Err(error));
        }
        if self.queued.is_some() {
            let phase = self.view.as_ref().map_or(Phase::Running, |view| view.session().phase());
            let refused = Error::from(Rejected::Busy { phase }).saying(ANOTHER_WAITS);
            return self.lines.respond(&id, &Err(refused));
        }
        // It answers the question that the client had been shown when it sent this, and no other.
        let question = self.question.as_ref().and_then(|shown| shown.seen_by(written));
        match self.give_prompt(&said, question).await {
            Ok(done) => self.prompted(id, &done),
            Err(error) if error.is("TASK_BUSY") => match self.may_wait().await {
                true => self.queue(id, said).await,
                false => self.lines.respond(&id, &Err(error.saying(AT_WORK))),
            },
            Err(error) => {
                let unseen = error.is("HANDLE_REQUIRED");
                let error = if unseen { self.with_question(error).await } else { error };
                self.lines.respond(&id, &Err(error));
                if unseen && let Some(view) = &self.view {
                    // It did not know the question; now it does.
                    self.attach(view.session().revision + 1);
                    self.show_open_question();
                }
            }
        }
    }

    /// Returns whether a prompt may wait for what keeps the session busy: it does not wait behind
    /// another of this client's own, unless that one is being canceled.
    async fn may_wait(&self) -> bool {
        let Ok(session) = self.session().load().await else { return false };
        let own = self.turn.is_some() && self.turn == turn(&session);
        !own || session.phase() == Phase::Canceling
    }

    /// Lets a prompt wait, and shows the client what it waits for.
    async fn queue(&mut self, id: Id, said: Kept<Message>) {
        self.queued = Some(Queued { id, said });
        let Some(view) = &self.view else { return };
        let unseen = !self.attached.load(Ordering::Relaxed);
        self.attach(view.session().revision + 1);
        self.state(true);
        if unseen {
            self.introduce_turn().await;
        }
        self.ask_again();
    }

    /// Tells of the message and the calls under way, to a client that comes in the middle of a
    /// turn: it is told of their end.
    pub(crate) async fn introduce_turn(&mut self) {
        if let Some(mut view) = self.view.take() {
            // A message that cannot be read is told as it goes on.
            let _ = self.introduce_words(&mut view.account).await;
            self.view = Some(view);
        }
        let Some(view) = &self.view else { return };
        let version = self.peer.version;
        let mut updates = Vec::new();
        for open in view.session().calls.iter() {
            let begun = match open.state {
                CallState::Asked => false,
                CallState::Dispatched => true,
                CallState::Waiting
                | CallState::Deferred
                | CallState::NotRun
                | CallState::Unknown => continue,
            };
            // One that cannot be read is shown by its name alone.
            let plain = |_| CallContent::new(open.call.id.clone(), open.call.tool.clone());
            let content = self.session().call_content(&open.call).await;
            updates.push(update::call_asked(version, &content.unwrap_or_else(plain)));
            if begun {
                updates.push(update::call(version, &open.call.id, Call::InProgress, None));
            }
        }
        for update in &updates {
            self.update(update);
        }
    }

    /// Gives the prompt that waits, if the session is at rest; returns whether it was taken.
    pub(crate) async fn take_turn(&mut self) -> bool {
        let rests = self.view.as_ref().is_some_and(|view| {
            matches!(view.session().state, State::Idle | State::Suspended(_) | State::Ended(_))
        });
        if !rests {
            return false;
        }
        let Some(Queued { id, said }) = self.queued.take() else { return false };
        // It names no question, so it answers none.
        match self.give_prompt(&said, None).await {
            Ok(done) => {
                self.prompted(id, &done);
                return true;
            }
            // Something was faster; this is shown first.
            Err(error) if error.is("TASK_BUSY") => self.queued = Some(Queued { id, said }),
            Err(error) if error.is("HANDLE_REQUIRED") => {
                let error = self.asked_meanwhile(error);
                self.lines.respond(&id, &Err(error));
            }
            Err(error) => self.lines.respond(&id, &Err(error)),
        }
        false
    }

    /// Says that a question was asked while a prompt waited.
    fn asked_meanwhile(&self, refused: Error) -> Error {
        let suspended = self.view.as_ref().and_then(|view| view.session().suspended());
        let question = suspended.and_then(|suspended| match &suspended.park.pause.wait {
            Wait::Question(question) => Some(question),
            Wait::Open => None,
        });
        let Some(question) = question else { return refused };
        let handle = refused.data.as_ref().and_then(|data| data.get("handle").cloned());
        let data = json!({ "reason": "TASK_BUSY", "handle": handle });
        Error::new(BUSY, question::not_taken(question)).with(data)
    }

    /// `session/cancel`: ends the run that is shown, and takes back the prompt that waits behind it.
    pub(crate) async fn cancel(&mut self) {
        let queued = self.queued.take();
        let canceled = self.cancel_run().await;
        // A notification has no answer that could say that there was nothing to cancel.
        let Some(Queued { id, .. }) = queued else { return self.await_cancel() };
        match (canceled, self.peer.version) {
            // The client is shown the run as long as its prompt is open: it is answered when the
            // run has ended.
            (Ok(done), Version::V1) => {
                let (at, after) = (*revisions(&done).start(), done.session.revision);
                self.prompts.push(WaitingPrompt { id, at, after, fate: Fate::Canceled });
                self.await_cancel();
            }
            (_, version) => self.lines.respond(&id, &not_taken(version)),
        }
    }

    /// Answers the prompt that waits, if there is one, that it was not taken.
    pub(crate) fn drop_queued(&mut self) {
        if let Some(Queued { id, .. }) = self.queued.take() {
            self.lines.respond(&id, &not_taken(self.peer.version));
        }
    }
}

/// Returns the answer to a prompt that was canceled before it was taken.
fn not_taken(version: Version) -> Result<Value, Error> {
    match version {
        Version::V1 => Ok(json!({ "stopReason": "cancelled" })),
        // The answer would say under which id it is in, and it is not.
        Version::V2 => Err(Error::new(CANCELLED, "the prompt was canceled before its turn came")),
    }
}
