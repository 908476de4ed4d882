//! ACP: sessions that editors can suspend, watch and resume.
//!
//! [`serve`] is an ACP agent on a pair of streams. It speaks versions 1 and 2, and the proposals
//! for suspending, for asking after a session and for replaying it; `spec/acp.md` is the contract.
//!
//! - [`Face`] is what all connections of a process share: the store with its host, and the options.
//! - [`Wire`] is a pair of streams, before and after its client has introduced itself.
//! - [`peer::Dialect`] is what a client has shown to understand: one that knows nothing of
//!   suspensions notices nothing of them that could hurt.
//! - [`PendingPermissions`] are the permission requests of the process.
//!
//! Start reading at `connection.rs`, then `session.rs`, then `projection.rs`, which has the order in
//! which a client is told things.

mod agent_message;
mod agent_update;
mod alias;
mod answers;
#[cfg(feature = "artifacts")]
pub mod artifacts;
mod cancel_timeout;
mod client_requests;
mod connection;
mod content;
mod detach;
mod envelope;
pub mod face;
mod field_errors;
mod inbox;
mod initialize;
mod introduction;
mod lines;
mod options;
mod outbox;
mod park;
pub mod peer;
mod pending_requests;
pub mod permissions;
mod projection;
mod queries;
mod question;
mod queued_prompt;
mod reader;
pub mod refusal;
mod replay;
mod request_permission;
mod requests;
mod resume;
mod room;
pub mod rpc;
mod session;
#[cfg(feature = "artifacts")]
pub mod shapes;
pub mod suspension;
mod title;
mod unavailable;
mod update;
mod waiting_notice;
mod wire;

pub use connection::serve;
pub use face::{Face, OnDisconnect, Options, StatusWords};
pub use peer::Profile;
pub use permissions::PendingPermissions;
pub use unavailable::refuse;
pub use wire::Wire;
