//! One connection: lines come in, requests are sorted to their sessions, lines go out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adjourn::core::id::{RunId, SessionId};
use adjourn::core::session::State;
use adjourn::store::Store;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span};

use crate::content;
use crate::face::{Face, OnDisconnect};
use crate::inbox::Ask;
use crate::initialize::initialize;
use crate::options::{Choice, SetConfigOption, SetMode};
use crate::outbox::{self, Outbox};
use crate::peer::{Dialect, Peer, Version};
use crate::pending_requests::PendingRequests;
use crate::projection::News;
use crate::requests::{self, Attach, CancelRequest, Initialize, Named, New, Prompt, Replay};
use crate::room::Room;
use crate::rpc::{Error, INVALID_REQUEST, Id, Incoming, NOT_FOUND, Outgoing, Params, answer};
use crate::session::Attachment;
use crate::waiting_notice::WaitingNotice;
use crate::wire::{Wire, not_initialized};

/// What may be asked of a session before it has done what was asked before.
const QUEUE: usize = 16;

/// How long a client that has gone away may take to read what is left for it.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves one client until it goes away, or until `stop`.
///
/// `drain` is waited for when no more requests are taken: the host of this process brings its
/// sessions to rest, and requests that this answers are answered before the end.
///
/// # Errors
/// The streams fail.
pub async fn serve<S, R, W>(
    face: Arc<Face<S>>,
    wire: Wire<R, W>,
    stop: impl Future<Output = ()>,
    drain: impl Future<Output = ()>,
) -> std::io::Result<()>
where
    S: Store,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let Wire { lines, mut output, unsent, peer } = wire;
    let (out, written) = Outbox::new();
    let mut writer = tokio::spawn(async move {
        output.write_all(&unsent).await?;
        outbox::write(written, output).await
    });
    let mut connection = Connection {
        face,
        peer,
        out,
        lines: Outgoing::default(),
        asked: Arc::default(),
        room: Room::default(),
        sessions: HashMap::new(),
        unreadable: HashSet::new(),
        tasks: JoinSet::new(),
        span: tracing::debug_span!("connection", connection = number(), client = Empty),
    };
    let gone = connection.out.clone();
    let span = connection.span.clone();
    let result = tokio::select! {
        result = connection.read(lines).instrument(span) => result,
        () = gone.gone() => Ok(()),
        () = stop => Ok(()),
    };
    drop(gone);
    connection.disconnected().await;
    drain.await;
    connection.end().await;
    drop(connection);
    // What was sent is still written, as long as the client reads it.
    let written = tokio::time::timeout(LAST_WORDS, &mut writer).await;
    writer.abort();
    match written {
        // A client that has gone away is no failure; one that cannot be written to is.
        Ok(Ok(Err(error))) if error.kind() != ErrorKind::BrokenPipe => result.and(Err(error)),
        _ => result,
    }
}

/// A session of this connection.
struct Open {
    ask: mpsc::Sender<Ask>,
    attached: Arc<AtomicBool>,
    /// The run that this client has prompted or woken last.
    run: Arc<Mutex<Option<RunId>>>,
    /// How much was asked of it.
    asked: u64,
    /// How much of that is done, and has left nothing to do.
    done: Arc<AtomicU64>,
}

impl Open {
    /// Sends it a request; one that comes after its task has ended is dropped.
    async fn send(&mut self, ask: Ask) {
        self.asked += 1;
        let _ = self.ask.send(ask).await;
    }

    /// Returns whether no client sees it and no request of it is open.
    fn rests(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.asked
    }
}

pub(crate) struct Connection<S: Store> {
    pub(crate) face: Arc<Face<S>>,
    /// The client, once it has introduced itself.
    peer: Option<Arc<Peer>>,
    pub(crate) out: Outbox,
    /// Answers of its own that have not gone out.
    pub(crate) lines: Outgoing,
    asked: Arc<PendingRequests>,
    room: Room,
    sessions: HashMap<SessionId, Open>,
    /// Sessions that the log names because they cannot be read.
    pub(crate) unreadable: HashSet<SessionId>,
    tasks: JoinSet<()>,
    /// What is around all that it logs.
    span: Span,
}

/// Returns a number that no other connection of the process has.
fn number() -> u64 {
    static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
    CONNECTIONS.fetch_add(1, Ordering::Relaxed)
}

