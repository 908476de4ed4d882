//! A2A over loopback: a handler that says again what it is told, and an agent's server, with the same
//! clients; and a thousand watchers of one task beside a thousand of a bare broadcast.
//!
//! No host is there that could claim the tasks, so that a pause and a resume are one commit each and
//! nothing else is counted; the same with a host that runs them stands beside it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use adjourn::core::carry::Budget;
use adjourn::core::driver::DriverSpec;
use adjourn_a2a::{Agent, Face, Profile};
use adjourn_server::Site;
use adjourn_testkit::http::{Awaited, Connection};
use adjourn_testkit::process::Pipe;
use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use super::child::{self, first_gone, runtime};
use super::figures::Figures;
use super::http::listen;
use super::sessions::open;

/// How long requests are counted.
const SPAN: Duration = Duration::from_millis(800);
/// Watchers of one task.
const WATCHERS: usize = 1000;
/// Connections that a server takes: all watchers, and whoever pauses.
const CONNECTIONS: usize = WATCHERS + 100;
/// How often all watchers are told something.
const TOLD: usize = 20;
/// How long a watcher may wait for its event before the figure is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the agent would do, and does where there is a host: it parks, so that there is a task.
const SCRIPT: &str = r#"{"steps": [{"say": "hello"}, {"await": {"reason": "waiting"}}]}"#;
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// The figures of pauses and resumes: without a host and with one, of the bare handler, and how the
/// first is beside that.
type VerbFigures = [&'static str; 4];
const AT_16: VerbFigures = [
    "a2a_ops_per_s_n16",
    "a2a_hosted_ops_per_s_n16",
    "raw_a2a_echo_per_s_n16",
    "a2a_ops_echo_ratio_n16",
];
const AT_64: VerbFigures = [
    "a2a_ops_per_s_n64",
    "a2a_hosted_ops_per_s_n64",
    "raw_a2a_echo_per_s_n64",
    "a2a_ops_echo_ratio_n64",
];

/// What is asked for again and again.
#[derive(Debug, Clone, Copy)]
enum Asks {
    /// To pause a task, and to resume it.
    Verbs,
    /// To see a task.
    Get,
}

/// Measures one round.
pub fn measure(place: &Path, figures: &mut Figures) -> Result<()> {
    let rate = |server: &str, store: &str, asks, connections| {
        let store = place.join(store);
        let store = (!server.ends_with("echo")).then_some(store.as_path());
        requests_per_second(child::spawn(server, store)?, asks, connections)
    };
    for (connections, [ops, hosted_ops, raw, ratio]) in [(16, AT_16), (64, AT_64)] {
        let echo = rate("a2a-echo", "", Asks::Verbs, connections)?;
        let ours = rate("a2a", &format!("verbs-{connections}.db"), Asks::Verbs, connections)?;
        figures.add(raw, echo);
        figures.add(ops, ours);
        figures.add(ratio, ours / echo);
        let store = format!("hosted-{connections}.db");
        figures.add(hosted_ops, rate("a2a-host", &store, Asks::Verbs, connections)?);
    }
    let echo = rate("a2a-echo", "", Asks::Get, 16)?;
    let get = rate("a2a", "get.db", Asks::Get, 16)?;
    figures.add("raw_a2a_get_echo_per_s", echo);
    figures.add("a2a_get_per_s", get);
    figures.add("a2a_get_echo_ratio", get / echo);
    let bare = fan_out(child::spawn("a2a-broadcast", None)?)?;
    let ours = fan_out(child::spawn("a2a", Some(&place.join("fan-out.db")))?)?;
    figures.add("raw_broadcast_1000_ms", bare);
    figures.add("a2a_fanout_1000_ms", ours);
    figures.add("a2a_fanout_ratio", ours / bare);
    Ok(())
}

/// An agent's server: with a host that runs its tasks, or without any.
pub fn serve(path: &Path, hosts: bool) -> Result<()> {
    runtime()?.block_on(async {
        let adjourn = open(path)?;
        let host = match hosts {
            true => Some(adjourn.host().scripts().start().await?),
            false => None,
        };
        let agent = Agent {
            name: "bench".to_owned(),
            description: "measures".to_owned(),
            driver: DriverSpec::script(SCRIPT),
            budget: Budget::default(),
            pausable: true,
        };
        let face = Arc::new(Face::new(adjourn.clone(), agent, Profile::Adjourn));
        let site = Site { agent: Some(face), connections: CONNECTIONS, ..Site::open(adjourn) };
        adjourn_server::serve(listen().await?, site, first_gone()).await?;
        if let Some(host) = host {
            host.stop().await?;
        }
        Ok(())
    })
}

/// A server that says again what it is told.
pub fn echo() -> Result<()> {
    runtime()?.block_on(async {
        let again = |body: Bytes| async { ([(CONTENT_TYPE, "application/json")], body) };
        let router = Router::new().route("/a2a", post(again));
        Ok(axum::serve(listen().await?, router).with_graceful_shutdown(first_gone()).await?)
    })
}

/// A server whose watchers are all sent what is posted to it, and which keeps nothing.
pub fn broadcast_all() -> Result<()> {
    runtime()?.block_on(async {
        let (sender, _) = broadcast::channel::<Bytes>(16);
        let tell = |State(sender): State<broadcast::Sender<Bytes>>, body: Bytes| async move {
            let event = [b"data: ", body.as_ref(), b"\n\n"].concat();
            sender.send(event.into()).map_or(0, |count| count).to_string()
        };
        let watch = |State(sender): State<broadcast::Sender<Bytes>>| async move {
            let heard = Heard(sender.subscribe());
            let events = Body::from_stream(heard.stream());
            let response: Response =
                ([(CONTENT_TYPE, "text/event-stream")], events).into_response();
            response
        };
        let router = Router::new().route("/a2a", post(tell)).route("/watch", post(watch));
        let router = router.with_state(sender);
        Ok(axum::serve(listen().await?, router).with_graceful_shutdown(first_gone()).await?)
    })
}

/// What a watcher of the bare broadcast is sent.
struct Heard(broadcast::Receiver<Bytes>);

impl Heard {
    fn stream(mut self) -> adjourn::driver::BoxStream<'static, Result<Bytes, std::io::Error>> {
        adjourn::driver::emitting(move |out| async move {
            out.emit(Ok(Bytes::from_static(b"data: {}\n\n"))).await;
            while let Ok(event) = self.0.recv().await {
                out.emit(Ok(event)).await;
            }
        })
    }
}

