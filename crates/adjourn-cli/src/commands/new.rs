//! `new`: a session that waits for its first prompt.

use serde_json::json;

use crate::arguments::New;
use crate::commands::run::{create, read};
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, new: &New, output: &Output) -> Result<(), Failure> {
    let (driver, _) = read(&new.script)?;
    let place = Place::open_or_make(settings).await?;
    let id = create(&place, new.given.founding(&place, driver).await?).await?;
    output.object(&json!({ "sessionId": id }), &id.to_string());
    Ok(())
}