impl<S: Store> Connection<S> {
    async fn flush(&mut self) {
        if !self.lines.is_empty() {
            // A client that does not read any more will close its end soon.
            let _ = self.out.send(self.lines.take(), None).await;
        }
    }

    /// Takes a message; `written` is how much had been written to the client when it was read.
    pub(crate) async fn take(&mut self, message: Incoming<'_>, written: u64) {
        match message {
            Incoming::Request { id, method, params } => {
                let (name, number) = (&*method, display(id.as_json()));
                let span =
                    tracing::debug_span!("request", method = name, id = number, session = Empty);
                let answer = self.request(&id, &method, params, written);
                match answer.instrument(span.clone()).await {
                    Ok(Some(result)) => self.lines.respond(&id, &Ok(result)),
                    // Its session answers it.
                    Ok(None) => {}
                    Err(error) => {
                        let (code, problem) = (error.code, &error.message);
                        span.in_scope(|| tracing::debug!(code, "request refused: {problem}"));
                        self.lines.respond(&id, &Err(error));
                    }
                }
            }
            Incoming::Notification { method, params } => self.notified(&method, params).await,
            Incoming::Response { id, result } => {
                // An answer to no open request goes to no session, and is not even read.
                let asked = self.asked.settle(&id);
                if let Some(open) = asked.and_then(|session| self.sessions.get_mut(&session)) {
                    let (Ok(raw) | Err(raw)) = result;
                    let result = match self.room.take(raw.get().len()) {
                        Ok(room) => Ok(room.keep(answer(result))),
                        // What is too long to be kept counts as an error, which takes no room.
                        Err(_) => self.room.take(0).map(|room| room.keep(Err(Value::Null))),
                    };
                    if let Ok(result) = result {
                        open.send(Ask::Answered { id, result }).await;
                    }
                }
            }
        }
    }

    pub(crate) async fn notified(&mut self, method: &str, params: Params<'_>) {
        match method {
            "session/cancel" => {
                if let Ok(Named { session_id }) = params.read()
                    && let Ok(session) = self.face.find_to_command(&session_id).await
                {
                    self.ask(session, Ask::Cancel).await;
                }
            }
            "$/cancel_request" => {
                if let Ok(CancelRequest { request_id }) = params.read() {
                    // Only one session has it; the others have nothing to do with it.
                    for open in self.sessions.values_mut() {
                        open.send(Ask::TakeBack { id: request_id.clone() }).await;
                    }
                }
            }
            // Unknown notifications are ignored.
            _ => {}
        }
    }

    async fn request(
        &mut self,
        id: &Id,
        method: &str,
        params: Params<'_>,
        written: u64,
    ) -> Result<Option<Value>, Error> {
        if method == "initialize" {
            return self.initialize(params.read()?).map(Some);
        }
        let Some(peer) = self.peer.clone() else {
            return Err(not_initialized());
        };
        let v1 = peer.version == Version::V1;
        match method {
            "session/new" => self.new_session(id, params.read()?, &peer).await.map(|()| None),
            "session/load" if v1 => {
                self.attach(id, params, &peer, true, written).await.map(|()| None)
            }
            "session/resume" => self.attach(id, params, &peer, false, written).await.map(|()| None),
            "session/list" => self.list(&params.read()?, &peer).await.map(Some),
            "session/prompt" => self.prompt(id, params, written).await.map(|()| None),
            "session/suspend" => {
                peer.shows(Dialect::Rfc);
                self.suspend(id, params, &peer).await.map(|()| None)
            }
            "_session/suspend" => {
                peer.shows(Dialect::Extension);
                self.suspend(id, params, &peer).await.map(|()| None)
            }
            "session/status" => self.status(&params.read()?, &peer).await.map(Some),
            "session/close" | "session/delete" => {
                let Named { session_id } = params.read()?;
                let (session, ask) = match (self.face.find(&session_id).await, method) {
                    (session, "session/close") => (session?, Ask::Close { id: id.clone() }),
                    // What is not there need not be deleted.
                    (Err(error), _) if error.code == NOT_FOUND => return Ok(Some(json!({}))),
                    (session, _) => (session?, Ask::Delete { id: id.clone() }),
                };
                self.ask(session.id, ask).await;
                Ok(None)
            }
            "session/set_mode" if v1 => {
                let SetMode { session_id, mode_id } = params.read()?;
                self.choose(id, &session_id, Choice::Mode(mode_id)).await.map(|()| None)
            }
            "session/set_config_option" => {
                let SetConfigOption { session_id, config_id, value } = params.read()?;
                let choice = Choice::Config(config_id, value);
                self.choose(id, &session_id, choice).await.map(|()| None)
            }
            "tool_call/cancel" if !v1 => {
                self.has_none(params, "toolCallId", "no calls that can be cancelled one by one")
                    .await
            }
            "terminal/cancel" if !v1 => self.has_none(params, "terminalId", "no terminals").await,
            "authenticate" | "logout" if v1 => Ok(Some(json!({}))),
            _ => Err(Error::no_method(method)),
        }
    }

