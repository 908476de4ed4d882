//! A suspension as a tool call: every client of today shows one, and none knows suspensions.
//!
//! In v1 the call is `completed` from the beginning, because a call that is under way makes clients
//! show that the agent works; what becomes of the suspension is told by an update of it. In v2 the
//! agent's own wait is `paused` until it is over, and the state tells of other suspensions.

use adjourn::core::Session;
use adjourn::core::conditions::{DueWhy, OnTimeout, Trigger};
use adjourn::core::event::{Event, What};
use adjourn::core::id::Handle;
use adjourn::core::ledger::{CallId, CallState};
use adjourn::core::pause::{Cause, Fate, Initiator, Parked};
use adjourn::core::session::{Suspended, Wait};
use adjourn::store::Store;
use serde_json::{Value, json};

use crate::content::text;
use crate::peer::{Dialect, Peer, Version};
use crate::session::Attachment;
use crate::update::{self, Call};

/// The most of a trigger that is shown.
const TRIGGER_CHARACTERS: usize = 80;

/// A suspension that is over, and what is said of it.
pub struct Over {
    handle: Handle,
    status: Call,
    words: String,
}

impl<S: Store> Attachment<S> {
    /// Shows the suspensions that begin with an event.
    pub(crate) fn parks_begin(&mut self, session: &Session, what: &What) {
        match what {
            What::Suspended(suspended) => {
                for parked in [Some(&suspended.park), suspended.hold.as_ref()].into_iter().flatten()
                {
                    self.park_begins(session, parked);
                }
            }
            What::HoldLaid(laid) => self.park_begins(session, &laid.hold),
            _ => {}
        }
    }

    fn park_begins(&mut self, session: &Session, parked: &Parked) {
        if !is_call(parked, &self.peer) {
            return;
        }
        if parked.pause.call.is_none() {
            self.waits.insert(parked.pause.handle);
        }
        self.update(&begun(self.peer.version, session, parked));
    }

    /// Shows the suspensions that are in force to a client that has not seen them begin.
    pub(crate) fn introduce_parks(&mut self) {
        let Some(view) = self.view.take() else { return };
        for parked in view.session().suspended().into_iter().flat_map(in_force) {
            let seen = self.waits.contains(&parked.pause.handle);
            // A call of the agent's own was told of as such.
            if !seen && parked.pause.call.is_none() {
                self.park_begins(view.session(), parked);
            }
        }
        self.view = Some(view);
    }

    /// Takes note that a client has seen the suspensions that are in force.
    pub(crate) fn knows_parks(&mut self, session: &Session) {
        for parked in session.suspended().into_iter().flat_map(in_force) {
            if is_call(parked, &self.peer) && parked.pause.call.is_none() {
                self.waits.insert(parked.pause.handle);
            }
        }
    }

    /// Tells that suspensions are over whose end was erased.
    pub(crate) fn parks_erased(&mut self) {
        let over = self.waits.iter().map(|handle| Over {
            handle: *handle,
            status: Call::Cancelled,
            words: "The session was deleted.".to_owned(),
        });
        let over: Vec<_> = over.collect();
        self.parks_over(&over);
    }

    /// Tells that suspensions are over which the client was shown.
    pub(crate) fn parks_over(&mut self, over: &[Over]) {
        for Over { handle, status, words } in over {
            if self.waits.remove(handle) {
                let id = CallId(handle.to_string());
                self.update(&update::call(self.peer.version, &id, *status, Some(words)));
            }
        }
    }
}

/// Returns the suspensions that are in force: the one underneath first.
fn in_force(suspended: &Suspended) -> impl Iterator<Item = &Parked> {
    [Some(&suspended.park), suspended.hold.as_ref()].into_iter().flatten()
}

/// Returns whether a client is shown a suspension as a call.
///
/// A question stands as a message. Clients that know the proposal are told in its words, but for
/// the agent's own wait in v2, which the state refers to.
fn is_call(parked: &Parked, peer: &Peer) -> bool {
    let pause = &parked.pause;
    pause.wait == Wait::Open
        && match peer.version {
            Version::V1 => peer.dialect() < Dialect::Rfc,
            Version::V2 => pause.initiator == Initiator::Agent,
        }
}

/// Returns the update that shows a suspension.
fn begun(version: Version, session: &Session, parked: &Parked) -> Value {
    let pause = &parked.pause;
    let title = match &pause.reason {
        _ if pause.host_interrupted => "its host stopped".to_owned(),
        Some(reason) => reason.clone(),
        None => format!("paused by {}", pause.by.who()),
    };
    let words = [summary(session, parked), Some(wakes(parked))];
    let words: Vec<_> = words.into_iter().flatten().collect();
    let content = json!([{ "type": "content", "content": text(&words.join("\n\n")) }]);
    let (kind, status) = match (version, &pause.call) {
        (Version::V1, None) => ("tool_call", Call::Completed),
        (Version::V1, Some(_)) => ("tool_call_update", Call::Completed),
        (Version::V2, _) => ("tool_call_update", Call::Paused),
    };
    let id = pause.call.clone().unwrap_or_else(|| CallId(pause.handle.to_string()));
    let call = json!({
        "sessionUpdate": kind, "toolCallId": id, "title": title, "kind": "other",
        "status": status.word(version), "content": content,
    });
    match (version, &pause.call) {
        (Version::V2, None) => update::with(call, "name", "await_resumption"),
        _ => call,
    }
}

