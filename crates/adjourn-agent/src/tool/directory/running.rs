//! Running commands: in a terminal of an editor, or here.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use adjourn_driver::Block;
use rustix::process::Signal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::output::Cut;
use super::root::Root;
use super::terminal;
use crate::tool::process::{ProcessGroup, without_secrets};
use crate::tool::{ToolCall, ToolError, ToolOutput};

/// How long a command may take, unless it is said otherwise.
const SECONDS: u64 = 120;
/// The longest time that a model may ask for.
const MOST_SECONDS: u64 = 3600;
/// How much of the time of its call a command leaves, at most, to be ended and to say what it said: an
/// editor may take that long. A call that is given up has no output at all.
const LEFT_TO_TELL: Duration = Duration::from_secs(15);
/// How long the last words of a command are waited for, once it and all of its group have ended:
/// what has left the group may hold them back for ever.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What running takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    /// The command, as a shell reads it.
    #[schemars(length(min = 1))]
    command: String,
    /// After how many seconds it is ended; 120 without it.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u64>,
}

/// How a command ended, and what it said.
pub(super) struct Ended {
    pub(super) output: String,
    pub(super) is_cut: bool,
    pub(super) how: End,
}

/// How a command ended.
pub(super) enum End {
    Exited { code: Option<u32>, signal: Option<String> },
    TookTooLong(Duration),
}

/// Runs a command.
pub(super) async fn run(
    root: Arc<Root>,
    Run { command, timeout_seconds }: Run,
    call: ToolCall,
) -> Result<ToolOutput, ToolError> {
    let seconds = timeout_seconds.unwrap_or(SECONDS).clamp(1, MOST_SECONDS);
    let asked = Duration::from_secs(seconds);
    let within = call.within.map_or(asked, |given| asked.min(all_but_the_last(given)));
    let ended = match call.client.abilities().terminals {
        true => terminal::run(&root, &command, within, &call).await?,
        false => None,
    };
    match ended {
        Some(ended) => ended.result(),
        None => here(&root, &command, within).await?.result(),
    }
}

/// Returns how much of the time of its call a command may have.
fn all_but_the_last(given: Duration) -> Duration {
    given.saturating_sub(LEFT_TO_TELL.min(given / 4))
}

/// Runs a command as a process of this one.
async fn here(root: &Root, command: &str, within: Duration) -> Result<Ended, ToolError> {
    let mut shell = Command::new("sh");
    // What it says comes in the order in which it says it.
    shell.arg("-c").arg(format!("exec 2>&1\n{command}")).current_dir(root.path());
    shell.env_clear().envs(without_secrets(std::env::vars_os())).stdin(Stdio::null());
    let mut group = ProcessGroup::start(&mut shell)?.watched()?;
    let Some(mut stdout) = group.stdout.take() else {
        return Err(ToolError::new("the command has no output"));
    };
    let mut said = Cut::default();
    let exited = tokio::time::timeout(within, async {
        tokio::select! {
            // It ends by itself only when all who can write have ended.
            () = hear(&mut stdout, &mut said) => group.exited().await,
            exited = group.exited() => exited,
        }
    });
    let exited = exited.await;
    // Whatever it has left in the background ends here, too.
    group.signal(Signal::KILL);
    let _ = tokio::time::timeout(LAST_WORDS, hear(&mut stdout, &mut said)).await;
    let how = match exited {
        Ok(status) => End::of(status?),
        Err(_) => End::TookTooLong(within),
    };
    Ok(Ended { output: said.text(), is_cut: said.is_cut(), how })
}

/// Takes what a command says, to its end.
async fn hear(stdout: &mut (impl AsyncRead + Unpin), said: &mut Cut) {
    let mut bytes = vec![0; 8 * 1024];
    while let Ok(count @ 1..) = stdout.read(&mut bytes).await {
        said.push(bytes.get(..count).unwrap_or_default());
    }
}

impl End {
    fn of(status: ExitStatus) -> Self {
        let code = status.code().and_then(|code| u32::try_from(code).ok());
        Self::Exited { code, signal: status.signal().map(|signal| signal.to_string()) }
    }
}

impl Ended {
    /// Returns it as a model sees it. A command that fails has run, and is no failure of the tool;
    /// one that takes too long is.
    fn result(self) -> Result<ToolOutput, ToolError> {
        let Self { output, is_cut, how } = self;
        let mut blocks: Vec<_> =
            Some(output).filter(|o| !o.is_empty()).map(Block::text).into_iter().collect();
        let (code, signal) = match how {
            End::Exited { code, signal } => (code, signal),
            End::TookTooLong(within) => {
                let within = (within.as_secs_f64() * 10.0).round() / 10.0;
                let why = format!("the command was ended: it took more than {within} s");
                let ToolError { failure, .. } = ToolError::new(&why);
                blocks.push(Block::text(format!("[{why}]")));
                return Err(ToolError { failure, blocks, structured: None });
            }
        };
        let note = match (code, &signal) {
            (Some(code), _) => format!("[exit status {code}]"),
            (None, Some(signal)) => format!("[ended by signal {signal}]"),
            (None, None) => "[ended]".to_owned(),
        };
        blocks.push(Block::text(note));
        let structured: Value = json!({ "exitCode": code, "signal": signal, "truncated": is_cut });
        Ok(ToolOutput { blocks, structured: Some(structured) })
    }
}
