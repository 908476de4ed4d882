//! `resume`: exactly one succeeds for each suspension, and a refused one changes nothing.

use super::{Draft, prompt, settle, suspend, wake};
use crate::arrival::Arrival;
use crate::carry::{AddBudget, Limit};
use crate::command::Resume;
use crate::event::{AnsweredKey, HoldLifted, Resumed, ResumedTo, What};
use crate::id::Handle;
use crate::ledger::CallState;
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{
    Cause, Fate, Initiator, Parked, Prior, Resumption, Session, State, Suspended, Wait,
};
use crate::transcript::Content;

/// What brings a suspension to its end, and what it brings along.
#[derive(Debug, Clone)]
pub(super) struct By {
    pub(super) cause: Cause,
    pub(super) continue_transcript: bool,
    pub(super) input: Option<Content>,
    pub(super) value: Option<serde_json::Value>,
    pub(super) arrival: Option<Arrival>,
    pub(super) message_id: Option<String>,
    pub(super) added: Option<AddBudget>,
    pub(super) answered: Option<AnsweredKey>,
}

impl By {
    pub(super) const fn cause(cause: Cause) -> Self {
        Self {
            cause,
            continue_transcript: true,
            input: None,
            value: None,
            arrival: None,
            message_id: None,
            added: None,
            answered: None,
        }
    }

    fn resumption(&self, handle: Handle, draft: &Draft<'_>) -> Resumption {
        Resumption {
            handle,
            cause: self.cause,
            had_resume_input: self.input.is_some() || self.value.is_some(),
            continue_transcript: self.continue_transcript,
            resumed_at: draft.now(),
        }
    }
}

pub(super) fn decide(draft: &mut Draft<'_>, resume: &Resume) -> Result<(), Rejected> {
    if let Some(key) = &resume.idempotency_key {
        limits::name("idempotencyKey", key)?;
        match &draft.facts.answered {
            // The first answer is given again; it is among the facts.
            Some(answered) if answered.body == resume.body() => return Ok(()),
            Some(_) => return Err(Rejected::IdempotencyKeyReused { key: key.clone() }),
            None => {}
        }
    }
    if let Some(input) = &resume.input {
        prompt::check_input("input", input)?;
    }
    match &draft.session.state {
        State::Suspended(_) => suspended(draft, resume),
        State::Quiescing(_) => quiescing(draft, resume),
        State::Idle | State::Ready(_) | State::Running(_) | State::Ended(_) => {
            Err(no_suspension(&draft.session, resume.handle))
        }
    }
}

/// Resumes a session that is parked.
pub(super) fn suspended(draft: &mut Draft<'_>, resume: &Resume) -> Result<(), Rejected> {
    let Some(suspended) = draft.session.suspended() else {
        return Err(no_suspension(&draft.session, resume.handle));
    };
    if draft.facts.by.session == Some(draft.session.id) {
        return Err(Rejected::NotPermitted);
    }
    match resume.handle {
        None => {}
        Some(given) if given == suspended.shown().pause.handle => {}
        Some(given) if given == suspended.park.pause.handle => {
            return Err(suspended.hold.as_ref().map_or(Rejected::NotPermitted, held));
        }
        Some(given) => return Err(past(&draft.session, given)),
    }
    draft.not_gated()?;
    let by = By {
        continue_transcript: resume.continue_transcript,
        input: resume.input.clone(),
        message_id: resume.message_id.clone(),
        added: resume.add_budget,
        answered: answered_key(resume),
        ..By::cause(Cause::ExplicitResume)
    };
    if suspended.hold.is_some() {
        if resume.input.is_some() {
            return Err(Rejected::invalid("input", "a hold is lifted without input"));
        }
        lift(draft, by);
        return Ok(());
    }
    answers_question(suspended, resume, draft.facts.message_seen)?;
    budget_allows(&draft.session, &suspended.park, resume.add_budget)?;
    go_on(draft, by);
    Ok(())
}

/// Takes back a suspend that is not in force yet.
fn quiescing(draft: &mut Draft<'_>, resume: &Resume) -> Result<(), Rejected> {
    let Some(client) = suspend::pending(&draft.session.state) else {
        // The agent is about to park itself, or the run about to end: there is nothing yet to resume.
        return Err(match resume.handle {
            Some(given) => past(&draft.session, given),
            None => Rejected::Busy { phase: draft.session.phase() },
        });
    };
    if let Some(given) = resume.handle
        && given != client.pause.handle
    {
        return Err(past(&draft.session, given));
    }
    if draft.facts.by.session == Some(draft.session.id) {
        return Err(Rejected::NotPermitted);
    }
    if resume.input.is_some() {
        return Err(Rejected::Busy { phase: draft.session.phase() });
    }
    suspend::take_back(draft, answered_key(resume));
    Ok(())
}

/// Returns the key under which the answer to this resume is kept.
fn answered_key(resume: &Resume) -> Option<AnsweredKey> {
    let key = resume.idempotency_key.as_ref()?;
    Some(AnsweredKey { key: key.clone(), body: resume.body() })
}

/// A question is answered once, by somebody who means it, with something.
fn answers_question(
    suspended: &Suspended,
    resume: &Resume,
    message_seen: bool,
) -> Result<(), Rejected> {
    let Wait::Question(_) = &suspended.park.pause.wait else { return Ok(()) };
    if resume.input.as_ref().is_none_or(|input| input.blank) {
        return Err(Rejected::EmptyReply);
    }
    let fresh_message = resume.message_id.is_some() && !message_seen;
    if resume.handle.is_none() && resume.idempotency_key.is_none() && !fresh_message {
        return Err(Rejected::HandleRequired { handle: suspended.park.pause.handle });
    }
    Ok(())
}

