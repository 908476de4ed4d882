//! An MCP server over streamable HTTP, on loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use adjourn_core::json;
use serde_json::{Value, json};

/// What a request must have.
pub const AUTHORIZATION: &str = "Bearer hush-hush";

/// A server that listens until the test is over.
pub struct HttpServer {
    pub url: String,
    /// The methods of HTTP and of MCP that were called.
    called: Arc<Mutex<Vec<String>>>,
    /// What the requests were for: the path, and what stands behind it.
    targets: Arc<Mutex<Vec<String>>>,
}

/// How a server refuses credentials.
#[derive(Clone, Copy)]
pub struct Refusal {
    /// The method of MCP that is refused, and all others behind it are, too.
    pub from: &'static str,
    /// Whether the server says which credentials it wants.
    pub says_which: bool,
}

impl HttpServer {
    pub fn start() -> Self {
        Self::start_with(None, false)
    }

    /// Starts one that answers with streams of events.
    pub fn streaming() -> Self {
        Self::start_with(None, true)
    }

    /// Starts one that takes credentials at first, and then does not any more.
    pub fn refusing(refusal: Refusal) -> Self {
        Self::start_with(Some(refusal), false)
    }

    fn start_with(refusal: Option<Refusal>, streams: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let called = Arc::<Mutex<Vec<String>>>::default();
        let targets = Arc::<Mutex<Vec<String>>>::default();
        let (all, every) = (Arc::clone(&called), Arc::clone(&targets));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (called, targets) = (Arc::clone(&all), Arc::clone(&every));
                std::thread::spawn(move || answer(stream, &called, &targets, refusal, streams));
            }
        });
        Self { url, called, targets }
    }

    pub fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap().clone()
    }

    pub fn called(&self) -> Vec<String> {
        self.called.lock().unwrap().clone()
    }
}

/// Answers one request.
fn answer(
    mut stream: TcpStream,
    called: &Mutex<Vec<String>>,
    targets: &Mutex<Vec<String>>,
    refusal: Option<Refusal>,
    streams: bool,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        let mut headers = head.iter().filter_map(|line| line.split_once(": "));
        headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = head[0].split(' ');
    let (verb, target) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
    targets.lock().unwrap().push(target.clone());
    let message: Value = json::read(&body, 1024 * 1024).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or(&verb).to_owned();
    called.lock().unwrap().push(method.clone());
    if message["params"]["name"] == "wait" {
        // It is never answered; the client hangs up.
        let _ = reader.read_to_end(&mut body);
        return;
    }
    let refused =
        refusal.filter(|refusal| called.lock().unwrap().iter().any(|m| m == refusal.from));
    let (status, extra, body) = match verb.as_str() {
        _ if refused.is_some_and(|refusal| !refusal.says_which) => {
            ("401 Unauthorized", "", "hush-hush is over".to_owned())
        }
        _ if refused.is_some() => {
            ("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", String::new())
        }
        _ if header("authorization") != Some(AUTHORIZATION) => {
            ("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", String::new())
        }
        "POST" if message["id"].is_null() => ("202 Accepted", "", String::new()),
        "POST" => ("200 OK", "Mcp-Session-Id: 7\r\n", response(&method, &message, &target)),
        "DELETE" => ("200 OK", "", String::new()),
        _ => ("405 Method Not Allowed", "", String::new()),
    };
    let (kind, body) = match streams && status == "200 OK" && verb == "POST" {
        // Other events may come before the answer.
        true => ("text/event-stream", format!(": hello\n\nevent: message\ndata: {body}\n\n")),
        false => ("application/json", body),
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{extra}Content-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}",
    );
}

fn response(method: &str, message: &Value, target: &str) -> String {
    let result = match method {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "1" },
        }),
        "tools/list" => {
            let hints = json!({ "readOnlyHint": true });
            let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": hints });
            json!({ "tools": [tool("look"), tool("wait")] })
        }
        _ => json!({ "content": [{ "type": "text", "text": format!("seen at {target}") }] }),
    };
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
}
