//! `log`: what happened to a session.

use adjourn_core::session::State;

use crate::arguments::Log;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::story::event;
use crate::terminal::Output;
use crate::watch::{Seen, Watch};

pub async fn run(settings: &Settings, log: &Log, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let id = place.find(&log.which.session)?;
    let mut watcher = Watch::from_start(&place, id);
    loop {
        let Some(Seen { session, events, .. }) = watcher.look()? else {
            return Err(Failure::no_session(id));
        };
        for happened in &events {
            let object = serde_json::to_value(happened).unwrap_or_default();
            output.object(&object, &event(happened, output));
        }
        if !log.follow || matches!(session.state, State::Ended(_)) || !output.is_read() {
            return Ok(());
        }
        watcher.wait().await;
    }
}
