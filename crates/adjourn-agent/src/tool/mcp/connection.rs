//! One server that is connected.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adjourn_core::limits;
use adjourn_driver::BoxFuture;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClientTransportConfig,
};
use rmcp::{ClientHandler, Peer, RoleClient};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader, ReadBuf};
use tokio::process::{ChildStdout, Command};
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::config::Launch;
use super::values::Secrets;
use crate::failure::FailureKind;
use crate::tls::choose_cryptography;
use crate::tool::ToolError;
use crate::tool::process::ProcessGroup;

/// How long a server may take to end by itself, and how long again once it was asked to. Both are
/// within what a host waits for a driver.
const GRACE: Duration = Duration::from_secs(1);
/// How long the last words of a server are waited for whose program has failed.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How much of what a server said on stderr is kept to explain its end.
const TAIL_BYTES: usize = 1024;
/// How long one message of a server may be: well above the longest result that is taken, so that what
/// is only too long for a result is refused as one.
const MESSAGE_BYTES: usize = 64 * 1024 * 1024;
/// The longest line of a server's stderr that is read as one.
const LINE_BYTES: u64 = 4096;
/// What every program needs of the environment. The rest of it is none of a server's business.
const PASSED_ON: &[&str] =
    &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// A server that is connected. Dropping it kills the server.
pub(super) struct Connection {
    service: RunningService<RoleClient, Handler>,
    process: Option<Server>,
    launch: Launch,
    /// How often the server has said that its tools are others.
    changes: Arc<AtomicU64>,
    too_long: TooLong,
}

/// Whether a server has sent a message that is too long. It cannot be told what the message answers,
/// so the connection ends with it: nothing waits for an answer that was dropped.
#[derive(Clone, Default)]
pub(super) struct TooLong(Arc<AtomicBool>);

impl TooLong {
    /// Says how the server ended for one that was connected to it.
    pub(super) fn how(&self) -> String {
        match self.0.load(Ordering::Acquire) {
            true => format!(
                "was ended: it sent a message of more than {} MiB",
                MESSAGE_BYTES / (1024 * 1024)
            ),
            false => "ended".to_owned(),
        }
    }

    fn note(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// What a server is answered, and what it tells.
#[derive(Clone)]
struct Handler {
    changes: Arc<AtomicU64>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("adjourn", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }
}

/// The last that a server said on stderr.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<String>>);

/// A process that is listened to.
struct Server {
    group: ProcessGroup,
    listening: JoinHandle<()>,
}

impl Server {
    /// Ends the process, and waits until all that it said was heard.
    async fn end(self) -> Option<ExitStatus> {
        let status = self.group.end(GRACE).await;
        let _ = tokio::time::timeout(GRACE, self.listening).await;
        status
    }
}

impl Tail {
    fn push(&self, line: &str) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.push_str(line);
        tail.push('\n');
        let over = tail.len().saturating_sub(TAIL_BYTES);
        if let Some(at) = (over..tail.len()).find(|at| tail.is_char_boundary(*at)) {
            tail.drain(..at);
        }
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).trim().to_owned()
    }
}

/// Why a server is not connected.
pub(super) struct Refused {
    kind: FailureKind,
    why: String,
}

impl Connection {
    /// Connects a server.
    pub(super) async fn open(
        name: &str,
        launch: &Launch,
        within: Duration,
    ) -> Result<Self, ToolError> {
        let stderr = Tail::default();
        let opening = Self::try_open(name, launch, &stderr);
        let opened = match tokio::time::timeout(within, opening).await {
            Ok(opened) => opened,
            Err(_) => {
                let end = ending(None, &stderr);
                let why = format!("it did not answer within {} s{end}", within.as_secs_f64());
                Err(Refused { kind: FailureKind::ToolError, why })
            }
        };
        opened.map_err(|Refused { kind, why }| {
            let why = launch.secrets().redact(&why);
            ToolError::of(kind, format!("MCP server {name:?} cannot be used: {why}"))
        })
    }

