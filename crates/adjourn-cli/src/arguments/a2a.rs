//! Commands that ask an agent of another server.

use std::path::PathBuf;
use std::time::Duration;

use adjourn::core::carry::AddBudget;
use clap::{Args, Subcommand, ValueEnum};

use super::Mode;
use crate::durations::duration;
use crate::founding::add_budget;

#[derive(Debug, Subcommand)]
pub enum A2a {
    /// Say something to an agent, and tell what comes of it
    Send(Send),
    /// Show a task
    Get(Get),
    /// Pause a task
    Pause(Pause),
    /// Wake a paused task
    Resume(Wake),
    /// Tell what happens to a task, until it is at its end or asks something
    Watch(Watch),
}

/// An agent of another server, and how it is spoken to.
#[derive(Debug, Args)]
pub struct PeerFlags {
    /// The agent: its URL, that of its server, or that of its card
    pub url: String,
    /// A file that holds the bearer token to show; ADJOURN_A2A_TOKEN may hold the token itself
    #[arg(long, value_name = "PATH")]
    pub token_file: Option<PathBuf>,
    /// Speak this version of A2A [default: the one that the agent prefers]
    #[arg(long, value_enum, value_name = "VERSION")]
    pub speak: Option<SpokenVersion>,
    /// Speak it over this binding [default: the one that the agent prefers]
    #[arg(long, value_enum)]
    pub binding: Option<Binding>,
    /// How long to wait for an answer
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2m")]
    pub timeout: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SpokenVersion {
    #[value(name = "0.3")]
    V03,
    #[value(name = "1.0")]
    V10,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Binding {
    /// JSON-RPC
    Jsonrpc,
    /// HTTP+JSON
    Rest,
}

#[derive(Debug, Args)]
pub struct Send {
    #[command(flatten)]
    pub peer: PeerFlags,
    /// What to say; - reads it from stdin
    pub text: String,
    /// Answer this task, which asks something
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// Go on in this context
    #[arg(long, value_name = "CONTEXT")]
    pub context: Option<String>,
    /// The message's id: a retry under the same one is taken once [default: a new one]
    #[arg(long, value_name = "ID")]
    pub message_id: Option<String>,
    /// Return as soon as the agent has taken it
    #[arg(short, long)]
    pub detach: bool,
}

#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub peer: PeerFlags,
    /// The task's id
    pub task: String,
}

#[derive(Debug, Args)]
pub struct Pause {
    #[command(flatten)]
    pub peer: PeerFlags,
    /// The task's id
    pub task: String,
    /// Why
    #[arg(short, long)]
    pub reason: Option<String>,
    /// When it takes effect [default: as the agent has it, finish_step]
    #[arg(short, long, value_enum)]
    pub mode: Option<Mode>,
    /// Wake it on any of these, if the agent can: {"onEvent": …, "timeout": {"durationMinutes": …}}
    #[arg(long, value_name = "JSON")]
    pub resume_when: Option<String>,
    /// Cancel the task if the agent cannot pause it; what it has done so far is lost
    #[arg(long)]
    pub or_cancel: bool,
}

#[derive(Debug, Args)]
pub struct Wake {
    #[command(flatten)]
    pub peer: PeerFlags,
    /// The task's id
    pub task: String,
    /// The pause that is meant
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
    /// Raise the budget: usd=5, tokens=20000, steps=50, with commas between them
    #[arg(long, value_name = "AMOUNTS", value_parser = add_budget, allow_hyphen_values = true)]
    pub add_budget: Option<AddBudget>,
}

#[derive(Debug, Args)]
pub struct Watch {
    #[command(flatten)]
    pub peer: PeerFlags,
    /// The task's id
    pub task: String,
}
