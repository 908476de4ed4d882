//! Tools of MCP servers, over stdio and streamable HTTP.
//!
//! [`McpServers`] says which servers there are. It is read from a customary `mcp.json`, or from what
//! an ACP client passes as `mcpServers`:
//!
//! ```
//! use adjourn_agent::mcp::McpServers;
//! use serde_json::json;
//!
//! let customary = json!({ "mcpServers": {
//!     "github": { "command": "github-mcp", "args": ["stdio"], "env": { "TOKEN": "${GITHUB_TOKEN}" } },
//!     "search": { "url": "https://mcp.example/mcp", "headers": { "Authorization": "Bearer abc" } },
//! } });
//! let acp = json!([
//!     { "name": "files", "command": "/usr/bin/files-mcp", "args": [], "env": [] },
//! ]);
//! assert_eq!(McpServers::read(&customary)?.names().collect::<Vec<_>>(), ["github", "search"]);
//! assert_eq!(McpServers::read(&acp)?.names().collect::<Vec<_>>(), ["files"]);
//! # Ok::<_, adjourn_agent::mcp::McpConfigError>(())
//! ```
//!
//! - An agent that is built with [`AgentBuilder::mcp_servers`](crate::AgentBuilder::mcp_servers)
//!   connects them at its first step, each driver for itself, and closes them when the driver is
//!   killed or dropped, or when its session is parked and not kept warm.
//! - A tool is called `server__tool`. Its annotations say whether running it twice does harm; one
//!   that is not read-only is asked about before each call, unless `alwaysAllow` names it.
//! - A session of an engine is created with [`descriptions`](McpServers::descriptions) as its
//!   `mcp_servers` and given the [`values`](McpServers::values) in memory. A host makes the servers
//!   from the descriptions again. What it was not given it takes from its own environment, and
//!   [`lacks`](McpServers::lacks) says what is not there either.
//!
//! Values of variables and of headers are secrets, and those in the query of an address whose names say
//! so: nothing here shows, logs or stores them. A command, its arguments and all else of an address are
//! stored as they are written.

mod address;
mod config;
mod connection;
mod names;
mod reading;
mod source;
mod tool;
mod values;

pub use config::{McpServer, McpServers, McpTransport};
pub use reading::McpConfigError;
pub use values::McpValue;
