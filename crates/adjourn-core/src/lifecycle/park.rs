//! `await_resumption` and `ask`: the agent parks itself, and its step ends with it.

use serde_json::Value;

use super::{Draft, drive, settle, suspend};
use crate::carry::Limit;
use crate::command::{Ask, Await, AwaitResumption, Question, StepEnd};
use crate::conditions::Conditions;
use crate::event::{AwaitEnded, AwaitRequested, ParkRequested, What};
use crate::id::Epoch;
use crate::ledger::{CallId, CallState};
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{
    Fate, Initiator, Pause, Quiescing, Requesters, State, Stopping, Suspended, Wait,
};

pub(super) fn await_resumption(draft: &mut Draft<'_>, wait: &Await) -> Result<(), Rejected> {
    may_park(draft, wait.epoch, wait.call.as_ref(), &wait.step)?;
    let Await { reason, conditions, summary, meta, .. } = wait;
    let pause = open_wait(draft, reason, conditions.as_ref(), summary.as_deref(), meta.as_ref())?;
    let pause = Pause { call: wait.call.clone(), limit: wait.limit, ..pause };
    request(draft, &wait.step, pause);
    Ok(())
}

/// A worker outside the host parks the session: at once between two steps, and else when the step
/// under way is over. It asks once, however often it tries again.
pub(super) fn await_from_outside(
    draft: &mut Draft<'_>,
    wait: &AwaitResumption,
) -> Result<(), Rejected> {
    draft.not_ended()?;
    let AwaitResumption { reason, conditions, summary, meta } = wait;
    let wanted = conditions.as_ref();
    let pause = open_wait(draft, reason, wanted, summary.as_deref(), meta.as_ref())?;
    let there = match &draft.session.state {
        State::Ready(_) => {
            settle::commit(draft, pause);
            return Ok(());
        }
        State::Running(_) => None,
        State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) => {
            parking.agent.as_deref()
        }
        State::Suspended(Suspended { park, .. }) => Some(&*park.pause),
        State::Idle | State::Quiescing(_) | State::Ended(_) => {
            return suspend::not_suspendable(draft);
        }
    };
    match there {
        None => {
            draft.emit(What::AwaitRequested(AwaitRequested { pause: Box::new(pause) }));
            settle::settle(draft);
            Ok(())
        }
        Some(there @ Pause { initiator: Initiator::Agent, wait: Wait::Open, .. }) => {
            suspend::same_conditions(there, wanted)
        }
        // A question and a client's pause are left in other ways.
        Some(_) => suspend::not_suspendable(draft),
    }
}

/// Ends a worker's await that has not taken effect.
pub(super) fn end_await(draft: &mut Draft<'_>, fate: Fate) {
    let State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) =
        &draft.session.state
    else {
        return;
    };
    if let Some(handle) = parking.worker().map(|pause| pause.handle) {
        draft.emit(What::AwaitEnded(AwaitEnded { handle, fate }));
    }
}

/// Returns the agent's open wait that is asked for, unless it is malformed.
fn open_wait(
    draft: &Draft<'_>,
    reason: &str,
    conditions: Option<&Conditions>,
    summary: Option<&str>,
    meta: Option<&Value>,
) -> Result<Pause, Rejected> {
    if reason.trim().is_empty() {
        return Err(Rejected::invalid("reason", "must not be empty"));
    }
    limits::text("reason", reason, limits::REASON_BYTES)?;
    limits::optional("summary", summary, limits::SUMMARY_BYTES)?;
    limits::json("_meta", &meta, limits::META_BYTES)?;
    draft.findable("conditions", conditions)?;
    draft.looks_back("conditions", conditions)?;
    let pause = Pause {
        reason: Some(reason.to_owned()),
        conditions: conditions.cloned(),
        summary: summary.map(str::to_owned),
        meta: meta.cloned(),
        ..agent_pause(draft, Wait::Open)
    };
    let since = conditions.and_then(|conditions| conditions.since);
    Ok(Pause { window: since.unwrap_or(pause.window), ..pause })
}

pub(super) fn ask(draft: &mut Draft<'_>, ask: &Ask) -> Result<(), Rejected> {
    may_park(draft, ask.epoch, ask.call.as_ref(), &ask.step)?;
    let Question { question, originating_failure_kind, .. } = &ask.question;
    if question.trim().is_empty() {
        return Err(Rejected::invalid("question", "must not be empty"));
    }
    limits::json("question", &ask.question, limits::QUESTION_BYTES)?;
    limits::json("_meta", &ask.meta, limits::META_BYTES)?;
    let pause = Pause {
        call: ask.call.clone(),
        limit: originating_failure_kind.as_deref().and_then(Limit::from_failure_kind),
        meta: ask.meta.clone(),
        ..agent_pause(draft, Wait::Question(ask.question.clone()))
    };
    request(draft, &ask.step, pause);
    Ok(())
}

/// The agent may park itself within a step, or between two when a limit stops the next one.
fn may_park(
    draft: &Draft<'_>,
    epoch: Epoch,
    call: Option<&CallId>,
    step: &StepEnd,
) -> Result<(), Rejected> {
    draft.owned(epoch)?;
    match &draft.session.state {
        State::Running(_) => {}
        State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. })
            if parking.agent.is_none() || parking.from_worker => {}
        _ => return Err(Rejected::Stopping { phase: draft.session.phase() }),
    }
    let between_steps = draft.session.run().is_none_or(|run| run.step.is_none());
    if between_steps && *step != StepEnd::default() {
        return Err(Rejected::out_of_step(
            "no step is under way that could leave something behind",
        ));
    }
    if let Some(call) = call
        && draft.session.calls.get(call).is_none_or(|open| open.state != CallState::Asked)
    {
        return Err(Rejected::out_of_step(format!("call {call} is not one that waits")));
    }
    drive::check_step(&draft.session, step)
}

fn request(draft: &mut Draft<'_>, step: &StepEnd, pause: Pause) {
    if draft.session.run().is_some_and(|run| run.step.is_some()) {
        drive::close_step(draft, step);
    }
    // What the agent itself waits for counts before what a worker said of it.
    end_await(draft, Fate::Withdrawn);
    draft.emit(What::ParkRequested(ParkRequested { pause: Box::new(pause) }));
    settle::settle(draft);
}

fn agent_pause(draft: &Draft<'_>, wait: Wait) -> Pause {
    Pause {
        handle: draft.facts.fresh.handle,
        initiator: Initiator::Agent,
        wait,
        reason: None,
        host_interrupted: false,
        conditions: None,
        window: draft.session.run().map_or(draft.facts.high, |run| run.window),
        summary: None,
        call: None,
        limit: None,
        requested_at: draft.now(),
        by: draft.facts.by.clone(),
        requesters: Requesters::default(),
        joined: None,
        joined_later: Vec::new(),
        meta: None,
        spans: draft.facts.spans.clone(),
    }
}
