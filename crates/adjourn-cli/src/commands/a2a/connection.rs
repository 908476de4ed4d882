//! The way to an agent: its card, requests over HTTP, and streams.

use std::collections::VecDeque;
use std::time::Duration;

use adjourn::core::json;
use adjourn_a2a::Version;
use adjourn_a2a::client::{
    self, Ask, EventReader, NoPeer, Peer, ReadEvent, Refusal, Reply, Wish, card_urls,
};
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde_json::Value;

use super::masking;
use crate::arguments::{Binding, PeerFlags, SpokenVersion};
use crate::failure::Failure;
use crate::input_file::{self, SETTINGS_BYTES};
use crate::settings::open_to_others;
use crate::terminal::warn;

/// The variable that holds a token.
const TOKEN: &str = "ADJOURN_A2A_TOKEN";
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// More than a card, or any other answer, may have.
pub const MOST: usize = 32 * 1024 * 1024;

/// An agent, and how it is reached.
pub struct Connection {
    http: Client,
    token: Option<String>,
    timeout: Duration,
    pub peer: Peer,
    /// The URL that was typed, for those who are told what to type next.
    pub url: String,
}

/// Why an agent is taken as one whose tasks cannot be paused.
#[derive(Debug, Clone, Copy)]
pub enum NoPauses {
    /// Its card does not say that they can.
    NotOffered,
    /// Its card says so, and it does not know the method.
    UnknownMethod,
}

impl Connection {
    /// Reads the card of an agent, and chooses how it is spoken to.
    pub async fn open(flags: &PeerFlags) -> Result<Self, Failure> {
        let url = address(&flags.url)?;
        let token = token(flags)?;
        let hiding = token.clone();
        let opened = Self::open_with(flags, url, token).await;
        // A card may repeat the token, too, in the URL that it leads to.
        opened.map_err(|failure| masking::failure(failure, hiding.as_deref()))
    }

    async fn open_with(
        flags: &PeerFlags,
        url: Url,
        token: Option<String>,
    ) -> Result<Self, Failure> {
        if token.is_some() && url.scheme() == "http" && !is_loopback(&url) {
            let message = "a token over plain http could be read on its way";
            return Err(Failure::usage(message).hint("give a URL that begins with https://"));
        }
        let http = client(&url)?;
        let (card, from) = card(&http, flags, token.as_deref()).await?;
        let wish = Wish {
            binding: flags.binding.map(|binding| match binding {
                Binding::Jsonrpc => client::Binding::JsonRpc,
                Binding::Rest => client::Binding::HttpJson,
            }),
            version: flags.speak.map(|version| match version {
                SpokenVersion::V03 => Version::V03,
                SpokenVersion::V10 => Version::V10,
            }),
        };
        let mut peer = Peer::read(&card, wish).map_err(|no_peer| {
            let failure = Failure::other(format!("{from}: {no_peer}"));
            match no_peer {
                NoPeer::NoCard => failure.hint("give the URL of an A2A agent"),
                NoPeer::NoInterface { .. } if wish != Wish::default() => {
                    failure.hint("leave --speak and --binding away to take what the agent prefers")
                }
                NoPeer::NoInterface { .. } => {
                    failure.hint("A2A 0.3 and 1.0 are spoken here, over JSON-RPC and HTTP+JSON")
                }
            }
        })?;
        peer.name = masking::text(&peer.name, token.as_deref());
        let there = address(&peer.interface.url)?;
        if token.is_some() && there.origin() != from.origin() {
            let message = format!(
                "the card at {from} leads to {there}, and the token was not \
                                   given for that server"
            );
            return Err(Failure::other(message).hint(format!("if you trust it: {there}")));
        }
        Ok(Self { http, token, timeout: flags.timeout, peer, url: flags.url.clone() })
    }

