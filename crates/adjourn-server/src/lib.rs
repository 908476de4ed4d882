//! HTTP in front of a store: the intake of events.
//!
//! `POST /v1/events` takes CloudEvents in JSON: one structured event, a batch, or one in binary
//! mode with its attributes in `ce-` headers. What is answered with 200 is stored.

mod cloud_event;
mod problem;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adjourn_host::doorbell::Hosts;
use adjourn_store::Store;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::TcpListener;

use cloud_event::Form;
use problem::Problem;

/// A request may have this much: a batch of events with their data.
const BODY_BYTES: usize = 4 * 1024 * 1024;
/// How long the head of a request may take to arrive, the wait for its first byte included.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a request's body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// A batch may have this many events; they are acknowledged in one commit.
const BATCH: usize = 256;

/// What the intake needs.
#[derive(Clone)]
pub struct Intake<S> {
    /// Where events go.
    pub store: S,
    /// Who is told that there are some.
    pub hosts: Hosts,
    /// Whose they are.
    pub tenant: String,
    /// What a caller must show, if anything.
    pub token: Option<Arc<str>>,
}

/// Serves the intake until `stop`, and until requests that are under way then are answered.
///
/// # Errors
/// None so far: a connection that cannot be accepted is one that its caller tries again.
pub async fn serve<S: Store>(
    mut listener: TcpListener,
    intake: Intake<S>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    // What axum serves by itself waits for a request's head for ever.
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    let router = router(intake);
    let connections = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, _) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            () = &mut stop => break,
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A caller that goes away in the middle of a request is nobody's failure.
            let _ = connection.await;
        });
    }
    drop(listener);
    connections.shutdown().await;
    Ok(())
}

/// Returns whether a listener there needs a token: everybody on the network could reach it.
pub const fn needs_token(address: &SocketAddr) -> bool {
    !address.ip().is_loopback()
}

fn router<S: Store>(intake: Intake<S>) -> Router {
    Router::new()
        .route("/v1/events", post(events::<S>))
        .method_not_allowed_fallback(only_post)
        .fallback(nothing_there)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(intake)
}

async fn only_post() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "events are sent by POST")
}

async fn nothing_there() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing here; events go to /v1/events")
}

async fn events<S: Store>(State(intake): State<Intake<S>>, request: Request) -> Response {
    match take(intake, request).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn take<S: Store>(intake: Intake<S>, request: Request) -> Result<Response, Problem> {
    // Nothing is read for strangers.
    authorised(intake.token.as_deref(), request.headers())?;
    let headers = request.headers().clone();
    let body = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, &())).await;
    let body = body.map_err(|_| {
        let problem = format!("the body did not arrive within {BODY_TIME:?}");
        Problem::new(StatusCode::REQUEST_TIMEOUT, problem)
    })?;
    let body = body.map_err(|rejection| match rejection.status() {
        too_large @ StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(too_large, format!("a request may have {BODY_BYTES} bytes"))
        }
        other => Problem::new(other, "the body did not arrive whole"),
    })?;
    let now = intake.store.environment().now();
    let (events, form) = cloud_event::read(&headers, &body, &intake.tenant, now)?;
    if events.len() > BATCH {
        let problem = format!("a batch may have {BATCH} events, this one has {}", events.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, problem));
    }
    let acknowledged = intake
        .store
        .transact(move |tx| {
            let acknowledge = |(index, event)| match (tx.acknowledge(event), form) {
                // None is kept if one is refused: the transaction is given up.
                (Err(error), Form::Many) => Err(Problem::from(error).within(index)),
                (Err(error), Form::One) => Err(error.into()),
                (Ok(acknowledged), _) => Ok(acknowledged),
            };
            events.iter().enumerate().map(acknowledge).collect::<Result<Vec<_>, Problem>>()
        })
        .await?;
    intake.hosts.ring();
    let acknowledged: Vec<_> =
        acknowledged.iter().map(|(seq, fresh)| json!({ "seq": seq, "fresh": fresh })).collect();
    let body = json!({ "acknowledged": acknowledged }).to_string();
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Refuses whoever does not show the token.
fn authorised(token: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(token) = token else { return Ok(()) };
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.split_once(' '));
    let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if shown
        .map(|(_, shown)| shown.trim_start())
        .is_some_and(|shown| same(shown.as_bytes(), token.as_bytes()))
    {
        return Ok(());
    }
    Err(Problem::new(StatusCode::UNAUTHORIZED, "the bearer token is missing or wrong"))
}

/// Compares without telling by its duration how much was right.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differences == 0
}