    fn initialize(&mut self, request: Initialize) -> Result<Value, Error> {
        if self.peer.is_some() {
            return Err(Error::new(INVALID_REQUEST, "the connection is initialized already"));
        }
        let (peer, introduction) =
            initialize(&request, self.face.options.profile, self.face.options.mcp)?;
        let (client, version) = (&peer.name, peer.version);
        self.span.record("client", client);
        tracing::info!(client, ?version, "client connected");
        self.peer = Some(Arc::new(peer));
        Ok(introduction)
    }

    async fn new_session(&mut self, id: &Id, new: New, peer: &Peer) -> Result<(), Error> {
        let servers = new.mcp_servers.unwrap_or_default();
        let session = self.face.create(peer, new.cwd, servers).await?;
        self.ask(session, Ask::Begin { id: id.clone() }).await;
        Ok(())
    }

    async fn attach(
        &mut self,
        id: &Id,
        params: Params<'_>,
        peer: &Peer,
        load: bool,
        written: u64,
    ) -> Result<(), Error> {
        let room = self.room.take(params.bytes())?;
        let attach: Attach = params.read()?;
        let session = match attach.session_id.parse::<SessionId>() {
            Ok(_) => self.face.find_to_command(&attach.session_id).await?,
            Err(_) => self.face.find_meant(&attach.session_id).await?.id,
        };
        let servers = attach.mcp_servers.clone();
        if attach.cwd.is_some() || servers.is_some() {
            let spec = self.face.claimant.spec(session).map_err(adjourn::Error::from)?;
            let wanted = attach.cwd.as_deref().map(absolute).transpose()?;
            let own = spec.as_ref().and_then(|spec| spec.cwd.as_deref());
            if let (Some(wanted), Some(own)) = (&wanted, own)
                && tidy(own) != tidy(wanted)
            {
                return Err(Error::invalid("cwd", "not the directory the session works in"));
            }
            if let Some(servers) = &servers {
                self.face.check_servers(spec.as_deref(), servers)?;
            }
        }
        let mut wish = attach.wish(peer)?;
        // Behind the last refusal, and before the session can be woken.
        if let Some(servers) = &servers {
            self.face.replace_servers(session, servers).await;
        }
        if load {
            wish.replay = Replay::From(1);
        }
        let wish = Box::new(room.keep(wish));
        let ask = Ask::Resume { id: id.clone(), wish, load, written };
        self.ask(session, ask).await;
        Ok(())
    }

    async fn prompt(&mut self, id: &Id, params: Params<'_>, written: u64) -> Result<(), Error> {
        let room = self.room.take(params.bytes())?;
        let prompt: Prompt = params.read()?;
        let session = self.face.find_to_command(&prompt.session_id).await?;
        let said = room.keep(content::said(prompt.prompt)?);
        self.ask(session, Ask::Prompt { id: id.clone(), said, written }).await;
        Ok(())
    }

    async fn suspend(&mut self, id: &Id, params: Params<'_>, peer: &Peer) -> Result<(), Error> {
        let request = requests::read_suspend(params)?;
        let session = self.face.find_to_command(&request.session_id).await?;
        let suspend = requests::suspend(request, peer)?;
        let spans = requests::spans(suspend.meta.as_ref());
        self.ask(session, Ask::Suspend { id: id.clone(), suspend, spans }).await;
        Ok(())
    }

    async fn choose(&mut self, id: &Id, session: &str, choice: Choice) -> Result<(), Error> {
        let session = self.face.find_to_command(session).await?;
        self.ask(session, Ask::SetOption { id: id.clone(), choice }).await;
        Ok(())
    }

    /// A request for something that this agent does not have.
    async fn has_none(
        &self,
        params: Params<'_>,
        field: &str,
        what: &str,
    ) -> Result<Option<Value>, Error> {
        let Named { session_id } = params.read()?;
        self.face.find(&session_id).await?;
        Err(Error::invalid(field, &format!("this agent has {what}")))
    }

