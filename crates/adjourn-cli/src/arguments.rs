//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use adjourn_core::carry::AddBudget;
use adjourn_core::time::Timestamp;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::durations::{duration, timeout};
use crate::filter::{Ls, Status};
use crate::founding::{Given, add_budget};

/// The heading of options that every command has.
const EVERYWHERE: &str = "Options of every command";
/// How a command ends, for the help and the manual.
const EXIT_CODES: &str = "Exit codes: 0 done, 2 usage, 3 refused by the lifecycle, 4 not found, \
                          5 store, 6 not in time, 129, 130 and 143 interrupted by a hangup, by \
                          Ctrl-C and by a termination, 1 anything else.";

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
    /// Run a scripted agent, and stay with it until it ends
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
    /// List, rotate or revoke the keys that commits are signed with
    #[command(subcommand)]
    Keys(Keys),
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

#[derive(Debug, Args)]
pub struct Takeover {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Args)]
pub struct Run {
    /// The script
    #[arg(short, long, value_name = "FILE")]
    pub script: PathBuf,
    /// The first prompt
    #[arg(short, long, default_value = "go")]
    pub prompt: String,
    /// Return when the session parks
    #[arg(short, long)]
    pub detach: bool,
    #[command(flatten)]
    pub given: Given,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Args)]
