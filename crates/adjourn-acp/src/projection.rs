//! In which order a client is told what happened.
//!
//! - Suspend: the turn's last updates, the answer to the pending prompt, `suspended`, the answer
//!   to the suspend.
//! - Resume: the answer (in v2 after the current state), `resumed`, the turn's updates.
//! - Nothing is told before the answer that attaches, and between `suspended` and `resumed` only
//!   what a client sets.
//! - Between two events of one commit a session is in a state that never was: where it stands is
//!   told as the whole commit leaves it.

use std::sync::atomic::Ordering;

use adjourn::Moment;
use adjourn::core::Session;
use adjourn::core::command::{CallResult, ReturnedCall};
use adjourn::core::event::{SuspendedEvent, What};
use adjourn::core::ledger::AskedCall;
use adjourn::core::pause::{Initiator, Parked, Resumption};
use adjourn::core::session::{Phase, Wait};
use adjourn::driver::{Block, CallContent, Message, Role};
use adjourn::store::Store;
use adjourn::telling::{self, Told};
use serde_json::{Value, json};

use crate::agent_update::{self, Context};
use crate::client_requests::with_own_terminals;
use crate::park;
use crate::peer::{Dialect, EXTENSION, Version};
use crate::permissions::Viewer;
use crate::rpc::Error;
use crate::session::{Attachment, Ours};
use crate::suspension::{ResumedUpdate, SessionAwaitResumptionRequest, SuspendedUpdate, echoed};
use crate::title;
use crate::update::{self, Call, Foreground, Left};

/// Whether a client is told where the session stands, in the commit that is being shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// The commit has changed nothing that the client has to be told.
    Nothing,
    /// The client is told when the commit ends.
    Owed,
    /// The client was told.
    Told,
}

impl<S: Store> Attachment<S> {
    /// Takes a moment into the view, tells the client, and answers the requests that waited for it.
    pub(crate) fn show(&mut self, moment: &Moment) {
        let Some(view) = &mut self.view else { return };
        let before = view.session().phase();
        let interrupted = view.is_interrupted(&moment.event.what);
        let left = update::calls_left(view.session(), &moment.event.what);
        let over = park::over(view.session(), &moment.event);
        let retitled = title::may_change(view.session(), &moment.event);
        let next_message = view.session().transcript.length;
        let foreground = Foreground::after(view.session(), &moment.event.what);
        let visible = self.attached.load(Ordering::Relaxed) && moment.revision >= self.visible_from;
        let told = match visible {
            true => view.account.tell(moment),
            false => {
                view.account.pass_over(moment);
                Vec::new()
            }
        };
        if before == Phase::Asking && view.session().phase() != Phase::Asking {
            self.forget_question();
        }
        self.forget_await();
        self.take_back_permissions();
        self.take_back_client_requests();
        self.answer_taken(moment.revision, next_message);
        match &moment.event.what {
            What::Resumed(_) | What::HoldLifted(_) | What::SuspendWithdrawn(_) => {
                if visible {
                    self.parks_over(&over);
                }
                match foreground {
                    Some(foreground) => self.foreground_is(foreground, visible),
                    None => self.state(visible && moment.ends),
                }
                self.answer_resumes(moment.revision);
                if visible {
                    self.lifecycle(moment);
                    self.title_if_unknown();
                    self.introduce();
                    self.words_of(moment, told);
                    self.calls_of(moment, &left);
                }
                self.answer_prompts(moment, interrupted);
            }
            _ => {
                if visible {
                    self.owed_news(moment);
                    self.words_of(moment, told);
                    self.option_set_by(moment);
                    if retitled {
                        self.tell_title();
                    }
                    self.calls_of(moment, &left);
                    self.question_as_message(before);
                }
                let answered = self.answer_prompts(moment, interrupted);
                if visible {
                    self.parks_over(&over);
                }
                // A suspension took effect, even if the same commit ends it.
                let in_force = moment.ends
                    || matches!(moment.event.what, What::Suspended(_) | What::HoldLaid(_));
                self.state(visible && in_force);
                if visible {
                    self.lifecycle(moment);
                    self.run_ended(moment, answered);
                }
                if in_force {
                    self.answer_suspends();
                }
                if visible {
                    self.tell_of_await(moment);
                }
            }
        }
        if moment.ends {
            if visible {
                self.question_as_form();
                self.phase();
            }
            self.commit_ends();
        }
        if matches!(moment.event.what, What::RunEnded(_)) {
            self.ended_calls.clear();
        }
        self.own.retain(|own| *own.end() > moment.revision);
    }

