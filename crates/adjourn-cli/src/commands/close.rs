//! `close`.

use adjourn_core::Command;
use adjourn_core::command::Close;
use adjourn_store::Request;

use crate::arguments::Reasoned;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, close: Reasoned, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let id = place.find(&close.which.session)?;
    let command = Command::Close(Close { reason: close.reason });
    let session = place.give(Request::new(id, place.by(), command)).await?.session;
    place.tell(&session, output)
}
