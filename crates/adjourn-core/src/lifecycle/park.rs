//! `await_resumption` and `ask`: the agent parks itself, and its step ends with it.

use super::{Draft, drive, settle};
use crate::carry::Limit;
use crate::command::{Ask, Await, Question, StepEnd};
use crate::event::{ParkRequested, What};
use crate::id::Epoch;
use crate::ledger::{CallId, CallState};
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{Initiator, Pause, Quiescing, Requesters, State, Stopping, Wait};

pub(super) fn await_resumption(draft: &mut Draft<'_>, wait: &Await) -> Result<(), Rejected> {
    may_park(draft, wait.epoch, wait.call.as_ref(), &wait.step)?;
    if wait.reason.trim().is_empty() {
        return Err(Rejected::invalid("reason", "must not be empty"));
    }
    limits::text("reason", &wait.reason, limits::REASON_BYTES)?;
    limits::optional("summary", wait.summary.as_deref(), limits::SUMMARY_BYTES)?;
    limits::json("_meta", &wait.meta, limits::META_BYTES)?;
    draft.findable("conditions", wait.conditions.as_ref())?;
    draft.looks_back("conditions", wait.conditions.as_ref())?;
    let since = wait.conditions.as_ref().and_then(|conditions| conditions.since);
    let pause = Pause {
        reason: Some(wait.reason.clone()),
        conditions: wait.conditions.clone(),
        summary: wait.summary.clone(),
        call: wait.call.clone(),
        limit: wait.limit,
        meta: wait.meta.clone(),
        ..agent_pause(draft, Wait::Open)
    };
    let window = since.unwrap_or(pause.window);
    request(draft, &wait.step, Pause { window, ..pause });
    Ok(())
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
            if parking.agent.is_none() => {}
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
    drive::check_step(step)
}

fn request(draft: &mut Draft<'_>, step: &StepEnd, pause: Pause) {
    if draft.session.run().is_some_and(|run| run.step.is_some()) {
        drive::close_step(draft, step);
    }
    draft.emit(What::ParkRequested(ParkRequested { pause }));
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
