//! `rm`: ends sessions and erases what happened in them, as `session/delete` does.

use adjourn::Error;
use adjourn::core::id::SessionId;
use adjourn::core::session::State;
use adjourn::core::{Rejected, Session};
use adjourn::store::Erased;
use serde_json::json;

use crate::arguments::Rm;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;
use crate::view::short;

pub async fn run(settings: &Settings, rm: &Rm, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings).await?;
    let mut ids: Vec<SessionId> = Vec::new();
    // All are looked at before any is removed: a mistyped id removes none.
    for text in &rm.sessions {
        let id = place.find(text).await?;
        check(&place, id, rm.force).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    for id in ids {
        let erased = remove(&place, id, rm.force).await?;
        let Erased { entries, said, more } = erased;
        let object = json!({ "removed": { "sessionId": id, "entries": entries, "said": said } });
        let rest = if more { "; the rest goes with the next `adjourn prune`" } else { "" };
        let line = format!("removed {id}: {entries} journal and {said} transcript entries{rest}");
        output.object(&object, &line);
    }
    Ok(())
}

/// Refuses what is not to be removed, before anything is.
async fn check(place: &Place, id: SessionId, force: bool) -> Result<(), Failure> {
    match place.adjourn.session(id).load().await {
        Err(error) if error.is_of_a_session() && force => Ok(()),
        Err(error) if error.is_of_a_session() => {
            let hint = format!("`adjourn rm --force {}` removes it all the same", end_of(id));
            Err(Failure::from(error).hint(hint))
        }
        Err(error) => Err(error.into()),
        Ok(session) => refuse_at_work(&session, force),
    }
}

/// Refuses a session that still runs or waits, unless it is to go all the same.
fn refuse_at_work(session: &Session, force: bool) -> Result<(), Failure> {
    let what = match &session.state {
        State::Idle | State::Ended(_) => return Ok(()),
        _ if force => return Ok(()),
        State::Ready(_) | State::Running(_) | State::Quiescing(_) => "still at work",
        State::Suspended(_) => "suspended, and may still go on",
    };
    let end = end_of(session.id);
    Err(Failure::refused("TASK_BUSY", format!("session {} is {what}", session.id)).hint(format!(
        "`adjourn close {end}` ends it; `adjourn rm --force {end}` ends and removes it"
    )))
}

/// Ends a session and erases it.
async fn remove(place: &Place, id: SessionId, force: bool) -> Result<Erased, Failure> {
    let remove = place.adjourn.session(id).remove();
    let remove = if force { remove.even_at_work().even_unreadable() } else { remove };
    match remove.await {
        // It has gone to work since it was looked at.
        Err(Error::Refused(Rejected::Busy { .. })) => {
            refuse_at_work(&*place.session(id).await?, force)?;
            Err(Failure::refused("TASK_BUSY", format!("session {id} was at work")))
        }
        removed => Ok(removed?),
    }
}

/// Returns the end of an id, as lists show it.
fn end_of(id: SessionId) -> String {
    short(&id.to_string()).to_owned()
}