fn requests_per_second(mut server: Pipe, asks: Asks, connections: usize) -> Result<f64> {
    let port = server.line()?.parse()?;
    // Every task is there before anything is counted.
    let mut clients = Vec::with_capacity(connections);
    for number in 0..connections {
        clients.push(Client::new(port, number)?);
    }
    let start = Instant::now();
    let counting: Vec<_> = clients
        .into_iter()
        .map(|client| std::thread::spawn(move || client.count(asks, start)))
        .collect();
    let mut requests = 0;
    for client in counting {
        requests += client.join().ok().context("a client panicked")??;
    }
    Ok(requests as f64 / start.elapsed().as_secs_f64())
}

/// A client with a task of its own. To a server that only says again what it is told, it asks the
/// same.
struct Client {
    connection: Connection,
    task: String,
    handle: String,
}

impl Client {
    fn new(port: u16, number: usize) -> Result<Self> {
        let mut connection = Connection::open(("127.0.0.1", port));
        let message = json!({
            "messageId": format!("m{number}"), "role": "ROLE_USER", "parts": [{ "text": "go" }],
        });
        let params = json!({
            "message": message, "configuration": { "returnImmediately": true },
        });
        let sent = asked(&mut connection, "SendMessage", &params)?;
        let is_echo = sent.get("params").is_some();
        let task = sent.pointer("/result/task/id").and_then(Value::as_str);
        let nobody = "00000000-0000-7000-8000-000000000000";
        let task = match task {
            Some(task) => task.to_owned(),
            None if is_echo => format!("run-{nobody}"),
            None => anyhow::bail!("no task in {sent}"),
        };
        Ok(Self { connection, task, handle: format!("suspend-{nobody}") })
    }

