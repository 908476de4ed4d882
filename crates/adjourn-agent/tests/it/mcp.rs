//! Tools of MCP servers that are real processes, and one that listens on loopback.

#![expect(clippy::indexing_slicing, reason = "a test that fails should stop where it fails")]

mod config;
mod ending;
mod engine;
mod http;
mod http_server;
mod stdio;

use std::path::{Path, PathBuf};

use adjourn_agent::mcp::McpServers;
use serde_json::{Value, json};

/// Returns the program of the server that is an example of this crate.
fn program() -> String {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join("mcp_server");
    program.to_str().unwrap().to_owned()
}

/// One server called `demo` that works in a directory, with these variables.
fn demo(directory: &Path, env: Value) -> McpServers {
    let servers = json!({ "mcpServers": { "demo": { "command": program(), "env": env } } });
    McpServers::read(&servers).unwrap().in_directory(directory)
}

/// A call of a tool of that server.
fn call(tool: &str, text: &str) -> Value {
    json!({ "tool": format!("demo__{tool}"), "arguments": { "text": text } })
}

/// The lines that the server has written to a file.
fn noted(directory: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns whether a process is there, and no mere entry that its parent has not read yet.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(PathBuf::from("/proc").join(pid).join("stat"));
    // Behind the name, which may hold anything, stands the state.
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}
