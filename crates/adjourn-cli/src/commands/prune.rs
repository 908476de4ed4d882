//! `prune`: drops events and answers that are no longer needed, and what happened in sessions that
//! ended long ago.

use adjourn_store::{Pruned, Retention};
use serde_json::json;

use crate::arguments::Prune;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

/// How much is dropped in one transaction.
const BATCH: usize = 1000;

pub async fn run(settings: &Settings, prune: &Prune, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let older_than = prune.older_than.or(settings.ended.value).unwrap_or(Retention::ENDED);
    let ended = prune.ended.then_some(older_than);
    let retention = Retention { ended, ..Retention::default() };
    let mut all = Pruned::default();
    loop {
        let pruned = place.adjourn.transact(move |tx| tx.prune(&retention, BATCH)).await?;
        all.events += pruned.events;
        all.answers += pruned.answers;
        all.sessions += pruned.sessions;
        if !pruned.more {
            break;
        }
    }
    let Pruned { events, answers, sessions, .. } = all;
    let (object, line) = match prune.ended {
        false => (
            json!({ "events": events, "answers": answers }),
            format!("dropped {events} events and {answers} answers"),
        ),
        true => (
            json!({ "events": events, "answers": answers, "sessions": sessions }),
            format!("dropped {events} events, {answers} answers and {sessions} ended sessions"),
        ),
    };
    output.object(&object, &line);
    Ok(())
}
