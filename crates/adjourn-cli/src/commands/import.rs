//! `import`: a session goes on from a signed record.

use std::io::Read as _;
use std::path::Path;

use adjourn::core::driver::{DriverKind, DriverSpec};
use adjourn::driver::{Drivers as _, Unusable};
use adjourn::record::{OpenError, Record};
use adjourn::{Error, RecordError};

use crate::arguments::Import;
use crate::chosen::working_directory;
use crate::failure::Failure;
use crate::filter::unlike;
use crate::input_file;
use crate::native::ProgramDrivers;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;

/// How long a record may be.
const MOST: usize = 256 * 1024 * 1024;

pub async fn run(settings: &Settings, import: Import, output: &Output) -> Result<(), Failure> {
    let record = read(&import.from)?;
    let cwd = import.cwd.as_deref().map(working_directory).transpose()?;
    let place = Place::open_or_make(settings).await?;
    let mut taking = place.adjourn.import(record);
    if let Some(age) = import.max_age {
        taking = taking.max_age(age.0);
    }
    for (key, value) in unlike(&import.labels)? {
        taking = taking.label(key, value);
    }
    if let Some(name) = import.name {
        taking = taking.name(name);
    }
    if let Some(cwd) = cwd {
        taking = taking.cwd(cwd);
    }
    // The record is used up once it is taken in: what is missing here is said before.
    let driver = taking.driver().await?;
    if let Some(cwd) = &driver.cwd
        && !Path::new(cwd).is_dir()
    {
        let problem = format!("the session works in {cwd}, which is no directory here");
        return Err(Failure::refused("NO_DIRECTORY", problem)
            .hint("--cwd DIR names the directory that it works in here"));
    }
    if let Err(Unusable { field, problem }) = ProgramDrivers::new(&place).check(&driver) {
        let problem = format!("no host of this program could run the session: {field}: {problem}");
        return Err(Failure::refused("CANNOT_RUN", problem)
            .hint("the program that made the record can resume it: the record is not used up"));
    }
    let (_, commit) = taking.with_commit().await?;
    place.tell_with(&commit.session, alone(&driver), output).await
}

/// Says what an agent lacks here that a program made without a name: its record has the model alone.
fn alone(driver: &DriverSpec) -> Option<String> {
    let DriverKind::Native { model } = &driver.kind else { return None };
    Some(format!(
        "it goes on with {model} alone: the instructions and the tools of the program that made the \
         record are not here"
    ))
}

/// Reads a record from a file, or from stdin.
fn read(from: &Path) -> Result<Record, Failure> {
    let text = match from {
        from if from == Path::new("-") => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(MOST as u64).read_to_string(&mut text);
            read.map(|_| text)
        }
        from => input_file::read(from, MOST),
    };
    let text =
        text.map_err(|error| Failure::usage(format!("cannot read {}: {error}", from.display())))?;
    let record = text.parse().map_err(|error: OpenError| Error::from(RecordError::from(error)));
    Ok(record?)
}
