//! Commands for the store, its keys, and the program itself.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{Accept, Share};
use crate::durations::duration;

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// List keys: the current one, those still accepted, those revoked, those missing here
    List,
    /// Make a new key, which signs from then on; the old ones are still accepted
    Rotate,
    /// Revoke a key: what it signed is marked, what it sealed is refused
    Revoke(Revoke),
    /// Write the half of a key that opens records, for a machine that is to import them
    Share(Share),
    /// Accept records of another machine, by the file that `keys share` wrote there
    Accept(Accept),
}

#[derive(Debug, Args)]
pub struct Revoke {
    /// The key's id, or the beginning of it
    #[arg(value_name = "KEY")]
    pub key: String,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct Prune {
    /// Erase what happened in sessions that have ended, too
    #[arg(long)]
    pub ended: bool,
    /// Only those that ended longer ago than this [default: what retention.ended says, or 30d]
    #[arg(long, value_name = "DURATION", requires = "ended", value_parser = duration)]
    pub older_than: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct Restore {
    /// The backup; it is copied
    #[arg(value_name = "FILE")]
    pub from: PathBuf,
}

#[derive(Debug, Args)]
pub struct Backup {
    /// The file to write; it must not be there yet
    pub to: PathBuf,
}

#[derive(Debug, Args)]
pub struct Config {
    /// Print a file with every setting and its default, commented out
    #[arg(long)]
    pub defaults: bool,
}

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct Man {
    /// Where to write them, as adjourn.1, adjourn-run.1 and so on
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}
