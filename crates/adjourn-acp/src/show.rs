//! In which order a client is told what happened.
//!
//! - Suspend: the turn's last updates, the answer to the pending prompt, `suspended`, the answer
//!   to the suspend.
//! - Resume: the answer (in v2 after the current state), `resumed`, the turn's updates.
//! - Nothing is told before the answer that attaches, and nothing between `suspended` and
//!   `resumed`.

use std::sync::atomic::Ordering;

use adjourn_core::command::{CallResult, Mode};
use adjourn_core::event::What;
use adjourn_core::ledger::CallId;
use adjourn_core::pause::{Initiator, Parked, Resumption};
use adjourn_core::session::{Outcome, Phase, Quiescing, State, Stopping, Wait};
use adjourn_core::{Rejected, Session};
use adjourn_host::said::Said;
use adjourn_host::watch::{Moment, Watcher};
use adjourn_store::Store;
use serde_json::{Value, json};

use crate::content::blocks;
use crate::peer::{Dialect, EXTENSION, Version};
use crate::rpc::{CANCELLED, Error, INTERNAL_ERROR};
use crate::session::{Attachment, Ours, View, WaitingResume};
use crate::suspension::{
    ResumedUpdate, SessionAwaitResumptionRequest, SessionSuspendResponse, SuspendedUpdate, echoed,
};
use crate::update::{self, Call};

/// How much of a replay is put together before it is sent.
const REPLAY_BYTES: usize = 256 * 1024;

impl<S: Store> Attachment<S> {
    /// Takes a moment into the view, tells the client, and answers whoever waited for it.
    ///
    /// `whole` says that the commit ends with it: only then is the state one that ever was.
    pub(crate) fn show(&mut self, moment: &Moment, whole: bool) {
        let Some(view) = &mut self.view else { return };
        let before = view.session.phase();
        let interrupted = is_interrupted(&view.session);
        view.session.evolve(&moment.event);
        if before == Phase::Asking && view.session.phase() != Phase::Asking {
            self.forget_question();
        }
        self.take_back_permissions();
        let visible = self.attached.load(Ordering::Relaxed) && moment.revision >= self.visible_from;
        match &moment.event.what {
            What::Resumed(_) | What::HoldLifted(_) | What::SuspendWithdrawn(_) => {
                if visible {
                    self.wait_is_over(moment);
                }
                self.state(visible);
                self.answer_resumes(moment.revision);
                if visible {
                    self.lifecycle(moment);
                    self.words(moment);
                    self.calls(moment);
                }
                self.answer_prompts(moment, interrupted);
            }
            _ => {
                if visible {
                    self.words(moment);
                    self.calls(moment);
                    self.question_as_words(before);
                }
                let answered = self.answer_prompts(moment, interrupted);
                if visible {
                    self.wait_is_over(moment);
                }
                self.state(visible);
                if visible {
                    self.lifecycle(moment);
                    self.run_ended(moment, answered);
                }
                if whole || matches!(moment.event.what, What::Suspended(_) | What::HoldLaid(_)) {
                    self.answer_suspends();
                }
                if visible {
                    self.tell_of_await(moment);
                }
            }
        }
        if visible {
            self.question_as_form(before);
            self.phase(before, &moment.event.what);
        }
        self.own.retain(|own| *own.end() > moment.revision);
    }

    /// Shows what happened between two revisions; the view then stands before the second.
    pub(crate) async fn replay(&mut self, from: u64, until: u64) -> Result<(), Error> {
        let mut watcher = Watcher::from_start(self.face.store.clone(), self.id);
        let mut session: Option<Session> = None;
        while watcher.next_revision() < until {
            let page = watcher.page_before(until)?;
            if page.is_empty() && !watcher.is_behind() {
                break;
            }
            for moment in page {
                match &mut session {
                    Some(session) => session.evolve(&moment.event),
                    None => session = Session::born(&moment.event),
                }
                if let Some(session) = &session
                    && moment.revision >= from
                {
                    self.show_again(session, &moment);
                }
                if self.lines.len() > REPLAY_BYTES {
                    self.flush().await?;
                }
            }
        }
        if let Some(session) = session {
            let asks = session.suspended().filter(|_| session.phase() == Phase::Asking);
            self.question = asks.map(|suspended| suspended.park.pause.handle);
            self.view = Some(View { session, watcher });
        }
        Ok(())
    }

