//! `prune`: drops events and answers that are no longer needed.

use adjourn_store::{Pruned, Retention, Store as _};
use serde_json::json;

use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

/// How much is dropped in one transaction.
const BATCH: usize = 1000;

pub async fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let mut all = Pruned::default();
    loop {
        let retention = Retention::default();
        let pruned = place.store.transact(move |tx| tx.prune(&retention, BATCH)).await?;
        all.events += pruned.events;
        all.answers += pruned.answers;
        if !pruned.more {
            break;
        }
    }
    let line = format!("dropped {} events and {} answers", all.events, all.answers);
    output.object(&json!({ "events": all.events, "answers": all.answers }), &line);
    Ok(())
}
