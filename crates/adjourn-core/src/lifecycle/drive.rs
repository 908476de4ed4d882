//! What the owner commits while it drives: claims, steps, calls, the end of a run.
//!
//! Each of these is a commit that checks the claim. A suspend cannot be missed, because the next
//! step or dispatch is refused where the mode does not allow it.

use std::ops::Range;

use super::{Draft, settle};
use crate::carry::{Budget, Limit, Notes};
use crate::command::{
    AbortStep, AskCalls, CallResult, Dispatch, FinishRun, FinishStep, Mode, Progress, ReturnCalls,
    RunEnd, StartStep, StepEnd, Take,
};
use crate::event::{
    CallsAsked, CallsDispatched, CallsLeft, CallsReturned, Claimed, Progressed, StepAborted,
    StepFinished, StepStarted, What,
};
use crate::id::Epoch;
use crate::ledger::{AskedCall, CallState, OpenCall};
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{Outcome, Quiescing, Run, Session, State, Step, Stopping};
use crate::transcript::Digest;

/// A host takes a session that is ready.
pub(super) fn claim(draft: &mut Draft<'_>) -> Result<(), Rejected> {
    draft.not_ended()?;
    let State::Ready(_) = &draft.session.state else {
        return Err(Rejected::NotReady { phase: draft.session.phase() });
    };
    draft.not_gated()?;
    let Some(host) = draft.facts.by.host else {
        return Err(Rejected::invalid("by.host", "only a host can claim a session"));
    };
    let epoch = Epoch(draft.session.epoch.0 + 1);
    draft.emit(What::Claimed(Claimed { host, epoch }));
    Ok(())
}

/// A host takes a session that is ready, and its first step begins.
pub(super) fn take(draft: &mut Draft<'_>, take: &Take) -> Result<(), Rejected> {
    claim(draft)?;
    begin_step(draft, &take.entries)
}

/// A model call is about to begin.
pub(super) fn start_step(draft: &mut Draft<'_>, start: &StartStep) -> Result<(), Rejected> {
    draft.owned(start.epoch)?;
    begin_step(draft, &start.entries)
}

fn begin_step(draft: &mut Draft<'_>, entries: &[Digest]) -> Result<(), Rejected> {
    check_entries(entries)?;
    let run = going_on(&draft.session, Mode::lets_steps_begin)?;
    draft.not_gated()?;
    if run.step.is_some() {
        return Err(Rejected::out_of_step("a step is under way"));
    }
    if let Some(limit) = reached(&draft.session.budget, &draft.session, run) {
        return Err(Rejected::LimitReached { limit });
    }
    let started = StepStarted {
        number: run.progress.iterations + 1,
        transcript: draft.session.transcript.with_all(entries),
    };
    draft.emit(What::StepStarted(started));
    Ok(())
}

/// Something of a step that goes on is to be durable.
pub(super) fn progress(draft: &mut Draft<'_>, progress: &Progress) -> Result<(), Rejected> {
    draft.owned(progress.epoch)?;
    check_entries(&progress.entries)?;
    // Calls that the host runs tell of themselves, too, when the model has spoken.
    if !progress.asked.is_empty() || !draft.session.calls.any(CallState::Dispatched) {
        speaking(&draft.session)?;
    }
    check_asked(&draft.session, &progress.asked, &progress.entries)?;
    if progress.asked.iter().any(|call| !call.by_agent) {
        return Err(Rejected::invalid(
            "asked",
            "a host runs what it is asked for when the step ends",
        ));
    }
    check_driver_state(progress.driver_state.as_deref())?;
    check_notes(&draft.session, &progress.notes, &progress.entries)?;
    check_last_words(progress.last_words.as_deref())?;
    let transcript = draft.session.transcript.with_all(&progress.entries);
    // Each part is checked against what the parts before it lead to.
    let mut after = draft.session.calls.clone();
    for call in &progress.asked {
        after.ask(call.clone());
    }
    for id in &progress.started {
        let waits = |open: &OpenCall| open.call.by_agent && open.state == CallState::Asked;
        if !after.get(id).is_some_and(waits) {
            return Err(Rejected::out_of_step(format!(
                "call {id} is not one that the agent starts"
            )));
        }
        after.set(std::slice::from_ref(id), CallState::Dispatched);
    }
    for call in &progress.returned {
        let expected = call.result.returns_from();
        let open = after.get(&call.id);
        if open.is_none_or(|open| !open.call.by_agent || open.state != expected) {
            return Err(Rejected::out_of_step(format!("call {} cannot return so", call.id)));
        }
        after.close(&call.id);
    }
    draft.emit(What::Progressed(Progressed {
        asked: progress.asked.clone(),
        started: progress.started.clone(),
        returned: progress.returned.clone(),
        usage: progress.usage,
        notes: progress.notes.clone(),
        last_words: progress.last_words.clone(),
        driver_state: progress.driver_state.clone(),
        transcript,
    }));
    Ok(())
}