    async fn try_open(name: &str, launch: &Launch, stderr: &Tail) -> Result<Self, Refused> {
        match Self::begin(name, launch, stderr, ClientLifecycleMode::Initialize).await {
            // Servers of the latest protocol need not know how others begin.
            Err((ClientInitializeError::JsonRpcError(first), _)) => {
                let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                let discover = ClientLifecycleMode::Discover { preferred_versions };
                let second = Self::begin(name, launch, stderr, discover).await;
                second.map_err(|(_, end)| Refused {
                    kind: FailureKind::ToolError,
                    why: format!("{}{end}", first.message),
                })
            }
            begun => begun.map_err(|(error, end)| refused(&error, &end)),
        }
    }

    /// Starts a server and says hello; or returns why that failed, and how its process ended.
    async fn begin(
        name: &str,
        launch: &Launch,
        stderr: &Tail,
        mode: ClientLifecycleMode,
    ) -> Result<Self, (ClientInitializeError, String)> {
        let changes = Arc::new(AtomicU64::new(0));
        let too_long = TooLong::default();
        let handler = Handler { changes: Arc::clone(&changes) };
        let (stderr, launch) = (stderr.clone(), launch.clone());
        let unusable = |why: String| (ClientInitializeError::ConnectionClosed(why), String::new());
        match &launch {
            Launch::Process { command, args, env, directory, .. } => {
                let started = start(command, args, env, directory.as_ref());
                let mut group = started
                    .map_err(|error| unusable(format!("{command:?} cannot be started: {error}")))?;
                let (Some(stdin), Some(stdout), Some(said)) =
                    (group.stdin.take(), group.stdout.take(), group.stderr.take())
                else {
                    return Err(unusable("it has no pipes".to_owned()));
                };
                let listening = listen(name.to_owned(), said, stderr.clone(), launch.secrets());
                // What it says belongs to the session that it was started for.
                let listening = tokio::spawn(listening.in_current_span());
                let stdout = Output::of(stdout, &group, too_long.clone());
                let process = Server { group, listening };
                let transport = AsyncRwTransport::new_client(stdout, stdin);
                // It would drop a longer message, and wait for it.
                let transport = transport.with_max_line_length(usize::MAX);
                match serve_client_with_lifecycle(handler, transport, mode).await {
                    Ok(service) => {
                        let process = Some(process);
                        Ok(Self { service, process, launch, changes, too_long })
                    }
                    Err(error) => {
                        let status = process.end().await;
                        Err((gone(error), ending(status, &stderr)))
                    }
                }
            }
            Launch::Http { url, headers, .. } => {
                let config = http(url, headers).map_err(unusable)?;
                let transport = StreamableHttpClientTransport::from_config(config);
                let service = serve_client_with_lifecycle(handler, transport, mode).await;
                let service = service.map_err(|error| (error, String::new()))?;
                Ok(Self { service, process: None, launch, changes, too_long })
            }
        }
    }

    /// Returns the way to the server.
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Returns whether the server has sent a message that is too long.
    pub(super) fn too_long(&self) -> TooLong {
        self.too_long.clone()
    }

    /// Returns how often the server has said that its tools are others.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns whether it is connected with these values, and the server is still there.
    pub(super) fn is_good_for(&self, launch: &Launch) -> bool {
        self.launch == *launch && !self.service.peer().is_transport_closed()
    }

    /// Closes the connection, and ends the server. Returns how its process ended, if it has one.
    pub(super) async fn close(mut self) -> Option<ExitStatus> {
        // Its input ends with the connection, which tells it to end by itself.
        let _ = self.service.close_with_timeout(GRACE).await;
        self.process.take()?.end().await
    }
}

/// What a server says, up to the failure of its program: something that the program has started may
/// hold its output open for ever. One that ends well may have left the server in another process.
///
/// It ends also with a message that is too long.
struct Output {
    stdout: ChildStdout,
    /// Its failure; nothing once that was seen.
    failed: Option<BoxFuture<'static, ()>>,
    /// How much was read of the message that has not ended.
    message: usize,
    too_long: TooLong,
}

