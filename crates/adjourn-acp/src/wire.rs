//! The two streams to a client, and what the client has said of itself.
//!
//! `initialize` needs nothing but these: it is answered also while the store cannot be reached yet.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use crate::initialize::initialize;
use crate::lines::{Line, Lines};
use crate::peer::{Peer, Profile};
use crate::rpc::{Error, INVALID_REQUEST, Incoming, Outgoing, Start};

/// The streams to a client.
#[derive(Debug)]
pub struct Wire<R, W> {
    pub(crate) lines: Lines<R>,
    pub(crate) output: W,
    /// The client, once it has introduced itself.
    pub(crate) peer: Option<Arc<Peer>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Wire<R, W> {
    /// Makes the wire of a client that has said nothing yet.
    pub const fn new(input: R, output: W) -> Self {
        Self { lines: Lines::new(input), output, peer: None }
    }

    /// Answers the client's `initialize`, and reads nothing behind it; returns whether the client
    /// is still there.
    ///
    /// # Errors
    /// The streams fail.
    ///
    /// # Cancel safety
    /// Dropped before it is done, nothing is lost that the client has sent and was not answered.
    pub async fn greet(&mut self, profile: Profile, mcp: bool) -> std::io::Result<bool> {
        while self.peer.is_none() {
            let mut answer = Outgoing::default();
            match self.lines.next().await? {
                None => return Ok(false),
                // Empty lines between messages are ignored.
                Some(Line::Whole(line)) if line.trim_ascii().is_empty() => {}
                Some(Line::Whole(line)) => match Incoming::read(line) {
                    Ok(Incoming::Request { id, method, params }) if method == "initialize" => {
                        let greeted =
                            params.read().and_then(|request| initialize(&request, profile, mcp));
                        let result = greeted.map(|(peer, introduction)| {
                            self.peer = Some(Arc::new(peer));
                            introduction
                        });
                        answer.respond(&id, &result);
                    }
                    Ok(Incoming::Request { id, .. }) => {
                        answer.respond(&id, &Err(not_initialized()));
                    }
                    Ok(Incoming::Notification { .. } | Incoming::Response { .. }) => {}
                    Err((id, error)) => answer.respond(&id, &Err(error)),
                },
                Some(Line::TooLong(start)) => {
                    if let Start { id: Some(id), answers: false } = Start::read(start) {
                        answer.respond(&id, &Err(not_initialized()));
                    }
                }
            }
            self.output.write_all(&answer.take()).await?;
            self.output.flush().await?;
        }
        Ok(true)
    }
}

/// The refusal of a request that comes before `initialize`.
pub(crate) fn not_initialized() -> Error {
    Error::new(INVALID_REQUEST, "the first request is initialize")
}