pub struct Acp {
    /// What the agent does
    #[arg(short, long, value_name = "FILE")]
    pub script: PathBuf,
    /// In whose words clients are told about suspensions [env: ADJOURN_ACP_PROFILE]
    /// [default: adjourn]
    #[arg(long, value_enum)]
    pub profile: Option<Profile>,
    /// In which words session/status answers [env: ADJOURN_ACP_STATUS_WORDS] [default: auto]
    #[arg(long, value_enum, value_name = "WORDS")]
    pub status_words: Option<StatusWords>,
    /// What becomes of running sessions when the editor goes away
    /// [env: ADJOURN_ACP_ON_DISCONNECT] [default: continue]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub on_disconnect: Option<OnDisconnect>,
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

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Profile {
    /// Tell each client in the words it has shown to understand
    Adjourn,
    /// Tell every client in the words of the proposals
    Rfc,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum StatusWords {
    /// Those of the protocol version
    Auto,
    /// live, not_found
    Live,
    /// open, saved, _suspended
    Open,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum OnDisconnect {
    /// They run on, on another host if there is one
    Continue,
    /// They are suspended
    Suspend,
    /// Their runs are canceled
    Cancel,
}

#[derive(Debug, Args)]
pub struct New {
    /// The script
    #[arg(short, long, value_name = "FILE")]
    pub script: PathBuf,
    #[command(flatten)]
    pub given: Given,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Take events over HTTP, at POST /v1/events [env: ADJOURN_LISTEN]
    #[arg(short, long, value_name = "ADDR:PORT", value_parser = crate::settings::address)]
    pub listen: Option<std::net::SocketAddr>,
    /// What callers must show as a bearer token; others on this machine can see it here
    /// [env: ADJOURN_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// A file that holds it [env: ADJOURN_TOKEN_FILE]
    #[arg(long, value_name = "PATH", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
    /// Sessions to drive at once [env: ADJOURN_MAX_RUNNING] [default: 64]
    #[arg(long, value_name = "N", value_parser = crate::settings::count)]
    pub max_running: Option<usize>,
    /// How long calls in flight may go on when it stops [env: ADJOURN_DRAIN] [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub drain: Option<Duration>,
    /// Sessions to keep in memory [env: ADJOURN_CACHE] [default: 4096]
    #[arg(long, value_name = "N", value_parser = crate::settings::count)]
    pub cache: Option<usize>,
}

#[derive(Debug, Args)]
pub struct Log {
    #[command(flatten)]
    pub which: Which,
    /// Show what was said instead
    #[arg(short, long)]
    pub transcript: bool,
    /// Go on until the session ends
    #[arg(short, long)]
    pub follow: bool,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N", value_parser = crate::settings::count)]
    pub tail: Option<usize>,
    /// Only what is younger: a duration like 10m, or a point in time like 2026-11-16T09:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<Since>,
}

/// From when on a log is shown.
#[derive(Debug, Clone, Copy)]
pub enum Since {
    /// So long before now.
    Ago(Duration),
    /// A point in time.
    At(Timestamp),
}

fn since(text: &str) -> Result<Since, String> {
    let ago = duration(text).map(Since::Ago);
    let at = || Timestamp::parse(text).map(Since::At);
    ago.or_else(|_| at()).map_err(|_| {
        "expected a duration like 10m, or a point in time like 2026-11-16T09:00:00Z".to_owned()
    })
}

#[derive(Debug, Args)]
pub struct Wait {
    #[command(flatten)]
    pub which: Which,
    /// What to wait for; one of several, with commas between them
    #[arg(
        long = "for",
        value_name = "STATE",
        value_enum,
        value_delimiter = ',',
        default_value = "idle"
    )]
    pub states: Vec<WaitFor>,
    /// How long at most [default: as long as it takes]
    #[arg(short, long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitFor {
    /// Its run is over
    Idle,
    /// It is parked
    Suspended,
    /// It has ended
    Ended,
}

#[derive(Debug, Args)]
pub struct Suspend {
    #[command(flatten)]
    pub which: Which,
    /// Why
    #[arg(short, long)]
    pub reason: Option<String>,
    /// When it takes effect
    #[arg(short, long, value_enum, default_value_t = Mode::FinishStep)]
    pub mode: Mode,
    /// Wake it on an event: NAME or NAME:SUBJECT, with * and **
    #[arg(short = 'e', long, value_name = "PATTERN")]
    pub on_event: Option<String>,
    /// Wake it on a trigger
    #[arg(long, value_name = "JSON")]
    pub trigger: Option<String>,
    /// Wake it after a while: 90s, 30m, 1h30m, 2d
    #[arg(short, long, value_name = "DURATION", value_parser = timeout, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,
    /// What to do then
    #[arg(long, value_name = "ACTION", requires = "timeout", value_enum)]
    pub on_timeout: Option<OnTimeout>,
    /// Wake it on any of these: {"onEvent": …, "trigger": …, "timeout": {"durationMinutes": …}}
    #[arg(long, value_name = "JSON", conflicts_with_all = ["on_event", "trigger", "timeout"])]
    pub resume_when: Option<String>,
    /// Abandon calls that are still in flight after this long
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub grace: Option<Duration>,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Mode {
    /// After the step under way: the model answers, and the calls it asks for run
    FinishStep,
    /// At once: the model is broken off; calls that have started end, others wait for the resume
    InterruptImmediate,
    /// After the run under way
    WaitForCompletion,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum OnTimeout {
    /// Wake it, and tell it what it waited for and how long
    ResumeWithSummary,
    /// Wake it with that as a value
    ResumeWithInput,
    /// Fail its run
    Fail,
}

#[derive(Debug, Args)]
pub struct Prompt {
    #[command(flatten)]
    pub which: Which,
    /// What to say; - reads it from stdin
    pub text: String,
    /// Return at once; a host that is there runs it
    #[arg(short, long)]
    pub detach: bool,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Args)]
pub struct Resume {
    #[command(flatten)]
    pub which: Which,
    /// The suspension that is meant
    #[arg(long)]
    pub handle: Option<String>,
    /// A value for the agent; - reads it from stdin
    #[arg(short, long, value_name = "JSON")]
    pub input: Option<String>,
    /// Start the turn with a digest instead of the whole transcript
    #[arg(long)]
    pub fresh: bool,
    /// Makes a retry harmless
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Raise the budget: usd=5, tokens=20000, or both with a comma between them
    #[arg(long, value_name = "AMOUNTS", value_parser = add_budget, allow_hyphen_values = true)]
    pub add_budget: Option<AddBudget>,
    /// Only commit; a host that is there runs it
    #[arg(short, long)]
    pub detach: bool,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Args)]
pub struct Event {
    /// NAME or NAME:SUBJECT
    pub name: String,
    /// What there is to say about it; - reads it from stdin
    #[arg(short, long, value_name = "JSON")]
    pub data: Option<String>,
    /// Its id; the same id from the same source is taken once
    #[arg(long)]
    pub id: Option<String>,
    /// Where it comes from [env: ADJOURN_SOURCE] [default: cli]
    #[arg(long)]
    pub source: Option<String>,
    /// Whose it is [env: ADJOURN_TENANT] [default: local]
    #[arg(long)]
    pub tenant: Option<String>,
    /// Wake this session, whatever it waits for
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

#[derive(Debug, Args)]
pub struct Reasoned {
    #[command(flatten)]
    pub which: Which,
    /// Why
    #[arg(short, long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// List keys: the current one, those still accepted, those revoked, those missing here
    List,
    /// Make a new key, which signs from then on; the old ones are still accepted
    Rotate,
    /// Revoke a key: what it signed is marked, what it sealed is refused
    Revoke(Revoke),
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
pub struct Rm {
    /// The sessions' names or ids, or parts of their ids that no other has
    #[arg(value_name = "SESSION", required = true)]
    pub sessions: Vec<String>,
    /// Also those that still run or wait, and those that cannot be read
    #[arg(long, short)]
    pub force: bool,
    #[command(flatten)]
    pub by: As,
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
