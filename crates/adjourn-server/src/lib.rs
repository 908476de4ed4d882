//! HTTP in front of a store: the intake of events, an agent that other agents talk to, and how the
//! process is.
//!
//! - [`serve`] answers on a listener until it is told to stop.
//! - [`Intake`] says where events go, and what a caller must show.
//! - [`A2a`] is the agent, if there is one, and [`Access`] says who may do what with its tasks.
//! - [`needs_token`] says which addresses others can reach.
//! - [`CONNECTIONS`] is how many callers are heard at once.
//!
//! `POST /v1/events` takes CloudEvents in JSON: one structured event, a batch, or one in binary
//! mode with its attributes in `ce-` headers. What is answered with 200 is stored.
//! `POST /a2a` takes A2A, 0.3 and 1.0, over JSON-RPC; `GET /.well-known/agent-card.json` describes the
//! agent. `GET /healthz` says whether the process is alive, `GET /readyz` whether it can do its part.
//!
//! Whatever callers do, it takes a bounded number of connections and a bounded memory, and no
//! caller keeps others from being heard.

mod a2a;
mod access;
mod cloud_event;
mod connections;
mod health;
mod loopback;
mod problem;

use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adjourn::store::Store;
use adjourn::{Adjourn, NotPublished, Published};
use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument as _;

pub use a2a::A2a;
pub use access::{Access, Token};

use cloud_event::Form;
use connections::{ConnectionSlot, Connections};
use problem::Problem;

/// A request may have this much: a batch of events with their data.
const BODY_BYTES: usize = 4 * 1024 * 1024;
/// How long the head of a request may take to arrive, the wait for its first byte included.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a request's body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// A batch may have this many events; they are acknowledged in one commit.
const BATCH: usize = 256;
/// How many connections there are at most, if there are descriptors for as many: callers send what
/// they have and go, so that most of these are kept for later.
pub const CONNECTIONS: usize = 256;
/// How much of bodies there is at once, over all connections. Each takes as much as has arrived of
/// it, so that slow ones keep little from others.
const BODIES_BYTES: usize = 64 * 1024 * 1024;
/// What a connection keeps of what it has read or has to write.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long to rest when no connection can be accepted, before it is tried again.
const REST: Duration = Duration::from_millis(50);

/// What the intake needs.
#[derive(Clone)]
pub struct Intake<S: Store> {
    /// Where events are published, and for which tenant.
    pub adjourn: Adjourn<S>,
    /// What a caller must show, if anything.
    pub token: Option<Arc<str>>,
    /// How many connections there may be at once; see [`CONNECTIONS`].
    pub connections: usize,
}

/// Serves the intake, and an agent if there is one, until `stop`, and until requests that are under way then are answered.
///
/// # Errors
/// None so far: a connection that cannot be accepted is one that its caller tries again.
pub async fn serve<S: Store>(
    listener: TcpListener,
    intake: Intake<S>,
    a2a: Option<A2a<S>>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    // What axum serves by itself waits for a request's head for ever.
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(BUFFER_BYTES);
    let (most, connections) = (intake.connections.max(1), Connections::default());
    let local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let router = router(intake, a2a, local);
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let stream = tokio::select! {
            stream = accept(&listener, &connections) => stream,
            () = &mut stop => break,
        };
        let Some(slot) = connections.admit(most) else {
            refuse(&stream);
            continue;
        };
        let router = router.clone().layer(Extension(Arc::clone(&slot)));
        let service = TowerToHyperService::new(router);
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            tokio::select! {
                // A caller may go away in the middle of a request; the server has not failed.
                _ = connection => {}
                () = slot.given_away() => {}
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
    Ok(())
}

/// Waits for the next connection.
async fn accept(listener: &TcpListener, connections: &Connections) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // The caller went away before it was heard.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted
                        | ErrorKind::ConnectionRefused
                        | ErrorKind::ConnectionReset
                ) => {}
            // There is no descriptor left, or no memory: one that is only waited for gives its own.
            Err(_) => {
                connections.make_room();
                tokio::time::sleep(REST).await;
            }
        }
    }
}

/// Says that there is no room, to a caller that is not heard.
fn refuse(stream: &TcpStream) {
    // It fits into what the socket holds; a caller that does not read it has no loss.
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
          retry-after: 1\r\nconnection: close\r\ncontent-length: 99\r\n\r\n\
          {\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"too many connections are at work; try again\"}",
    );
}

/// Returns whether a listener there needs a token, because the network can reach it.
pub const fn needs_token(address: &SocketAddr) -> bool {
    !address.ip().is_loopback()
}