    pub(crate) fn is_attached(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|open| open.attached.load(Ordering::Relaxed))
    }

    /// Asks something of a session, which serves this connection from then on.
    async fn ask(&mut self, session: SessionId, ask: Ask) {
        Span::current().record("session", display(session));
        // What was answered before goes out before what the session will say; nothing is said to
        // a cancel.
        if !matches!(ask, Ask::Cancel) {
            self.flush().await;
        }
        let Some(peer) = self.peer.clone() else { return };
        if !self.sessions.contains_key(&session) {
            self.forget_sessions();
        }
        let open = self.sessions.entry(session).or_insert_with(|| {
            let (sender, inbox) = mpsc::channel(QUEUE);
            let (attached, done) = (Arc::new(AtomicBool::new(false)), Arc::default());
            let run = Arc::default();
            let attachment = Attachment {
                face: Arc::clone(&self.face),
                peer,
                id: session,
                out: self.out.clone(),
                lines: Outgoing::default(),
                attached: Arc::clone(&attached),
                run: Arc::clone(&run),
                viewer: None,
                asked: Arc::clone(&self.asked),
                view: None,
                visible_from: 0,
                prompts: Vec::new(),
                queued: None,
                turn: None,
                suspends: Vec::new(),
                resumes: Vec::new(),
                own: Vec::new(),
                ours: HashMap::new(),
                question: None,
                mark: None,
                title: None,
                context: None,
                owes_usage: false,
                introduction: Vec::new(),
                last_message: None,
                waits: HashSet::new(),
                aliases: HashMap::new(),
                foreground: None,
                news: News::Nothing,
                idle_key: None,
                inbox,
                heard: 0,
                done: Arc::clone(&done),
                later: VecDeque::new(),
                replaying: None,
                cancel_until: None,
                ended_calls: HashSet::new(),
                notice: WaitingNotice::default(),
            };
            self.tasks.spawn(attachment.run());
            Open { ask: sender, attached, run, asked: 0, done }
        });
        open.send(ask).await;
    }

    /// Forgets sessions that were closed, so that only those that are open cost anything.
    fn forget_sessions(&mut self) {
        self.sessions.retain(|_, open| !open.rests());
        while self.tasks.try_join_next().is_some() {}
    }

    /// Ends what serves the sessions, when it has said what is left to say.
    async fn end(&mut self) {
        self.sessions.clear();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // A client that stops reading must not delay the shutdown.
        let _ = tokio::time::timeout(LAST_WORDS, ended).await;
        self.tasks.abort_all();
    }

    /// The client is gone: what becomes of what it had running. What it only saw is not its own.
    async fn disconnected(&mut self) {
        let Some(peer) = self.peer.clone() else { return };
        tracing::info!(client = peer.name, sessions = self.sessions.len(), "client went away");
        for (id, open) in &self.sessions {
            let own = *open.run.lock().unwrap_or_else(PoisonError::into_inner);
            let Ok(session) = self.face.adjourn.session(*id).load().await else { continue };
            if own.is_none() || session.run().map(|run| run.id) != own {
                continue;
            }
            let own = self.face.session(*id, &peer);
            match (self.face.options.on_disconnect, &session.state) {
                (OnDisconnect::Suspend, State::Ready(_) | State::Running(_)) => {
                    // Refused if it has come to rest by itself.
                    let _ = own.suspend().reason("the client went away").accepted().await;
                }
                (
                    OnDisconnect::Cancel,
                    State::Ready(_) | State::Running(_) | State::Quiescing(_),
                ) => {
                    // Refused if it has come to rest by itself.
                    let _ = own.cancel().grace(self.face.options.cancel_grace).await;
                }
                // What is on its way to rest need not be suspended.
                _ => {}
            }
        }
    }
}

/// Returns a directory as clients of another directory could find it: a relative path begins where
/// this process works.
pub(crate) fn absolute(path: &str) -> Result<String, Error> {
    if path.starts_with('/') {
        return Ok(path.to_owned());
    }
    let wrong = |problem: &str| Error::invalid("cwd", problem);
    let path = std::path::absolute(path).map_err(|_| wrong("expected a path"))?;
    path.into_os_string().into_string().map_err(|_| wrong("not in a directory that has a name"))
}

/// Returns a path without what says nothing in it: `.`, what `..` takes back, and spare slashes.
pub(crate) fn tidy(path: &str) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(tidy.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => tidy.push(part),
        }
    }
    tidy
}
