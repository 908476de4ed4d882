//! `export`: a signed record of a parked session, which ends here.

use std::io::{self, Write as _};
use std::path::Path;

use serde_json::json;

use crate::arguments::Export;
use crate::failure::Failure;
use crate::place::Place;
use crate::private_file::PrivateFile;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, export: Export, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings).await?;
    let id = place.find(&export.which.session).await?;
    // What can be known before the session ends is refused before.
    let file = match export.to.as_path() {
        path if path == Path::new("-") => {
            let untouched = "nothing was done: name a file, or pipe it to something that reads it";
            Output::check_reader().map_err(|failure| failure.hint(untouched))?;
            None
        }
        path => Some(PrivateFile::begin(path, export.force)?),
    };
    // Peers are told the reason: where the record lies here is not theirs to know.
    let exported = place.adjourn.session(id).export().reason(export.reason).await?;
    let text = format!("{}\n", exported.record);
    // The record is in the store from here on: what goes wrong with the file loses nothing.
    let again = format!(
        "the session is over here, and `adjourn export {} FILE` gives the same record again",
        id.short()
    );
    match file {
        Some(file) => {
            file.finish(text.as_bytes()).map_err(|failure| failure.hint(again.as_str()))?;
            let path = export.to.display().to_string();
            let object =
                json!({ "sessionId": id, "record": path, "first": exported.commit.is_some() });
            output.object(&object, &path);
        }
        None => {
            // Unlike other data, it is of no use to a reader who went away before its end.
            let written = io::stdout().write_all(text.as_bytes());
            let written = written.and_then(|()| io::stdout().flush());
            written.map_err(|error| {
                Failure::other(format!("cannot write the record: {error}")).hint(again)
            })?;
        }
    }
    output.talk(match exported.commit {
        Some(_) => "the session is over here; `adjourn import` goes on with the record",
        None if exported.is_first => "it was exported before: this is the same record",
        None => {
            "it was exported before, under another key or by another version: this record goes on \
             with the same session, and only one of the two is taken in"
        }
    });
    Ok(())
}