    /// Asks for something, and returns the answer.
    pub async fn ask(&self, ask: &Ask<'_>) -> Result<Result<Value, Refusal>, Failure> {
        let response = self.send(ask).await?;
        let status = response.status().as_u16();
        let body = self.whole(ask, response).await?;
        Ok(Reply { status, body: &body }.read(self.peer.interface.binding, ask))
    }

    /// Asks for something that is expected to be granted.
    pub async fn granted(&self, ask: &Ask<'_>) -> Result<Value, Failure> {
        self.ask(ask).await?.map_err(|refusal| self.refused(refusal, ask))
    }

    /// Says that tasks of the agent cannot be paused, and why.
    pub fn pauses_nothing(&self, why: NoPauses) -> Failure {
        let why = match why {
            NoPauses::NotOffered => "its card does not say that it does",
            NoPauses::UnknownMethod => "its card says that it does, but it has no such method",
        };
        let message = format!("{} does not support pausing: {why}", self.peer.name);
        Failure::refused("PAUSE_NOT_SUPPORTED", message)
    }

    /// Asks for a stream.
    pub async fn stream(&self, ask: &Ask<'_>) -> Result<Result<Events, Refusal>, Failure> {
        let response = self.send(ask).await?;
        let status = response.status().as_u16();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        if is_stream && response.status().is_success() {
            let (reader, ready) = (EventReader::default(), VecDeque::new());
            return Ok(Ok(Events { response, reader, ready, token: self.token.clone() }));
        }
        let body = self.whole(ask, response).await?;
        let answer = Reply { status, body: &body }.read(self.peer.interface.binding, ask);
        Ok(Err(answer.err().unwrap_or_else(|| Refusal {
            status,
            code: None,
            reason: "NOT_A_STREAM".to_owned(),
            message: "it answers a request for a stream with something else".to_owned(),
        })))
    }

