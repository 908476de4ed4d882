//! `suspend`: pauses a session, and says so when it is paused.

use adjourn_core::command::{self, Requester};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::id::RequestId;
use adjourn_core::{Command, Rejected, Session};
use adjourn_store::Request;
use serde_json::{Value, json};

use crate::arguments::{Mode, OnTimeout, Suspend};
use crate::failure::Failure;
use crate::place::{Place, by};
use crate::settings::Settings;
use crate::show::{Output, standing, status};
use crate::watch::{Seen, Watch};

pub async fn run(settings: &Settings, suspend: Suspend, output: &Output) -> Result<(), Failure> {
    let conditions = conditions(&suspend)?;
    let place = Place::open(settings)?;
    let id = place.find(&suspend.which.session)?;
    let command = command::Suspend {
        reason: suspend.reason,
        resume_when: conditions,
        mode: match suspend.mode {
            Mode::FinishStep => command::Mode::FinishStep,
            Mode::InterruptImmediate => command::Mode::InterruptImmediate,
            Mode::WaitForCompletion => command::Mode::WaitForCompletion,
        },
        grace_ms: suspend.grace.map(|grace| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX)),
        requester: Some(Requester::Call(RequestId::new(place.clock.uuid()))),
        ..command::Suspend::default()
    };
    let done = place.give(Request::new(id, by(), Command::Suspend(command))).await?;
    if let Some(handle) = pending(&done.session) {
        output.talk(&format!("[{}]", standing(&done.session, place.clock.now())));
        let mut watcher = Watch::after(&place, &done.session);
        loop {
            let Some(Seen { session, .. }) = watcher.look()? else { break };
            if pending(&session) != Some(handle) {
                return tell(&place, &session, output);
            }
            watcher.wait().await;
        }
    }
    tell(&place, &done.session, output)
}

fn pending(session: &Session) -> Option<adjourn_core::id::Handle> {
    session.pending_pause().map(|pause| pause.handle)
}

fn tell(place: &Place, session: &Session, output: &Output) -> Result<(), Failure> {
    let line = format!("{}  {}", session.id, standing(session, place.clock.now()));
    output.object(&status(session), &line);
    Ok(())
}

fn conditions(suspend: &Suspend) -> Result<Option<Conditions>, Failure> {
    if let Some(whole) = &suspend.resume_when {
        let whole = serde_json::from_str(whole)
            .map_err(|error| Failure::usage(format!("--resume-when is not JSON: {error}")))?;
        let parsed = Conditions::parse(&whole, Spelling::Camel);
        return parsed.map_err(|invalid| Rejected::from(invalid.within("resumeWhen")).into());
    }
    let trigger: Option<Value> =
        suspend
            .trigger
            .as_deref()
            .map(serde_json::from_str)
            .transpose()
            .map_err(|error| Failure::usage(format!("--trigger is not JSON: {error}")))?;
    let timeout = suspend.timeout.map(|timeout| {
        let action = suspend.on_timeout.map(|action| match action {
            OnTimeout::ResumeWithSummary => "resume_with_summary",
            OnTimeout::ResumeWithInput => "resume_with_input",
            OnTimeout::Fail => "fail",
        });
        json!({ "durationMinutes": timeout.as_secs_f64() / 60.0, "onTimeout": action })
    });
    let value = json!({ "onEvent": suspend.on_event, "trigger": trigger, "timeout": timeout });
    Conditions::parse(&value, Spelling::Camel)
        .map_err(|invalid| Failure::usage(invalid.to_string()))
}