/// After `budget_exceeded`, going on takes a budget with something left in it.
pub(super) fn budget_allows(
    session: &Session,
    park: &Parked,
    added: Option<AddBudget>,
) -> Result<(), Rejected> {
    if park.pause.limit != Some(Limit::BudgetExceeded) {
        return Ok(());
    }
    let raised = added.is_some_and(|added| added != AddBudget::default());
    let budget = session.budget.raised(added.unwrap_or_default());
    if !raised || budget.is_spent(&session.totals) {
        return Err(Rejected::BudgetNotRaised);
    }
    Ok(())
}

/// Ends the suspension: the session returns to where it was, with what it is fed.
pub(super) fn go_on(draft: &mut Draft<'_>, by: By) {
    let Some(suspended) = draft.session.suspended().cloned() else { return };
    let Suspended { park, prior, .. } = suspended;
    let (to, kept) = match prior {
        Prior::Idle => (ResumedTo::Idle, None),
        Prior::Run(_) => (ResumedTo::Ready, None),
        Prior::Kept(kept) => (ResumedTo::Outcome, Some(kept.end)),
    };
    let deferred = draft.session.calls.at(CallState::Deferred);
    let (dispatch, not_run) =
        if dispatches(&park, &by) { (deferred, Vec::new()) } else { (Vec::new(), deferred) };
    // The window follows the event that woke the session, so that those right behind it, which
    // came before this commit, can still be waited for.
    let window = by.arrival.as_ref().map_or(draft.facts.high, |arrival| arrival.seq);
    let goes_on = to == ResumedTo::Ready;
    let starts = !goes_on && (by.input.is_some() || by.value.is_some());
    let transcript = draft.session.transcript;
    let said = by.input.as_ref().filter(|_| goes_on);
    let reset = park.pause.limit.filter(|limit| *limit != Limit::BudgetExceeded);
    let resumed = Resumed {
        resumption: by.resumption(park.pause.handle, draft),
        to,
        waited_ms: millis(draft.now().since(park.suspended_at)),
        arrival: by.arrival,
        transcript: said.map_or(transcript, |said| transcript.with(said.digest)),
        input: by.input.clone(),
        value: by.value,
        message_id: by.message_id.clone(),
        dispatch,
        not_run,
        reset,
        added: by.added,
        answered: by.answered,
        window,
    };
    let report = resumed.report(&park.pause);
    draft.emit(What::Resumed(resumed));
    if let Some(end) = kept {
        settle::close_run(draft, end);
    }
    // What a session is fed that has no run to go on with starts the next one.
    if starts && matches!(draft.session.state, State::Idle) {
        prompt::start_run(draft, by.input.as_ref(), Some(report), None);
    }
}

/// Lifts the hold; what fired under it acts now.
pub(super) fn lift(draft: &mut Draft<'_>, by: By) {
    let Some(suspended) = draft.session.suspended() else { return };
    let Some(hold) = &suspended.hold else { return };
    let fired = suspended.fired.clone();
    // What is said about the transcript is said of the turn that follows, if one does.
    let continue_transcript = by.continue_transcript || fired.is_none();
    let by = By { continue_transcript, ..by };
    let resumption = by.resumption(hold.pause.handle, draft);
    draft.emit(What::HoldLifted(HoldLifted {
        resumption,
        arrival: by.arrival,
        answered: by.answered,
        added: by.added,
    }));
    if let Some(fired) = fired {
        wake::act(draft, fired, continue_transcript);
    }
}

/// Deferred calls run if a client had paused the session and simply lets it go on.
fn dispatches(park: &Parked, by: &By) -> bool {
    park.pause.initiator == Initiator::Client
        && by.cause == Cause::ExplicitResume
        && by.continue_transcript
        && by.input.is_none()
}

/// Returns why there is nothing to resume.
pub(super) fn no_suspension(session: &Session, handle: Option<Handle>) -> Rejected {
    match (handle, &session.state) {
        (Some(given), _) => past(session, given),
        (None, State::Ended(ended)) => Rejected::Ended { at: ended.at },
        (None, _) => Rejected::NotSuspended { phase: session.phase() },
    }
}

/// Returns what became of the suspension that `given` names.
fn past(session: &Session, given: Handle) -> Rejected {
    let Some(past) = session.past.iter().rev().find(|past| past.handle == given) else {
        return match &session.state {
            State::Ended(ended) => Rejected::Ended { at: ended.at },
            _ => Rejected::HandleMismatch { given },
        };
    };
    let (handle, at, by) = (past.handle, past.at, past.by.clone());
    match past.fate {
        Fate::Resumed(cause) => Rejected::AlreadyResumed { handle, at, cause, by },
        Fate::Withdrawn => Rejected::Withdrawn { handle, at, by },
        Fate::Closed => Rejected::Ended { at },
        Fate::Canceled | Fate::Failed => Rejected::NotSuspended { phase: session.phase() },
    }
}

/// Refuses what a hold is in the way of.
pub(super) fn held(hold: &Parked) -> Rejected {
    Rejected::Held {
        handle: hold.pause.handle,
        by: hold.pause.by.clone(),
        reason: hold.pause.reason.clone(),
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
