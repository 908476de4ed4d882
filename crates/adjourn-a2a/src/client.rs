//! The caller's side: what an agent is asked for, in its version and over its binding, and what its
//! answers say.
//!
//! - [`Peer`] is an agent as its card describes it, with the way to it that a caller chose.
//! - [`Ask`] is what a caller wants of it; [`Peer::request`] makes the HTTP request of it.
//! - [`Reply::read`] reads an answer, [`EventReader`] takes a stream apart, and [`Seen`] is what
//!   either says of a task. They read both versions, and pass over what they do not know.
//!
//! It knows no sockets, either: a program sends the requests with the HTTP client that it has.

mod event_reader;
mod peer;
mod reply;
mod request;
mod seen;

pub use event_reader::{EventReader, ReadEvent, TooLong};
pub use peer::{Binding, Interface, NoPeer, Peer, Wish, card_urls};
pub use reply::{Refusal, Reply};
pub use request::{Ask, Outgoing, Request};
pub use seen::{Said, Seen};
