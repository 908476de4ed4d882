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
    /// What was answered and has yet to be written, before anything else.
    pub(crate) unsent: Vec<u8>,
    /// The client, once it has introduced itself.
    pub(crate) peer: Option<Arc<Peer>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Wire<R, W> {
    /// Makes the wire of a client that has said nothing yet.
    pub const fn new(input: R, output: W) -> Self {
        Self { lines: Lines::new(input), output, unsent: Vec::new(), peer: None }
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
            self.unsent.append(&mut answer.take());
            self.send().await?;
        }
        // One that was dropped while it answered goes on here.
        self.send().await?;
        Ok(true)
    }

    /// Writes what has yet to be written. What is left when it is dropped stays.
    async fn send(&mut self) -> std::io::Result<()> {
        while !self.unsent.is_empty() {
            let count = self.output.write(&self.unsent).await?;
            if count == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.unsent.drain(..count);
        }
        self.output.flush().await
    }
}

/// The refusal of a request that comes before `initialize`.
pub(crate) fn not_initialized() -> Error {
    Error::new(INVALID_REQUEST, "the first request is initialize")
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;

    #[tokio::test]
    async fn an_answer_that_was_dropped_half_written_goes_on_where_it_was() {
        for refuses in [false, true] {
            half_answered(refuses).await;
        }
    }

    async fn half_answered(refuses: bool) {
        let said =
            br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
        let (editor, agent) = tokio::io::duplex(16);
        let mut wire = Wire::new(&said[..], agent);
        tokio::select! {
            biased;
            greeted = wire.greet(Profile::Adjourn, false) => assert!(greeted.is_err(), "it is too long"),
            () = std::future::ready(()) => {}
        }
        assert!(wire.peer.is_some() && !wire.unsent.is_empty());
        let mut heard = String::new();
        let mut editor = BufReader::new(editor);
        let hears = editor.read_line(&mut heard);
        let goes_on = async {
            match refuses {
                true => crate::refuse("no", wire, std::future::pending()).await,
                false => wire.greet(Profile::Adjourn, false).await.map(drop),
            }
        };
        let (gone_on, read) = tokio::join!(goes_on, hears);
        assert!(gone_on.is_ok() && read.unwrap() > 0);
        let heard: serde_json::Value = adjourn_core::json::stored(heard.as_bytes()).unwrap();
        assert_eq!(heard["id"], 1, "{heard}");
    }
}