impl Output {
    fn of(stdout: ChildStdout, group: &ProcessGroup, too_long: TooLong) -> Self {
        let exited = group.exited();
        let failed: BoxFuture<'static, ()> = Box::pin(async move {
            match exited.await {
                Ok(status) if status.success() => std::future::pending().await,
                // Its last words are read first.
                Ok(_) | Err(_) => tokio::time::sleep(LAST_WORDS).await,
            }
        });
        Self { stdout, failed: Some(failed), message: 0, too_long }
    }

    /// Takes note of what was read: each message is a line.
    fn count(&mut self, read: &[u8]) {
        // Most of a long message has no end, and that is found fast.
        let end = read.contains(&b'\n').then(|| read.iter().rposition(|byte| *byte == b'\n'));
        self.message = match end.flatten() {
            Some(end) => read.len() - end,
            None => self.message + read.len(),
        };
    }
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.message > MESSAGE_BYTES {
            // Nothing more is read: that is its end.
            self.too_long.note();
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut self.stdout).poll_read(context, buffer) {
            Poll::Pending => {
                if let Some(failed) = &mut self.failed {
                    ready!(failed.as_mut().poll(context));
                    self.failed = None;
                }
                Poll::Ready(Ok(()))
            }
            read => {
                self.count(buffer.filled().get(before..).unwrap_or_default());
                read
            }
        }
    }
}

/// Starts the program of a server.
fn start(
    program: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
    directory: Option<&PathBuf>,
) -> std::io::Result<ProcessGroup> {
    let passed_on = PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(passed_on).envs(env).stdin(Stdio::piped());
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    ProcessGroup::start(&mut command)
}

/// Listens to what a server says on stderr: the log has it, and the last of it explains its end.
async fn listen(name: String, stderr: impl AsyncRead + Unpin, tail: Tail, secrets: Secrets) {
    let mut stderr = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut stderr).take(LINE_BYTES);
        match bounded.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let line = secrets.redact(String::from_utf8_lossy(&line).trim_end());
                tracing::debug!(server = name, "MCP server: {line}");
                tail.push(&line);
            }
        }
    }
}

/// Says how a server's process ended, and what it said last.
fn ending(status: Option<ExitStatus>, stderr: &Tail) -> String {
    let ended = status.map(|status| format!(" ({status})")).unwrap_or_default();
    match stderr.text() {
        said if said.is_empty() => ended,
        said => format!("{ended}; it said: {said}"),
    }
}

/// Says how requests to a server look.
fn http(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransportConfig, String> {
    choose_cryptography();
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.as_bytes());
        let (Ok(header), Ok(mut value)) = (header, HeaderValue::from_str(value)) else {
            return Err(format!("the header {name:?} cannot be sent"));
        };
        value.set_sensitive(true);
        custom.insert(header, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(custom);
    Ok(config.max_sse_event_size(MESSAGE_BYTES))
}

/// A pipe that is broken says no more than that its reader is gone.
fn gone(error: ClientInitializeError) -> ClientInitializeError {
    match error {
        ClientInitializeError::TransportError { .. } => {
            ClientInitializeError::ConnectionClosed(String::new())
        }
        error => error,
    }
}

/// Says why a server would not begin.
fn refused(error: &ClientInitializeError, ending: &str) -> Refused {
    let kind = match error.is_authorization_required() {
        true => FailureKind::AuthRequired,
        false => kind_of(error),
    };
    let why = match error {
        ClientInitializeError::ConnectionClosed(why) if ending.is_empty() => why.clone(),
        ClientInitializeError::ConnectionClosed(_) => "it ended before it answered".to_owned(),
        ClientInitializeError::TransportError { error, .. } => chain(error.error.as_ref()),
        error => chain(error),
    };
    Refused { kind, why: format!("{why}{ending}") }
}

/// Returns what a request failed by: what a transport says, without the name of its type in Rust.
pub(super) fn cause(error: &ServiceError) -> &(dyn Error + 'static) {
    match error {
        ServiceError::TransportSend(error) => error.error.as_ref(),
        error => error,
    }
}

/// Returns what an error is taken for: credentials that were refused or are missing, or a failure.
pub(super) fn kind_of(error: &(dyn Error + 'static)) -> FailureKind {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<AuthRequiredError>() || error.to_string().contains("HTTP 401") {
            return FailureKind::AuthRequired;
        }
        next = error.source();
    }
    FailureKind::ToolError
}

/// Returns what an error says, with all that led to it and is not said already.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !said.contains(&more) {
            said = format!("{said}: {more}");
        }
        next = error.source();
    }
    limits::excerpt(&said, limits::EXCERPT_BYTES)
}
