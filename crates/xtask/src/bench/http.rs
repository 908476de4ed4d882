//! HTTP over loopback: a handler that does nothing, and the intake of events, with the same client.

use std::path::Path;
use std::time::{Duration, Instant};

use adjourn_server::Site;
use adjourn_testkit::http::Connection;
use adjourn_testkit::process::Pipe;
use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use tokio::net::TcpListener;

use super::child::{self, first_gone, runtime};
use super::figures::Figures;
use super::sessions::open;

/// How long requests are counted.
const SPAN: Duration = Duration::from_millis(600);
/// Connections that are kept open, each with one request at a time.
const CONNECTIONS: usize = 16;

/// Measures one round.
pub fn measure(place: &Path, figures: &mut Figures) -> Result<()> {
    figures.add("raw_axum_per_s", requests_per_second(child::spawn("axum", None)?)?);
    let store = place.join("events.db");
    figures.add("events_per_s", requests_per_second(child::spawn("intake", Some(&store))?)?);
    Ok(())
}

/// A server that reads a body and answers with as many bytes as the intake does.
pub fn bare() -> Result<()> {
    runtime()?.block_on(async {
        let answer = |_: Bytes| async { r#"{"acknowledged":[{"fresh":true,"seq":10000}]}"# };
        let listener = listen().await?;
        let router = Router::new().route("/v1/events", post(answer));
        Ok(axum::serve(listener, router).with_graceful_shutdown(first_gone()).await?)
    })
}

/// The intake of events.
pub fn intake(path: &Path) -> Result<()> {
    runtime()?.block_on(async {
        let site = Site::open(open(path)?);
        Ok(adjourn_server::serve(listen().await?, site, first_gone()).await?)
    })
}

/// Listens on any port, and says which.
pub async fn listen() -> Result<TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?.port());
    Ok(listener)
}

fn requests_per_second(mut server: Pipe) -> Result<f64> {
    let port = server.line()?.parse()?;
    let start = Instant::now();
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|number| std::thread::spawn(move || client(port, number, start)))
        .collect();
    let mut requests = 0;
    for client in clients {
        requests += client.join().ok().context("a client panicked")??;
    }
    Ok(requests as f64 / start.elapsed().as_secs_f64())
}

/// Posts events over one connection; returns how many were answered.
fn client(port: u16, number: usize, start: Instant) -> Result<u64> {
    let mut connection = Connection::open(("127.0.0.1", port));
    let headers = [("content-type", "application/cloudevents+json")];
    let mut answered = 0;
    while start.elapsed() < SPAN {
        let event = serde_json::json!({
            "specversion": "1.0",
            "id": format!("{number}-{answered}"),
            "source": "bench",
            "type": "ci.passed",
            "subject": "build-1",
            "data": { "log": "x".repeat(200) },
        })
        .to_string();
        let answer = connection.send("POST /v1/events", &headers, &event);
        ensure!(answer.status == 200, "the answer is {answer:?}");
        answered += 1;
    }
    Ok(answered)
}
