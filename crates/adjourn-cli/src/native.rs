//! The agent of this program: what it is made from, and how a host makes it.
//!
//! A session keeps what its agent is in the journal, as the [configuration](config) of a named
//! driver, so that any host of this program goes on with it. What is secret, or belongs to the
//! machine, is a host's own: keys of models, values for MCP servers, prices.

mod config;
mod definition;
mod drivers;
pub mod models;
mod policy;

pub use config::ModelSettings;
pub use definition::{Definition, tools};
pub use drivers::{NamedServers, ProgramDrivers};
