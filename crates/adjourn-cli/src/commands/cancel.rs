//! `cancel`.

use crate::arguments::Reasoned;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, cancel: Reasoned, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings).await?;
    let id = place.find(&cancel.which.session).await?;
    let grace = settings.cancel_grace.configured();
    let canceled = place.adjourn.session(id).cancel().reason(cancel.reason).grace(grace).await?;
    place.tell(&canceled.commit.session, output).await
}