    /// Asks until the time is over; returns how often it was answered.
    fn count(mut self, asks: Asks, start: Instant) -> Result<u64> {
        let mut answered = 0;
        while start.elapsed() < SPAN {
            answered += self.ask(asks)?;
        }
        Ok(answered)
    }

    fn ask(&mut self, asks: Asks) -> Result<u64> {
        let refused = |answer: &Value| answer.get("error").is_some();
        match asks {
            Asks::Get => {
                let answer = asked(&mut self.connection, "GetTask", &json!({ "id": self.task }))?;
                ensure!(!refused(&answer), "{answer}");
                Ok(1)
            }
            Asks::Verbs => {
                let pause = json!({ "taskId": self.task, "reason": "bench" });
                let paused = asked(&mut self.connection, "tasks/pause", &pause)?;
                ensure!(!refused(&paused), "{paused}");
                if let Some(handle) = paused.pointer("/result/handle").and_then(Value::as_str) {
                    self.handle = handle.to_owned();
                }
                let resume = json!({ "taskId": self.task, "handle": self.handle });
                let resumed = asked(&mut self.connection, "tasks/resume", &resume)?;
                ensure!(!refused(&resumed), "{resumed}");
                Ok(2)
            }
        }
    }
}

fn asked(connection: &mut Connection, method: &str, params: &Value) -> Result<Value> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answer = connection.send("POST /a2a", &JSON, &request.to_string());
    ensure!(answer.status == 200, "the answer is {answer:?}");
    Ok(answer.json())
}

/// Has a thousand watchers told something again and again; returns how many milliseconds it takes
/// until all of them have heard it.
fn fan_out(mut server: Pipe) -> Result<f64> {
    let port: u16 = server.line()?.parse()?;
    // A bare broadcast has no tasks, and is asked for nothing but to tell.
    let mut teller = Client::new(port, 0).ok();
    let mut connection = Connection::open(("127.0.0.1", port));
    runtime()?.block_on(async {
        let heard = Arc::new(AtomicUsize::new(0));
        let mut watchers = JoinSet::new();
        for _ in 0..WATCHERS {
            let task = teller.as_ref().map(|teller| teller.task.clone());
            watchers.spawn(watch(port, task, Arc::clone(&heard)));
        }
        let mut expected = WATCHERS;
        all_heard(&heard, expected).await?;
        let mut spent = Duration::ZERO;
        // As long as an event of ours is.
        let event = json!({ "told": "x".repeat(700) }).to_string();
        for number in 0..TOLD {
            let start = Instant::now();
            match &mut teller {
                Some(teller) if number % 2 == 0 => {
                    let pause = json!({ "taskId": teller.task, "reason": "bench" });
                    asked(&mut teller.connection, "tasks/pause", &pause)?;
                }
                Some(teller) => {
                    let resume = json!({ "taskId": teller.task });
                    asked(&mut teller.connection, "tasks/resume", &resume)?;
                }
                None => {
                    connection.send("POST /a2a", &JSON, &event);
                }
            }
            expected += WATCHERS;
            all_heard(&heard, expected).await?;
            spent += start.elapsed();
        }
        Ok(spent.as_secs_f64() * 1e3 / TOLD as f64)
    })
}

/// Waits until so many events were heard in all.
async fn all_heard(heard: &AtomicUsize, expected: usize) -> Result<()> {
    let start = Instant::now();
    while heard.load(Ordering::Relaxed) < expected {
        ensure!(start.elapsed() < PATIENCE, "only {heard:?} of {expected} events came");
        // The watchers of this thread read meanwhile.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Watches a task, or whatever a bare broadcast tells, and counts events. A thread for each watcher, as
/// the client of the tests would need, would be measured with it: they share one.
async fn watch(port: u16, task: Option<String>, heard: Arc<AtomicUsize>) -> Result<()> {
    let mut connection = Awaited::open(("127.0.0.1", port)).await;
    let (path, params) = match &task {
        Some(task) => ("/a2a", json!({ "id": task })),
        None => ("/watch", Value::Null),
    };
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": params });
    let body = body.to_string();
    connection.begin(&format!("POST {path}"), &JSON, &body).await;
    while let Some(line) = connection.line().await? {
        if line.starts_with("data: ") {
            heard.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}
