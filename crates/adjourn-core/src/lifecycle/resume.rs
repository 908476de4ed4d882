//! `resume`: exactly one succeeds for each suspension, and a refused one changes nothing.

use super::{Draft, prompt, settle, suspend, wake};
use crate::actor::Actor;
use crate::arrival::Arrival;
use crate::carry::{AddBudget, Limit};
use crate::command::Resume;
use crate::event::{AnsweredKey, HoldLifted, Resumed, ResumedTo, What};
use crate::id::Handle;
use crate::ledger::CallState;
use crate::limits;
use crate::rejected::{Paused, Rejected};
use crate::session::{
    Cause, Fate, Initiator, Joined, Opening, Parked, Pause, Phase, Prior, Resumption, Run, Session,
    State, Suspended, Wait,
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
    /// Whether the event acts as it comes, and not long after, from under a hold.
    pub(super) at_once: bool,
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
            at_once: false,
            message_id: None,
            added: None,
            answered: None,
        }
    }

    /// Returns whether there is nothing to tell the agent but that it goes on.
    const fn is_plain(&self) -> bool {
        self.continue_transcript
            && self.input.is_none()
            && self.value.is_none()
            && self.arrival.is_none()
            && matches!(self.cause, Cause::ExplicitResume | Cause::ExternalEvent)
    }

    fn resumption(&self, parked: &Parked, then: Phase, draft: &Draft<'_>) -> Resumption {
        Resumption {
            handle: parked.pause.handle,
            cause: self.cause,
            had_resume_input: self.input.is_some() || self.value.is_some(),
            continue_transcript: self.continue_transcript,
            resumed_at: draft.now(),
            initiator: parked.pause.initiator,
            then,
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
    if let Some(id) = &resume.message_id {
        limits::name("messageId", id)?;
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
            let hold = suspended.hold.as_ref();
            return Err(hold.map_or(Rejected::NotPermitted, |hold| held(&draft.session, hold)));
        }
        Some(given) => return Err(past(&draft.session, given)),
    }
    draft.not_gated()?;
    let by = By {
        continue_transcript: resume.continue_transcript,
        input: resume.input.clone(),
        message_id: resume.message_id.clone(),
        added: resume.add_budget,
        answered: answered_key(&draft.session, resume),
        ..By::cause(Cause::ExplicitResume)
    };
    if let Some(hold) = &suspended.hold {
        if resume.input.is_some() {
            return Err(Rejected::invalid("input", "a hold is lifted without input"));
        }
        budget_allows(&draft.session, hold, resume.add_budget)?;
        lift(draft, by);
        return Ok(());
    }
    takes_input(suspended, resume)?;
    answers_question(suspended, resume, draft.facts.message_seen)?;
    budget_allows(&draft.session, &suspended.park, resume.add_budget)?;
    go_on(draft, by);
    Ok(())
}

