//! Push notifications, sent: each receiver is told in order, and again until it has said that it has it.
//!
//! The place of a receiver in the journal moves on with a commit behind each answer, so that a server
//! that dies tells at most the last notification twice. The receiver knows it by its key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjourn::core::time::Timestamp;
use adjourn::keys::DecryptError;
use adjourn::store::{Store, Told};
use adjourn::{TakenRecipient, Then};
use adjourn_a2a::{
    Face, Notification, Notifications, RECIPIENT_KIND, Receiver, Receivers, Stopping,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use reqwest::{Client, redirect};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::push_guard::PushGuard;
use crate::push_hosts::{Hosts, Visit};

/// How long a receiver may take for one notification.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// How long it may take to connect to it.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How many receivers are told at once.
const AT_ONCE: usize = 128;
/// How long a receiver waits for a place at its host before it is put off.
const BUSY: Duration = Duration::from_secs(5);
/// How long it takes until a receiver is tried again for the first time; the wait doubles each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// After how many failures in a row a receiver is given up: about two hours.
const TRIES: u32 = 20;
/// How long a store that fails is left alone.
const REST: Duration = Duration::from_secs(1);
/// How many receivers are kept with what is known of their tasks; all are dropped when there are more.
const KEPT: usize = 1024;

const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What sends push notifications, and says where they may go.
pub struct Pusher {
    guard: PushGuard,
    client: Client,
    hosts: Arc<Hosts>,
}

/// Why a notification was not delivered.
struct Failure {
    problem: String,
    /// Whether the receiver is gone for good.
    is_final: bool,
    /// How long it asks to be left alone.
    retry_after: Option<Duration>,
}

impl Failure {
    /// Something that may have passed when it is tried again.
    const fn passing(problem: String) -> Self {
        Self { problem, is_final: false, retry_after: None }
    }
}

impl Pusher {
    /// Makes a sender, which reaches hosts on the public internet, and loopback addresses if it is told
    /// so.
    ///
    /// # Errors
    /// What is wrong with the HTTP client.
    pub fn new(loopback: bool) -> Result<Self, String> {
        Self::patient(loopback, ANSWER_TIME)
    }

    /// The same, with receivers that may take another time for one notification.
    ///
    /// # Errors
    /// What is wrong with the HTTP client.
    pub fn patient(loopback: bool, answer_time: Duration) -> Result<Self, String> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another thread may have been faster; then there is one, too.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let guard = PushGuard { loopback };
        let client = Client::builder()
            .user_agent(concat!("adjourn/", env!("CARGO_PKG_VERSION")))
            .timeout(answer_time)
            .connect_timeout(CONNECT_TIME)
            // Both would lead around the guard.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(guard))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { guard, client, hosts: Arc::default() })
    }

    /// Posts one notification.
    async fn post(
        &self,
        receiver: &Receiver,
        key: &str,
        notification: &Notification,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let url = self.guard.url(&receiver.url).map_err(Failure::passing)?;
        let secret = |value: &str| {
            let value = HeaderValue::from_str(value);
            let mut value = value.map_err(|error| Failure::passing(error.to_string()))?;
            value.set_sensitive(true);
            Ok(value)
        };
        let mut request = self
            .client
            .post(url)
            .header(header::CONTENT_TYPE, receiver.content_type)
            .header(KEY, key)
            .body(notification.body.clone());
        if let Some(token) = &receiver.token {
            request = request.header(TOKEN, secret(token)?);
        }
        if let Some(authorization) = &receiver.authorization {
            request = request.header(header::AUTHORIZATION, secret(authorization)?);
        }
        // The body of its answer is not read.
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(Failure {
                problem: format!("it answered {}", answer.status()),
                is_final: answer.status() == StatusCode::GONE,
                retry_after: retry_after(answer.headers(), now),
            }),
            Err(error) => Err(Failure::passing(innermost(error))),
        }
    }
}

