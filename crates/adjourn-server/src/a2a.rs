//! A2A over HTTP: JSON-RPC of both versions on one URL, HTTP+JSON of both below it, streams as
//! server-sent events, and the card.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adjourn::core::transcript::Digest;
use adjourn::store::Store;
use adjourn_a2a::rpc::{self, Headers, Reply};
use adjourn_a2a::{
    Activated, Answer, Arrived, Caller, Error, Face, Given, Stopping, StreamEvent, TaskStream,
    Told, Version, error, rest,
};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use futures_core::Stream;
use httpdate::HttpDate;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::answers::Answers;
use crate::body::Room;
use crate::connections::ConnectionSlot;
use crate::names::Names;
use crate::problem::Problem;

/// Where the agent is spoken to.
const PATH: &str = "/a2a";
const VERSION: HeaderName = HeaderName::from_static("a2a-version");
/// The names of the header that activates extensions, in 1.0 and in 0.3.
const EXTENSIONS: [HeaderName; 2] =
    [HeaderName::from_static("a2a-extensions"), HeaderName::from_static("x-a2a-extensions")];
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const TRACE: HeaderName = HeaderName::from_static("traceparent");
/// The content types that JSON may have.
const JSON: [&str; 2] = ["application/json", "application/a2a+json"];
/// How long a stream is silent at most, so that nobody between takes it for dead. What is said then
/// has no empty line behind it, which some clients take for an event.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a client waits before it comes back to a server that stops, in milliseconds.
const RETRY_MS: u32 = 1000;
/// How many events wait for a client that reads slowly; the journal keeps the rest.
const EVENTS: usize = 16;
/// How long a client may keep the card.
const CARD_AGE: &str = "public, max-age=300";

/// The agent, and how it is reached.
pub(crate) struct Door<S: Store> {
    pub(crate) face: Arc<Face<S>>,
    pub(crate) names: Names,
    /// Whether callers have to show a token.
    pub(crate) secured: bool,
    /// When the agent's card was made, as HTTP writes it.
    pub(crate) since: HttpDate,
}

impl<S: Store> Clone for Door<S> {
    fn clone(&self) -> Self {
        let Self { face, names, secured, since } = self;
        Self { face: Arc::clone(face), names: names.clone(), secured: *secured, since: *since }
    }
}

impl<S: Store> Door<S> {
    /// Returns what is answered to callers who are known.
    pub(crate) fn routes(&self) -> Router {
        Router::new()
            .route(PATH, post(call::<S>))
            .route(&format!("{PATH}/"), post(call::<S>))
            .route(
                &format!("{PATH}/{{*path}}"),
                get(by_path::<S>).post(by_path::<S>).delete(by_path::<S>),
            )
            .with_state(self.clone())
    }

    /// Returns what is answered to everybody: how the agent is described.
    pub(crate) fn card_routes(&self) -> Router {
        Router::new()
            .route("/.well-known/agent-card.json", get(card::<S>))
            .route("/.well-known/agent.json", get(card::<S>))
            .with_state(self.clone())
    }
}

/// Describes the agent to everybody; nothing is told of its tasks.
async fn card<S: Store>(State(door): State<Door<S>>, headers: HeaderMap) -> Response {
    let card = door.face.card(&url(&door.names, &headers), door.secured).to_string();
    let digest = Digest::of(card.as_bytes()).to_string();
    let tag = format!("\"{}\"", digest.get(..16).unwrap_or(&digest));
    let cached = [
        (header::ETAG, tag.clone()),
        (header::LAST_MODIFIED, door.since.to_string()),
        (header::CACHE_CONTROL, CARD_AGE.to_owned()),
        (header::VARY, "host".to_owned()),
    ];
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, cached).into_response();
    }
    (cached, [(header::CONTENT_TYPE, "application/json")], card).into_response()
}

/// Returns where a caller reaches the agent.
fn url(names: &Names, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    format!("{}{PATH}", names.base(host.unwrap_or("localhost")))
}