/// Returns the summary that the agent left to be shown, or what there is to say of a client's
/// pause.
fn summary(session: &Session, parked: &Parked) -> Option<String> {
    let pause = &parked.pause;
    let shown = session.suspended().map(|suspended| suspended.shown().pause.handle);
    match pause.initiator {
        _ if pause.host_interrupted => Some(interrupted(session)),
        Initiator::Client if shown == Some(pause.handle) => session.summary(),
        Initiator::Client | Initiator::Agent => pause.summary.clone(),
    }
}

/// Says what a host that stopped has left behind.
fn interrupted(session: &Session) -> String {
    let named = |state: CallState| {
        let open = session.calls.iter().filter(|open| open.state == state);
        open.map(|open| open.call.tool.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut words = "The process that ran it stopped in the middle.".to_owned();
    for (state, what) in [
        (CallState::Unknown, "Whether these calls did their work is unknown"),
        (CallState::Deferred, "These calls have not started"),
    ] {
        let calls = named(state);
        if !calls.is_empty() {
            words += &format!(" {what}: {calls}.");
        }
    }
    words
}

/// Says what ends a suspension. Times are in UTC: it is read whenever the client likes.
fn wakes(parked: &Parked) -> String {
    let pause = &parked.pause;
    let mut ways = Vec::new();
    let mut fails = None;
    if let Some(conditions) = &pause.conditions {
        ways.extend(conditions.on_event.iter().map(|pattern| format!("on {pattern}")));
        ways.extend(conditions.trigger.iter().flat_map(events));
    }
    if let Some(due) = parked.due {
        let timeout = pause.conditions.as_ref().and_then(|all| all.timeout.as_ref());
        match timeout.map(adjourn::core::conditions::Timeout::action) {
            Some(OnTimeout::Fail) if due.why == DueWhy::Timeout => fails = Some(due.at),
            _ => ways.push(format!("at {}", due.at)),
        }
    }
    let last = if pause.is_clients() { "on a resume" } else { "on a message" };
    ways.push(last.to_owned());
    let mut words = format!("Wakes {}.", ways.join(" or "));
    if let Some(at) = fails {
        words += &format!(" Fails at {at} if nothing has woken it by then.");
    }
    words
}

/// Returns which events a trigger waits for; its points in time are said by what is due.
fn events(trigger: &Trigger) -> Vec<String> {
    let parts = match trigger {
        Trigger::Any(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let events = parts.iter().filter(|part| !part.is_time());
    let words = events.map(|part| {
        let written = serde_json::to_string(part).unwrap_or_default();
        match written.char_indices().nth(TRIGGER_CHARACTERS) {
            Some((end, _)) => format!("on {}…", written.get(..end).unwrap_or_default()),
            None => format!("on {written}"),
        }
    });
    words.collect()
}

/// Returns the suspensions that an event ends; `before` is the session as the event finds it.
pub fn over(before: &Session, event: &Event) -> Vec<Over> {
    let woken =
        |cause: Cause, arrival: Option<&adjourn::core::arrival::Arrival>| match (cause, arrival) {
            (Cause::ExplicitResume, _) => format!("Resumed by {}.", event.by.who()),
            (Cause::Timeout, _) => "Woken by its deadline.".to_owned(),
            (Cause::ConditionFired | Cause::ExternalEvent, Some(arrival)) => {
                let subject = arrival.subject.as_deref().map(|subject| format!(":{subject}"));
                format!("Woken by {}{}.", arrival.name, subject.unwrap_or_default())
            }
            (Cause::ConditionFired, None) => "Woken at the time that was set.".to_owned(),
            (Cause::ExternalEvent, None) => "Woken by the host.".to_owned(),
        };
    let (handles, status, how) = match &event.what {
        What::Resumed(resumed) => {
            let how = woken(resumed.resumption.cause, resumed.arrival.as_ref());
            ([Some(resumed.resumption.handle), None], Call::Completed, how)
        }
        What::HoldLifted(lifted) => {
            let how = woken(lifted.resumption.cause, lifted.arrival.as_ref());
            ([Some(lifted.resumption.handle), None], Call::Completed, how)
        }
        What::SuspensionEnded(ended) => {
            let how = match ended.fate {
                Fate::Failed => "Failed: nothing had woken it in time.".to_owned(),
                Fate::Closed => format!("Closed by {}.", event.by.who()),
                Fate::Exported => {
                    format!("Exported by {}: it goes on elsewhere.", event.by.who())
                }
                Fate::Canceled | Fate::Withdrawn | Fate::Resumed(_) => {
                    format!("Canceled by {}.", event.by.who())
                }
            };
            ([Some(ended.handle), ended.hold], Call::Cancelled, how)
        }
        _ => return Vec::new(),
    };
    let over = handles.into_iter().flatten().map(|handle| {
        let parked = before.suspended().into_iter().flat_map(in_force);
        let summary = parked
            .filter(|parked| parked.pause.handle == handle)
            .find_map(|parked| summary(before, parked));
        let words = summary.into_iter().chain([how.clone()]).collect::<Vec<_>>().join("\n\n");
        Over { handle, status, words }
    });
    over.collect()
}
