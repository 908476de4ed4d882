//! An HTTP client that says what it is told to, also what no library would.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs};

use serde_json::Value;

/// An answer to a request.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its status line and its headers, in lower case.
    pub head: String,
    /// What comes behind them.
    pub body: String,
}

impl Answer {
    /// Returns its body; null if that is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns a header.
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(':'));
        headers.find(|(header, _)| *header == name).map(|(_, value)| value.trim())
    }
}

/// A connection to a server, for one request after the other.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// No server listens.
    pub fn open(address: impl ToSocketAddrs) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let answers = BufReader::new(stream.try_clone().unwrap());
        Self { stream, answers }
    }

    /// Sends a request, like `GET /`, and waits for its answer. The length is said for it, and so is
    /// the host where no header does.
    ///
    /// # Panics
    /// The server hangs up without an answer.
    pub fn send(&mut self, what: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = format!("{what} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            request += "host: localhost\r\n";
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        request += body;
        // A server that has heard enough may hang up before the end.
        let _ = self.stream.write_all(request.as_bytes());
        self.answer()
    }

    fn answer(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.answers.read_line(&mut head);
            assert!(read.is_ok_and(|read| read > 0), "it hung up behind {head:?}");
        }
        head.make_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {head:?}"));
        let mut answer = Answer { status, head, body: String::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.answers.read_exact(&mut body).unwrap();
        answer.body = String::from_utf8(body).unwrap();
        answer
    }
}

/// Sends one request over a connection of its own.
///
/// # Panics
/// No server listens, or it hangs up without an answer.
pub fn send(
    address: impl ToSocketAddrs,
    what: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let headers = [&[("connection", "close")], headers].concat();
    Connection::open(address).send(what, &headers, body)
}
