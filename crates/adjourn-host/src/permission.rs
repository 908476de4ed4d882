//! Permissions: whether a call may start, and who is asked.

use adjourn_core::id::SessionId;
use adjourn_core::ledger::AskedCall;

use crate::clock::BoxFuture;

/// Whether a call may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// The call may start.
    Granted,
    /// The call may not start; the text is what the model is told instead of a result.
    Refused(String),
}

/// The people who can be asked for permissions, through the clients of this process.
pub trait Permissions: Send + Sync + 'static {
    /// Asks whether a call may start, and waits for the answer as long as it takes.
    ///
    /// # Cancel safety
    /// As for [`Driver::permission`](crate::driver::Driver::permission).
    fn ask(&self, session: SessionId, call: &AskedCall) -> BoxFuture<'static, Permission>;

    /// Returns whether a client sees this session and could answer.
    fn is_attended(&self, session: SessionId) -> bool;
}
