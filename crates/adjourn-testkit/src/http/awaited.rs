//! A connection that takes no thread while it waits.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, ToSocketAddrs};

use super::{Answer, hung_up, request};

/// A connection to a server, for a task that others run beside.
#[derive(Debug)]
pub struct Awaited(BufReader<TcpStream>);

impl Awaited {
    /// Connects.
    ///
    /// # Panics
    /// No server listens.
    pub async fn open(address: impl ToSocketAddrs) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends a request, like `GET /`, and waits for its answer. The length is said for it, and so is
    /// the host where no header does.
    ///
    /// # Panics
    /// The server hangs up without an answer.
    pub async fn send(&mut self, what: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.begin(what, headers, body).await;
        self.answer().await.unwrap()
    }

    /// Sends a request as [`Awaited::send`] does, and does not wait for its answer.
    pub async fn begin(&mut self, what: &str, headers: &[(&str, &str)], body: &str) {
        // A server that has heard enough may hang up before the end.
        let _ = self.write(request(what, headers, body)).await;
    }

    /// Sends some bytes, which need not be a request.
    ///
    /// # Errors
    /// The server has hung up.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.write_all(bytes.as_ref()).await
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// The server hangs up.
    ///
    /// # Panics
    /// What comes is no answer.
    pub async fn answer(&mut self) -> io::Result<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).await? == 0 {
                return Err(hung_up(&head));
            }
        }
        let (mut answer, length) = Answer::of_head(head);
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        answer.body = String::from_utf8(body).unwrap();
        Ok(answer)
    }

    /// Waits for the next line of an answer that comes bit by bit; there is none at its end.
    ///
    /// # Errors
    /// The server hangs up, or says what is no text.
    pub async fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).await?;
        Ok((read > 0).then_some(line))
    }

    /// Waits until the server hangs up, and adds what it says until then to `rest`.
    ///
    /// # Errors
    /// The connection breaks; `rest` has what came before.
    pub async fn rest(&mut self, rest: &mut Vec<u8>) -> io::Result<()> {
        self.0.read_to_end(rest).await.map(drop)
    }
}
