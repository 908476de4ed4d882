//! Commands that move a session from one store to another.

use std::path::PathBuf;

use clap::Args;

use super::{As, Which};
use crate::durations::{Age, age};
use crate::filter::label;
use crate::founding::name;

#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    pub which: Which,
    /// The file to write, or - for stdout; only its owner can read it, and it has all that was said
    #[arg(value_name = "FILE")]
    pub to: PathBuf,
    /// Replace the file if it is there
    #[arg(long, short)]
    pub force: bool,
    /// Why, for those who look at the session here, and for peers who watch it
    #[arg(long, short)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Args)]
pub struct Import {
    /// The record, or - for stdin
    #[arg(value_name = "FILE")]
    pub from: PathBuf,
    /// How old the record may be, counted from the suspension; `none` takes it at any age
    /// [default: 1d]
    #[arg(long, value_name = "DURATION", value_parser = age)]
    pub max_age: Option<Age>,
    /// A name in the place of the one that it had
    #[arg(id = "session_name", long = "name", value_name = "NAME", value_parser = name)]
    pub name: Option<String>,
    /// A label to find it by, beside those that it had; it may be given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// The directory it works in here
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Args)]
pub struct Share {
    /// The file to write, or - for stdout; who has it can make records that are accepted, so it is
    /// to be kept as a key is
    #[arg(value_name = "FILE")]
    pub to: PathBuf,
    /// Replace the file if it is there
    #[arg(long, short)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct Accept {
    /// The file that `keys share` wrote
    #[arg(value_name = "FILE")]
    pub from: PathBuf,
}