    /// Where what led to this moment was erased, as it is only when a session is over, the view is
    /// brought to where the moment finds it.
    pub(crate) fn bridge(&mut self, moment: &Moment) -> Result<(), Error> {
        let Some(view) = &mut self.view else { return Ok(()) };
        let left = update::calls_over(view.session());
        let Some(ended) = view.account.bridge(moment)? else { return Ok(()) };
        if self.attached.load(Ordering::Relaxed) {
            self.agent_says(&ended);
            self.calls_left(&left);
            self.parks_erased();
        }
        Ok(())
    }

    fn option_set_by(&mut self, moment: &Moment) {
        let Some(view) = self.view.take() else { return };
        self.option_set(view.session(), &moment.event);
        self.view = Some(view);
    }

    fn words_of(&mut self, moment: &Moment, told: Vec<Told<'_>>) {
        let Some(view) = self.view.take() else { return };
        self.words(view.session(), moment, told);
        self.view = Some(view);
    }

    /// Tells what was said, and which messages were broken off; `session` is as the moment leaves
    /// it.
    pub(crate) fn words(&mut self, session: &Session, moment: &Moment, told: Vec<Told<'_>>) {
        let version = self.peer.version;
        let own = self.own.iter().any(|own| own.contains(&moment.revision));
        for told in told {
            let (index, said) = match told {
                Told::Words(pieces) => {
                    self.agent_says(&pieces);
                    continue;
                }
                Told::Entry(index, said) => (index, said),
            };
            match said.role {
                // A client of v1 shows its own words by itself.
                Role::User if own && version == Version::V1 => {}
                Role::User => {
                    let id = telling::message_id(index, said);
                    let blocks = said.said_blocks().iter().map(Block::to_value).collect();
                    for update in update::user_message(version, &id, blocks) {
                        self.update(&update);
                    }
                }
                Role::Agent => {
                    self.context = Context::of(said.shown.as_ref()).or(self.context);
                    let Some(shown) = &said.shown else { continue };
                    match (shown.notice_words(), agent_update::shown(&self.peer, session, shown)) {
                        (_, Some(update)) => self.update(&update),
                        // A client without notices shows it all the same.
                        (Some(words), None) => {
                            self.say(telling::message_id(index, said), &words);
                        }
                        (None, None) => {}
                    }
                }
                // A tool's words go with its call; the host's are for the model.
                Role::Tool | Role::Host => {}
            }
        }
        self.usage(session, moment);
    }

    /// Tells what a step has used, when it is over at the latest: an agent that says how full its
    /// context is does so right behind what it has used, and the cost is told with that.
    fn usage(&mut self, session: &Session, moment: &Moment) {
        if let Some(usage) = moment.event.usage() {
            let tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
            let is_news = usage.cost_micro_usd > 0 || (tokens > 0 && self.context.is_none());
            self.owes_usage |= is_news;
        }
        let mut shown = moment.said.iter().map(|(_, said)| said.shown.as_ref());
        if shown.any(|shown| Context::of(shown).is_some()) {
            self.owes_usage = false;
        }
        if self.owes_usage && telling::ends_words(&moment.event.what) {
            self.owes_usage = false;
            self.update(&agent_update::usage(session, self.context));
        }
    }

    fn calls_of(&mut self, moment: &Moment, left: &[Left]) {
        let Some(view) = self.view.take() else { return };
        self.calls(view.session(), moment, left);
        self.view = Some(view);
    }

