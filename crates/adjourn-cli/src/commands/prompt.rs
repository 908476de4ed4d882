//! `prompt`: the next run of an idle session, or the answer to its question.

use crate::arguments::Prompt;
use crate::commands::resume::{dismiss, go_on, host_for, with_question};
use crate::commands::run::say;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;
use crate::text_argument::typed;

pub async fn run(settings: &Settings, prompt: Prompt, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings).await?;
    let id = place.find(&prompt.which.session).await?;
    let text = typed(prompt.text)?;
    let session = place.recovered(id, output).await?;
    let staying = host_for(&place, &session, prompt.detach, output).await?;
    match say(&place, id, &text).await {
        Ok(prompted) => go_on(&place, &prompted, staying, prompt.detach, output).await,
        Err(refused) => Err(dismiss(staying, with_question(refused, &session)).await),
    }
}
