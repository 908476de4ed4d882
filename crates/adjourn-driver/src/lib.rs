//! What an agent has to do to be parked and woken.
//!
//! - A [`Driver`] runs one agent. It commits nothing. The host does, before it polls the driver
//!   again, so that every agent parks, wakes and recovers in the same way, whether its loop is ours
//!   (one step is one model call) or its own (one step is one prompt turn).
//! - A [`Step`] is what it is handed: what the step begins with, what was said, when to stop.
//! - A [`Part`] is what it answers with, in a stream: words, calls, reports, a park, the end.
//! - A [`Message`] is what was said, as the transcript holds it; [`model_view`] is what a model is
//!   shown of it.
//! - A [`payload::Payload`] is what travels of a session in a portable record.
//! - A [`script::Script`] is an agent that is written down, for demos and tests.

mod asking;
mod bounds;
mod client;
pub mod content;
mod control;
mod cut;
mod driver;
pub mod mcp_address;
mod opening;
mod part;
pub mod payload;
pub mod script;
mod secret_names;
mod segments;
mod signature;
mod stop;
mod stream;
pub mod told;
mod transcript;
mod view;

pub use asking::ask_calls;
pub use bounds::check_calls;
pub use client::{
    Client, ClientAbilities, ClientError, ClientReply, ClientRequest, FormAnswer, NoClient,
    PermissionAnswer, PermissionOption, PermissionRequest, TerminalCommand, TerminalExit,
    TerminalId, TerminalOutput,
};
pub use content::{Block, CallContent, Fate, Message, Role, Segment, Shown};
pub use control::{Control, Reply};
pub use driver::{
    BoxFuture, BoxStream, Call, CallPart, Driver, Drivers, Environment, McpValues, Returned, Step,
    UNASKED, Unusable,
};
pub use opening::{Continuation, Opening};
pub use part::{Failure, Finish, Park, Part, Reported, RequestedCall, Words};
pub use secret_names::is_secret_name;
pub use segments::Joining;
pub use signature::{signature, write_in_order};
pub use stop::{Stop, StopWatch, breakable};
pub use stream::{Emitter, emitting};
pub use transcript::{ReadTranscript, Transcript, TranscriptError};
pub use view::{ModelMessage, ModelRole, model_view};