    /// Tells what became of calls, and of suspensions that are shown as such; those that are `left`
    /// have no result.
    pub(crate) fn calls(&mut self, session: &Session, moment: &Moment, left: &[Left]) {
        let version = self.peer.version;
        match &moment.event.what {
            What::CallsAsked(asked) => {
                for call in &asked.calls {
                    self.update(&update::call_asked(version, &content_of(moment, call)));
                }
            }
            What::CallsDispatched(dispatched) => {
                for id in &dispatched.calls {
                    self.update(&update::call(version, id, Call::InProgress, None));
                }
            }
            What::CallsReturned(returned) => self.calls_returned(moment, &returned.calls),
            // Calls that the agent runs by itself.
            What::Progressed(progressed) => {
                for call in &progressed.asked {
                    self.update(&update::call_asked(version, &content_of(moment, call)));
                }
                for id in &progressed.started {
                    self.update(&update::call(version, id, Call::InProgress, None));
                }
                self.calls_returned(moment, &progressed.returned);
            }
            what => self.parks_begin(session, what),
        }
        self.calls_left(left);
    }

    /// Tells what came of calls.
    fn calls_returned(&mut self, moment: &Moment, returned: &[ReturnedCall]) {
        let version = self.peer.version;
        for ReturnedCall { id, result } in returned {
            if self.ended_calls.contains(id) {
                continue;
            }
            let status = match result {
                CallResult::Done => Call::Completed,
                CallResult::Failed | CallResult::Declined => Call::Failed,
            };
            let own =
                |said: &&Message| said.role == Role::Tool && said.answers.as_ref() == Some(id);
            let result = moment.said.iter().map(|(_, said)| said).find(own);
            self.update(&update::call_returned(version, id, status, result));
        }
    }

    /// Tells of calls that are over without a result.
    pub(crate) fn calls_left(&mut self, left: &[Left]) {
        for (id, status, words) in left {
            if self.ended_calls.contains(id) {
                continue;
            }
            self.update(&update::call(self.peer.version, id, *status, *words));
        }
    }

    /// Tells what became of the session: suspended, resumed, or neither.
    fn lifecycle(&mut self, moment: &Moment) {
        let Some(view) = self.view.take() else { return };
        self.lifecycle_of(view.session(), moment, true);
        self.view = Some(view);
    }

    /// Tells what became of the session, or takes note that it is to be told when the commit ends.
    pub(crate) fn lifecycle_of(&mut self, session: &Session, moment: &Moment, live: bool) {
        match &moment.event.what {
            What::Suspended(suspended) => {
                let SuspendedEvent { park, hold, .. } = suspended;
                // A status shows the hold, and names what lies under it.
                if hold.is_none() || self.peer.dialect() == Dialect::Rfc {
                    self.suspended(session, park, live, true);
                }
                if let Some(hold) = hold {
                    self.suspended(session, hold, live, true);
                }
            }
            What::HoldLaid(laid) => self.suspended(session, &laid.hold, live, false),
            What::Resumed(resumed) => self.resumed(session, &resumed.resumption, moment.ends),
            What::HoldLifted(lifted) => self.resumed(session, &lifted.resumption, moment.ends),
            // The words and calls of this moment have been told.
            What::SuspendWithdrawn(_) | What::SuspensionEnded(_) | What::SessionEnded(_) => {
                self.news(session, session.revision, moment.ends);
            }
            _ => {}
        }
    }

    /// Tells what earlier events of a commit have left to be told, if it ends with this one.
    fn owed_news(&mut self, moment: &Moment) {
        let Some(view) = self.view.take() else { return };
        self.owed_news_of(view.session(), moment);
        self.view = Some(view);
    }

    pub(crate) fn owed_news_of(&mut self, session: &Session, moment: &Moment) {
        if self.news == News::Owed && moment.ends {
            self.news(session, moment.revision - 1, true);
        }
    }

    /// Tells where the session stands, once for a commit and when it ends; `told` is the last
    /// revision of which everything has been told.
    fn news(&mut self, session: &Session, told: u64, ends: bool) {
        // Clients that have not asked for it show errors for such an update without a title.
        if !self.peer.opted_in() {
            return;
        }
        match (ends, self.news) {
            (false, _) => self.news = News::Owed,
            (true, News::Told) => {}
            (true, News::Nothing | News::Owed) => {
                self.news = News::Told;
                let update = update::info(session, &self.peer, told);
                self.update(&update);
            }
        }
    }