    async fn send(&self, ask: &Ask<'_>) -> Result<Response, Failure> {
        let asked = self.peer.request(ask);
        let url = address(&asked.url)?;
        let mut request = if asked.is_get { self.http.get(url) } else { self.http.post(url) };
        for (name, value) in asked.headers {
            request = request.header(name, value);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = asked.body {
            request = request.body(body.to_string());
        }
        let sent = self.in_time(request.send()).await.map_err(|late| may_be_taken(ask, late))?;
        sent.map_err(|error| {
            let is_unsent = error.is_connect();
            let failure = masking::failure(unreached(&asked.url, error), self.token.as_deref());
            if is_unsent { failure } else { may_be_taken(ask, failure) }
        })
    }

    /// Reads an answer to its end, and takes the token out of one that repeats it: what is answered is
    /// printed.
    async fn whole(&self, ask: &Ask<'_>, response: Response) -> Result<Vec<u8>, Failure> {
        let answer = self.in_time(whole(response)).await.and_then(|answer| answer);
        let answer = answer.map_err(|failure| may_be_taken(ask, failure))?;
        Ok(masking::body(answer, self.token.as_deref()))
    }

    /// Waits for something as long as was said.
    pub async fn in_time<T>(&self, what: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::time::timeout(self.timeout, what).await.map_err(|_| {
            Failure::late(format!("{} has not answered in time", self.peer.name))
                .hint("--timeout says how long to wait")
        })
    }

    /// Says why the agent refuses something, and what to do about it.
    pub fn refused(&self, refusal: Refusal, ask: &Ask<'_>) -> Failure {
        let name = &self.peer.name;
        let url = &self.url;
        let task = match ask {
            Ask::Send { message } | Ask::Stream { message } => message.task.as_deref(),
            Ask::Get { task }
            | Ask::Cancel { task }
            | Ask::Subscribe { task, .. }
            | Ask::Pause { task, .. }
            | Ask::Resume { task, .. } => Some(*task),
        };
        let task = task.unwrap_or("TASK");
        let look = format!("`adjourn a2a get {url} {task}` says where it stands");
        let message = format!("{name}: {}", refusal.message);
        if refusal.is_unknown_task() {
            return Failure::not_found(message)
                .hint("the agent knows no such task, or does not show it to this token");
        }
        let hint = match refusal.reason.as_str() {
            _ if refusal.is_unauthenticated() => {
                format!("show a token: --token-file FILE, or {TOKEN}")
            }
            "PERMISSION_DENIED" => "the token does not allow this".to_owned(),
            "TASK_PAUSED" => format!("`adjourn a2a resume {url} {task}` wakes it"),
            "TASK_BUSY" => format!("`adjourn a2a watch {url} {task}` waits for it"),
            "SUSPENSION_HANDLE_MISMATCH" => format!("leave --handle away; {look}"),
            "BUDGET_NOT_RAISED" => "--add-budget raises what it may use".to_owned(),
            "HANDLE_REQUIRED" => "--idempotency-key KEY, with a word of your own, has it answer \
                                  this question and no later one"
                .to_owned(),
            _ if ask.is_about_pauses() => look,
            _ => String::new(),
        };
        // Without a code it is no answer of an agent's, and says nothing of what the agent did.
        let is_unsure = refusal.code.is_none() && !refusal.is_unauthenticated();
        let mut failure = Failure::refused(refusal.reason, message);
        if let Some(code) = refusal.code {
            failure = failure.with("code", code);
        }
        if !hint.is_empty() {
            failure = failure.hint(hint);
        }
        if is_unsure { may_be_taken(ask, failure) } else { failure }
    }
}

/// The events of a stream.
pub struct Events {
    response: Response,
    reader: EventReader,
    ready: VecDeque<ReadEvent>,
    /// What is printed of no event.
    token: Option<String>,
}

impl Events {
    /// Returns the next event; nothing at the end of the stream.
    ///
    /// # Cancel safety
    /// Nothing is lost if it is dropped.
    pub async fn next(&mut self) -> Result<Option<ReadEvent>, String> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.response.chunk().await.map_err(innermost)? {
                Some(bytes) => {
                    let events = self.reader.take(&bytes).map_err(|error| error.to_string())?;
                    let token = self.token.as_deref();
                    self.ready.extend(events.into_iter().map(|ReadEvent { id, data }| {
                        let id = id.map(|id| masking::text(&id, token));
                        ReadEvent { id, data: masking::body(data, token) }
                    }));
                }
                None => return Ok(None),
            }
        }
    }
}

/// Says of a message that may have been taken how it is sent again.
pub fn may_be_taken(ask: &Ask<'_>, failure: Failure) -> Failure {
    match ask {
        Ask::Send { message } | Ask::Stream { message } => failure.hint_too(format!(
            "the message may have been taken; --message-id {} makes a retry harmless",
            message.id
        )),
        _ => failure,
    }
}

/// Reads a URL as it was typed, or as a card has it.
fn address(text: &str) -> Result<Url, Failure> {
    let hint = "an agent's URL is like http://127.0.0.1:7070 or https://agents.example/worker";
    let url = Url::parse(text)
        .map_err(|error| Failure::usage(format!("{text:?} is no URL: {error}")).hint(hint))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(Failure::usage(format!("{text:?} is no URL of http or https")).hint(hint)),
    }
}

/// Returns whether a URL stays on this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_address = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_address || host == "localhost" || host.ends_with(".localhost")
}

/// Returns the token to show: the one in the file, or the variable's.
fn token(flags: &PeerFlags) -> Result<Option<String>, Failure> {
    let Some(path) = &flags.token_file else {
        let Some(token) = std::env::var_os(TOKEN).filter(|token| !token.is_empty()) else {
            return Ok(None);
        };
        let token = token.to_str().and_then(sound);
        let wrong = || Failure::usage(format!("{TOKEN} holds something else than a token"));
        return token.map(Some).ok_or_else(wrong);
    };
    let wrong = |problem: String| Failure::usage(format!("--token-file: {problem}"));
    let text = input_file::read(path, SETTINGS_BYTES)
        .map_err(|error| wrong(format!("cannot read {}: {error}", path.display())))?;
    if open_to_others(path) {
        warn(&format!("{0} can be read by others: chmod 600 {0}", path.display()));
    }
    if text.trim().is_empty() {
        return Err(wrong(format!("{} holds no token", path.display())));
    }
    let token = sound(&text).map(Some);
    token.ok_or_else(|| wrong(format!("{} holds something else than a token", path.display())))
}

