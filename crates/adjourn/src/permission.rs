//! The clients of this process: they can be asked whether a call may start, and for what they can do.

use std::sync::Arc;

use adjourn_core::id::SessionId;
use adjourn_driver::{
    BoxFuture, Client, ClientAbilities, ClientError, ClientReply, ClientRequest, PermissionAnswer,
    PermissionRequest,
};

/// The clients of a process that can be asked for permissions, and for what they can do besides.
pub trait Permissions: Send + Sync + 'static {
    /// Asks a person whether a call may start, and waits for the answer as long as it takes.
    ///
    /// # Cancel safety
    /// As for [`Client::permission`].
    fn ask(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer>;

    /// Returns whether a client is there that sees this session and could answer.
    fn is_attended(&self, session: SessionId) -> bool;

    /// Returns what the clients that see this session can do.
    fn abilities(&self, session: SessionId) -> ClientAbilities {
        let _ = session;
        ClientAbilities::default()
    }

    /// Asks a client that sees this session for something that it can do.
    ///
    /// # Cancel safety
    /// As for [`Client::request`].
    fn request(
        &self,
        session: SessionId,
        request: ClientRequest,
    ) -> BoxFuture<'static, Result<ClientReply, ClientError>> {
        let _ = (session, request);
        Box::pin(std::future::ready(Err(ClientError::NotSupported)))
    }
}

/// The clients that see one session.
pub struct SessionClient {
    /// All clients of the process.
    pub clients: Arc<dyn Permissions>,
    /// The session.
    pub session: SessionId,
}

impl Client for SessionClient {
    fn permission(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        self.clients.ask(request)
    }

    fn is_attended(&self) -> bool {
        self.clients.is_attended(self.session)
    }

    fn abilities(&self) -> ClientAbilities {
        self.clients.abilities(self.session)
    }

    fn request(
        &self,
        request: ClientRequest,
    ) -> BoxFuture<'static, Result<ClientReply, ClientError>> {
        self.clients.request(self.session, request)
    }
}
