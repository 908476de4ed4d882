//! Detaching a client from a session: it closes the session, deletes it, or goes away.
//!
//! What serves the session on this connection stays: a request that comes behind a close has its
//! turn behind it.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use adjourn::core::ledger::{CallId, CallState};
use adjourn::core::session::State;
use adjourn::store::Store;
use serde_json::json;

use crate::inbox::LATER;
use crate::rpc::{CANCELLED, Error, Id};
use crate::session::Attachment;
use crate::update::{self, Call};
use crate::waiting_notice::WaitingNotice;

impl<S: Store> Attachment<S> {
    pub(crate) async fn close(&mut self, id: &Id) {
        let runs = self.session().load().await.is_ok_and(|session| {
            matches!(session.state, State::Ready(_) | State::Running(_) | State::Quiescing(_))
        });
        if runs {
            // If it has just come to rest, there is nothing left to cancel.
            let _ = self.cancel_run().await;
        }
        self.say_last().await;
        self.until_calls_are_over().await;
        self.leave(id);
    }

    /// Shows how the calls end that the client was shown, as a cancel lets them end.
    ///
    /// A host that hangs gives up nothing, and what is parked stays parked. The client sees no more
    /// of either, so that it is told now.
    async fn until_calls_are_over(&mut self) {
        let mut late = std::pin::pin!(tokio::time::sleep_until(self.patience()));
        while self.shows_calls_in_flight() && self.flush().await.is_ok() {
            let changed = self.changed();
            tokio::select! {
                () = changed => self.say_last().await,
                Some(ask) = self.inbox.recv(), if self.later.len() < LATER => self.hear(ask).await,
                () = &mut late => break,
            }
        }
        if let Some(view) = &self.view
            && self.attached.load(Ordering::Relaxed)
        {
            let parked = view.session().suspended().is_some();
            let mut left = update::calls_unanswered(view.session());
            for (_, _, words) in &mut left {
                *words = words.filter(|_| !parked);
            }
            left.retain(|(id, ..)| !self.ended_calls.contains(id));
            let waits = self.waits.drain().map(|handle| CallId(handle.to_string()));
            left.extend(waits.map(|id| (id, Call::Cancelled, None)));
            self.calls_left(&left);
        }
    }

    fn shows_calls_in_flight(&self) -> bool {
        let view = self.view.as_ref().filter(|_| self.attached.load(Ordering::Relaxed));
        view.is_some_and(|view| {
            let mut open = view.session().calls.iter();
            open.any(|open| {
                open.state == CallState::Dispatched && !self.ended_calls.contains(&open.call.id)
            })
        })
    }

    pub(crate) async fn delete(&mut self, id: &Id) {
        match self.session().remove().even_at_work().await {
            Ok(_) => {
                self.say_last().await;
                self.leave(id);
            }
            Err(error) => self.lines.respond(id, &Err(error.into())),
        }
    }

    /// Tells a client that sees the session what became of it, before it sees no more.
    async fn say_last(&mut self) {
        if let Err(error) = self.catch_up().await {
            self.give_up(&error);
        }
    }

    /// Answers all open requests, then the one that closed the session, and shows nothing more.
    fn leave(&mut self, id: &Id) {
        self.answer_canceled();
        self.drop_queued();
        for suspend in std::mem::take(&mut self.suspends) {
            let error = Error::new(CANCELLED, "the session was closed");
            self.lines.respond(&suspend.id, &Err(error));
        }
        self.detach();
        self.lines.respond(id, &Ok(json!({})));
    }

    /// Shows the session no more, and forgets what the client was shown of it.
    fn detach(&mut self) {
        self.attached.store(false, Ordering::Relaxed);
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.viewer = None;
        self.turn = None;
        self.question = None;
        self.title = None;
        self.last_message = None;
        self.waits.clear();
        self.cancel_until = None;
        self.ended_calls.clear();
        self.notice = WaitingNotice::default();
        self.aliases.clear();
        self.own.clear();
        let mut asked: Vec<_> = self.ours.keys().cloned().collect();
        asked.sort_unstable_by_key(|id| id.as_json().parse::<u64>().ok());
        for id in asked {
            self.call_off(&id);
        }
        self.unwatch();
    }

    /// Ends with the connection: what has come to an end meanwhile is still told, and every request
    /// that is still open is answered with an error.
    pub(crate) async fn end(mut self) {
        if self.catch_up().await.is_ok() {
            self.give_up(&Error::new(CANCELLED, "the connection is over"));
        }
        // The client may have gone already.
        let _ = self.flush().await;
    }

    /// Stops watching a session that the client does not see, and of which no request is open.
    pub(crate) fn rest(&mut self) {
        let waits = self.queued.is_some() || !self.prompts.is_empty() || !self.suspends.is_empty();
        if !waits && !self.attached.load(Ordering::Relaxed) {
            self.unwatch();
        }
    }

    /// Says how much of what was asked is done, if nothing is left to do for any of it.
    pub(crate) fn count(&self) {
        if self.view.is_none() && self.later.is_empty() {
            self.done.store(self.heard, Ordering::Release);
        }
    }

    /// Answers every open request with an error: the store cannot be read, or the connection ends.
    pub(crate) fn give_up(&mut self, error: &Error) {
        let queued = self.queued.take().map(|queued| queued.id);
        let prompts = std::mem::take(&mut self.prompts).into_iter().map(|prompt| prompt.id);
        let suspends = std::mem::take(&mut self.suspends).into_iter().map(|suspend| suspend.id);
        let resumes = std::mem::take(&mut self.resumes).into_iter().map(|resume| resume.id);
        for id in prompts.chain(queued).chain(suspends).chain(resumes) {
            self.lines.respond(&id, &Err(error.clone()));
        }
    }
}