/// Takes back a suspend that is not in force yet.
fn quiescing(draft: &mut Draft<'_>, resume: &Resume) -> Result<(), Rejected> {
    let Some(client) = suspend::pending(&draft.session.state) else {
        // The agent is about to park itself, or the run about to end: there is nothing yet to resume.
        let pending = draft.session.pending_pause().map(|pause| pause.handle);
        return Err(match resume.handle {
            Some(given) if Some(given) != pending => past(&draft.session, given),
            Some(_) | None => Rejected::Busy { phase: draft.session.phase() },
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
    draft.not_gated()?;
    // Nothing was parked, so there is nothing to feed and no turn to begin with a digest.
    if resume.input.is_some() || !resume.continue_transcript {
        return Err(Rejected::Busy { phase: draft.session.phase() });
    }
    let answered = answered_key(&draft.session, resume);
    suspend::take_back(draft, answered, resume.add_budget);
    Ok(())
}

/// Returns the key under which the answer to this resume is kept.
fn answered_key(session: &Session, resume: &Resume) -> Option<AnsweredKey> {
    let key = resume.idempotency_key.clone()?;
    Some(AnsweredKey { key, body: resume.body(), run: session.run().map(|run| run.id) })
}

/// A session that ends with its kept outcome has nothing left to feed.
fn takes_input(suspended: &Suspended, resume: &Resume) -> Result<(), Rejected> {
    match &suspended.prior {
        Prior::Kept(kept) if kept.end.ends_session && resume.input.is_some() => {
            Err(Rejected::invalid("input", "the session ends when it is resumed"))
        }
        _ => Ok(()),
    }
}

/// A question is answered once, by a caller who means it, with something: in words, or with more of
/// the budget where it asks for that.
fn answers_question(
    suspended: &Suspended,
    resume: &Resume,
    message_seen: bool,
) -> Result<(), Rejected> {
    let pause = &suspended.park.pause;
    let Wait::Question(_) = &pause.wait else {
        return resume.input.as_ref().map_or(Ok(()), |input| prompt::not_blank("input", input));
    };
    let brings_budget = pause.asks_for_budget() && resume.add_budget.is_some();
    let is_silent = resume.input.as_ref().map_or(!brings_budget, |input| input.blank);
    if is_silent {
        return Err(Rejected::EmptyReply);
    }
    // A retry answers no later question, whatever it brings.
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
    let raised = added.is_some_and(|added| added.is_to_spend());
    let budget = session.budget.raised(added.unwrap_or_default());
    if !raised || !budget.used_up(&session.totals).is_empty() {
        // What is refused adds nothing.
        let used_up = session.budget.used_up(&session.totals);
        return Err(Rejected::BudgetNotRaised { session: session.id, used_up });
    }
    Ok(())
}

/// Ends the suspension: the session returns to where it was, with what it is fed.
pub(super) fn go_on(draft: &mut Draft<'_>, by: By) {
    let Some(Suspended { park, prior, .. }) = draft.session.suspended().cloned() else { return };
    let (to, run, kept) = match prior {
        Prior::Idle => (ResumedTo::Idle, None, None),
        Prior::Run(run) => (ResumedTo::Ready, Some(run), None),
        Prior::Kept(kept) => (ResumedTo::Outcome, None, Some(kept.end)),
    };
    let ends_session = kept.as_ref().is_some_and(|end| end.ends_session);
    let fed = by.input.is_some() || by.value.is_some();
    let then = match to {
        ResumedTo::Ready => Phase::Ready,
        ResumedTo::Idle | ResumedTo::Outcome if ends_session => Phase::Ended,
        ResumedTo::Idle | ResumedTo::Outcome if fed => Phase::Ready,
        ResumedTo::Idle | ResumedTo::Outcome => Phase::Idle,
    };
    // A client's pause that simply ends leaves the turn as it found it: with what it was to begin
    // with, if no step had begun, and with the events it could wait for.
    let goes_on_as_it_was = by.is_plain() && park.pause.initiator == Initiator::Client;
    let untold = run.as_ref().filter(|run| goes_on_as_it_was && !run.told);
    let keeps_opening = untold.is_some();
    let tells_all = match &run {
        Some(Run { told: false, opening: Opening::Wake(report), .. }) => report.earlier.is_some(),
        _ => false,
    };
    let by = match untold.map(|run| &run.opening) {
        Some(Opening::Wake(report)) => {
            By { continue_transcript: report.resumption.continue_transcript, ..by }
        }
        Some(Opening::Prompt(_)) | None => by,
    };
    let window = match (&by.arrival, &run) {
        // Those right behind the event that woke it, which came before this commit, still count.
        (Some(arrival), _) if by.at_once => arrival.seq,
        (_, Some(run)) if goes_on_as_it_was => run.window,
        _ => draft.facts.high,
    };
    let (dispatch, not_run, unknown) = if dispatches(&park, &by) {
        (draft.session.calls.at(CallState::Deferred), Vec::new(), Vec::new())
    } else {
        let (fresh, started) = draft.session.calls.split(CallState::Deferred);
        (Vec::new(), fresh, started)
    };
    let transcript = draft.session.transcript;
    let said = by.input.as_ref().filter(|_| to == ResumedTo::Ready);
    let resumed = Resumed {
        resumption: by.resumption(&park, then, draft),
        to,
        waited_ms: millis(draft.now().since(park.suspended_at)),
        arrival: by.arrival,
        transcript: said.map_or(transcript, |said| transcript.with(said.digest)),
        input: by.input.clone(),
        value: by.value,
        message_id: by.message_id,
        dispatch,
        not_run,
        unknown,
        keeps_opening,
        tells_all: tells_all && !keeps_opening,
        reset: park.pause.limit.filter(|limit| *limit != Limit::BudgetExceeded),
        added: by.added,
        tells_added: by.added.is_some(),
        answered: by.answered,
        window,
    };
    let report = resumed.report(&park.pause);
    draft.emit(What::Resumed(resumed));
    if let Some(end) = kept {
        settle::close_run(draft, end);
    }
    // What a session is fed that has no run to go on with starts the next one.
    if fed && matches!(draft.session.state, State::Idle) {
        prompt::start_run(draft, by.input.as_ref(), Some(report), None);
    }
}

/// Lifts the hold; what fired under it acts now.
pub(super) fn lift(draft: &mut Draft<'_>, by: By) {
    let Some(Suspended { park, hold: Some(hold), fired, .. }) = draft.session.suspended().cloned()
    else {
        return;
    };
    let then = match (&fired, &park.pause.wait) {
        (Some(fired), _) if park.fails(fired) => Phase::Idle,
        (Some(_), _) => Phase::Ready,
        (None, Wait::Question(_)) => Phase::Asking,
        (None, Wait::Open) => Phase::Suspended,
    };
    // What is said about the transcript is said of the turn that follows, if one does.
    let continue_transcript = by.continue_transcript || fired.is_none();
    let by = By { continue_transcript, ..by };
    draft.emit(What::HoldLifted(HoldLifted {
        resumption: by.resumption(&hold, then, draft),
        arrival: by.arrival,
        answered: by.answered,
        added: by.added,
    }));
    if let Some(fired) = fired {
        wake::act(draft, fired, wake::Late { continue_transcript });
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
pub(super) fn past(session: &Session, given: Handle) -> Rejected {
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
        Fate::Closed | Fate::Exported => Rejected::Ended { at },
        Fate::Canceled | Fate::Failed => Rejected::NotSuspended { phase: session.phase() },
    }
}

/// Refuses what a hold is in the way of.
pub(super) fn held(session: &Session, hold: &Parked) -> Rejected {
    Rejected::Held(paused_as(session, &hold.pause))
}

/// Refuses what a pause is in the way of.
pub(super) fn paused(session: &Session, pause: &Pause) -> Rejected {
    Rejected::PausedByAnother(paused_as(session, pause))
}

fn paused_as(session: &Session, pause: &Pause) -> Box<Paused> {
    let Pause { handle, by, reason, .. } = pause;
    let mut paused = paused_by(session, *handle, by, reason.as_ref());
    if pause.limit == Some(Limit::BudgetExceeded) {
        paused.used_up = session.budget.used_up(&session.totals);
    }
    paused
}

/// Refuses what a caller is in the way of who joined a pause.
pub(super) fn joined(session: &Session, handle: Handle, joined: &Joined) -> Rejected {
    let Joined { by, reason, .. } = joined;
    Rejected::PausedByAnother(paused_by(session, handle, by, reason.as_ref()))
}

fn paused_by(
    session: &Session,
    handle: Handle,
    by: &Actor,
    reason: Option<&String>,
) -> Box<Paused> {
    let (session, by, reason) = (session.id, by.clone(), reason.cloned());
    Box::new(Paused { session, handle, by, reason, used_up: Vec::new() })
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
