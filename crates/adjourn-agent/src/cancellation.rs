//! Cancelling a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// The reason for a cancel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// A person wants the run to stop.
    #[default]
    UserRequest,
    /// The client is gone that had wanted the run.
    ClientDisconnect,
}

impl CancelReason {
    /// Returns the word for this reason in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UserRequest => "user_request",
            Self::ClientDisconnect => "client_disconnect",
        }
    }
}

/// A request to stop a run, which may come while it runs.
///
/// It is handed to [`Agent::run`](crate::Agent::run) or [`Agent::resume`](crate::Agent::resume) and
/// kept; clones are the same request. A request that is set while the run runs always wins over a
/// question: the run ends with [`RunCancelled`](crate::events::RunCancelled), and there is nothing to
/// resume.
///
/// A run that has told [`UserInputRequested`](crate::events::UserInputRequested) is over: a request
/// that is set behind that has no effect, and the record still resumes. What cancels a run that is
/// suspended is [`Agent::revoke`](crate::Agent::revoke) of its record.
///
/// A model call is broken off at once. A tool call that has started may end by itself, up to its
/// time-out; none starts any more.
#[derive(Debug, Clone)]
pub struct CancellationRequest {
    set: Arc<watch::Sender<bool>>,
    reason: CancelReason,
}

impl CancellationRequest {
    /// Makes a request that is not set.
    pub fn new(reason: CancelReason) -> Self {
        Self { set: Arc::new(watch::Sender::new(false)), reason }
    }

    /// Asks for the end of the run.
    pub fn set(&self) {
        self.set.send_replace(true);
    }

    /// Says whether the end was asked for.
    pub fn is_set(&self) -> bool {
        *self.set.borrow()
    }

    /// Returns the reason.
    pub const fn reason(&self) -> CancelReason {
        self.reason
    }

    /// Waits until the end is asked for; for ever if it never is.
    pub(crate) async fn wait(&self) {
        // The sender lives as long as `self`.
        let _ = self.set.subscribe().wait_for(|set| *set).await;
    }
}

impl Default for CancellationRequest {
    fn default() -> Self {
        Self::new(CancelReason::default())
    }
}