    /// Shows a moment of the past.
    fn show_again(&mut self, session: &Session, moment: &Moment) {
        self.words(moment);
        self.calls(moment);
        self.wait_is_over(moment);
        if let What::Suspended(suspended) = &moment.event.what
            && let Wait::Question(_) = &suspended.park.pause.wait
        {
            self.question_words(&suspended.park);
        }
        if self.peer.opted_in() {
            self.lifecycle_of(session, moment, false);
        }
    }

    /// What was said.
    fn words(&mut self, moment: &Moment) {
        let version = self.peer.version;
        let own = self.own.iter().any(|own| own.contains(&moment.revision));
        for (index, said) in (moment.from..).zip(&moment.said) {
            let id = message_id(index);
            match said {
                // A client of v1 shows its own words by itself.
                Said::User { .. } if own && version == Version::V1 => {}
                Said::User { content } => {
                    for update in update::user_message(version, &id, blocks(content)) {
                        self.update(&update);
                    }
                }
                Said::Agent { text, aborted } => {
                    self.update(&update::agent_message(version, &id, text, *aborted));
                }
                // A tool's words go with its call; the host's are for the model.
                Said::Tool { .. } | Said::Host { .. } => {}
            }
        }
    }

    /// What became of calls.
    fn calls(&mut self, moment: &Moment) {
        let version = self.peer.version;
        match &moment.event.what {
            What::CallsAsked(asked) => {
                for call in &asked.calls {
                    self.update(&update::call_asked(version, call));
                }
            }
            What::CallsDispatched(dispatched) => {
                for id in &dispatched.calls {
                    self.update(&update::call(version, id, Call::InProgress, None));
                }
            }
            What::CallsReturned(returned) => {
                for call in &returned.calls {
                    let words = moment.said.iter().find_map(|said| match said {
                        Said::Tool { call: id, result } if *id == call.id => Some(result.as_str()),
                        _ => None,
                    });
                    let status = match call.result {
                        CallResult::Done => Call::Completed,
                        CallResult::Failed | CallResult::Declined => Call::Failed,
                    };
                    self.update(&update::call(version, &call.id, status, words));
                }
            }
            What::Suspended(suspended) if version == Version::V2 => {
                let parked = &suspended.park;
                if parked.pause.initiator == Initiator::Agent && parked.pause.wait == Wait::Open {
                    let update = match &parked.pause.call {
                        Some(id) => update::call(version, id, Call::Paused, None),
                        None => {
                            self.waits.insert(parked.pause.handle);
                            update::wait(parked)
                        }
                    };
                    self.update(&update);
                }
            }
            _ => {}
        }
        for (id, status, words) in update::calls_without_result(&moment.event.what) {
            self.update(&update::call(version, id, status, Some(words)));
        }
    }

    /// Shows the agent's wait as a call, to a client that has not seen it begin (v2).
    pub(crate) fn introduce_wait(&mut self) {
        let Some(view) = &self.view else { return };
        let Some(parked) = view.session.suspended().map(|suspended| suspended.park.clone()) else {
            return;
        };
        let own = parked.pause.initiator == Initiator::Agent && parked.pause.wait == Wait::Open;
        if own && parked.pause.call.is_none() && self.waits.insert(parked.pause.handle) {
            self.update(&update::wait(&parked));
        }
    }

    /// The call that stands for the agent's wait is over (v2): before the state without it.
    fn wait_is_over(&mut self, moment: &Moment) {
        if self.peer.version == Version::V1 {
            return;
        }
        let (handle, status) = match &moment.event.what {
            What::Resumed(resumed) if resumed.resumption.initiator == Initiator::Agent => {
                (resumed.resumption.handle, Call::Completed)
            }
            What::SuspensionEnded(ended) => (ended.handle, Call::Cancelled),
            _ => return,
        };
        if self.waits.remove(&handle) {
            let id = CallId(handle.to_string());
            self.update(&update::call(Version::V2, &id, status, None));
        }
    }

