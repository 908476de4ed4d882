//! What can be typed.

mod a2a;
mod acting;
mod looking;
mod moving;
mod starting;
mod upkeep;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use a2a::{A2a, Binding, Get, Pause, PeerFlags, Send, SpokenVersion, Wake, Watch};
pub use acting::{Event, Mode, OnTimeout, Prompt, Reasoned, Resume, Rm, Suspend, Takeover};
pub use looking::{Log, Since, Wait, WaitFor};
pub use moving::{Accept, Export, Import, Share};
pub use starting::{Acp, AgentFlags, New, OnDisconnect, Profile, Push, Run, Serve, StatusWords};
pub use upkeep::{Backup, Completions, Config, Keys, Man, Prune, Restore, Revoke};

use crate::filter::{Ls, Status};

/// The heading of options that every command has.
const EVERYWHERE: &str = "Options of every command";
/// How a command ends, for the help and the manual.
const EXIT_CODES: &str = "Exit codes: 0 done, 2 usage, 3 refused by the lifecycle, 4 not found, \
                          5 store, 6 not in time, 7 parked until a person goes on with it, 129, 130 \
                          and 143 interrupted by a hangup, by Ctrl-C and by a termination, 1 \
                          anything else.";

/// A durable pause for any AI agent.
#[derive(Debug, Parser)]
#[command(name = "adjourn", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Arguments {
    /// The store's file [env: ADJOURN_STORE] [default: adjourn/store.db in the data directory]
    #[arg(long, global = true, value_name = "PATH", help_heading = EVERYWHERE)]
    pub store: Option<PathBuf>,
    /// The configuration file [env: ADJOURN_CONFIG] [default: adjourn/config.toml in the
    /// configuration directory]
    #[arg(long, global = true, value_name = "PATH", help_heading = EVERYWHERE)]
    pub config: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub json: bool,
    /// What is logged on stderr [env: ADJOURN_LOG] [default: info for serve, warn for acp, off for
    /// all others]
    #[arg(long, global = true, value_enum, value_name = "LEVEL", help_heading = EVERYWHERE)]
    pub log: Option<LogLevel>,
    /// How lines of the log are written [env: ADJOURN_LOG_FORMAT] [default: text]
    #[arg(long, global = true, value_enum, value_name = "FORMAT", help_heading = EVERYWHERE)]
    pub log_format: Option<LogFormat>,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// A tour of ten seconds: an agent parks, wakes from an event and a deadline, asks and is answered
    Demo,
    /// Run an agent, and stay with it until it is done
    Run(Run),
    /// Make a session that waits for its first prompt, and print its id
    New(New),
    /// Be a host: run what is ready, and wake what is due
    Serve(Serve),
    /// Be an agent that editors start: ACP on stdin and stdout
    Acp(Acp),
    /// List sessions: what waits, since when, and what will wake it
    Ls(Ls),
    /// Count sessions by state, and say what is overdue, which hosts live and what is undelivered
    Status(Status),
    /// List hosts: since when, how much they run, and when they last gave a sign of life
    Hosts,
    /// Show one session
    Show(Which),
    /// Show what happened to a session
    Log(Log),
    /// Wait until a session is idle, suspended or ended
    Wait(Wait),
    /// Pause a session
    Suspend(Suspend),
    /// Give an idle session its next prompt, or answer its question
    Prompt(Prompt),
    /// Wake a session, or lift a hold
    Resume(Resume),
    /// Tell the store that something happened
    Event(Event),
    /// End the run of a session
    Cancel(Reasoned),
    /// End a session
    Close(Reasoned),
    /// Write a signed record of a parked session, with which it goes on elsewhere, and end it here
    Export(Export),
    /// Go on with a session from a signed record
    Import(Import),
    /// Take a session from a host that hangs, for whichever host is free to go on with
    Takeover(Takeover),
    /// Remove sessions for good: end them, and erase what happened and was said in them
    Rm(Rm),
    /// Drop events and answers that are no longer needed, and with --ended old sessions
    Prune(Prune),
    /// Write a copy of the store
    Backup(Backup),
    /// Put a backup in the place of the store, and keep what was there
    Restore(Restore),
    /// List, rotate, revoke or share the keys that commits and records are signed with
    #[command(subcommand)]
    Keys(Keys),
    /// Try an agent that speaks A2A: give it work, watch it, pause it and wake it
    #[command(subcommand)]
    A2a(A2a),
    /// Show what is set, and where each value came from
    Config(Config),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write the pages of all commands to a directory
    Man(Man),
}

impl Verb {
    /// Returns whom a command that changes something names as the one who asks.
    pub fn named(&self) -> Option<&str> {
        let by = match self {
            Self::Run(run) => &run.by,
            Self::New(new) => &new.by,
            Self::Suspend(suspend) => &suspend.by,
            Self::Prompt(prompt) => &prompt.by,
            Self::Resume(resume) => &resume.by,
            Self::Cancel(reasoned) | Self::Close(reasoned) => &reasoned.by,
            Self::Export(export) => &export.by,
            Self::Import(import) => &import.by,
            Self::Takeover(takeover) => &takeover.by,
            Self::Rm(rm) => &rm.by,
            _ => return None,
        };
        by.name.as_deref()
    }
}

/// A session, by its name, its id, the id of one of its runs, or by how its id begins, or the end
/// of it that lists show.
#[derive(Debug, Args)]
pub struct Which {
    /// The session's name or id, the beginning or end of what `ls` shows of its id, or the id of one
    /// of its runs
    pub session: String,
}

/// Who asks for a change, as the journal names it.
#[derive(Debug, Args)]
pub struct As {
    /// Who asks, as the journal and refusals name them [env: ADJOURN_AS]
    /// [default: the user's name]
    #[arg(long = "as", value_name = "NAME", value_parser = crate::settings::principal)]
    pub name: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
// Every command has it: what each level is for is in docs/operations.md, not in every help.
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}
