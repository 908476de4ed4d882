//! What a client says, also while it does not read what it is told.
//!
//! Answers of the connection's own may have to wait until the client reads. What it takes back,
//! cancels or answers meanwhile is heard at once; its other requests wait their turn. `inbox.rs`
//! does the same for each session.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use adjourn::core::limits::INPUT_BYTES;
use adjourn::store::Store;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;

use crate::connection::Connection;
use crate::inbox::LATER;
use crate::lines::{LINE_BYTES, Line, Lines};
use crate::outbox::BATCH_BYTES;
use crate::requests::CancelRequest;
use crate::rpc::{CANCELLED, Error, INVALID_REQUEST, Id, Incoming, Start};

/// How long the lines that are kept for later may be together, unless the last one is longer.
const LATER_BYTES: usize = 1024 * 1024;

/// A client that says nothing more, and reads nothing for so long, is gone.
const GONE: Duration = Duration::from_secs(10);

/// Lines of a client, and those that were read and wait.
struct Heard<R> {
    lines: Lines<R>,
    later: VecDeque<Kept>,
    /// Whether there is nothing more to read.
    over: bool,
}

/// A line that waits, and how much had been written to the client when it was read.
struct Kept {
    line: Vec<u8>,
    written: u64,
}

impl<R: AsyncRead + Unpin> Heard<R> {
    /// Returns whether another line can be kept.
    fn has_room(&self) -> bool {
        let bytes: usize = self.later.iter().map(|kept| kept.line.len()).sum();
        !self.over && self.later.len() < LATER && bytes < LATER_BYTES
    }

    /// Returns whether the next line is here already.
    fn is_ready(&self) -> bool {
        !self.later.is_empty() || self.lines.is_ready()
    }
}

impl<S: Store> Connection<S> {
    /// Takes what a client says, until it says no more.
    pub(crate) async fn read<R: AsyncRead + Unpin>(
        &mut self,
        lines: Lines<R>,
    ) -> std::io::Result<()> {
        let mut heard = Heard { lines, later: VecDeque::new(), over: false };
        loop {
            match heard.later.pop_front() {
                Some(Kept { line, written }) => self.take_line(&line, written).await,
                None if heard.over => return Ok(()),
                None => match heard.lines.next().await? {
                    Some(Line::Whole(line)) => self.take_line(line, self.out.written()).await,
                    Some(Line::TooLong(start)) => self.too_long(start, self.out.written()).await,
                    None => return Ok(()),
                },
            }
            // What is heard while something is sent may be answered, too: nothing is left behind
            // when there is nothing more to take.
            while !self.lines.is_empty() && self.is_to_send(&heard) {
                self.send(&mut heard).await?;
            }
        }
    }

    /// Returns whether answers go out before the next line is taken.
    fn is_to_send<R: AsyncRead + Unpin>(&self, heard: &Heard<R>) -> bool {
        let answers = self.lines.len();
        answers > BATCH_BYTES || !heard.is_ready() || !self.out.has_room(answers)
    }

    async fn take_line(&mut self, line: &[u8], written: u64) {
        // Empty lines between messages are ignored.
        if line.trim_ascii().is_empty() {
            return;
        }
        match Incoming::read(line) {
            Ok(message) => self.take(message, written).await,
            Err((id, error)) => self.lines.respond(&id, &Err(error)),
        }
    }

    /// Refuses a line of which only the start is there.
    async fn too_long(&mut self, start: &[u8], written: u64) {
        let Start { id, answers } = Start::read(start);
        if let Some(id) = id.clone().filter(|_| answers) {
            let answer = Incoming::Response { id, result: Err(RawValue::NULL) };
            return self.take(answer, written).await;
        }
        let problem = format!(
            "the message is too long: a line has at most {} MiB ({LINE_BYTES} bytes), and a prompt \
             in it at most {} MiB",
            LINE_BYTES >> 20,
            INPUT_BYTES >> 20
        );
        let error = Error::new(INVALID_REQUEST, problem).with(json!({ "reason": "INVALID" }));
        self.lines.respond(&id.unwrap_or_else(Id::null), &Err(error));
    }

    /// Sends the answers that there are, and listens while that takes.
    async fn send<R: AsyncRead + Unpin>(&mut self, heard: &mut Heard<R>) -> std::io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let (out, bytes) = (self.out.clone(), self.lines.take());
        let mut sending = Box::pin(async move { out.send(bytes, None).await });
        if poll_fn(|context| Poll::Ready(sending.as_mut().poll(context).is_ready())).await {
            return Ok(());
        }
        // It goes on by itself: sessions wait for room behind it, and this may wait for one of
        // them to hear something.
        let mut sending = tokio::spawn(sending);
        loop {
            let has_room = heard.has_room() && self.lines.len() < BATCH_BYTES;
            tokio::select! {
                biased;
                // A client that does not read any more will close its end soon.
                _ = &mut sending => return Ok(()),
                line = heard.lines.next(), if has_room => match line? {
                    Some(Line::Whole(line)) => {
                        let kept = Kept { line: line.to_vec(), written: self.out.written() };
                        self.hear(kept, &mut heard.later).await;
                    }
                    Some(Line::TooLong(start)) => self.too_long(start, self.out.written()).await,
                    None => heard.over = true,
                },
                () = tokio::time::sleep(GONE), if heard.over => {
                    heard.later.clear();
                    return Ok(());
                }
            }
        }
    }

    /// Hears a line while answers wait: what cannot wait is done, the rest is kept.
    async fn hear(&mut self, kept: Kept, later: &mut VecDeque<Kept>) {
        let written = kept.written;
        match Incoming::read(&kept.line) {
            Ok(Incoming::Notification { method, params }) if method == "session/cancel" => {
                self.notified(&method, params).await;
                // If nothing runs yet, what was asked before may make it run.
                if !later.is_empty() {
                    later.push_back(kept);
                }
            }
            Ok(Incoming::Notification { method, params }) if method == "$/cancel_request" => {
                match params.read() {
                    Ok(CancelRequest { request_id }) if forget(later, &request_id) => {
                        let error = Error::new(CANCELLED, "the request was taken back");
                        self.lines.respond(&request_id, &Err(error));
                    }
                    _ => self.notified(&method, params).await,
                }
            }
            Ok(answer @ Incoming::Response { .. }) => self.take(answer, written).await,
            // What is answered at once, and changes nothing, goes out with what waits already: one
            // by one would be slow.
            Ok(Incoming::Request { id, method, params })
                if later.is_empty() && matches!(&*method, "session/status" | "session/list") =>
            {
                self.take(Incoming::Request { id, method, params }, written).await;
            }
            _ => later.push_back(kept),
        }
    }
}

/// Forgets a request that nothing was done for yet; returns whether there was one.
fn forget(later: &mut VecDeque<Kept>, request: &Id) -> bool {
    let before = later.len();
    later.retain(|kept| match Incoming::read(&kept.line) {
        Ok(Incoming::Request { id, .. }) => id != *request,
        _ => true,
    });
    later.len() < before
}
