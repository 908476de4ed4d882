//! HTTP in front of a store: the intake of events, an agent that other agents talk to, and how the
//! process is.
//!
//! - [`serve`] answers on a listener until it is told to stop; [`Site`] is what it serves.
//! - [`Access`] says who may do what, for all of it: bearer tokens ([`Token`]) with scopes and
//!   tenants. The card and how the process is are for everybody, and tell nothing of sessions.
//! - [`Pusher`] sends push notifications, and says where they may go.
//! - [`Names`] says what the server is called, so that no page in a browser can use it.
//! - [`can_be_reached`] says which addresses others can reach.
//! - [`CONNECTIONS`] is how many callers are heard at once.
//!
//! `POST /v1/events` takes CloudEvents in JSON: one structured event, a batch, or one in binary
//! mode with its attributes in `ce-` headers. What is answered with 200 is stored.
//! `POST /a2a` takes A2A, 0.3 and 1.0, over JSON-RPC, and paths below it are its HTTP+JSON; `GET
//! /.well-known/agent-card.json` describes the agent. `GET /healthz` says whether the process is
//! alive, `GET /readyz` whether it can do its part.
//!
//! Whatever callers do, it takes a bounded number of connections and a bounded memory, and no
//! caller keeps others from being heard.

mod a2a;
mod access;
mod answers;
mod body;
mod cloud_event;
mod connections;
mod health;
mod intake;
mod names;
mod problem;
mod push;
mod push_guard;
mod push_hosts;
mod slow_peer;

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use adjourn::Adjourn;
use adjourn::store::Store;
use adjourn_a2a::{Face, Stopping};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tracing::Instrument as _;

pub use access::{Access, Token};
pub use names::{Names, PublicName};
pub use push::Pusher;

use a2a::Door;
use answers::Answers;
use body::Room;
use connections::Connections;
use health::Health;
use problem::Problem;
use slow_peer::Patient;

/// How long the head of a request may take to arrive, the wait for its first byte included.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a peer may take nothing of what is written to it.
const WRITE_TIME: Duration = Duration::from_secs(60);
/// How many headers a request may have.
const HEADERS: usize = 64;
/// How many connections there are at most, if there are descriptors for as many. Most of them watch
/// a task, and cost little while nothing happens.
pub const CONNECTIONS: usize = 2048;
/// How much there is at most of long answers that their peers have yet to take.
pub const ANSWER_BYTES: usize = 256 * 1024 * 1024;
/// What a connection keeps of what it has read or has to write; the head of a request has to fit.
const BUFFER_BYTES: usize = 32 * 1024;
/// How long to rest when no connection can be accepted, before it is tried again.
const REST: Duration = Duration::from_millis(50);

/// What is served on a listener, and to whom.
#[derive(Clone)]
pub struct Site<S: Store> {
    /// The store that events are published in.
    pub adjourn: Adjourn<S>,
    /// The agent that other agents talk to, if there is one.
    pub agent: Option<Arc<Face<S>>>,
    /// What tells receivers of its tasks by push notifications, if they are told. The agent has to know
    /// of it, too ([`Face::pushing_to`]).
    pub pusher: Option<Arc<Pusher>>,
    /// Who may do what.
    pub access: Access,
    /// What the server is called.
    pub names: Names,
    /// How many connections there may be at once, two at least; see [`CONNECTIONS`].
    pub connections: usize,
    /// How much there may be at once of long answers that their peers have yet to take, over all
    /// connections; see [`ANSWER_BYTES`]. Beyond it, who has had one for longest is hung up on.
    pub answer_bytes: usize,
}

impl<S: Store> Site<S> {
    /// Serves the intake of events alone, to everybody who can reach it.
    pub fn open(adjourn: Adjourn<S>) -> Self {
        let access = Access::default().open_to_all(adjourn.tenant());
        Self {
            adjourn,
            agent: None,
            pusher: None,
            access,
            names: Names::default(),
            connections: CONNECTIONS,
            answer_bytes: ANSWER_BYTES,
        }
    }
}

