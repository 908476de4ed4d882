//! `backup`: writes a copy of the store.

use adjourn_store::Store as _;
use serde_json::json;

use crate::arguments::Backup;
use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::show::Output;

pub fn run(settings: &Settings, backup: &Backup, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    place.store.backup(&backup.to)?;
    let path = backup.to.display().to_string();
    output.object(&json!({ "backup": path }), &path);
    Ok(())
}
