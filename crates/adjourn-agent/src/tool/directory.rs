//! Tools to work with files and commands below one directory: off unless they are asked for.
//!
//! ```no_run
//! use adjourn_agent::directory::{DirectoryTool, DirectoryTools};
//! # use adjourn_agent::{Agent, ScriptedModel};
//! # fn agent(model: ScriptedModel) -> Result<Agent, Box<dyn std::error::Error>> {
//! let tools = DirectoryTools::open("/home/me/project")?;
//! let agent = Agent::builder(model)
//!     .tools(tools.tools([DirectoryTool::Read, DirectoryTool::Search, DirectoryTool::Run]))
//!     .ephemeral_keys()
//!     .build()?;
//! # Ok(agent) }
//! ```
//!
//! - Paths are relative to the directory, or absolute within it. None leads out of it: neither `..`
//!   nor a link, also not one that is put there while a tool works. Commands are bound by nothing
//!   but the permission to run them.
//! - Reading, listing and searching need no permission. Each change and each command does.
//! - Where an editor is attached that reads and writes files, they go through it, so that changes
//!   that are not saved are seen. Commands run in its terminals, if it has some. What it cannot do
//!   is done here. A command whose editor goes away fails: it may have run.
//! - Changes and commands are side-effecting: one that a crash breaks off is not done again, and the
//!   model and people are told that its outcome is unknown.

mod editing;
mod listing;
mod output;
mod reading;
mod root;
mod running;
mod searching;
mod terminal;

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use adjourn_core::limits;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{CallDescription, FunctionTool, Tool, ToolError, process};
use root::Root;

/// How much of a command or a pattern stands in the title of its call.
const TITLE_BYTES: usize = 200;

/// The directory itself, which a call without a path is about.
const HERE: &str = ".";

/// One of the tools for a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectoryTool {
    /// Reads a text file.
    Read,
    /// Writes a text file, which it makes with its directories.
    Write,
    /// Replaces a text in a file by another.
    Edit,
    /// Lists a directory.
    List,
    /// Searches files for a pattern.
    Search,
    /// Runs a command of the shell.
    Run,
}

impl DirectoryTool {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::Edit, Self::List, Self::Search, Self::Run];

    /// Returns its word in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::List => "list",
            Self::Search => "search",
            Self::Run => "run",
        }
    }

    /// Returns the name by which models call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read_file",
            Self::Write => "write_file",
            Self::Edit => "edit_file",
            Self::List => "list_directory",
            Self::Search => "search_files",
            Self::Run => "run_command",
        }
    }

    /// Returns its kind, in ACP's words.
    const fn kind(self) -> &'static str {
        match self {
            Self::Read | Self::List => "read",
            Self::Write | Self::Edit => "edit",
            Self::Search => "search",
            Self::Run => "execute",
        }
    }

    /// Returns whether it changes nothing.
    const fn only_looks(self) -> bool {
        matches!(self, Self::Read | Self::List | Self::Search)
    }
}

impl fmt::Display for DirectoryTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no tool for a directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of read, write, edit, list, search and run")]
pub struct UnknownDirectoryTool(String);

impl FromStr for DirectoryTool {
    type Err = UnknownDirectoryTool;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|tool| tool.as_str() == word).ok_or_else(|| UnknownDirectoryTool(word.to_owned()))
    }
}

/// Tools for one directory.
#[derive(Debug, Clone)]
pub struct DirectoryTools {
    root: Arc<Root>,
    asks_nothing: bool,
}

