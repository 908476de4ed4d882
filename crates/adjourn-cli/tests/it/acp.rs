//! `adjourn acp` as an editor sees it: lines over a pipe.

mod answers;
mod calls;
mod commits;
mod conformance;
mod corners;
mod dialogs;
mod hostile;
mod live;
mod lives;
mod permission;
mod proposals;
mod queued;
mod replay;
mod schema;
pub mod sdk;
mod seeds;
mod shown;
mod stops;
mod streams;
mod turns;

pub use adjourn_testkit::editor;
