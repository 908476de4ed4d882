//! A2A, 0.3 and 1.0: tasks that other agents can pause, watch and resume.
//!
//! - [`Face`] is an agent and a store, as peers see them: [`Face::rpc`] answers JSON-RPC of both
//!   versions, [`Face::ask`] one method of either ([`rest`] reads it from a path), [`Face::card`]
//!   describes the agent.
//! - [`TaskStream`] tells what happens to a task, from the journal.
//! - [`Notifications`] are the same for a [`Receiver`] of push notifications; the program sends them.
//! - [`Caller`] is who asks, with a tenant and [`Scopes`].
//! - [`Arrived`] and [`Given`] are what a request brings along, with the room that it takes of a server's.
//! - [`client`] is the other side: asking an agent, and reading what it answers.
//!
//! A task is a run, a context a session and those that it has led to. Nothing is kept but the journal:
//! every task is projected from it ([`projection`]), in the words that a peer has shown to understand
//! ([`Activated`]), and every event of a stream from one moment of it.
//!
//! It knows no sockets: `adjourn-server` mounts it.

mod arrived;
pub mod artifacts;
mod caller;
mod card;
pub mod client;
pub mod error;
mod face;
mod fold;
mod listing;
mod making;
mod message;
mod method;
mod moved;
mod notifications;
mod params;
mod part;
mod pause;
mod pausing;
pub mod projection;
mod push;
mod pushing;
pub mod rest;
pub mod rpc;
mod runs;
mod send;
mod shared;
mod standing;
mod stopping;
mod stream;
mod task;
mod tasks;
mod trace;
mod version;

pub use arrived::{Arrived, Given, Room};
pub use caller::{Caller, Scope, Scopes};
pub use error::Error;
pub use face::{Agent, Answer, Asked, Face};
pub use fold::{Run, Runs};
pub use message::{DIRECT_ANSWER, Message, Speaker};
pub use method::{Family, Method, Verb};
pub use notifications::{Notification, Notifications, Receiver};
pub use part::Part;
pub use pushing::{RECIPIENT_KIND, Receivers};
pub use standing::Standing;
pub use stopping::{Stopper, Stopping};
pub use stream::{Place, StreamEvent, TaskStream, Told};
pub use task::{Artifact, State, Status, Task, Update};
pub use version::{Activated, PAUSE, PAUSED_STATES, Profile, Version};