/// Returns a token without the white space around it; nothing if no header can have it.
fn sound(token: &str) -> Option<String> {
    let token = token.trim();
    let is_sound = !token.is_empty() && token.chars().all(|c| c.is_ascii() && !c.is_control());
    is_sound.then(|| token.to_owned())
}

fn client(url: &Url) -> Result<Client, Failure> {
    adjourn_agent::choose_cryptography();
    let http = Client::builder()
        .connect_timeout(CONNECT)
        // A redirect would take the token along to wherever it leads.
        .redirect(Policy::none())
        .user_agent(concat!("adjourn/", env!("CARGO_PKG_VERSION")));
    // What is on this machine is reached by no proxy.
    let http = if is_loopback(url) { http.no_proxy() } else { http };
    http.build().map_err(|error| Failure::other(format!("cannot use HTTP: {}", innermost(error))))
}

/// Finds the card of an agent, and returns it with where it was.
async fn card(
    http: &Client,
    flags: &PeerFlags,
    token: Option<&str>,
) -> Result<(Value, Url), Failure> {
    let mut refused = None;
    for place in card_urls(&flags.url) {
        let url = address(&place)?;
        let mut request = http.get(url.clone()).header("accept", "application/json");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let answered = async {
            let response = request.send().await.map_err(|error| unreached(&place, error))?;
            let status = response.status();
            Ok::<_, Failure>((status, whole(response).await?))
        };
        let answered = tokio::time::timeout(flags.timeout, answered).await;
        let (status, body) = answered.map_err(|_| {
            Failure::late(format!("{place} has not answered in time"))
                .hint("--timeout says how long to wait")
        })??;
        if status.is_success() {
            return match json::read(&body, MOST) {
                Ok(card) => Ok((card, url)),
                Err(error) => Err(Failure::other(format!("{place}: no card: {error}"))
                    .hint("give the URL of an A2A agent")),
            };
        }
        refused.get_or_insert((place, status));
    }
    let Some((place, status)) = refused else {
        return Err(Failure::usage(format!("{:?} is no URL of an agent", flags.url)));
    };
    let failure = match status.as_u16() {
        404 => Failure::not_found(format!("there is no agent's card at {place}")),
        status => Failure::other(format!("{place} answers with the status {status}")),
    };
    Err(match status.as_u16() {
        401 | 403 => failure.hint(format!("show a token: --token-file FILE, or {TOKEN}")),
        300..=399 => failure.hint("redirects are not followed; give the URL that it leads to"),
        _ => failure.hint("give the URL of an A2A agent, or that of its card"),
    })
}

/// Reads a body to its end.
async fn whole(mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        match chunk.map_err(|error| {
            Failure::other(format!("the answer broke off: {}", innermost(error)))
        })? {
            None => return Ok(body),
            Some(bytes) if body.len() + bytes.len() > MOST => {
                return Err(Failure::other(format!(
                    "the answer is longer than {} MiB",
                    MOST >> 20
                )));
            }
            Some(bytes) => body.extend_from_slice(&bytes),
        }
    }
}

fn unreached(url: &str, error: reqwest::Error) -> Failure {
    let connects = error.is_connect();
    let failure = Failure::other(format!("cannot reach {url}: {}", innermost(error)));
    match connects {
        true => failure.hint("is an agent running there? `adjourn serve --listen` runs one"),
        false => failure,
    }
}

/// Returns what went wrong at the bottom of it: what lies above says only that something did.
fn innermost(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause.to_string()
}
