//! Commands that make sessions, and commands that run them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::As;
use crate::durations::duration;
use crate::founding::Given;

/// What runs a session: an agent with a model, or a script.
#[derive(Debug, Args)]
pub struct AgentFlags {
    /// The model of the agent: PROVIDER/MODEL, such as openai/gpt-5 or anthropic/claude-sonnet-4-5,
    /// or scripted:FILE for answers from a file
    #[arg(short, long)]
    pub model: Option<String>,
    /// An agent of the settings, [agent.NAME]; what other flags say goes before what it has. The
    /// agent `conformance` is there without them, for the test kits of A2A
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Tools for files and commands in the agent's directory, with commas between them: read, list,
    /// search, write, edit, run; or all
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub tools: Vec<String>,
    /// Let tools run without asking for permission
    #[arg(long)]
    pub allow_all: bool,
    /// A file of MCP servers, {"mcpServers": {…}}, whose tools the agent has
    #[arg(long, value_name = "FILE")]
    pub mcp: Option<PathBuf>,
    /// A script instead of an agent: every step is written down
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["model", "agent", "tools", "mcp"])]
    pub script: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Run {
    /// What the agent is to do; - reads it from stdin
    pub task: Option<String>,
    #[command(flatten)]
    pub agent: AgentFlags,
    /// The directory that the agent works in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The same as the task
    #[arg(short, long, value_name = "TASK", conflicts_with = "task")]
    pub prompt: Option<String>,
    /// Return when the session parks
    #[arg(short, long)]
    pub detach: bool,
    /// Leave the session open for further prompts when its run is over; one that failed stays open
    #[arg(short, long)]
    pub keep: bool,
    #[command(flatten)]
    pub given: Given,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Args)]
pub struct Acp {
    #[command(flatten)]
    pub agent: AgentFlags,
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
pub enum Profile {
    /// Tell each client in the words it has shown to understand
    Adjourn,
    /// Tell every client in the words of the proposals
    Rfc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Push {
    /// The server sends none
    Off,
    /// The server sends them to hosts on the public internet, over https
    Public,
    /// The server sends them to this machine, too
    Loopback,
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
    #[command(flatten)]
    pub agent: AgentFlags,
    /// The directory that the agent works in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    #[command(flatten)]
    pub given: Given,
    #[command(flatten)]
    pub by: As,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Listen for HTTP: events, at POST /v1/events, and other agents, over A2A at POST /a2a, if there
    /// is an agent that they talk to; callers show a token [env: ADJOURN_LISTEN]
    #[arg(short, long, value_name = "ADDR:PORT", value_parser = crate::settings::address)]
    pub listen: Option<std::net::SocketAddr>,
    /// What those who send events show as a bearer token; others on this machine can see it here
    /// [env: ADJOURN_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// A file that holds it [env: ADJOURN_TOKEN_FILE]
    #[arg(long, value_name = "PATH", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
    // What other agents talk to, over A2A at POST /a2a; without it they talk to none.
    #[command(flatten)]
    pub agent: AgentFlags,
    /// A file of the tokens that callers show: NAME SHA256 SCOPES [TENANT] on each line
    /// [env: ADJOURN_TOKENS_FILE]
    #[arg(long, value_name = "PATH")]
    pub tokens_file: Option<PathBuf>,
    /// Let everybody on this machine in without a token; on loopback addresses only
    #[arg(long)]
    pub insecure_open: bool,
    /// What others call it, besides its address: agents.example.org, or https://agents.example.org
    /// behind a proxy [env: ADJOURN_PUBLIC_NAME]
    #[arg(long, value_name = "NAME", value_parser = adjourn_server::PublicName::read)]
    pub public_name: Option<adjourn_server::PublicName>,
    /// Where other agents may have push notifications sent [env: ADJOURN_PUSH] [default: public]
    #[arg(long, value_enum)]
    pub push: Option<Push>,
    /// In whose words they are told about pauses [env: ADJOURN_A2A_PROFILE] [default: adjourn]
    #[arg(long, value_enum)]
    pub profile: Option<Profile>,
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
