//! Answers to those who wait: prompts, resumes and suspends.

use adjourn::Moment;
use adjourn::core::command::Mode;
use adjourn::core::event::What;
use adjourn::core::session::{Outcome, Quiescing, State, Stopping};
use adjourn::core::{Rejected, Session};
use adjourn::store::Store;
use serde_json::{Value, json};

use crate::peer::Version;
use crate::projection::message_id;
use crate::rpc::{CANCELLED, Error, INTERNAL_ERROR};
use crate::session::{Attachment, Fate, View, WaitingResume};
use crate::suspension::{SessionSuspendResponse, by_envelope, echoed};
use crate::update;

impl<S: Store> Attachment<S> {
    /// Answers the prompt that a commit has taken, as soon as that begins to be shown (v2).
    ///
    /// `index` is the place of the next message in the transcript: the prompt's.
    pub(crate) fn answer_taken(&mut self, revision: u64, index: u64) {
        if self.peer.version == Version::V1 {
            return;
        }
        for prompt in self.prompts.extract_if(.., |prompt| prompt.at <= revision) {
            let result = match prompt.fate {
                Fate::Taken => Ok(json!({ "messageId": message_id(index) })),
                Fate::TakenBack | Fate::Canceled => {
                    Err(Error::new(CANCELLED, "the request was taken back"))
                }
            };
            self.lines.respond(&prompt.id, &result);
        }
    }

    /// Answers prompts whose turn is over (v1).
    ///
    /// Returns whether there was one to answer.
    pub(crate) fn answer_prompts(&mut self, moment: &Moment, interrupted: bool) -> bool {
        let Some(view) = &self.view else { return false };
        let at_rest =
            matches!(view.session().state, State::Idle | State::Suspended(_) | State::Ended(_));
        let ready = |after: u64| at_rest && moment.revision >= after;
        if !self.prompts.iter().any(|prompt| ready(prompt.after)) {
            return false;
        }
        // That it is suspended is told after the answer.
        let result = self.stopped(view.session(), moment.revision - 1, interrupted);
        for prompt in self.prompts.extract_if(.., |prompt| ready(prompt.after)) {
            let result = match prompt.fate {
                Fate::Taken => result.clone(),
                Fate::TakenBack => Err(Error::new(CANCELLED, "the request was taken back")),
                Fate::Canceled => Ok(json!({ "stopReason": "cancelled" })),
            };
            self.lines.respond(&prompt.id, &result);
        }
        true
    }

    /// Says why a turn is over (v1); `told` is the last revision of which everything has been told.
    fn stopped(&self, session: &Session, told: u64, interrupted: bool) -> Result<Value, Error> {
        let with_meta = |reason: &str| {
            let meta = update::meta_up_to(told, session, &self.peer, None);
            json!({ "stopReason": reason, "_meta": meta })
        };
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
    pub(crate) fn answer_resumes(&mut self, revision: u64) {
        for WaitingResume { id, answer, .. } in
            self.resumes.extract_if(.., |resume| resume.at <= revision)
        {
            self.lines.respond(&id, &Ok(answer));
        }
    }

    /// Answers suspends that took effect, or never will.
    pub(crate) fn answer_suspends(&mut self) {
        let Some(view) = &self.view else { return };
        let session = view.session();
        let pending = session.pending_pause().map(|pause| pause.handle);
        for suspend in self.suspends.extract_if(.., |suspend| {
            session.revision >= suspend.at && pending != Some(suspend.handle)
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
                    match self.peer.harn() || by_envelope(parked) {
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
}

impl<S: Store> View<S> {
    /// Returns whether the turn is being broken off, as an event finds it.
    ///
    /// A host that lets go makes what is pending happen at once, like a suspend that interrupts.
    /// That breaks a turn off only if something was in flight.
    pub(crate) fn is_interrupted(&mut self, what: &What) -> bool {
        let interrupted = match &self.session().state {
            State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
                let client = parking.client.as_ref();
                client.is_some_and(|client| client.mode == Mode::InterruptImmediate)
            }
            _ => false,
        };
        match what {
            What::Drained(_) | What::HostLost(_) | What::CallsAbandoned(_) => {
                self.cut_off = Some(interrupted || self.session().in_flight());
            }
            What::Claimed(_) => self.cut_off = None,
            _ => {}
        }
        self.cut_off.unwrap_or(interrupted)
    }
}

/// Says why a suspend never took effect.
fn never(session: &Session, handle: adjourn::core::id::Handle) -> Rejected {
    match session.past.iter().find(|past| past.handle == handle) {
        Some(past) => Rejected::Withdrawn { handle, at: past.at, by: past.by.clone() },
        None => Rejected::NotSuspendable { phase: session.phase() },
    }
}