    /// What became of the session: suspended, resumed, or neither.
    fn lifecycle(&mut self, moment: &Moment) {
        let Some(view) = self.view.take() else { return };
        self.lifecycle_of(&view.session, moment, true);
        self.view = Some(view);
    }

    fn lifecycle_of(&mut self, session: &Session, moment: &Moment, live: bool) {
        match &moment.event.what {
            What::Suspended(suspended) => {
                for parked in [Some(&suspended.park), suspended.hold.as_ref()].into_iter().flatten()
                {
                    self.suspended(session, parked, live, true);
                }
            }
            What::HoldLaid(laid) => self.suspended(session, &laid.hold, live, false),
            What::Resumed(resumed) => self.resumed(session, &resumed.resumption),
            What::HoldLifted(lifted) => self.resumed(session, &lifted.resumption),
            What::SuspendWithdrawn(_) | What::SuspensionEnded(_) | What::SessionEnded(_) => {
                let update = update::info(session, &self.peer);
                self.update(&update);
            }
            _ => {}
        }
    }

    fn suspended(&mut self, session: &Session, parked: &Parked, live: bool, in_state: bool) {
        match (self.peer.dialect(), self.peer.version) {
            (Dialect::Rfc, _) => {
                let mut update = SuspendedUpdate::of(parked);
                if self.peer.harn() {
                    update.meta = Some(update::meta(session, &self.peer, update.meta));
                }
                self.proposed(&update);
            }
            (Dialect::Today | Dialect::Extension, Version::V1) => {
                let meta = update::meta(session, &self.peer, echoed(parked));
                self.update(&update::with(update::news(), "_meta", meta));
                if live && self.peer.notices {
                    let title = match &parked.pause.reason {
                        Some(reason) => format!("Paused: {reason}"),
                        None => "Paused".to_owned(),
                    };
                    self.update(&update::notice(&title, session.summary().as_deref()));
                }
            }
            // The state says it.
            (Dialect::Today | Dialect::Extension, Version::V2) if live && in_state => {}
            (Dialect::Today | Dialect::Extension, Version::V2) => {
                let update = update::info(session, &self.peer);
                self.update(&update);
            }
        }
    }

    fn resumed(&mut self, session: &Session, resumption: &Resumption) {
        match self.peer.dialect() {
            Dialect::Rfc => self.proposed(&ResumedUpdate::of(resumption)),
            Dialect::Today | Dialect::Extension => {
                let update = update::info(session, &self.peer);
                self.update(&update);
            }
        }
    }

    /// Nobody is asked any more: the form need not be answered.
    fn forget_question(&mut self) {
        let Some(handle) = self.question.take() else { return };
        let answered = Ours::Question(handle);
        let open: Vec<_> = self
            .ours
            .iter()
            .filter(|(_, ours)| **ours == answered)
            .map(|(id, _)| id.clone())
            .collect();
        for id in open {
            self.call_off(&id);
        }
    }

    /// The state of the foreground, where it changed (v2).
    pub(crate) fn state(&mut self, visible: bool) {
        let Some(view) = &self.view else { return };
        if self.peer.version == Version::V1 || !visible {
            return;
        }
        let now = self.foreground_of(&view.session);
        if self.foreground.as_ref() != Some(&now) {
            let update = now.update(&view.session, &self.peer);
            self.foreground = Some(now);
            self.update(&update);
        }
    }

    /// On the way to rest, clients that want to know are told how far it is.
    fn phase(&mut self, before: Phase, what: &What) {
        let Some(view) = &self.view else { return };
        let now = view.session.phase();
        // An agent that parks with nothing in flight is at rest in the same commit.
        let at_once = matches!(what, What::ParkRequested(_)) && !view.session.in_flight();
        let moving = matches!(now, Phase::Requested | Phase::Quiescing | Phase::Canceling);
        let moving = moving && !at_once;
        if moving && now != before && self.peer.opted_in() {
            let update = update::info(&view.session, &self.peer);
            self.update(&update);
        }
    }