impl DirectoryTools {
    /// Takes a directory.
    ///
    /// # Errors
    /// It is not there, or it is none.
    pub fn open(directory: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { root: Arc::new(Root::open(directory.as_ref())?), asks_nothing: false })
    }

    /// Lets changes and commands run without a permission.
    #[must_use]
    pub const fn allow_all(mut self) -> Self {
        self.asks_nothing = true;
        self
    }

    /// Returns some of the tools, for [`AgentBuilder::tools`](crate::AgentBuilder::tools).
    pub fn tools(&self, which: impl IntoIterator<Item = DirectoryTool>) -> Vec<Arc<dyn Tool>> {
        which.into_iter().map(|tool| self.tool(tool)).collect()
    }

    fn tool(&self, which: DirectoryTool) -> Arc<dyn Tool> {
        let (root, name) = (Arc::clone(&self.root), which.name());
        let tool = match which {
            DirectoryTool::Read => FunctionTool::with_call(
                name,
                "Reads a text file, or some of its lines.",
                move |read, call| reading::read(Arc::clone(&root), read, call),
            ),
            DirectoryTool::Write => FunctionTool::with_call(
                name,
                "Writes a text file: all of it. It is made if it is not there, with its \
                 directories.",
                move |write, call| editing::write(Arc::clone(&root), write, call),
            ),
            DirectoryTool::Edit => FunctionTool::with_call(
                name,
                "Replaces a text in a file by another. The text must be in the file exactly as it \
                 is given, and once, unless all are to be replaced.",
                move |edit, call| editing::edit(Arc::clone(&root), edit, call),
            ),
            DirectoryTool::List => FunctionTool::new(
                name,
                "Lists the files and directories in a directory.",
                move |list| listing::list(Arc::clone(&root), list),
            ),
            DirectoryTool::Search => FunctionTool::new(
                name,
                "Searches the text files below a directory for a regular expression, line by line.",
                move |search| searching::search(Arc::clone(&root), search),
            ),
            DirectoryTool::Run => FunctionTool::with_call(
                name,
                "Runs a command of the shell in the directory and waits for its end. What it says is \
                 cut in the middle if it is long. What it leaves in the background is ended.",
                move |run, call| running::run(Arc::clone(&root), run, call),
            ),
        };
        let tool = tool.kind(which.kind()).describing(description(which, Arc::clone(&self.root)));
        let tool = if which.only_looks() { tool.idempotent() } else { tool };
        let asks = !which.only_looks() && !self.asks_nothing;
        Arc::new(if asks { tool.asks_permission() } else { tool })
    }
}

/// Returns what people are shown of calls.
fn description(
    which: DirectoryTool,
    root: Arc<Root>,
) -> impl Fn(&Value) -> CallDescription + Send + Sync + 'static {
    move |arguments| {
        let text = |field: &str| {
            let text = arguments.get(field).and_then(Value::as_str);
            // A command of two lines must not look like one, of which a part may be a comment.
            let lines = |text: &str| text.split_terminator('\n').collect::<Vec<_>>().join(" ⏎ ");
            text.map(|text| limits::excerpt(&lines(text), TITLE_BYTES))
        };
        let path = text("path").unwrap_or_else(|| HERE.to_owned());
        let title = match which {
            DirectoryTool::Read => format!("Read {path}"),
            DirectoryTool::Write => format!("Write {path}"),
            DirectoryTool::Edit => format!("Edit {path}"),
            DirectoryTool::List => format!("List {path}"),
            DirectoryTool::Search => {
                format!("Search {path} for {}", text("pattern").unwrap_or_default())
            }
            DirectoryTool::Run => text("command").unwrap_or_default(),
        };
        // Editors go there: it is not cut as the title is.
        let whole = arguments.get("path").and_then(Value::as_str).unwrap_or(HERE);
        let place = root.within(whole).ok().filter(|_| which != DirectoryTool::Run);
        let line = arguments.get("line").filter(|line| line.is_u64());
        let location = place.map(|place| match line {
            Some(line) => json!({ "path": root.absolute(&place), "line": line }),
            None => json!({ "path": root.absolute(&place) }),
        });
        CallDescription { title: Some(title), locations: location.into_iter().collect() }
    }
}

/// Does something with files on a thread of its own, where it may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(ToolError::new(error)),
    }
}

/// Returns whether commands that an agent runs do not see a variable, because its name says that it
/// holds a secret.
pub fn hides_variable(name: &str) -> bool {
    process::is_secret(name)
}
