//! A provider of models on loopback: a server that answers each request as it was told, and remembers
//! what it was asked; `openai` and `anthropic` have answers in the formats of both.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

pub mod anthropic;
pub mod openai;

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What a server was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The first line and the headers, in lower case.
    pub head: String,
    /// What comes behind them.
    pub body: Value,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    /// The connection is closed in the midst of it.
    Cut,
    /// Nothing more comes, and the connection stays.
    Held,
}

/// What a server answers.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<String>,
    end: End,
}

impl Reply {
    /// A stream of server-sent events, each of which is sent by itself.
    pub fn events(events: impl IntoIterator<Item = String>) -> Self {
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Self { status: 200, headers, pieces: events.into_iter().collect(), end: End::Whole }
    }

    /// An error, as a provider words it.
    pub fn error(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status, headers, pieces: vec![body.to_string()], end: End::Whole }
    }

    /// A page for people.
    pub fn page(status: u16, html: &str) -> Self {
        let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
        Self { status, headers, pieces: vec![html.to_owned()], end: End::Whole }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Closes the connection behind what is there.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.end = End::Cut;
        self
    }

    /// Keeps the connection open behind what is there.
    #[must_use]
    pub fn held(mut self) -> Self {
        self.end = End::Held;
        self
    }
}

/// A provider on loopback, for as long as it is kept.
#[derive(Debug)]
pub struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Says when the other side has closed a connection that was held.
    closed: mpsc::UnboundedReceiver<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts a server that gives these answers, one for each request; the last one again and again.
    ///
    /// # Panics
    /// There is no port.
    pub async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (tell, closed) = mpsc::unbounded_channel();
        let log = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let mut replies = replies.into_iter().peekable();
            let mut last = None;
            while let Ok((stream, _)) = listener.accept().await {
                last = replies.next().or(last);
                let reply = last.clone().unwrap();
                tokio::spawn(serve(stream, reply, Arc::clone(&log), tell.clone()));
            }
        });
        Self { url, asked, closed, task }
    }

    /// Returns where it is, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns what it was asked so far.
    ///
    /// # Panics
    /// It has panicked.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the body of the one request that it was sent.
    ///
    /// # Panics
    /// It was sent none, or several.
    pub fn body(&self) -> Value {
        let [asked] = &self.asked()[..] else { panic!("{:?}", self.asked()) };
        asked.body.clone()
    }

    /// Waits until the other side has closed a connection that is held.
    ///
    /// # Panics
    /// The server is gone.
    pub async fn closed(&mut self) {
        self.closed.recv().await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    reply: Reply,
    log: Arc<Mutex<Vec<Asked>>>,
    closed: mpsc::UnboundedSender<()>,
) {
    let Some(asked) = read(&mut stream).await else { return };
    log.lock().unwrap().push(asked);
    let mut head = format!("HTTP/1.1 {} Said\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("transfer-encoding: chunked\r\n\r\n");
    let mut answer = vec![head];
    answer.extend(reply.pieces.iter().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len())));
    if reply.end == End::Whole {
        answer.push("0\r\n\r\n".to_owned());
    }
    for piece in answer {
        if stream.write_all(piece.as_bytes()).await.is_err() {
            return;
        }
    }
    if reply.end == End::Held {
        // It ends when the other side has closed the connection.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        let _ = closed.send(());
    }
}

/// Reads a request with its body.
async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        break (head.clone(), end + 4 + length.unwrap_or("0").parse::<usize>().unwrap());
    };
    while bytes.len() < length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = &bytes[head.len() + 4..];
    Some(Asked { head, body: adjourn_core::json::stored(body).unwrap() })
}
