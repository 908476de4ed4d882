//! `close`.

use crate::arguments::Reasoned;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, close: Reasoned, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings).await?;
    let id = place.find(&close.which.session).await?;
    let closed = place.adjourn.session(id).close().reason(close.reason).await?;
    place.tell(&closed.commit.session, output).await
}
