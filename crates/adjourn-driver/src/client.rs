//! What a driver can ask of the client that sees its session.

mod request;

pub use request::{
    ClientAbilities, ClientError, ClientReply, ClientRequest, FormAnswer, TerminalCommand,
    TerminalExit, TerminalId, TerminalOutput,
};

use adjourn_core::id::SessionId;

use crate::content::CallContent;
use crate::driver::BoxFuture;

/// The clients of this process that see one session.
///
/// What they are asked is answered while the step's stream goes on. A permission is asked of all of
/// them, and of those that come later; anything else is asked of one, and ends with
/// [`ClientError::Gone`] when that one goes.
pub trait Client: Send + Sync {
    /// Asks a person whether a call may run, and waits for the answer as long as it takes.
    ///
    /// # Cancel safety
    /// No client is asked before the future is polled. Dropping it takes the request back.
    fn permission(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer>;

    /// Returns whether a person can be asked at the moment. Where none can, an agent parks with its
    /// question instead of asking.
    fn is_attended(&self) -> bool {
        true
    }

    /// Returns what the clients that see the session at the moment can do besides.
    fn abilities(&self) -> ClientAbilities {
        ClientAbilities::default()
    }

    /// Asks a client for something that it can do, and waits for the answer as long as it takes.
    /// The methods of `dyn Client` put the request and the reply into words of their own.
    ///
    /// # Cancel safety
    /// No client is asked before the future is polled. Dropping it takes the request back; what the
    /// client has done by then is done.
    fn request(
        &self,
        request: ClientRequest,
    ) -> BoxFuture<'static, Result<ClientReply, ClientError>> {
        drop(request);
        Box::pin(std::future::ready(Err(ClientError::NotSupported)))
    }
}

/// A request for permission.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    /// The session that asks.
    pub session: SessionId,
    /// The call that is to run.
    pub call: CallContent,
    /// What a person can choose from; none means allow once, allow always or reject.
    pub options: Vec<PermissionOption>,
}

/// One answer that a person can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    /// Its id.
    pub id: String,
    /// What a person reads.
    pub name: String,
    /// What it means, in ACP's words (`allow_once`, `allow_always`, `reject_once`).
    pub kind: String,
}

/// The answer to a request for permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// The call may run.
    Granted {
        /// Whether further calls of the same tool may, too, without being asked for.
        always: bool,
    },
    /// The call may not run; what the model is told instead of a result.
    Refused(String),
    /// A person chose one of the options that were given with the request.
    Chosen(String),
    /// No client is there any more that could answer.
    Gone,
}

/// No client at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoClient;

impl Client for NoClient {
    fn permission(&self, _: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        Box::pin(std::future::ready(PermissionAnswer::Gone))
    }

    fn is_attended(&self) -> bool {
        false
    }
}