/// Answers JSON-RPC.
async fn call<S: Store>(
    State(door): State<Door<S>>,
    Extension(caller): Extension<Caller>,
    Extension(slot): Extension<Arc<ConnectionSlot>>,
    Extension(room): Extension<Room>,
    Extension(answers): Extension<Answers>,
    Extension(stopping): Extension<Stopping>,
    request: Request,
) -> Response {
    let answer = async {
        let (heard, body) = Heard::read(&door, caller, &slot, &room, request).await?;
        let Some(kind) = heard.kind else {
            let failure = rpc::failure(&Value::Null, &no_json()).to_string();
            return Ok(object(StatusCode::OK, JSON[0], failure.into(), None));
        };
        let echo = heard.activated.echo();
        let reply = door.face.rpc(&heard.caller, heard.headers(&stopping), body).await;
        Ok(match reply {
            Reply::Object { json, error } => {
                // An error of JSON-RPC has the status of a success, but for what a token forbids.
                let status = match error {
                    Some(error::FORBIDDEN) => StatusCode::FORBIDDEN,
                    _ => StatusCode::OK,
                };
                object(status, kind, answers.body(json, &slot), echo)
            }
            Reply::Stream(id, stream) => {
                events(stream, (Arc::clone(&slot), answers), stopping, echo, move |told| match told
                {
                    Ok(told) => rpc::event(&id, &told),
                    Err(error) => rpc::failure(&id, &error).to_string(),
                })
            }
        })
    };
    let answer: Result<_, Problem> = answer.await;
    slot.heard();
    answer.unwrap_or_else(axum::response::IntoResponse::into_response)
}

/// Answers HTTP+JSON.
async fn by_path<S: Store>(
    State(door): State<Door<S>>,
    Extension(caller): Extension<Caller>,
    Extension(slot): Extension<Arc<ConnectionSlot>>,
    Extension(room): Extension<Room>,
    Extension(answers): Extension<Answers>,
    Extension(stopping): Extension<Stopping>,
    request: Request,
) -> Response {
    let answer = async {
        let (heard, body) = Heard::read(&door, caller, &slot, &room, request).await?;
        let (kind, echo) = (heard.kind.unwrap_or(JSON[0]), heard.activated.echo());
        let version = heard.path().version();
        Ok(match heard.ask(&door.face, &stopping, body).await {
            Ok(Answer::Result(result)) => {
                object(StatusCode::OK, kind, answers.body(result, &slot), echo)
            }
            Ok(Answer::Stream(stream)) => {
                events(stream, (Arc::clone(&slot), answers), stopping, echo, move |told| match told
                {
                    Ok(told) => told.as_json().to_owned(),
                    Err(error) => rest::failure(&error, version).1.to_string(),
                })
            }
            Err(error) => {
                let (status, body) = rest::failure(&error, version);
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
                object(status, kind, body.to_string().into(), echo)
            }
        })
    };
    let answer: Result<_, Problem> = answer.await;
    slot.heard();
    answer.unwrap_or_else(axum::response::IntoResponse::into_response)
}

/// A request of a caller who is known, without its body: that is not kept for as long.
struct Heard {
    caller: Caller,
    head: Parts,
    /// The content type, as the answer mirrors it; nothing if it is not JSON.
    kind: Option<&'static str>,
    activated: Activated,
    /// The URL under which the caller reaches the agent, if it has shown who it is.
    url: Option<String>,
}

impl Heard {
    async fn read<S: Store>(
        door: &Door<S>,
        caller: Caller,
        slot: &ConnectionSlot,
        room: &Room,
        request: Request,
    ) -> Result<(Self, Arrived), Problem> {
        let (head, body) = request.into_parts();
        let body = room.read(body, rpc::BODY_BYTES, slot).await?;
        slot.heard();
        let activated = EXTENSIONS.into_iter().flat_map(|name| head.headers.get_all(name));
        let activated = activated.filter_map(|value| value.to_str().ok());
        let activated = door.face.activated(activated);
        let kind = content_type(&head.headers);
        let url = door.secured.then(|| url(&door.names, &head.headers));
        Ok((Self { caller, head, kind, activated, url }, body))
    }

    fn text(&self, name: HeaderName) -> Option<&str> {
        self.head.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn headers<'a>(&'a self, stopping: &'a Stopping) -> Headers<'a> {
        Headers {
            version: self.text(VERSION).or_else(|| asked_version(&self.head.uri)),
            activated: self.activated,
            last_event: self.text(LAST_EVENT),
            trace: self.text(TRACE),
            url: self.url.as_deref(),
            stopping: Some(stopping),
        }
    }

    /// Returns the path and the query, as HTTP+JSON reads them.
    fn path(&self) -> rest::Request<'_> {
        let uri = &self.head.uri;
        let how = match self.head.method {
            Method::POST => rest::How::Post,
            Method::DELETE => rest::How::Delete,
            // HEAD is a GET whose body is not sent: what is no order changes nothing.
            _ => rest::How::Get,
        };
        let path = uri.path().strip_prefix(PATH).unwrap_or_default().trim_start_matches('/');
        rest::Request { how, path, query: uri.query().unwrap_or_default() }
    }