    /// Begins with the next commit.
    pub(crate) fn commit_ends(&mut self) {
        self.news = News::Nothing;
        if let Some(view) = &mut self.view {
            view.began = view.session().phase();
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
                if self.peer.opted_in() {
                    let meta = update::meta(session, &self.peer, echoed(parked));
                    self.update(&update::with(update::news(), "_meta", meta));
                }
                if live && self.peer.notices {
                    self.notice(session, parked);
                }
            }
            // The state says it.
            (Dialect::Today | Dialect::Extension, Version::V2) if live && in_state => {}
            (Dialect::Today, Version::V2) if live => self.notice(session, parked),
            (Dialect::Today, Version::V2) => {}
            (Dialect::Extension, Version::V2) => {
                let update = update::info(session, &self.peer, session.revision);
                self.update(&update);
            }
        }
    }

    /// Tells a person of a suspension.
    fn notice(&mut self, session: &Session, parked: &Parked) {
        let title = match &parked.pause.reason {
            Some(reason) => format!("Paused: {reason}"),
            None => "Paused".to_owned(),
        };
        self.update(&update::notice(&title, session.summary().as_deref()));
    }

    fn resumed(&mut self, session: &Session, resumption: &Resumption, ends: bool) {
        match self.peer.dialect() {
            Dialect::Rfc => self.proposed(&ResumedUpdate::of(resumption)),
            // What was said with it is told afterwards.
            Dialect::Today | Dialect::Extension => self.news(session, session.revision - 1, ends),
        }
    }

    /// Tells the state of the foreground, where it changed (v2).
    pub(crate) fn state(&mut self, visible: bool) {
        let Some(view) = &self.view else { return };
        let now = self.foreground_of(view.session());
        self.foreground_is(now, visible);
    }

    fn foreground_is(&mut self, now: Foreground, visible: bool) {
        let Some(view) = &self.view else { return };
        if self.peer.version == Version::V1 || !visible {
            return;
        }
        if self.foreground.as_ref() != Some(&now) {
            // What else there is to say of this moment comes after it.
            let told = view.session().revision - 1;
            let update = now.update(view.session(), &self.peer, told);
            self.foreground = Some(now);
            self.update(&update);
        }
    }

    /// On the way to rest, clients that want to know are told how far it is.
    fn phase(&mut self) {
        let Some(view) = &self.view else { return };
        let now = view.session().phase();
        let moving = matches!(now, Phase::Requested | Phase::Quiescing | Phase::Canceling);
        if moving && now != view.began && self.peer.opted_in() {
            let update = update::info(view.session(), &self.peer, view.session().revision);
            self.update(&update);
        }
    }

    /// Tells the end of a run that no prompt waits for (v1): after a wake there is no other sign.
    fn run_ended(&mut self, moment: &Moment, answered: bool) {
        let Some(view) = self.view.take() else { return };
        let ended = matches!(moment.event.what, What::RunEnded(_));
        if ended && !answered && self.peer.version == Version::V1 {
            self.news(view.session(), moment.revision, moment.ends);
        }
        self.view = Some(view);
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

    /// Tells a client the title that has attached by waking the session.
    fn title_if_unknown(&mut self) {
        if self.title.is_none() {
            self.tell_title();
        }
    }

    /// Sends an update.
    pub(crate) fn update(&mut self, update: &Value) {
        let client = self.viewer.as_ref().map(Viewer::name);
        let Some(update) = with_own_terminals(client, update) else { return };
        self.lies_between(&update);
        self.lines.notify("session/update", &json!({ "sessionId": self.id, "update": update }));
    }

    /// Sends an update of the proposal.
    fn proposed(&mut self, update: &impl serde::Serialize) {
        if let Ok(update) = serde_json::to_value(update) {
            self.update(&update);
        }
    }
}

/// The id of a message: its place in the transcript.
pub(crate) fn message_id(index: u64) -> String {
    format!("m{index}")
}

/// Returns what a call was asked for with, as it was said.
fn content_of(moment: &Moment, call: &AskedCall) -> CallContent {
    let calls = moment.said.iter().flat_map(|(_, message)| &message.calls);
    let found = calls.into_iter().find(|content| content.id == call.id);
    found.cloned().unwrap_or_else(|| CallContent::new(call.id.clone(), call.tool.clone()))
}
