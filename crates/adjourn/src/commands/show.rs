//! `show`: one session.

use crate::arguments::Which;
use crate::failure::Failure;
use crate::living::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::show::View;
use crate::terminal::{Look, Output, one_line};

pub fn run(settings: &Settings, which: &Which, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings)?;
    let id = place.find(&which.session)?;
    let session = place.session(id)?;
    let living = Living::of(&place)?;
    let view = View { session: &session, now: place.clock.now(), living: &living };
    let object = view.json();
    if output.json {
        output.data(&object.to_string());
        return Ok(());
    }
    let text = view.text();
    output.data(&format!("{}  {}", output.word(Look::Bold, &id.to_string()), text));
    if let Some(under) = view.under() {
        output.data(&format!("  {under}"));
    }
    for (key, value) in object.as_object().into_iter().flatten() {
        // What has a line above needs none here, nor has what there is nothing of.
        let nothing = value.as_object().is_some_and(serde_json::Map::is_empty);
        if key != "sessionId" && key != "heldWait" && !nothing {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let key = output.word(Look::Dim, &format!("{key:<20}"));
            output.data(&format!("  {key} {}", one_line(&value)));
        }
    }
    Ok(())
}
