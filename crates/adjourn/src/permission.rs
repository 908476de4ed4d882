//! Permissions: the clients of this process that can be asked whether a call may start.

use std::sync::Arc;

use adjourn_core::id::SessionId;
use adjourn_driver::{BoxFuture, Client, PermissionAnswer, PermissionRequest};

/// The clients of a process that can be asked for permissions.
pub trait Permissions: Send + Sync + 'static {
    /// Asks a person whether a call may start, and waits for the answer as long as it takes.
    ///
    /// # Cancel safety
    /// As for [`Client::permission`].
    fn ask(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer>;

    /// Returns whether a client is there that sees this session and could answer.
    fn is_attended(&self, session: SessionId) -> bool;
}

/// The clients that see one session.
pub struct SessionClient(pub Arc<dyn Permissions>);

impl Client for SessionClient {
    fn permission(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        self.0.ask(request)
    }
}