impl Receivers for Pusher {
    fn check<'a>(&'a self, url: &'a str) -> adjourn::driver::BoxFuture<'a, Result<(), String>> {
        Box::pin(self.guard.url_now(url))
    }
}

/// The room of one that is told; it is there, since what gives it is never closed.
type Room = Option<OwnedSemaphorePermit>;

/// What all deliveries of a server share.
struct Deliveries<S: Store> {
    face: Arc<Face<S>>,
    pusher: Arc<Pusher>,
    /// The room for those that are told at once.
    room: Arc<Semaphore>,
    /// What receivers are told next, by their number, so that a task is not read from its beginning for
    /// each notification.
    kept: Mutex<HashMap<i64, Notifications<S>>>,
}

/// Tells receivers of push notifications what happens to their tasks, until the server stops; what is
/// under way then is told to its end.
pub(crate) async fn push<S: Store>(face: Arc<Face<S>>, pusher: Arc<Pusher>, stopping: Stopping) {
    let mut recipients = loop {
        match face.adjourn.tell_recipients(RECIPIENT_KIND) {
            Ok(recipients) => break recipients,
            Err(error) => tracing::warn!("no push notifications are sent: {error}"),
        }
        tokio::select! {
            () = tokio::time::sleep(REST * 60) => {}
            () = stopping.begun() => return,
        }
    };
    let (room, mut under_way) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    let kept = Mutex::default();
    let deliveries = Arc::new(Deliveries { face, pusher, room: Arc::clone(&room), kept });
    loop {
        let next = async {
            // It is never closed.
            let room = Arc::clone(&room).acquire_owned().await.ok();
            (room, recipients.next().await)
        };
        let (room, taken) = tokio::select! {
            next = next => next,
            () = stopping.begun() => break,
        };
        while under_way.try_join_next().is_some() {}
        match taken {
            Ok(taken) => {
                let (deliveries, stopping) = (Arc::clone(&deliveries), stopping.clone());
                under_way.spawn(async move {
                    if let Err(error) = deliveries.tell(taken, room, &stopping).await {
                        tracing::warn!("push notifications are held up: {error}");
                    }
                });
            }
            Err(error) => {
                tracing::warn!("push notifications are held up: {error}");
                tokio::time::sleep(REST).await;
            }
        }
    }
    while under_way.join_next().await.is_some() {}
}

impl<S: Store> Deliveries<S> {
    /// Tells a receiver everything that it is behind.
    async fn tell(
        &self,
        mut taken: TakenRecipient<S>,
        room: Room,
        stopping: &Stopping,
    ) -> Result<(), adjourn::Error> {
        let place = taken.place();
        let receiver = match taken.body().map(Receiver::read) {
            Ok(Some(receiver)) => receiver,
            // Another server may have the key, or get it back.
            Err(lost @ DecryptError::UnknownKey(_)) => {
                let failure = Failure::passing(lost.to_string());
                return self.fails(taken, place, failure).await;
            }
            unreadable => {
                let problem = unreadable.err().map(ToString::to_string);
                let problem = problem.unwrap_or_else(|| "another program wrote it".to_owned());
                self.gives_up(&taken, &problem);
                return taken.told(place, Then::GiveUp).await.map(drop);
            }
        };
        let server = host(&receiver.url);
        let Some(_admitted) = self.admit(&server, taken.tries() > 0, room, stopping).await else {
            let after = match stopping.is_begun() {
                true => Duration::ZERO,
                false => jittered(&self.face, BUSY * 2),
            };
            return taken.told(place, Then::Later { after, failed: false }).await.map(drop);
        };
        let kept = self.kept().remove(&taken.number());
        let kept = kept.filter(|kept| kept.place() == place && kept.is_for(&receiver));
        let mut told = match kept {
            Some(kept) => kept,
            None => match self.face.notifications(&taken, &receiver).await {
                Ok(told) => told,
                Err(error) => {
                    return self.fails(taken, place, Failure::passing(error.problem)).await;
                }
            },
        };
        let mut rested = None;
        loop {
            let before = told.place();
            let next = match told.next().await {
                Ok(next) => next,
                Err(error) => {
                    return self.fails(taken, before, Failure::passing(error.problem)).await;
                }
            };
            let Some(notification) = next else {
                let then = if told.is_over() { Then::Over } else { Then::Rest };
                if !taken.told(told.place(), then).await? {
                    self.keep(taken.number(), told);
                    return Ok(());
                }
                // More has happened meanwhile, and is read next.
                if rested.replace(told.place()) == Some(told.place()) {
                    // It cannot be read there.
                    let then = Then::Later { after: BUSY, failed: true };
                    return taken.told(before, then).await.map(drop);
                }
                continue;
            };
            let key = format!("{}/{}/{}", taken.run(), taken.id(), notification.id);
            let now = self.face.adjourn.clock().now();
            if let Err(failure) = self.pusher.post(&receiver, &key, &notification, now).await {
                return self.fails(taken, before, failure).await;
            }
            let (session, run) = (taken.session().id(), taken.run());
            tracing::debug!(%session, %run, server, event = notification.id, "push notification sent");
            let then = match (told.is_over(), stopping.is_begun()) {
                (true, _) => Then::Over,
                (false, true) => Then::Later { after: Duration::ZERO, failed: false },
                (false, false) => Then::More,
            };
            if !taken.told(notification.told, then).await? {
                return Ok(());
            }
        }
    }

