//! What the log says of requests: what was asked for, of which task, and the word for a refusal.
//!
//! It holds no words of a peer: neither parameters nor what is wrong with them, which may repeat
//! some. A refusal is a line at `info`, an answer one at `debug`.

use adjourn::core::id::{RunId, SessionId};
use adjourn::store::Store;
use tracing::Span;
use tracing::field::{Empty, display};

use crate::error::{Error, INTERNAL_ERROR};
use crate::face::{Answer, Asked};

/// What is around all that is logged for a request. Session and run are named once they are known.
pub(crate) fn span(asked: &Asked<'_>) -> Span {
    let (method, caller) = (asked.method.name(), &*asked.caller.name);
    tracing::info_span!("a2a", method, caller, session = Empty, run = Empty)
}

/// Takes note of the task that the request under way is about.
pub(crate) fn concerns(session: SessionId, run: RunId) {
    let span = Span::current();
    span.record("session", display(session));
    span.record("run", display(run));
}

/// Tells how a request came out.
pub(crate) fn answered<S: Store>(answer: &Result<Answer<S>, Error>) {
    match answer {
        Ok(Answer::Result(_)) => tracing::debug!("answered"),
        Ok(Answer::Stream(_)) => tracing::debug!("answered with a stream"),
        Err(error) => refused(error),
    }
}

/// Tells that a request was refused.
pub(crate) fn refused(error: &Error) {
    let Error { code, reason, problem, .. } = error;
    match *code {
        // The caller cannot mend it: an operator has to know what it was.
        INTERNAL_ERROR => tracing::warn!(code, reason, "refused: {problem}"),
        _ => tracing::info!(code, reason, "refused"),
    }
}
