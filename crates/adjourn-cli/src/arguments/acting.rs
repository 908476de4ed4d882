//! Commands that change a session.

use std::time::Duration;

use adjourn::core::carry::AddBudget;
use clap::{Args, ValueEnum};

use super::{As, Which};
use crate::durations::{duration, timeout};
use crate::founding::add_budget;

#[derive(Debug, Args)]
pub struct Takeover {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub by: As,
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
    /// Wake it on an event: NAME or NAME:SUBJECT, with * and ** except in the name's first part
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
    /// Raise the budget: usd=5, tokens=20000, steps=50, with commas between them
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