/// Serves a site until `stop`, and until requests that are under way then are answered; streams end
/// at `stop`, and what waits for a task is answered with how the task stands.
///
/// # Errors
/// None so far: a connection that cannot be accepted is one that its caller tries again.
pub async fn serve<S: Store>(
    listener: TcpListener,
    site: Site<S>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    // What axum serves by itself waits for a request's head for ever.
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    http.max_headers(HEADERS).max_buf_size(BUFFER_BYTES);
    let connections = Connections::new(site.connections);
    let (stopper, stopping) = Stopping::new();
    // It ends with this future, whatever becomes of that.
    let mut pushing = JoinSet::new();
    if let (Some(face), Some(pusher)) = (&site.agent, &site.pusher) {
        let (face, pusher) = (Arc::clone(face), Arc::clone(pusher));
        pushing.spawn(push::push(face, pusher, stopping.clone()));
    }
    let (names, room) = (site.names.clone(), Room::default());
    let answers = Answers::new(site.answer_bytes);
    let router = TowerToHyperService::new(router(site));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let stream = tokio::select! {
            stream = accept(&listener, &connections) => stream,
            () = &mut stop => break,
        };
        let slot = connections.admit();
        // One that is gone already has no address, and gets no answer.
        let Ok(called) = stream.local_addr() else { continue };
        let (router, names) = (router.clone(), names.clone());
        let (room, answers) = (room.clone(), answers.clone());
        let (of_connection, stopping) = (Arc::clone(&slot), stopping.clone());
        // What every request passes through is put around the router as a whole: as layers of it, all
        // of that would be boxed anew for each request.
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let extensions = request.extensions_mut();
            extensions.insert(Arc::clone(&of_connection));
            extensions.insert(room.clone());
            extensions.insert(answers.clone());
            extensions.insert(stopping.clone());
            let (router, names) = (router.clone(), names.clone());
            traced(request, async move |request| match names.check(called.ip(), &request) {
                Ok(()) => router.call(request).await,
                Err(problem) => Ok(problem.into_response()),
            })
        });
        let stream = TokioIo::new(Patient::new(stream, WRITE_TIME));
        let connection = graceful.watch(http.serve_connection(stream, service));
        tokio::spawn(async move {
            tokio::select! {
                // A caller may go away in the middle of a request; the server has not failed.
                _ = connection => {}
                () = slot.given_away() => {}
            }
        });
    }
    drop(listener);
    stopper.stop();
    graceful.shutdown().await;
    while pushing.join_next().await.is_some() {}
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
            // There is no descriptor left, or no memory: a stranger gives its own.
            Err(_) => {
                connections.make_room();
                tokio::time::sleep(REST).await;
            }
        }
    }
}

/// Returns whether a listener there needs a token, because the network can reach it.
pub const fn can_be_reached(address: &SocketAddr) -> bool {
    !address.ip().is_loopback()
}

fn router<S: Store>(site: Site<S>) -> Router {
    let Site { adjourn, agent, access, names, .. } = site;
    let known = |router: Router| {
        router.route_layer(middleware::from_fn_with_state(access.clone(), access::only_known))
    };
    let events = Router::new().route("/v1/events", post(intake::events::<S>));
    let health = Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready::<S>));
    let health = health.with_state(Health::new(adjourn.clone()));
    let mut router = known(events.with_state(adjourn)).merge(health);
    if let Some(face) = agent {
        let since = SystemTime::now().into();
        let door = Door { face, names, secured: access.is_secured(), since };
        router = router.merge(known(door.routes())).merge(door.card_routes());
    }
    router.method_not_allowed_fallback(other_method).fallback(nothing_there)
}

/// Puts a span with a number of its own around a request, without its query and its headers: these may hold secrets.
async fn traced<B, E>(
    request: hyper::Request<B>,
    answer: impl AsyncFnOnce(hyper::Request<B>) -> Result<Response, E>,
) -> Result<Response, E> {
    let (method, path) = (request.method(), request.uri().path());
    static REQUESTS: AtomicU64 = AtomicU64::new(1);
    let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
    let span = tracing::debug_span!("request", request = number, %method, path);
    let answered = async move {
        let response = answer(request).await?;
        tracing::debug!(status = response.status().as_u16(), "request answered");
        Ok(response)
    };
    answered.instrument(span).await
}

async fn other_method(method: Method) -> Problem {
    let problem = format!(
        "{method} is not taken here; /v1/events and /a2a take POST, /healthz and /readyz are read \
         by GET"
    );
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, problem)
}

async fn nothing_there() -> Problem {
    let problem = "there is nothing here; events go to /v1/events, and an agent's peers to /a2a";
    Problem::new(StatusCode::NOT_FOUND, problem)
}