    /// Takes a place at the host of a receiver, and keeps the room that it has among all that are told;
    /// while it waits for a place, its room is for others. Returns nothing if it has waited for long.
    async fn admit(
        &self,
        host: &str,
        has_failed: bool,
        room: Room,
        stopping: &Stopping,
    ) -> Option<(Visit, Room)> {
        let guest = match self.pusher.hosts.come(host, has_failed)?.try_enter() {
            Ok(visit) => return Some((visit, room)),
            Err(guest) => guest,
        };
        drop(room);
        let admitted = async {
            let visit = guest.enter().await?;
            Some((visit, Arc::clone(&self.room).acquire_owned().await.ok()))
        };
        tokio::select! {
            admitted = admitted => admitted,
            () = tokio::time::sleep(BUSY) => None,
            () = stopping.begun() => None,
        }
    }

    /// Puts a receiver off that could not be told, or gives it up.
    async fn fails(
        &self,
        mut taken: TakenRecipient<S>,
        place: Told,
        Failure { problem, is_final, retry_after }: Failure,
    ) -> Result<(), adjourn::Error> {
        let tries = taken.tries() + 1;
        if is_final || tries >= TRIES {
            self.gives_up(&taken, &problem);
            return taken.told(place, Then::GiveUp).await.map(drop);
        }
        let asked = retry_after.unwrap_or_default().min(LONGEST_WAIT);
        let after = jittered(&self.face, wait(tries)).max(asked);
        let (session, run, config) = (taken.session().id(), taken.run(), taken.id());
        tracing::info!(%session, %run, config, tries, "a push notification failed: {problem}");
        taken.told(place, Then::Later { after, failed: true }).await.map(drop)
    }

    fn gives_up(&self, taken: &TakenRecipient<S>, problem: &str) {
        let (session, run, config) = (taken.session().id(), taken.run(), taken.id());
        tracing::warn!(
            %session,
            %run,
            config,
            "push notifications are given up until they are configured again: {problem}"
        );
    }

    fn keep(&self, number: i64, told: Notifications<S>) {
        let mut kept = self.kept();
        if told.is_over() {
            return;
        }
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(number, told);
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<i64, Notifications<S>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how long to wait after so many failures in a row.
fn wait(tries: u32) -> Duration {
    FIRST_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(LONGEST_WAIT)
}

/// Returns how long the headers of an answer ask to wait, in seconds or until a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Timestamp::parse_http_date(text).map(|date| date.since(now)),
    }
}

