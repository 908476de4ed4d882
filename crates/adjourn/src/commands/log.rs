//! `log`: what happened to a session.

use adjourn_core::session::State;
use adjourn_host::watch::Moment;
use serde_json::{Value, json};

use crate::arguments::Log;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::story::{Story, words};
use crate::terminal::Output;
use crate::watch::{Seen, Watch};

pub async fn run(settings: &Settings, log: &Log, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let id = place.find(&log.which.session)?;
    let mut watcher = Watch::from_start(&place, id);
    let mut story = Story::default();
    loop {
        let Some(Seen { session, moments }) = watcher.page()? else {
            return Err(Failure::no_session(id));
        };
        for moment in &moments {
            if log.transcript {
                transcript(moment, output);
            } else {
                let object = serde_json::to_value(&moment.event).unwrap_or_default();
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

/// Shows what was said, each with its place in the transcript and the entry of the journal that it
/// came with.
fn transcript(moment: &Moment, output: &Output) {
    let Moment { revision, event, from, said, .. } = moment;
    for (index, said) in (*from..).zip(said) {
        let mut object =
            json!({ "index": index, "revision": revision, "at": event.at.to_string() });
        if let (Some(object), Ok(Value::Object(said))) =
            (object.as_object_mut(), serde_json::to_value(said))
        {
            object.extend(said);
        }
        output.object(&object, &output.clean(&words(event.at, said)));
    }
}
