//! Tools for files and commands below a directory.

#![expect(clippy::indexing_slicing, reason = "a test that fails should stop where it fails")]

mod editor;
mod files;
mod paths;
mod permissions;
mod running;

use std::path::Path;
use std::sync::Arc;

use adjourn_agent::directory::{DirectoryTool, DirectoryTools};
use adjourn_agent::{Tool, ToolCall, ToolError, ToolOutput};
use adjourn_driver::{Block, Client};
use serde_json::Value;
use tempfile::TempDir;

/// A directory with the tools for it.
struct Desk {
    directory: TempDir,
    tools: DirectoryTools,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tools = DirectoryTools::open(directory.path()).unwrap();
        Self { directory, tools }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).unwrap()
    }

    fn tool(&self, which: DirectoryTool) -> Arc<dyn Tool> {
        self.tools.tools([which]).remove(0)
    }

    async fn call(&self, which: DirectoryTool, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.tool(which).call(ToolCall::new(arguments)).await
    }

    /// Calls a tool with a client attached.
    async fn with(
        &self,
        client: Arc<dyn Client>,
        which: DirectoryTool,
        arguments: Value,
    ) -> Result<ToolOutput, ToolError> {
        let mut call = ToolCall::new(arguments);
        call.client = client;
        self.tool(which).call(call).await
    }

    /// Calls a tool that does what it is told, and returns its words.
    async fn said(&self, which: DirectoryTool, arguments: Value) -> String {
        words(&self.call(which, arguments).await.unwrap().blocks)
    }

    /// Calls a tool that refuses, and returns why.
    async fn refused(&self, which: DirectoryTool, arguments: Value) -> String {
        let refused = self.call(which, arguments).await.unwrap_err();
        words(&refused.blocks)
    }
}

fn words(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::words).collect::<Vec<_>>().join("\n")
}