/// Returns a wait between a half and the whole of a length, so that those who failed together are not
/// tried again together.
fn jittered<S: Store>(face: &Face<S>, longest: Duration) -> Duration {
    let id = face.adjourn.clock().uuid();
    let [.., high, low] = *id.as_bytes();
    let part = f64::from(u16::from_be_bytes([high, low])) / f64::from(u16::MAX);
    longest.mul_f64(0.5 + part / 2.0)
}

/// Returns the host and the port of a URL, by which receivers are told apart; nothing else of it is
/// logged.
fn host(url: &str) -> String {
    let Ok(url) = reqwest::Url::parse(url) else { return String::new() };
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Returns what is wrong at the bottom of it, without the URL, which may hold secrets.
fn innermost(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut inner: &dyn std::error::Error = &error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    match error.is_timeout() {
        true => "it took too long".to_owned(),
        false => inner.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};
    use std::process::Command;

    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_come_to_about_two_hours() {
        let waits: Vec<_> = (1..TRIES).map(|tries| wait(tries).as_secs()).collect();
        assert_eq!(waits.get(..11), Some(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600][..]));
        assert!((6000..8000).contains(&waits.iter().sum::<u64>()), "{waits:?}");
        assert_eq!(wait(u32::MAX), LONGEST_WAIT);
    }

    #[test]
    fn a_receiver_names_seconds_or_a_date() {
        let now = Timestamp::parse_http_date("Mon, 16 Nov 2026 06:00:00 GMT").unwrap();
        for (text, seconds) in [
            ("90", Some(90)),
            (" 0 ", Some(0)),
            ("Mon, 16 Nov 2026 06:02:00 GMT", Some(120)),
            ("Mon, 16 Nov 2026 05:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            let value = HeaderValue::from_static(text);
            let headers = [(header::RETRY_AFTER, value)].into_iter().collect();
            let read = retry_after(&headers, now).map(|wait| wait.as_secs());
            assert_eq!(read, seconds, "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    /// Listens where nothing should come.
    fn listening() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    fn was_reached(listener: &TcpListener) -> bool {
        match listener.accept() {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                false
            }
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_loopback_is_not_connected_to() {
        let (listener, address) = listening();
        let pusher = Pusher::new(false).unwrap();
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://localhost:{}/hook", address.port());
            let refused = innermost(pusher.client.get(url).send().await.unwrap_err());
            assert_eq!(refused, "the name leads to no address on the public internet", "{scheme}");
        }
        assert!(!was_reached(&listener));
    }

    /// The variable that tells the test below that it is its own child, and what it asks.
    const ASKED: &str = "ADJOURN_TEST_ASKED";

    #[tokio::test]
    async fn a_proxy_of_the_environment_is_not_used() {
        if let Ok(url) = std::env::var(ASKED) {
            let pusher = Pusher::patient(true, Duration::from_secs(5)).unwrap();
            assert_eq!(pusher.client.get(url).send().await.unwrap().status(), StatusCode::OK);
            return;
        }
        let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", receiver.local_addr().unwrap());
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = receiver.accept().unwrap();
            let mut head = [0; 1024];
            let read = stream.read(&mut head).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            String::from_utf8_lossy(&head[..read]).into_owned()
        });
        let (proxy, address) = listening();
        // The environment of this process is that of other tests, too.
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "push::tests::a_proxy_of_the_environment_is_not_used"]);
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            child.env(name, format!("http://{address}"));
        }
        child.env_remove("no_proxy").env_remove("NO_PROXY").env(ASKED, url);
        let output = child.output().unwrap();
        assert!(!was_reached(&proxy));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let head = answering.join().unwrap();
        assert!(head.starts_with("GET /hook "), "{head}");
    }

    #[test]
    fn receivers_are_told_apart_by_host_and_port() {
        assert_eq!(host("https://Example.org.:8443/x?y"), "example.org:8443");
        assert_eq!(host("https://example.org./x"), "example.org");
    }
}
