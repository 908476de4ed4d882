//! ACP: sessions that editors can suspend, watch and resume.
//!
//! [`serve`] is an ACP agent on a pair of streams. It speaks versions 1 and 2, and the proposals
//! for suspending, for asking after a session and for replaying it; `spec/acp.md` is the contract.
//! Clients that know nothing of suspensions notice nothing of them that could hurt: see
//! [`peer::Dialect`].
//!
//! Start reading at `connection.rs`, then `session.rs`, then `show.rs`, which has the order in
//! which a client is told things.

mod alias;
mod answers;
#[cfg(feature = "artifacts")]
pub mod artifacts;
mod asked;
mod connection;
mod content;
pub mod desk;
mod envelope;
pub mod face;
mod hearing;
mod introduction;
pub mod leave;
mod lines;
mod look;
mod message;
mod out;
mod park;
pub mod peer;
mod permission;
mod question;
mod queued;
mod reading;
pub mod refusal;
mod replay;
mod requests;
mod resume;
mod room;
pub mod rpc;
mod session;
#[cfg(feature = "artifacts")]
pub mod shapes;
mod show;
mod silence;
pub mod suspension;
mod title;
mod unavailable;
mod update;
mod wrong;

pub use connection::serve;
pub use desk::Desk;
pub use face::{Face, OnDisconnect, Options, StatusWords};
pub use peer::Profile;
pub use unavailable::refuse;