    /// Answers prompts: in v1 when the turn is over, in v2 when they are in.
    ///
    /// Returns whether there was one to answer.
    fn answer_prompts(&mut self, moment: &Moment, interrupted: bool) -> bool {
        let Some(view) = &self.view else { return false };
        let at_rest =
            matches!(view.session.state, State::Idle | State::Suspended(_) | State::Ended(_));
        let ready = |after: u64| match self.peer.version {
            Version::V1 => at_rest && moment.revision >= after,
            Version::V2 => moment.revision >= after,
        };
        if !self.prompts.iter().any(|prompt| ready(prompt.after)) {
            return false;
        }
        let result = match self.peer.version {
            Version::V1 => self.stopped(&view.session, interrupted),
            Version::V2 => {
                let last = view.session.transcript.length.saturating_sub(1);
                Ok(json!({ "messageId": message_id(last) }))
            }
        };
        for prompt in self.prompts.extract_if(.., |prompt| ready(prompt.after)) {
            let result = match prompt.taken_back {
                true => Err(Error::new(CANCELLED, "the request was taken back")),
                false => result.clone(),
            };
            self.lines.respond(&prompt.id, &result);
        }
        true
    }

    /// A run that nobody's prompt waited for is over (v1): after a wake there is no other sign.
    fn run_ended(&mut self, moment: &Moment, answered: bool) {
        let Some(view) = &self.view else { return };
        let ended = matches!(moment.event.what, What::RunEnded(_));
        if ended && !answered && self.peer.version == Version::V1 {
            let update = update::info(&view.session, &self.peer);
            self.update(&update);
        }
    }

    /// Says why a turn is over (v1).
    fn stopped(&self, session: &Session, interrupted: bool) -> Result<Value, Error> {
        let with_meta = |reason: &str| json!({ "stopReason": reason, "_meta": update::meta(session, &self.peer, None) });
        if session.suspended().is_some() {
            return Ok(with_meta(if interrupted { "cancelled" } else { "end_turn" }));
        }
        let Some(last) = &session.last_run else { return Ok(json!({ "stopReason": "end_turn" })) };
        match last.outcome {
            Outcome::Completed => Ok(json!({ "stopReason": "end_turn" })),
            Outcome::Canceled => Ok(json!({ "stopReason": "cancelled" })),
            Outcome::Rejected => Ok(json!({ "stopReason": "refusal" })),
            Outcome::Failed => {
                let why = last.error.as_deref().unwrap_or("it did not say why");
                let error = Error::new(INTERNAL_ERROR, format!("the run failed: {why}"));
                Err(error.with(json!({ "reason": "RUN_FAILED" })))
            }
        }
    }

    /// Answers resumes that were committed with this revision.
    fn answer_resumes(&mut self, revision: u64) {
        for WaitingResume { id, answer, .. } in
            self.resumes.extract_if(.., |resume| resume.at <= revision)
        {
            self.lines.respond(&id, &Ok(answer));
        }
    }

    /// Answers suspends that took effect, or never will.
    pub(crate) fn answer_suspends(&mut self) {
        let Some(view) = &self.view else { return };
        let session = &view.session;
        let pending = session.pending_pause().map(|pause| pause.handle);
        for suspend in self.suspends.extract_if(.., |suspend| {
            session.revision >= suspend.after && pending != Some(suspend.handle)
        }) {
            let parked = session.suspended().and_then(|suspended| {
                let mut waits =
                    [Some(&suspended.park), suspended.hold.as_ref()].into_iter().flatten();
                waits.find(|parked| parked.pause.handle == suspend.handle)
            });
            let result = match parked {
                Some(parked) => {
                    let answer = SessionSuspendResponse::of(parked, session.summary());
                    let answer = serde_json::to_value(answer).unwrap_or_default();
                    match self.peer.harn() {
                        true => {
                            let meta = update::meta(session, &self.peer, echoed(parked));
                            Ok(update::with(answer, "_meta", meta))
                        }
                        false => Ok(answer),
                    }
                }
                None => Err(never(session, suspend.handle).into()),
            };
            self.lines.respond(&suspend.id, &result);
        }
    }

