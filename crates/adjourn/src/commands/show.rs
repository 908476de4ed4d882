//! `show`: one session.

use adjourn_store::Store as _;

use crate::arguments::Which;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::show::{Output, standing, status};

pub fn run(settings: &Settings, which: &Which, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let id = place.find(&which.session)?;
    let session = place.store.session(id)?;
    let session = session.ok_or_else(|| Failure::not_found(format!("there is no session {id}")))?;
    let object = status(&session);
    if output.json {
        output.data(&object.to_string());
        return Ok(());
    }
    output.data(&format!("{id}  {}", standing(&session, place.clock.now())));
    for (key, value) in object.as_object().into_iter().flatten() {
        if key != "sessionId" {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            output.data(&format!("  {key:<20} {value}"));
        }
    }
    Ok(())
}
