//! `new`: a session that waits for its first prompt.

use serde_json::json;

use crate::arguments::New;
use crate::chosen::Chosen;
use crate::commands::run::create;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, new: &New, output: &Output) -> Result<(), Failure> {
    let chosen = Chosen::by(&new.agent, settings)?.working_in(new.cwd.as_ref())?;
    let chosen = chosen.within(new.given.budget)?;
    let place = Place::open_or_make(settings).await?;
    let founding = new.given.founding(&place, chosen.driver, chosen.budget).await?;
    let id = create(&place, founding).await?;
    output.object(&json!({ "sessionId": id }), &id.to_string());
    Ok(())
}