    /// The agent parked itself: clients that want to know are told by a request of its own.
    fn tell_of_await(&mut self, moment: &Moment) {
        let What::Suspended(suspended) = &moment.event.what else { return };
        let pause = &suspended.park.pause;
        if pause.initiator != Initiator::Agent || pause.wait != Wait::Open {
            return;
        }
        let method = match self.peer.dialect() {
            Dialect::Today => return,
            Dialect::Extension => "_session/await_resumption",
            Dialect::Rfc => "session/await_resumption",
        };
        let conditions = pause.conditions.as_ref();
        let request = SessionAwaitResumptionRequest {
            session_id: self.id.to_string(),
            reason: pause.reason.clone().unwrap_or_default(),
            conditions: conditions.and_then(|conditions| serde_json::to_value(conditions).ok()),
            summary: pause.summary.clone(),
            meta: Some(
                [(EXTENSION.to_owned(), json!({ "handle": pause.handle }))].into_iter().collect(),
            ),
        };
        let id = self.number();
        self.ours.insert(id.clone(), Ours::Await(pause.handle));
        self.lines.request(&id, method, &request);
    }

    /// Shows a question that has just come up, as words.
    fn question_as_words(&mut self, before: Phase) {
        if before != Phase::Asking && self.is_asking() && !self.peer.forms {
            self.show_open_question();
        }
    }

    /// Shows a question that has just come up, as a form.
    fn question_as_form(&mut self, before: Phase) {
        let lifted = before == Phase::Suspended;
        if before != Phase::Asking && self.is_asking() && (self.peer.forms || lifted) {
            self.show_open_question();
        }
    }

    /// Shows the question that is open, unless this client has seen it.
    pub(crate) fn show_open_question(&mut self) {
        let Some(suspended) = self.view.as_ref().and_then(|view| view.session.suspended()) else {
            return;
        };
        let parked = suspended.park.clone();
        let Wait::Question(question) = &parked.pause.wait else { return };
        let handle = parked.pause.handle;
        let seen = match self.peer.forms {
            true => self.ours.values().any(|ours| *ours == Ours::Question(handle)),
            false => self.question == Some(handle),
        };
        if suspended.hold.is_some() || seen {
            return;
        }
        self.question = Some(handle);
        if !self.peer.forms {
            return self.question_words(&parked);
        }
        let mut answer = json!({ "type": "string", "title": question.question });
        if !question.choices.is_empty() {
            answer = update::with(answer, "enum", question.choices.clone());
        }
        let message = match &question.context {
            Some(context) => format!("{}\n\n{context}", question.question),
            None => question.question.clone(),
        };
        let id = self.number();
        self.ours.insert(id.clone(), Ours::Question(handle));
        self.lines.request(
            &id,
            "elicitation/create",
            &json!({
                "mode": "form", "sessionId": self.id, "message": message,
                "requestedSchema": {
                    "type": "object", "properties": { "answer": answer }, "required": ["answer"],
                },
            }),
        );
    }

    fn question_words(&mut self, parked: &Parked) {
        let Wait::Question(question) = &parked.pause.wait else { return };
        let mut words = question.question.clone();
        if let Some(context) = &question.context {
            words += &format!("\n\n{context}");
        }
        for choice in &question.choices {
            words += &format!("\n- {choice}");
        }
        let id = format!("question-{}", parked.pause.handle);
        self.update(&update::agent_message(self.peer.version, &id, &words, false));
    }

    /// Sends an update.
    pub(crate) fn update(&mut self, update: &Value) {
        self.lines.notify("session/update", &json!({ "sessionId": self.id, "update": update }));
    }

    /// Sends an update of the proposal.
    fn proposed(&mut self, update: &impl serde::Serialize) {
        if let Ok(update) = serde_json::to_value(update) {
            self.update(&update);
        }
    }
}

/// Returns whether a turn is being broken off.
fn is_interrupted(session: &Session) -> bool {
    match &session.state {
        State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
            parking.client.as_ref().is_some_and(|client| client.mode == Mode::InterruptImmediate)
        }
        _ => false,
    }
}

/// Says why a suspend never took effect.
fn never(session: &Session, handle: adjourn_core::id::Handle) -> Rejected {
    match session.past.iter().find(|past| past.handle == handle) {
        Some(past) => Rejected::Withdrawn { handle, at: past.at, by: past.by.clone() },
        None => Rejected::NotSuspendable { phase: session.phase() },
    }
}

/// The id of a message: its place in the transcript.
fn message_id(index: u64) -> String {
    format!("m{index}")
}