fn router<S: Store>(intake: Intake<S>, a2a: Option<A2a<S>>, local: bool) -> Router {
    let bodies = Arc::new(Semaphore::new(BODIES_BYTES));
    let router = Router::new()
        .route("/v1/events", post(events::<S>))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready::<S>))
        .with_state(intake);
    let router = match a2a {
        Some(a2a) => router.merge(a2a::routes(a2a)),
        None => router,
    };
    let router = router
        .method_not_allowed_fallback(other_method)
        .fallback(nothing_there)
        .layer(Extension(bodies))
        .layer(middleware::from_fn(traced));
    match local {
        true => router.layer(middleware::from_fn(loopback::only_local)),
        false => router,
    }
}

/// Puts a span with a number of its own around a request, without its query and its headers: these may hold secrets.
async fn traced(request: Request, next: Next) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    static REQUESTS: AtomicU64 = AtomicU64::new(1);
    let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
    let span = tracing::debug_span!("request", request = number, %method, path);
    let answered = async move {
        let response = next.run(request).await;
        tracing::debug!(status = response.status().as_u16(), "request answered");
        response
    };
    answered.instrument(span).await
}

async fn other_method() -> Problem {
    let problem = "events are sent by POST; /healthz and /readyz are read by GET";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, problem)
}

async fn nothing_there() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing here; events go to /v1/events")
}

async fn events<S: Store>(
    State(intake): State<Intake<S>>,
    Extension(slot): Extension<Arc<ConnectionSlot>>,
    Extension(bodies): Extension<Arc<Semaphore>>,
    request: Request,
) -> Response {
    let answer = match take(intake, &slot, &bodies, request).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    };
    slot.heard();
    answer
}

async fn take<S: Store>(
    intake: Intake<S>,
    slot: &ConnectionSlot,
    bodies: &Arc<Semaphore>,
    request: Request,
) -> Result<Response, Problem> {
    // Nothing is read for strangers.
    authorised(intake.token.as_deref(), request.headers())?;
    let (head, body) = request.into_parts();
    // The room that it takes is held until its events are stored.
    let (body, _room) = whole(body, BODY_BYTES, slot, bodies).await?;
    slot.stores();
    let headers = head.headers;
    let (events, form) = cloud_event::read(&headers, &body)?;
    if events.len() > BATCH {
        let problem = format!("a batch may have {BATCH} events, this one has {}", events.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, problem));
    }
    let published = intake.adjourn.publish_all(events).await;
    let published = published.map_err(|NotPublished { index, error }| match (index, form) {
        (Some(index), Form::Many) => Problem::from(error).within(index),
        (Some(_), Form::One) | (None, _) => error.into(),
    })?;
    tracing::debug!(events = published.len(), "events taken over HTTP");
    let acknowledged: Vec<_> = published
        .iter()
        .map(|Published { seq, fresh }| json!({ "seq": seq, "fresh": fresh }))
        .collect();
    let body = json!({ "acknowledged": acknowledged }).to_string();
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Reads a body as it arrives, as far as there is room for it and it comes in time.
async fn whole(
    body: Body,
    most: usize,
    slot: &ConnectionSlot,
    bodies: &Arc<Semaphore>,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Problem> {
    let arrived = tokio::time::timeout(BODY_TIME, arriving(body, most, slot, bodies)).await;
    arrived.map_err(|_| {
        let problem = format!("the body did not arrive within {BODY_TIME:?}");
        Problem::new(StatusCode::REQUEST_TIMEOUT, problem)
    })?
}

async fn arriving(
    mut body: Body,
    most: usize,
    slot: &ConnectionSlot,
    bodies: &Arc<Semaphore>,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Problem> {
    let too_large = || {
        let problem = format!("a request may have {most} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, problem)
    };
    // One that says that it will be too large need not come.
    if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > most {
        return Err(too_large());
    }
    let (mut read, mut room) = (Vec::new(), None::<OwnedSemaphorePermit>);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        slot.heard();
        let cut = |_| Problem::new(StatusCode::BAD_REQUEST, "the body did not arrive whole");
        let Ok(bytes) = frame.map_err(cut)?.into_data() else { continue };
        if read.len() + bytes.len() > most {
            return Err(too_large());
        }
        let more = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let more = Arc::clone(bodies).try_acquire_many_owned(more).map_err(|_| {
            let problem = "too much is being sent by others; try again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, problem)
        })?;
        match &mut room {
            Some(room) => room.merge(more),
            None => room = Some(more),
        }
        read.extend_from_slice(&bytes);
    }
    Ok((read, room))
}

/// Refuses a caller that does not show the token.
fn authorised(token: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(token) = token else { return Ok(()) };
    match access::bearer(headers) {
        Some(shown) if access::same(shown.as_bytes(), token.as_bytes()) => Ok(()),
        _ => Err(access::unauthorised()),
    }
}