/// The model answered and asked for calls.
pub(super) fn ask_calls(draft: &mut Draft<'_>, ask: &AskCalls) -> Result<(), Rejected> {
    draft.owned(ask.epoch)?;
    check_entries(&ask.entries)?;
    speaking(&draft.session)?;
    check_asked(&draft.session, &ask.calls, &ask.entries)?;
    if ask.calls.iter().any(|call| call.by_agent) {
        return Err(Rejected::invalid("calls", "a call that the agent runs by itself is reported"));
    }
    let driver_state = ask.driver_state.clone();
    check_driver_state(driver_state.as_deref())?;
    check_notes(&draft.session, &ask.notes, &ask.entries)?;
    check_last_words(ask.last_words.as_deref())?;
    leave_agent_calls(draft);
    draft.emit(What::CallsAsked(CallsAsked {
        calls: ask.calls.clone(),
        usage: ask.usage,
        notes: ask.notes.clone(),
        last_words: ask.last_words.clone(),
        driver_state,
        transcript: draft.session.transcript.with_all(&ask.entries),
    }));
    // A pause that took effect here would have the siblings of the call that parks run later.
    if !ask.parks {
        settle::settle(draft);
    }
    Ok(())
}

/// The model call was broken off.
pub(super) fn abort_step(draft: &mut Draft<'_>, abort: &AbortStep) -> Result<(), Rejected> {
    draft.owned(abort.epoch)?;
    check_entries(&abort.entries)?;
    check_notes(&draft.session, &abort.notes, &abort.entries)?;
    check_last_words(abort.last_words.as_deref())?;
    speaking(&draft.session)?;
    leave_agent_calls(draft);
    draft.emit(What::StepAborted(StepAborted {
        usage: abort.usage,
        notes: abort.notes.clone(),
        last_words: abort.last_words.clone(),
        transcript: draft.session.transcript.with_all(&abort.entries),
    }));
    settle::settle(draft);
    Ok(())
}

/// Calls are about to start.
pub(super) fn dispatch(draft: &mut Draft<'_>, dispatch: &Dispatch) -> Result<(), Rejected> {
    draft.owned(dispatch.epoch)?;
    going_on(&draft.session, Mode::lets_calls_begin)?;
    draft.not_gated()?;
    if dispatch.calls.is_empty() {
        return Err(Rejected::invalid("calls", "must not be empty"));
    }
    for (index, id) in dispatch.calls.iter().enumerate() {
        let waits = |open: &OpenCall| !open.call.by_agent && open.state == CallState::Asked;
        let asked = draft.session.calls.get(id).is_some_and(waits);
        if !asked || dispatch.calls.iter().take(index).any(|other| other == id) {
            return Err(Rejected::out_of_step(format!("call {id} does not wait to be dispatched")));
        }
    }
    for tool in &dispatch.always {
        limits::name("always", tool)?;
    }
    let (calls, always) = (dispatch.calls.clone(), dispatch.always.clone());
    draft.emit(What::CallsDispatched(CallsDispatched { calls, always }));
    Ok(())
}

/// Calls came back.
pub(super) fn return_calls(draft: &mut Draft<'_>, calls: &ReturnCalls) -> Result<(), Rejected> {
    draft.owned(calls.epoch)?;
    check_entries(&calls.entries)?;
    for (index, call) in calls.calls.iter().enumerate() {
        let expected = call.result.returns_from();
        let open = draft.session.calls.get(&call.id);
        if open.is_none_or(|open| open.call.by_agent || open.state != expected)
            || calls.calls.iter().take(index).any(|other| other.id == call.id)
        {
            return Err(Rejected::out_of_step(format!("call {} cannot return so", call.id)));
        }
    }
    let transcript = draft.session.transcript.with_all(&calls.entries);
    let (calls, usage) = (calls.calls.clone(), calls.usage);
    draft.emit(What::CallsReturned(CallsReturned { calls, usage, transcript }));
    settle::settle(draft);
    Ok(())
}

