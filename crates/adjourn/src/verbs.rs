//! What can be asked of a session, one file per verb.

mod await_resumption;
mod cancel;
mod close;
mod export;
mod prompt;
mod remove;
mod resume;
mod set_option;
mod suspend;
mod takeover;
mod withdraw;

pub use await_resumption::AwaitBuilder;
pub use cancel::{CancelBuilder, Canceled};
pub use close::{CloseBuilder, Closed};
pub use export::{ExportBuilder, Exported};
pub use prompt::{PromptBuilder, Prompted};
pub use remove::RemoveBuilder;
pub use resume::{ResumeBuilder, Woken};
pub use set_option::SetOptionBuilder;
pub use suspend::{Accepted, SuspendBuilder, Suspension};
pub use takeover::{TakenOver, TakeoverBuilder};
pub use withdraw::{WithdrawBuilder, Withdrawn};

pub(crate) use prompt::request as prompt_request;

use adjourn_store::Done;

use crate::error::Error;

/// The error of a commit that did not do what its command says.
fn unheard_of(done: &Done, what: &str) -> Error {
    let at = done.session.revision;
    Error::Unexpected(format!("{what} of session {} (revision {at})", done.session.id))
}
