//! Ctrl-C in a command that drives a session: once suspends it, twice cancels its run.

use std::cell::Cell;
use std::pin::pin;

use adjourn::core::Session;
use adjourn::core::id::SessionId;
use adjourn::core::session::State;
use adjourn::{Error, SessionRef};

use crate::durations::span;
use crate::failure::Failure;
use crate::foreground::{Listening, Stop, did_not_wait};
use crate::going_on::command;
use crate::liveness::Living;
use crate::place::Place;
use crate::signals::{Ended, Signals};
use crate::terminal::Output;
use crate::view::View;

/// Why a session is suspended, or its run canceled, that was interrupted.
const REASON: &str = "interrupted at the terminal";

/// What became of a session that was interrupted.
pub enum Interrupted {
    /// Nothing: it is left as a command leaves any session.
    Left,
    /// It is suspended.
    Suspended,
    /// Its run was canceled.
    Canceled,
    /// Another signal came, whose sender does not want to wait for that.
    Hurried,
}

/// Returns whether this process's own host drives a session that has something to do.
pub fn drives(working: Option<&Stop>, session: &Session) -> bool {
    let Some(working) = working else { return false };
    match &session.state {
        State::Ready(_) => true,
        State::Running(_) | State::Quiescing(_) => {
            session.owner().is_some_and(|owner| owner.host == working.claimant().host())
        }
        State::Idle | State::Suspended(_) | State::Ended(_) => false,
    }
}

/// Suspends a session at its next boundary; a second Ctrl-C cancels its run instead.
pub async fn interrupt(
    place: &Place,
    session: &Session,
    working: &mut Stop,
    listening: &mut Option<Box<Listening>>,
    signals: &mut Signals,
    output: &Output,
) -> Result<Interrupted, Failure> {
    let session = place.adjourn.session(session.id);
    let accepted = match session.suspend().reason(REASON).accepted().await {
        Ok(accepted) => accepted,
        // It has come to rest meanwhile, or asks something, or others have it paused otherwise.
        Err(Error::Refused(_)) => return Ok(Interrupted::Left),
        Err(error) => return Err(error.into()),
    };
    if accepted.suspension.is_some() {
        return Ok(Interrupted::Suspended);
    }
    let since = place.clock.now();
    let mut told = None;
    let mut in_force = pin!(session.in_force(&accepted));
    loop {
        let waits = waits_for(place, session.id()).await?;
        let line = || {
            let waited = span(place.clock.now().since(since));
            format!("about to be suspended: {waits}, {waited} · Ctrl-C cancels its run")
        };
        // Where no line moves, it is said again only if something else is waited for.
        if !output.is_live() && told.as_ref() != Some(&waits) {
            output.talk(&format!("[{}]", line()));
            told = Some(waits.clone());
        }
        let wait = async {
            match listening.as_mut() {
                Some(listening) => listening.wait().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            fate = &mut in_force => return match fate {
                Ok(_) => Ok(Interrupted::Suspended),
                Err(Error::NotSuspended { .. }) => Ok(Interrupted::Left),
                Err(error) => Err(error.into()),
            },
            _ = output.live_while(wait, line) => {}
            ended = signals.again() => return match ended {
                Ended::INTERRUPT => cancel(place, &session, working, signals, output).await,
                // It is given back; the suspend waits in the journal, and takes effect elsewhere.
                _ => Ok(Interrupted::Left),
            },
            failure = working.ended() => return Err(failure),
        }
        if let Some(listening) = listening {
            listening.tell_rest(place, output).await?;
        }
    }
}

/// Stops the host of a session that was suspended, which takes as long as its agent takes to end; a
/// second Ctrl-C cancels the run all the same. Returns what became of the session, and a signal whose
/// sender did not want to wait for the agent.
pub async fn stop_suspended(
    place: &Place,
    id: SessionId,
    working: Stop,
    signals: &mut Signals,
    output: &Output,
) -> Result<(Interrupted, Option<Ended>), Failure> {
    let line = Cell::new("suspended; its agent is about to end · Ctrl-C cancels its run");
    let mut stopping = pin!(output.live_while(working.now(), || line.get().to_owned()));
    let ended = tokio::select! {
        stopped = &mut stopping => return stopped.map(|()| (Interrupted::Suspended, None)),
        ended = signals.again() => ended,
    };
    if ended != Ended::INTERRUPT {
        return Ok((Interrupted::Suspended, Some(ended)));
    }
    let canceled = cancel_suspended(place, id).await?;
    line.set("canceled; its agent is about to end · Ctrl-C does not wait");
    tokio::select! {
        stopped = &mut stopping => stopped.map(|()| (canceled, None)),
        ended = signals.again() => Ok((canceled, Some(ended))),
    }
}

/// Cancels the run of a session that is suspended, unless it has gone on elsewhere meanwhile.
async fn cancel_suspended(place: &Place, id: SessionId) -> Result<Interrupted, Failure> {
    if !matches!(place.session(id).await?.state, State::Suspended(_)) {
        return Ok(Interrupted::Left);
    }
    match place.adjourn.session(id).cancel().reason(REASON.to_owned()).await {
        Ok(_) => Ok(Interrupted::Canceled),
        Err(Error::Refused(_)) => Ok(Interrupted::Left),
        Err(error) => Err(error.into()),
    }
}

/// Cancels a run, and waits until it is over.
async fn cancel(
    place: &Place,
    session: &SessionRef,
    working: &mut Stop,
    signals: &mut Signals,
    output: &Output,
) -> Result<Interrupted, Failure> {
    let grace = place.settings.cancel_grace.configured();
    match session.cancel().reason(REASON.to_owned()).grace(grace).await {
        Ok(_) => {}
        Err(Error::Refused(_)) => return Ok(Interrupted::Left),
        Err(error) => return Err(error.into()),
    }
    let waits = waits_for(place, session.id()).await?;
    let line = || format!("canceling: {waits} · Ctrl-C does not wait");
    if !output.is_live() {
        output.talk(&format!("[{}]", line()));
    }
    tokio::select! {
        finished = output.live_while(session.finished(), line) => match finished {
            Ok(_) | Err(Error::Refused(_)) => Ok(Interrupted::Canceled),
            Err(error) => Err(error.into()),
        },
        _ = signals.again() => Ok(Interrupted::Hurried),
        failure = working.ended() => Err(failure),
    }
}

/// Says what a session waits for.
async fn waits_for(place: &Place, id: SessionId) -> Result<String, Failure> {
    let (session, living) = (place.session(id).await?, Living::of(place).await?);
    Ok(View { session: &session, now: place.clock.now(), living: &living }.row().why)
}

/// Says what became of a session that was interrupted, and how to go on.
pub fn told(interrupted: &Interrupted, session: &Session, Ended(code): Ended) -> Option<Failure> {
    let id = session.id;
    match interrupted {
        Interrupted::Left => None,
        Interrupted::Suspended => {
            let message = "suspended; it goes on where it stopped when it is resumed";
            let hint = command(session, &id.to_string());
            Some(Failure::interrupted(code, message).hint(hint))
        }
        Interrupted::Canceled => {
            let failure = Failure::interrupted(code, "its run was canceled");
            Some(failure.hint(format!("adjourn log {id}")))
        }
        Interrupted::Hurried => Some(did_not_wait(code)),
    }
}