    /// Asks for what a path stands for.
    async fn ask<S: Store>(
        &self,
        face: &Face<S>,
        stopping: &Stopping,
        body: Arrived,
    ) -> Result<Answer<S>, Error> {
        let headers = self.headers(stopping);
        Version::check(headers.version)?;
        let (body, room) = match body.bytes.is_empty() {
            true => (Value::Null, None),
            false if self.kind.is_none() => return Err(no_json()),
            false => body.read()?,
        };
        let (method, params) = rest::read(self.path(), body)?;
        face.ask(&headers.asked(&self.caller, method), Given::new(params, room)).await
    }
}

/// Says that a body is not JSON.
fn no_json() -> Error {
    let problem = format!("expected {}", JSON.join(" or "));
    Error::new(error::CONTENT_TYPE_NOT_SUPPORTED, "CONTENT_TYPE_NOT_SUPPORTED", problem)
}

/// Returns the content type of a request, as the answer mirrors it; nothing if it is not JSON.
fn content_type(headers: &HeaderMap) -> Option<&'static str> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = kind.split(';').next().unwrap_or_default().trim();
    JSON.into_iter().find(|known| known.eq_ignore_ascii_case(kind))
}

/// Returns the version that a query asks for.
fn asked_version(uri: &Uri) -> Option<&str> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("A2A-Version"))
        .map(|(_, value)| value)
}

/// Answers with one object.
fn object(
    status: StatusCode,
    kind: &'static str,
    json: Bytes,
    activated: Option<String>,
) -> Response {
    let kind = [(header::CONTENT_TYPE, kind)];
    echoing((status, kind, json).into_response(), activated)
}

/// Answers with events, until the task is at its end, the client goes away, or the server stops.
fn events<S: Store>(
    mut stream: Box<TaskStream<S>>,
    (slot, answers): (Arc<ConnectionSlot>, Answers),
    stopping: Stopping,
    activated: Option<String>,
    written: impl Fn(Result<Told, Error>) -> String + Send + Unpin + 'static,
) -> Response {
    let (sender, receiver) = mpsc::channel(EVENTS);
    let (work, connection) = (slot.work(), Arc::clone(&slot));
    tokio::spawn(async move {
        let _under_way = work;
        loop {
            let (said, goes_on) = tokio::select! {
                () = sender.closed() => return,
                next = stream.next() => match next {
                    Ok(Some(event)) => (Said::Event(event), true),
                    Ok(None) => return,
                    // The client comes back with the last event that it has seen.
                    Err(error) => {
                        tracing::warn!("a stream broke off: {}", error.problem);
                        (Said::BrokeOff(error), false)
                    }
                },
                // It ends behind an event, and the client comes back with the last one.
                () = stopping.begun() => (Said::ComeBack, false),
                () = tokio::time::sleep(KEEP_ALIVE) => (Said::StillHere, true),
            };
            // A client that reads is not one that is only waited for.
            slot.heard();
            if sender.send(said).await.is_err() || !goes_on {
                return;
            }
        }
    });
    let head = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    let received = Received { receiver, written, answers, connection };
    echoing((head, Body::from_stream(received)).into_response(), activated)
}

/// Says which extensions are activated, under both names of the header.
fn echoing(mut response: Response, activated: Option<String>) -> Response {
    let value = activated.and_then(|names| HeaderValue::from_str(&names).ok());
    for name in value.is_some().then_some(EXTENSIONS).into_iter().flatten() {
        response.headers_mut().extend(value.clone().map(|value| (name, value)));
    }
    response
}

/// What a stream says. It is written when the client takes it: what is told to many is kept once.
enum Said {
    Event(StreamEvent),
    BrokeOff(Error),
    ComeBack,
    StillHere,
}

impl Said {
    fn text(self, written: impl Fn(Result<Told, Error>) -> String) -> String {
        match self {
            Self::Event(StreamEvent { id, told }) => {
                format!("id: {id}\ndata: {}\n\n", written(Ok(told)))
            }
            Self::BrokeOff(error) => format!("data: {}\n\n", written(Err(error))),
            Self::ComeBack => format!("retry: {RETRY_MS}\n"),
            Self::StillHere => ": still here\n".to_owned(),
        }
    }
}

/// What a task of the server sends to a client.
struct Received<W> {
    receiver: mpsc::Receiver<Said>,
    written: W,
    answers: Answers,
    connection: Arc<ConnectionSlot>,
}

impl<W: Fn(Result<Told, Error>) -> String + Unpin> Stream for Received<W> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let said = ready!(self.receiver.poll_recv(context));
        let body = |said: Said| self.answers.body(said.text(&self.written), &self.connection);
        Poll::Ready(said.map(|said| Ok(body(said))))
    }
}
