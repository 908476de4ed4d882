//! `cancel`.

use adjourn_core::Command;
use adjourn_core::command::Cancel;
use adjourn_store::Request;

use crate::arguments::Reasoned;
use crate::failure::Failure;
use crate::place::{Place, by};
use crate::settings::Settings;
use crate::show::{Output, standing, status};

pub async fn run(settings: &Settings, cancel: Reasoned, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let id = place.find(&cancel.which.session)?;
    let command = Command::Cancel(Cancel { reason: cancel.reason });
    let session = place.give(Request::new(id, by(), command)).await?.session;
    let line = format!("{id}  {}", standing(&session, place.clock.now()));
    output.object(&status(&session), &line);
    Ok(())
}