/// The step is over: a boundary.
pub(super) fn finish_step(draft: &mut Draft<'_>, finish: &FinishStep) -> Result<(), Rejected> {
    draft.owned(finish.epoch)?;
    check_step(&draft.session, &finish.step)?;
    step(&draft.session)?;
    if let Some(end) = &finish.ends {
        check_end(end)?;
    }
    leave_agent_calls(draft);
    if draft.session.calls.any(CallState::Dispatched) {
        return Err(Rejected::out_of_step("calls are in flight"));
    }
    // Calls that waited for a permission are left, where it is not waited for any more.
    if draft.session.calls.any(CallState::Asked) && !draft.session.withdraws_permissions() {
        return Err(Rejected::out_of_step(
            "calls were asked for and neither ran nor were declined",
        ));
    }
    close_step(draft, &finish.step);
    match &finish.ends {
        Some(end) => settle::end_run(draft, shortened(end)),
        None => settle::settle(draft),
    }
    if finish.next {
        // Where it cannot begin, the boundary is what was asked for; the owner learns why when it
        // asks for the step alone.
        let _ = begin_step(draft, &[]);
    }
    Ok(())
}

/// The run is over, at a boundary.
pub(super) fn finish_run(draft: &mut Draft<'_>, finish: &FinishRun) -> Result<(), Rejected> {
    draft.owned(finish.epoch)?;
    check_end(&finish.end)?;
    if draft.session.run().is_some_and(|run| run.step.is_some()) || draft.session.in_flight() {
        return Err(Rejected::out_of_step("a step is under way"));
    }
    settle::end_run(draft, shortened(&finish.end));
    Ok(())
}

/// Takes note that calls which the agent ran by itself will not be heard of any more, as the
/// model has stopped speaking. Returns whether the outcome of one is unknown.
pub(super) fn leave_agent_calls(draft: &mut Draft<'_>) -> bool {
    let unknown = draft.session.calls.by_agent(CallState::Dispatched);
    let not_run = draft.session.calls.by_agent(CallState::Asked);
    let lost = !unknown.is_empty();
    if lost || !not_run.is_empty() {
        draft.emit(What::CallsLeft(CallsLeft { unknown, not_run }));
    }
    lost
}

/// Takes what a step leaves behind.
pub(super) fn close_step(draft: &mut Draft<'_>, step: &StepEnd) {
    leave_agent_calls(draft);
    draft.emit(What::StepFinished(StepFinished {
        usage: step.usage,
        notes: step.notes.clone(),
        last_words: step.last_words.clone(),
        driver_state: step.driver_state.clone(),
        transcript: draft.session.transcript.with_all(&step.entries),
    }));
}

/// Refuses what a step may not leave behind.
pub(super) fn check_step(session: &Session, step: &StepEnd) -> Result<(), Rejected> {
    check_entries(&step.entries)?;
    check_driver_state(step.driver_state.as_deref())?;
    check_notes(session, &step.notes, &step.entries)?;
    check_last_words(step.last_words.as_deref())
}

fn check_last_words(last_words: Option<&str>) -> Result<(), Rejected> {
    limits::optional("lastWords", last_words, limits::EXCERPT_BYTES)
}

/// Refuses what the state does not keep of a step.
fn check_notes(session: &Session, notes: &Notes, entries: &[Digest]) -> Result<(), Rejected> {
    for key in notes.repeats.keys().chain(&notes.failures) {
        limits::name("notes", key)?;
    }
    for lesson in &notes.lessons {
        limits::text("notes.lessons", lesson, limits::LESSON_BYTES)?;
    }
    if let Some(title) = &notes.title {
        limits::name("notes.title", title)?;
    }
    for (option, value) in &notes.options {
        limits::name("notes.options", option)?;
        limits::name("notes.options", value)?;
    }
    let said = said_with(session, entries);
    if notes.shown_at.entries().any(|entry| !said.contains(&entry)) {
        return Err(Rejected::invalid("notes.shownAt", "it is not among what is said with it"));
    }
    Ok(())
}

