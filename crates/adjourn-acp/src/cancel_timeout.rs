//! A cancel that the session's host does not follow, because it hangs.
//!
//! A host gives calls that do not return up when their grace is over. One that hangs gives up
//! nothing; its client is told all the same, and sees the rest when the host is back.

use std::sync::atomic::Ordering;
use std::time::Duration;

use adjourn::core::limits::CANCEL_GRACE;
use adjourn::core::session::Phase;
use adjourn::store::Store;
use serde_json::json;
use tokio::time::Instant;
use tracing::field::display;

use crate::rpc::{CANCELLED, Error};
use crate::session::{Attachment, Fate, View};
use crate::update;

/// How long a host may take to say that it has given up calls whose grace is over: another host
/// finds out within a second that it is dead.
const HOST_ANSWERS: Duration = Duration::from_secs(2);

/// Waits until a point in time; for ever, if there is none.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl<S: Store> Attachment<S> {
    /// Returns when a cancel that is given now should have been followed.
    pub(crate) fn patience(&self) -> Instant {
        let by_default = self.view.as_ref().map(|view| view.session().driver.cancel_grace());
        let grace = self.face.options.cancel_grace.or(by_default).unwrap_or(CANCEL_GRACE);
        Instant::now() + grace + HOST_ANSWERS
    }

    /// Begins to wait for the host to follow a cancel, for prompts that are answered then.
    pub(crate) fn await_cancel(&mut self) {
        if !self.prompts.is_empty() && self.cancel_until.is_none() {
            self.cancel_until = Some(self.patience());
        }
    }

    /// Answers the prompts of a cancel that should have been followed by now, and ends every call
    /// that the client was shown.
    pub(crate) fn answer_for_silent_host(&mut self) {
        let canceling = |view: &View<S>| view.session().phase() == Phase::Canceling;
        if !self.view.as_ref().is_some_and(canceling) {
            self.cancel_until = None;
        }
        if self.cancel_until.is_none_or(|until| Instant::now() < until) {
            return;
        }
        self.cancel_until = None;
        let session = self.view.as_ref().map(View::session);
        let run = session.and_then(|session| Some(display(session.run()?.id)));
        let host = session.and_then(|session| Some(display(session.owner()?.host)));
        tracing::warn!(
            session = %self.id,
            run,
            host,
            "its host does not follow a cancel; the client is answered"
        );
        if let Some(view) = &self.view
            && self.attached.load(Ordering::Relaxed)
        {
            let left = update::calls_unanswered(view.session());
            self.calls_left(&left);
            // The host tells of them when it is back; the client has been told.
            self.ended_calls.extend(left.into_iter().map(|(id, ..)| id));
        }
        self.answer_canceled();
    }

    /// Answers every prompt as a cancel does.
    pub(crate) fn answer_canceled(&mut self) {
        for prompt in std::mem::take(&mut self.prompts) {
            let result = match prompt.fate {
                Fate::Taken | Fate::Canceled => Ok(json!({ "stopReason": "cancelled" })),
                Fate::TakenBack => Err(Error::new(CANCELLED, "the request was taken back")),
            };
            self.lines.respond(&prompt.id, &result);
        }
    }
}
