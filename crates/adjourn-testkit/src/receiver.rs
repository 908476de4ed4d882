//! A receiver of push notifications on loopback, which answers as it is told.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use serde_json::Value;

use crate::PATIENCE;

/// What a receiver answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A status.
    Status(u16),
    /// A status, with a time to wait as `Retry-After` has it.
    Later(u16, String),
    /// A redirect.
    To(String),
    /// Nothing, for as long as the sender waits.
    Nothing,
}

/// A notification that came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The path that it was posted to.
    pub path: String,
    /// Its headers, in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Value,
}

impl Received {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the key by which it is known when it comes again.
    pub fn key(&self) -> &str {
        self.header("idempotency-key").unwrap_or_else(|| panic!("no key: {self:?}"))
    }

    /// Returns the state of the task, in either version; nothing if it does not say.
    pub fn state(&self) -> Option<&str> {
        let status = ["/status/state", "/task/status/state", "/statusUpdate/status/state"];
        status.iter().find_map(|path| self.body.pointer(path)?.as_str())
    }
}

/// A receiver that listens until the test ends.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    received: mpsc::Receiver<Received>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
}

impl Receiver {
    /// Listens, and answers with success whatever comes.
    #[expect(clippy::new_without_default, reason = "a test says that it listens")]
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (told, received) = mpsc::channel();
        let replies = Arc::<Mutex<VecDeque<Reply>>>::default();
        let answers = Arc::clone(&replies);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (told, answers) = (told.clone(), Arc::clone(&answers));
                std::thread::spawn(move || converse(stream, &told, &answers));
            }
        });
        Self { address, received, replies }
    }

    /// Returns a URL of it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers the next ones otherwise, one after the other.
    pub fn replies(&self, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner).extend(replies);
    }

    /// Returns how many answers are left of those that were named.
    pub fn replies_left(&self) -> usize {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits for the next notification.
    ///
    /// # Panics
    /// None comes.
    pub fn next(&self) -> Received {
        self.received.recv_timeout(PATIENCE).unwrap()
    }

    /// Returns the next notification, if one has come.
    pub fn came(&self) -> Option<Received> {
        self.received.try_recv().ok()
    }

    /// Waits for notifications up to the one that tells of a state.
    pub fn until(&self, state: &str) -> Vec<Received> {
        let mut all = Vec::new();
        while all.last().and_then(Received::state) != Some(state) {
            all.push(self.next());
        }
        all
    }
}

/// Reads requests of one connection, and answers them.
fn converse(stream: TcpStream, told: &mpsc::Sender<Received>, replies: &Mutex<VecDeque<Reply>>) {
    let mut requests = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(received) = read(&mut requests) {
        let reply = replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let _ = told.send(received);
        let head = match reply {
            None => "204 No Content\r\n".to_owned(),
            Some(Reply::Status(status)) => format!("{status} Status\r\ncontent-length: 0\r\n"),
            Some(Reply::Later(status, wait)) => {
                format!("{status} Status\r\nretry-after: {wait}\r\ncontent-length: 0\r\n")
            }
            Some(Reply::To(url)) => {
                format!("302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\n")
            }
            Some(Reply::Nothing) => {
                // Until the sender hangs up.
                let _ = requests.read(&mut [0]);
                return;
            }
        };
        if write!(stream, "HTTP/1.1 {head}\r\n").is_err() {
            return;
        }
    }
}

fn read(requests: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    requests.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        requests.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    requests.read_exact(&mut body).ok()?;
    Some(Received { path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}
