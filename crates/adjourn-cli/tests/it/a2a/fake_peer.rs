//! A server that answers as a test says, also as no agent should.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;

/// A request, as it came.
#[derive(Debug, Clone)]
pub struct Heard {
    /// Its method and its path.
    pub what: String,
    /// Its headers, in lower case.
    pub head: String,
    /// Its body; null if there is none.
    pub body: Value,
}

impl Heard {
    /// Returns the method of JSON-RPC that it asks for.
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// What is answered: a status, a content type and a body, behind which the connection is closed.
pub type Answer = (u16, &'static str, String);

/// The server.
pub struct FakePeer {
    pub url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakePeer {
    /// Starts a server whose answers are made from a request, and from its own URL.
    pub fn start(answer: impl Fn(&Heard, &str) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (heard, over) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let (own, all, is_over) = (url.clone(), Arc::clone(&heard), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                let Some(request) = hear(&stream) else { continue };
                let (status, kind, body) = answer(&request, &own);
                all.lock().unwrap().push(request);
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        Self { url, heard, over, thread: Some(thread) }
    }

    /// Returns what it has heard so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for FakePeer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn hear(stream: &TcpStream) -> Option<Heard> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let what = head.split(" HTTP/").next()?.to_owned();
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    // The token is as it was sent; the names of headers are not.
    Some(Heard { what, head: lower, body: serde_json::from_slice(&body).unwrap_or_default() })
}
