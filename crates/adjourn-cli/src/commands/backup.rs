//! `backup`: writes a copy of the store.

use serde_json::json;

use crate::arguments::Backup;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, backup: &Backup, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings).await?;
    place.adjourn.backup(&backup.to).await.map_err(|error| match backup.to.exists() {
        true => Failure::from(error).hint("name a file that is not there yet"),
        false => Failure::from(error),
    })?;
    let path = backup.to.display().to_string();
    output.object(&json!({ "backup": path }), &path);
    Ok(())
}
