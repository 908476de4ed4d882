//! `suspend`: pauses a session, and says so when it is paused.

use std::pin::pin;
use std::sync::Arc;

use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::id::RequestId;
use adjourn::core::{Rejected, command, json};
use adjourn::{Error, SessionRef};
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
use crate::watch::Watch;

pub async fn run(settings: &Settings, suspend: Suspend, output: &Output) -> Result<(), Failure> {
    let conditions = conditions(&suspend)?;
    let place = Place::open(settings).await?;
    let id = place.find(&suspend.which.session).await?;
    let session = place.adjourn.session(id);
    let mut asked = session.suspend().conditions(conditions).mode(match suspend.mode {
        Mode::FinishStep => command::Mode::FinishStep,
        Mode::InterruptImmediate => command::Mode::InterruptImmediate,
        Mode::WaitForCompletion => command::Mode::WaitForCompletion,
    });
    if let Some(reason) = suspend.reason {
        asked = asked.reason(reason);
    }
    if let Some(grace) = suspend.grace {
        asked = asked.grace(grace);
    }
    let mut signals = Signals::new()?;
    let accepted = asked.accepted().await?;
    if accepted.suspension.is_some() {
        return place.tell(&accepted.commit.session, output).await;
    }
    let mut watcher = Watch::after(&place, &accepted.commit.session);
    let mut in_force = pin!(session.in_force(&accepted));
    let mut said = String::new();
    let mut now = Arc::clone(&accepted.commit.session);
    loop {
        let living = Living::of(&place).await?;
        let view = View { session: &now, now: place.clock.now(), living: &living };
        // What it waits for changes, as calls return; who cannot watch is told each time.
        let row = view.row();
        if row.why != said && !output.is_live() {
            output.talk(&format!("[about to be suspended: {}; Ctrl-C takes it back]", row.why));
        }
        said = row.why;
        let line = || {
            let since = span(place.clock.now().since(accepted.commit.session.at));
            format!("about to be suspended: {said}, {since} · Ctrl-C takes it back")
        };
        tokio::select! {
            fate = &mut in_force => return match fate {
                // It may have been woken by now; it was suspended all the same.
                Ok(_) => place.tell(&*place.session(id).await?, output).await,
                Err(error @ Error::NotSuspended { .. }) => {
                    Err(Failure::from(error).hint(format!("`adjourn log {id}` has the whole story")))
                }
                Err(error) => Err(error.into()),
            },
            () = output.live_while(watcher.wait(), line) => {}
            ended = signals.next() => {
                return withdraw(&place, &session, accepted.request, ended, output).await;
            }
        }
        let Some(seen) = watcher.look().await? else { return Err(Failure::no_session(id)) };
        // Where it is no longer pending, its fate is told in a moment.
        if seen.session.pending_pause().is_some() {
            now = seen.session;
        }
    }
}

/// Takes the suspend back that waits, unless it has taken effect meanwhile.
async fn withdraw(
    place: &Place,
    session: &SessionRef,
    request: RequestId,
    Ended(code): Ended,
    output: &Output,
) -> Result<(), Failure> {
    let id = session.id();
    match session.withdraw(request).await {
        Ok(withdrawn) if withdrawn.still_pending => {
            let message = "taken back, but it will be suspended: others want it, too";
            Err(Failure::interrupted(code, message).hint(format!("adjourn show {id}")))
        }
        Ok(_) => Err(Failure::interrupted(code, "taken back: the session goes on")),
        // Too late: it is what was asked for at first.
        Err(Error::Refused(Rejected::NothingToWithdraw)) => {
            output.talk("too late to take it back");
            place.tell(&*place.session(id).await?, output).await
        }
        Err(error) => Err(error.into()),
    }
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
