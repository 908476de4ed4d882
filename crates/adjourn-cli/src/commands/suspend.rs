//! `suspend`: pauses a session, and says so when it is paused.

use adjourn_core::command::{self, Requester};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::event::{Event, SuspendedEvent, What};
use adjourn_core::id::{Handle, RequestId, SessionId};
use adjourn_core::{Command, Rejected, Session, json};
use adjourn_store::{CommandError, Request};
use serde_json::Value;

use crate::arguments::{Mode, OnTimeout, Suspend};
use crate::durations::span;
use crate::failure::Failure;
use crate::liveness::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::signals::{Ended, Signals};
use crate::terminal::Output;
use crate::text_argument::{MOST, not_json};
use crate::view::View;
use crate::watch::{Seen, Watch};

pub async fn run(settings: &Settings, suspend: Suspend, output: &Output) -> Result<(), Failure> {
    let conditions = conditions(&suspend)?;
    let place = Place::open(settings)?;
    let id = place.find(&suspend.which.session)?;
    let request = RequestId::new(place.clock.uuid());
    let command = command::Suspend {
        reason: suspend.reason,
        resume_when: conditions,
        mode: match suspend.mode {
            Mode::FinishStep => command::Mode::FinishStep,
            Mode::InterruptImmediate => command::Mode::InterruptImmediate,
            Mode::WaitForCompletion => command::Mode::WaitForCompletion,
        },
        grace_ms: suspend.grace.map(|grace| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX)),
        requester: Some(Requester::Call(request)),
        ..command::Suspend::default()
    };
    let mut signals = Signals::new()?;
    let done = place.give(Request::new(id, place.by(), Command::Suspend(command))).await?;
    let Some(handle) = pending(&done.session) else { return place.tell(&done.session, output) };
    let mut watcher = Watch::after(&place, &done.session);
    let mut said = String::new();
    let mut fate = None;
    loop {
        let Some(Seen { session, moments }) = watcher.look()? else {
            return Err(Failure::no_session(id));
        };
        fate = fate.or_else(|| moments.iter().find_map(|moment| fate_of(handle, &moment.event)));
        if pending(&session) != Some(handle) {
            // It may have been woken by now; it was suspended all the same.
            return match fate.unwrap_or_else(|| Err("it was not suspended".to_owned())) {
                Ok(()) => place.tell(&session, output),
                Err(why) => Err(Failure::refused("WITHDRAWN", why)
                    .hint(format!("`adjourn log {id}` has the whole story"))),
            };
        }
        if place.recover(&session).await?.is_some() {
            continue;
        }
        let living = Living::of(&place)?;
        let view = || View { session: &session, now: place.clock.now(), living: &living };
        // What it waits for changes, as calls return; who cannot watch is told each time.
        let row = view().row();
        if row.why != said && !output.is_live() {
            output.talk(&format!("[about to be suspended: {}; Ctrl-C takes it back]", row.why));
        }
        said = row.why;
        let line = || {
            let since = span(place.clock.now().since(done.session.at));
            format!("about to be suspended: {said}, {since} · Ctrl-C takes it back")
        };
        tokio::select! {
            () = output.live_while(watcher.wait(), line) => {}
            ended = signals.next() => return withdraw(&place, id, request, ended, output).await,
        }
    }
}

/// Returns whether an event has made a pause that was pending, or why there will be none.
fn fate_of(handle: Handle, event: &Event) -> Option<Result<(), String>> {
    let by = &event.by;
    match &event.what {
        What::Suspended(SuspendedEvent { park, hold, .. }) => {
            let mut made = [Some(park), hold.as_ref()].into_iter().flatten();
            made.any(|parked| parked.pause.handle == handle).then_some(Ok(()))
        }
        What::SuspendWithdrawn(withdrawn) if withdrawn.handle == handle => {
            Some(Err(format!("not suspended: {by} took it back")))
        }
        What::CancelRequested(_) => Some(Err(format!("not suspended: {by} canceled its run"))),
        What::SessionEnded(_) => Some(Err(format!("not suspended: {by} ended the session"))),
        _ => None,
    }
}

/// Takes the suspend back that waits, unless it has taken effect meanwhile.
async fn withdraw(
    place: &Place,
    id: SessionId,
    request: RequestId,
    Ended(code): Ended,
    output: &Output,
) -> Result<(), Failure> {
    let command = Command::Withdraw(command::Withdraw { request });
    match place.give(Request::new(id, place.by(), command)).await {
        Ok(done) if pending(&done.session).is_some() => {
            let message = "taken back, but it will be suspended: others want it, too";
            Err(Failure::interrupted(code, message).hint(format!("adjourn show {id}")))
        }
        Ok(_) => Err(Failure::interrupted(code, "taken back: the session goes on")),
        // Too late: it is what was asked for at first.
        Err(CommandError::Rejected(Rejected::NothingToWithdraw)) => {
            output.talk("too late to take it back");
            place.tell(&*place.session(id)?, output)
        }
        Err(error) => Err(error.into()),
    }
}

fn pending(session: &Session) -> Option<Handle> {
    session.pending_pause().map(|pause| pause.handle)
}

fn conditions(suspend: &Suspend) -> Result<Option<Conditions>, Failure> {
    if let Some(whole) = &suspend.resume_when {
        let whole = json::read(whole.as_bytes(), MOST).map_err(|error| {
            not_json("--resume-when", r#"--resume-when '{"onEvent": "ci.passed"}'"#, error)
        })?;
        let parsed = Conditions::parse(&whole, Spelling::Camel);
        return parsed.map_err(|invalid| Rejected::from(invalid.within("resumeWhen")).into());
    }
    let trigger = suspend.trigger.as_deref().map(|trigger| json::read(trigger.as_bytes(), MOST));
    let trigger: Option<Value> = trigger.transpose().map_err(|error| {
        not_json("--trigger", r#"--trigger '{"exact": {"name": "ci.passed"}}'"#, error)
    })?;
    let timeout = suspend.timeout.map(|timeout| {
        let action = suspend.on_timeout.map(|action| match action {
            OnTimeout::ResumeWithSummary => "resume_with_summary",
            OnTimeout::ResumeWithInput => "resume_with_input",
            OnTimeout::Fail => "fail",
        });
        serde_json::json!({ "durationMinutes": timeout.as_secs_f64() / 60.0, "onTimeout": action })
    });
    let value =
        serde_json::json!({ "onEvent": suspend.on_event, "trigger": trigger, "timeout": timeout });
    Conditions::parse(&value, Spelling::Camel).map_err(|invalid| Rejected::from(invalid).into())
}
