//! `prune`: drops events and answers that are no longer needed, and what happened in sessions that
//! ended long ago.

use adjourn::store::{Pruned, Retention};
use serde_json::json;

use crate::arguments::Prune;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, prune: &Prune, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings).await?;
    let older_than = prune.older_than.or(settings.ended.value).unwrap_or(Retention::ENDED);
    let ended = prune.ended.then_some(older_than);
    let retention = Retention { ended, ..Retention::default() };
    let Pruned { events, answers, sessions, .. } = place.adjourn.prune(retention).await?;
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
