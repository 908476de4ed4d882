//! `log`: what happened to a session.

use adjourn_core::session::State;

use crate::arguments::Log;
use crate::entry::{happened, said};
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::story::{Story, words};
use crate::terminal::Output;
use crate::watch::{Seen, Watch};

pub async fn run(settings: &Settings, log: &Log, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings)?;
    let id = place.find(&log.which.session)?;
    let mut watcher = Watch::from_start(&place, id);
    let mut story = Story::default();
    loop {
        let Some(Seen { session, moments }) = watcher.page()? else {
            return Err(Failure::no_session(id));
        };
        for moment in &moments {
            if log.transcript {
                let at = moment.event.at;
                for (object, (_, said)) in said(moment).zip(&moment.said) {
                    output.object(&object, &output.clean(&words(at, said)));
                }
            } else {
                let object = happened(moment.revision, &moment.event);
                output.object(&object, &story.event(&moment.event, output));
            }
        }
        if !output.is_read() {
            return Ok(());
        }
        // A journal of any length is shown in little memory. Whoever follows it has seen all that
        // led to a state only when nothing comes after that was read.
        if watcher.is_behind() || (log.follow && !moments.is_empty()) {
            continue;
        }
        if !log.follow || matches!(session.state, State::Ended(_)) {
            return Ok(());
        }
        watcher.wait().await;
    }
}