/// Returns the numbers of the entries that are said with a command.
fn said_with(session: &Session, entries: &[Digest]) -> Range<u64> {
    let said = session.transcript.length;
    said..said.saturating_add(entries.len() as u64)
}

fn check_entries(entries: &[Digest]) -> Result<(), Rejected> {
    if entries.len() > limits::ENTRIES {
        let problem = format!("more than {} in one commit", limits::ENTRIES);
        return Err(Rejected::invalid("entries", problem));
    }
    Ok(())
}

/// Refuses calls that the ledger cannot take.
fn check_asked(session: &Session, calls: &[AskedCall], entries: &[Digest]) -> Result<(), Rejected> {
    if session.calls.len() + calls.len() > limits::OPEN_CALLS {
        let problem = format!("more than {} calls open at once", limits::OPEN_CALLS);
        return Err(Rejected::invalid("calls", problem));
    }
    let said = said_with(session, entries);
    for (index, call) in calls.iter().enumerate() {
        let path = format_args!("calls[{index}]");
        limits::name(format_args!("{path}.tool"), &call.tool)?;
        limits::name(format_args!("{path}.id"), &call.id.0)?;
        limits::text(format_args!("{path}.id"), &call.id.0, limits::CALL_ID_BYTES)?;
        let earlier = calls.iter().take(index).any(|other| other.id == call.id);
        if earlier || session.calls.get(&call.id).is_some() {
            return Err(Rejected::invalid(format!("{path}.id"), "another open call has this id"));
        }
        if call.entry.is_some_and(|entry| !said.contains(&entry)) {
            let problem = "it is not among what is said with the call";
            return Err(Rejected::invalid(format!("{path}.entry"), problem));
        }
    }
    Ok(())
}

fn check_driver_state(state: Option<&str>) -> Result<(), Rejected> {
    limits::optional("driverState", state, limits::DRIVER_STATE_BYTES)
}

fn check_end(end: &RunEnd) -> Result<(), Rejected> {
    if end.outcome == Outcome::Canceled {
        return Err(Rejected::invalid("outcome", "a run is canceled by a cancel"));
    }
    limits::optional("error", end.error.as_deref(), limits::REASON_BYTES)
}

/// Cuts what went wrong to what the state keeps of it.
fn shortened(end: &RunEnd) -> RunEnd {
    let error = end.error.as_deref().map(|error| limits::excerpt(error, limits::EXCERPT_BYTES));
    RunEnd { error, ..end.clone() }
}

fn step(session: &Session) -> Result<Step, Rejected> {
    let step = session.run().and_then(|run| run.step);
    step.ok_or_else(|| Rejected::out_of_step("no step is under way"))
}

/// Refuses what only belongs to a step whose model still speaks.
fn speaking(session: &Session) -> Result<(), Rejected> {
    match step(session)? {
        Step { model_in_flight: true, .. } => Ok(()),
        _ => Err(Rejected::out_of_step("the model has spoken already")),
    }
}

impl CallResult {
    /// Returns where a call stands that can return so.
    const fn returns_from(self) -> CallState {
        match self {
            Self::Done | Self::Failed => CallState::Dispatched,
            Self::Declined => CallState::Asked,
        }
    }
}

/// Returns the run if it may go on: nothing is pending, or a client's pause that allows it.
fn going_on(session: &Session, allows: impl FnOnce(Mode) -> bool) -> Result<&Run, Rejected> {
    match &session.state {
        State::Running(running) => Ok(&running.run),
        State::Quiescing(Quiescing { run, stopping: Stopping::Parking(parking), .. })
            if parking.mode().is_some_and(allows) =>
        {
            Ok(run)
        }
        _ => Err(Rejected::Stopping { phase: session.phase() }),
    }
}

/// Returns the limit that stops the next step.
fn reached(budget: &Budget, session: &Session, run: &Run) -> Option<Limit> {
    let over = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
    if budget.is_spent(&session.totals) {
        Some(Limit::BudgetExceeded)
    } else if over(budget.iterations, run.progress.iterations) {
        Some(Limit::IterationLimit)
    } else if over(budget.active_ms, run.progress.active_ms) {
        Some(Limit::TimeLimit)
    } else {
        None
    }
}
