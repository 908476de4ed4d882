//! `prompt`: the next run of an idle session, or the answer to its question.

use crate::arguments::Prompt;
use crate::commands::resume::go_on;
use crate::commands::run::say;
use crate::failure::Failure;
use crate::place::{Place, by};
use crate::settings::Settings;
use crate::terminal::Output;
use crate::typed::typed;

pub async fn run(settings: &Settings, prompt: Prompt, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let id = place.find(&prompt.which.session)?;
    let session = say(&place, id, by(), &typed(prompt.text)?).await?;
    go_on(&place, &session, prompt.detach, output).await
}
