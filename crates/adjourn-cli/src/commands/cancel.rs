//! `cancel`.

use adjourn_core::Command;
use adjourn_core::command::Cancel;
use adjourn_store::Request;

use crate::arguments::Reasoned;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, cancel: Reasoned, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let id = place.find(&cancel.which.session)?;
    let grace = settings.cancel_grace.configured();
    let grace_ms = grace.map(|grace| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
    let command = Command::Cancel(Cancel { reason: cancel.reason, grace_ms });
    let session = place.give(Request::new(id, place.by(), command)).await?.session;
    place.tell(&session, output)
}
