//! What a client is told that waits: no host can run its session, its prompt stands behind a run
//! whose host hangs, or a call waits for a permission that is asked in another window.
//!
//! None of these is an event of the journal. They are read off it, and off what hosts say of
//! themselves, after a moment in which nothing has gone on.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use adjourn::KnownHost;
use adjourn::core::id::SessionId;
use adjourn::core::ledger::{CallId, CallState, OpenCall};
use adjourn::core::session::State;
use adjourn::store::Store;
use tokio::time::Instant;

use crate::session::Attachment;
use crate::update::{self, Call};

/// How long another process may take for its next move before it is said what is waited for: a call
/// that needs no permission starts in less time.
const MOMENT: Duration = Duration::from_secs(1);

/// What a client is told of a call that another process asks permission for.
const ELSEWHERE: &str = "waits for permission in another window";
/// What a client is told of a call whose permission is asked in no window.
const NOWHERE: &str = "waits for permission, and no window shows it: cancel, and send the message \
                       again here to be asked here";

/// What was said already, and when to look next.
#[derive(Debug, Default)]
pub(crate) struct WaitingNotice {
    /// When to look next, while there is something to look for.
    pub(crate) look_at: Option<Instant>,
    /// Whether the client knows that the host before its prompt hangs.
    hangs: bool,
    /// Calls that the client knows to wait for a permission elsewhere.
    elsewhere: Vec<CallId>,
    /// What the client knows that keeps hosts from running the session.
    declined: Option<String>,
}

impl<S: Store> Attachment<S> {
    /// Says what is waited for, if that has not gone on for a moment.
    pub(crate) async fn say_what_is_awaited(&mut self) {
        if self.queued.is_none() {
            self.notice.hangs = false;
        }
        let ready = self.stays_ready();
        if !ready {
            self.notice.declined = None;
        }
        let behind = self.queued.is_some() && !self.notice.hangs;
        let calls = self.asked_elsewhere();
        if !behind && !ready && calls.is_empty() {
            self.notice.look_at = None;
            return;
        }
        let now = Instant::now();
        let look_at = *self.notice.look_at.get_or_insert(now + MOMENT);
        if now < look_at {
            return;
        }
        self.notice.look_at = (behind || ready).then_some(now + MOMENT);
        self.say_where_permission_is_asked(calls).await;
        if behind && let Some(words) = self.hanging_host().await {
            self.notice.hangs = true;
            self.notice.look_at = ready.then_some(now + MOMENT);
            self.say_that_it_waits(&words);
        }
        if ready
            && let Some(why) = self.declined_by_this_host().await
            && self.notice.declined.as_ref() != Some(&why)
        {
            let words = format!(
                "Your message waits, because its agent cannot be run here: {why}. It goes on by \
                 itself when that is in place. Cancel takes the message back."
            );
            self.notice.declined = Some(why);
            self.say_that_it_waits(&words);
        }
    }

    fn say_that_it_waits(&mut self, words: &str) {
        match self.peer.notices {
            true => self.update(&update::notice("Your message waits", Some(words))),
            false => self.say(format!("waits-{}", self.heard), words),
        }
    }

    /// Returns whether the client sees the session, and no host has taken it.
    fn stays_ready(&self) -> bool {
        let state = self.view.as_ref().map(|view| &view.session().state);
        self.attached.load(Ordering::Relaxed) && matches!(state, Some(State::Ready(_)))
    }

    /// Returns why the host of this process does not run the session, if it has said so.
    async fn declined_by_this_host(&self) -> Option<String> {
        let host = self.face.claimant.host();
        let known = self.face.adjourn.known_host(host).await.ok().flatten()?;
        known.about.declines(self.id).map(str::to_owned)
    }

    /// Returns the calls of a session that another process asks permission for, as far as can be
    /// seen: they have not started, and nothing else is under way.
    fn asked_elsewhere(&mut self) -> Vec<CallId> {
        let Some(view) = &self.view else { return Vec::new() };
        let session = view.session();
        let open =
            |id: &CallId| session.calls.get(id).is_some_and(|open| open.state == CallState::Asked);
        self.notice.elsewhere.retain(open);
        let waits = self.attached.load(Ordering::Relaxed)
            && !session.withdraws_permissions()
            && !session.in_flight()
            && session.owner().is_some_and(|owner| owner.host != self.face.claimant.host());
        let asks = |open: &&OpenCall| {
            let allowed = !open.call.permission || session.allowed.contains(&open.call.tool);
            waits && open.state == CallState::Asked && !allowed
        };
        let calls = session.calls.iter().filter(asks);
        let calls = calls.map(|open| open.call.id.clone());
        calls.filter(|id| !self.notice.elsewhere.contains(id)).collect()
    }

    async fn say_where_permission_is_asked(&mut self, calls: Vec<CallId>) {
        let owner = self.view.as_ref().and_then(|view| view.session().owner());
        let Some(host) = owner.map(|owner| owner.host) else { return };
        let shown = self.face.adjourn.is_shown_by(host, self.id).await;
        for id in calls {
            let words = if shown { ELSEWHERE } else { NOWHERE };
            self.update(&update::call(self.peer.version, &id, Call::Pending, Some(words)));
            self.notice.elsewhere.push(id);
        }
    }

    /// Says that the host of the run before a prompt hangs, and how to get out, if it does.
    async fn hanging_host(&self) -> Option<String> {
        let host = self.view.as_ref()?.session().owner()?.host;
        let KnownHost { about, last_sign, .. } =
            self.face.adjourn.known_host(host).await.ok().flatten()?;
        let sign = last_sign?;
        // A time in the future is one of before the clock was set back.
        let silent = SystemTime::now().duration_since(sign).unwrap_or_default();
        if !about.is_silent(silent) {
            return None;
        }
        let process = about.pid().map(|pid| format!(" (process {pid})")).unwrap_or_default();
        let id = self.id.to_string();
        let short = id.get(id.len().saturating_sub(SessionId::SHORT)..).unwrap_or(&id);
        Some(format!(
            "Your message waits for a run whose host{process} has given no sign of life for {}s. \
             Cancel takes the message back; `adjourn takeover {short}` takes the session from \
             that host.",
            silent.as_secs()
        ))
    }
}
