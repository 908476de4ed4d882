//! `prompt`: the next run of an idle session, or the answer to its question.

use std::path::PathBuf;

use crate::arguments::Prompt;
use crate::commands::resume::go_on;
use crate::commands::run::say;
use crate::failure::Failure;
use crate::place::{Place, by};
use crate::show::Output;

pub async fn run(store: Option<PathBuf>, prompt: Prompt, output: &Output) -> Result<(), Failure> {
    let place = Place::open(store)?;
    let id = place.find(&prompt.which.session)?;
    say(&place, id, by(), &prompt.text).await?;
    go_on(&place, id, prompt.detach, output).await
}
