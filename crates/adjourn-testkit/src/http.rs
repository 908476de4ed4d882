//! An HTTP client that says what it is told to, also what no library would.
//!
//! [`Connection`] blocks its thread; [`Awaited`] does not, for a test whose server runs on the same
//! thread, or on a clock that goes on when there is nothing else to do.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod awaited;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

pub use awaited::Awaited;

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

    /// Reads the head of one, whose body is still to come; returns it with the length of that.
    fn of_head(mut head: String) -> (Self, usize) {
        head.make_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {head:?}"));
        let answer = Self { status, head, body: String::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        (answer, length)
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
        Self::try_open(address).unwrap()
    }

    /// Connects, if a server listens.
    ///
    /// # Errors
    /// No server listens.
    pub fn try_open(address: impl ToSocketAddrs) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let answers = BufReader::new(stream.try_clone()?);
        Ok(Self { stream, answers })
    }

    /// Sends a request, like `GET /`, and waits for its answer. The length is said for it, and so is
    /// the host where no header does.
    ///
    /// # Panics
    /// The server hangs up without an answer.
    pub fn send(&mut self, what: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.begin(what, headers, body);
        self.answer().unwrap()
    }

    /// Sends a request as [`Connection::send`] does, and does not wait for its answer.
    pub fn begin(&mut self, what: &str, headers: &[(&str, &str)], body: &str) {
        // A server that has heard enough may hang up before the end.
        let _ = self.stream.write_all(request(what, headers, body).as_bytes());
    }

    /// Reads the head of an answer, with the length of its body.
    fn head(&mut self) -> io::Result<(Answer, usize)> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.answers.read_line(&mut head)? == 0 {
                return Err(hung_up(&head));
            }
        }
        Ok(Answer::of_head(head))
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let head = self.head()?;
        self.behind(head)
    }

    /// Reads what comes behind the head of an answer.
    fn behind(&mut self, (mut answer, length): (Answer, usize)) -> io::Result<Answer> {
        let mut body = vec![0; length];
        self.answers.read_exact(&mut body)?;
        answer.body = String::from_utf8(body).unwrap();
        Ok(answer)
    }
}

/// Returns what is wrong where a server hangs up in the middle of an answer.
fn hung_up(head: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("it hung up behind {head:?}"))
}

/// Returns a request as it is written: its length is said, and so is the host where no header does.
fn request(what: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut request = format!("{what} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "host") {
        request += "host: localhost\r\n";
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    request += body;
    request
}

/// A stream of server-sent events.
#[derive(Debug)]
pub struct Events {
    /// The head of the answer, in lower case.
    pub head: String,
    /// Whether the stream came to its end, and was not cut off.
    pub is_whole: bool,
    answers: BufReader<TcpStream>,
}

impl Events {
    /// Sends a request that is answered with events.
    ///
    /// # Panics
    /// No server listens, or it answers otherwise.
    pub fn open(
        address: impl ToSocketAddrs,
        what: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        let mut connection = Connection::open(address);
        connection.begin(what, headers, body);
        let head = connection.head().unwrap();
        let has_events = head.0.head.contains("\r\ncontent-type: text/event-stream");
        assert!(has_events, "{:?}", connection.behind(head).unwrap());
        Self { head: head.0.head, is_whole: false, answers: connection.answers }
    }

    /// Ends the stream when nothing has come for so long.
    ///
    /// # Panics
    /// There is no such time.
    #[must_use]
    pub fn until_silent_for(self, silence: Duration) -> Self {
        self.answers.get_ref().set_read_timeout(Some(silence)).unwrap();
        self
    }
}

impl Iterator for Events {
    type Item = (String, Value);

    /// Returns the next event with its id; nothing at the end.
    fn next(&mut self) -> Option<(String, Value)> {
        let (mut id, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            // One that is cut off has no end.
            self.answers.read_line(&mut line).ok()?;
            if !line.ends_with('\n') {
                return None;
            }
            if line == "0\r\n" {
                self.is_whole = true;
                return None;
            } else if let Some(place) = line.strip_prefix("id: ") {
                id = place.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((id, serde_json::from_str(data).unwrap()));
            }
        }
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
    try_send(address, what, headers, body).unwrap()
}

/// Sends one request over a connection of its own, to a server that may be killed meanwhile.
///
/// # Errors
/// No server listens, or it hangs up without an answer.
pub fn try_send(
    address: impl ToSocketAddrs,
    what: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Answer> {
    let headers = [&[("connection", "close")], headers].concat();
    let mut connection = Connection::try_open(address)?;
    connection.begin(what, &headers, body);
    connection.answer()
}

/// Returns JSON as a person reads it, with ids by the order in which they come up.
///
/// # Panics
/// It cannot be written, which JSON always can.
pub fn told(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap();
    let mut seen: Vec<String> = Vec::new();
    let mut told = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("-0") {
        let uuid = rest.get(at + 1..at + 37).filter(|uuid| uuid.matches('-').count() == 4);
        let Some(uuid) = uuid else {
            told.push_str(&rest[..at + 2]);
            rest = &rest[at + 2..];
            continue;
        };
        let number = seen.iter().position(|seen| seen == uuid).unwrap_or_else(|| {
            seen.push(uuid.to_owned());
            seen.len() - 1
        });
        told.push_str(&rest[..=at]);
        told.push_str(&(number + 1).to_string());
        rest = &rest[at + 37..];
    }
    told.push_str(rest);
    told.push('\n');
    told
}
