//! A store in a directory that goes away, hosts that come and go, and a clock that is moved by hand.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adjourn::clock::{BoxFuture, Clock, Machine};
use adjourn::doorbell::Hosts;
use adjourn::script::Scripted;
use adjourn::{Adjourn, Claimant, Claims, Config, Host};
use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::Budget;
use adjourn_core::command::{Prompt, Reach, Resume, Suspend};
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::What;
use adjourn_core::id::{Handle, HostId, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Founding, Session};
use adjourn_driver::Drivers;
use adjourn_driver::Message;
use adjourn_record::keys::{Key, Keys};
use adjourn_store::rows::NewEvent;
use adjourn_store::sqlite::Options;
use adjourn_store::{CommandError, Done, Environment, Request, Sqlite, Store as _, Transaction};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub struct Hands(Arc<Mutex<Inner>>);

struct Inner {
    now: Timestamp,
    /// How much time has passed, however the clock was set.
    passed: Duration,
    sleepers: Vec<(Wake, oneshot::Sender<()>)>,
}

/// When somebody wakes: at a time, or when so much time has passed.
enum Wake {
    At(Timestamp),
    Passed(Duration),
}

impl Inner {
    fn is_due(&self, wake: &Wake) -> bool {
        match wake {
            Wake::At(time) => *time <= self.now,
            Wake::Passed(passed) => *passed <= self.passed,
        }
    }

    fn wake(&mut self) {
        let sleepers = std::mem::take(&mut self.sleepers);
        let (due, later) = sleepers.into_iter().partition(|(wake, _)| self.is_due(wake));
        self.sleepers = later;
        for (_, sleeper) in due {
            let _ = sleeper.send(());
        }
    }

    fn sleep(&mut self, wake: Wake) -> BoxFuture<'static, ()> {
        if self.is_due(&wake) {
            return Box::pin(std::future::ready(()));
        }
        let (sender, receiver) = oneshot::channel();
        self.sleepers.push((wake, sender));
        Box::pin(async move {
            let _ = receiver.await;
        })
    }
}

impl Hands {
    /// Makes a clock that shows nine o'clock.
    pub fn new() -> Self {
        let now = Timestamp::parse("2026-11-16T09:00:00Z").unwrap();
        let (passed, sleepers) = (Duration::ZERO, Vec::new());
        Self(Arc::new(Mutex::new(Inner { now, passed, sleepers })))
    }

    /// Waits, on the real clock, until so many wait for time to pass.
    pub async fn until_waited_for(&self, sleepers: usize) {
        let start = Instant::now();
        while self.waiting() != sleepers {
            assert!(start.elapsed() < Duration::from_secs(20), "{} wait", self.waiting());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Returns how many wait for time to pass.
    pub fn waiting(&self) -> usize {
        let inner = self.0.lock().unwrap();
        let waits = |(wake, sleeper): &&(Wake, oneshot::Sender<()>)| {
            matches!(wake, Wake::Passed(_)) && !sleeper.is_closed()
        };
        inner.sleepers.iter().filter(waits).count()
    }

    /// Sets the clock ahead, without time passing.
    pub fn set_ahead(&self, by: Duration) {
        let mut inner = self.0.lock().unwrap();
        inner.now = inner.now.after(by);
        inner.wake();
    }

    /// Sets the clock back. Nobody is due earlier for it.
    pub fn set_back(&self, by: Duration) {
        let mut inner = self.0.lock().unwrap();
        let by = i64::try_from(by.as_millis()).unwrap();
        inner.now = Timestamp::from_millis(inner.now.as_millis() - by);
    }

    /// Lets time pass, and wakes whoever is due.
    pub fn advance(&self, by: Duration) {
        let mut inner = self.0.lock().unwrap();
        inner.now = inner.now.after(by);
        inner.passed += by;
        inner.wake();
    }
}

impl Environment for Hands {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().now
    }

    fn uuid(&self) -> Uuid {
        Machine.uuid()
    }
}

impl Clock for Hands {
    fn sleep_until(&self, time: Timestamp) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().sleep(Wake::At(time))
    }

    fn elapsed(&self) -> Duration {
        self.0.lock().unwrap().passed
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut inner = self.0.lock().unwrap();
        let passed = inner.passed.saturating_add(duration);
        inner.sleep(Wake::Passed(passed))
    }
}

pub struct Fixture {
    /// Held, so that it is there as long as the store.
    _directory: TempDir,
    pub clock: Hands,
    pub store: Sqlite,
}

/// A host that works until it is told to stop, or is dropped like a process that dies.
pub struct Working {
    pub id: HostId,
    /// How a face of its process gives commands.
    pub claimant: Claimant<Sqlite>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), adjourn_store::Error>>,
}

impl Working {
    /// Stops it in an orderly way.
    pub async fn stop(self) {
        self.try_to_stop().await.unwrap();
    }

    /// Stops it, and returns what became of that.
    pub async fn try_to_stop(mut self) -> Result<(), adjourn_store::Error> {
        let _ = self.stop.take().unwrap().send(());
        self.task.await.unwrap()
    }

    /// Waits until it ends by itself, and returns why.
    pub async fn ended(self) -> Result<(), adjourn_store::Error> {
        // It is not told to stop as long as this is held.
        let _stop = self.stop;
        self.task.await.unwrap()
    }

    /// Ends it as a kill would: nothing is given back, its lock is gone.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// Opens the store in another way than usual.
    pub fn with(change: impl Fn(&mut Options)) -> Self {
        let directory = TempDir::new().unwrap();
        let clock = Hands::new();
        let mut options = options(directory.path().join("store.db"), &clock);
        change(&mut options);
        let store = Sqlite::open(options).unwrap();
        Self { _directory: directory, clock, store }
    }

    /// Opens the same store once more, as another process would.
    pub fn another(&self) -> Sqlite {
        Sqlite::open(options(self.store.path().to_owned(), &self.clock)).unwrap()
    }

    /// Works on the store as a program does that embeds the library.
    pub fn adjourn(&self) -> Adjourn {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let adjourn = Adjourn::on(self.store.clone(), self.hosts(), clock).unwrap();
        adjourn.in_tenant("acme").acting_as(ann())
    }

    /// Works on the store as another process does that embeds the library.
    pub fn another_adjourn(&self) -> Adjourn {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let adjourn = Adjourn::on(self.another(), self.hosts(), clock).unwrap();
        adjourn.in_tenant("acme").acting_as(ann())
    }

    pub fn hosts(&self) -> Hosts {
        Hosts::beside(self.store.path())
    }

    pub async fn host(&self) -> Working {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        self.host_with(Arc::new(Scripted::new(clock))).await
    }

    pub async fn host_with(&self, drivers: Arc<dyn Drivers>) -> Working {
        self.host_as(drivers, Config::default()).await
    }

    /// Starts a host that is there for one session only.
    pub async fn host_for(&self, id: SessionId) -> Working {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let config = Config { claims: Claims::Only(id), ..Config::default() };
        self.host_as(Arc::new(Scripted::new(clock)), config).await
    }

    pub async fn host_as(&self, drivers: Arc<dyn Drivers>, config: Config) -> Working {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let host = Host::join(self.store.clone(), self.hosts(), clock, drivers, config);
        let host = host.await.unwrap();
        let (id, claimant) = (host.id(), host.claimant());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(host.run(async move {
            let _ = stopped.await;
        }));
        Working { id, claimant, stop: Some(stop), task }
    }

    pub fn create(&self, script: &str) -> SessionId {
        self.create_with(DriverSpec::script(script))
    }

    pub fn create_with(&self, driver: DriverSpec) -> SessionId {
        let founding = self.founding(driver);
        self.store.transact(move |tx| tx.create(ann(), founding)).wait().unwrap().session.id
    }

    /// Makes a session that may not use more than so much.
    pub fn create_within(&self, budget: Budget, script: &str) -> SessionId {
        let founding = Founding { budget, ..self.founding(DriverSpec::script(script)) };
        self.store.transact(move |tx| tx.create(ann(), founding)).wait().unwrap().session.id
    }

    /// Makes many sessions, in one commit.
    pub fn create_many(&self, count: usize, script: &str) -> Vec<SessionId> {
        let founding = |_| self.founding(DriverSpec::script(script));
        let all: Vec<_> = (0..count).map(founding).collect();
        let create = move |tx: &mut Transaction<'_>| -> Result<Vec<_>, CommandError> {
            all.into_iter().map(|founding| Ok(tx.create(ann(), founding)?.session.id)).collect()
        };
        self.store.transact(create).wait().unwrap()
    }

    pub fn founding(&self, driver: DriverSpec) -> Founding {
        Founding {
            id: SessionId::new(self.clock.uuid()),
            tenant: "acme".to_owned(),
            labels: BTreeMap::new(),
            parent: None,
            driver,
            budget: Budget::default(),
            title: None,
        }
    }

    pub fn give(
        &self,
        id: SessionId,
        command: Command,
        said: Vec<Message>,
    ) -> Result<Done, CommandError> {
        let said = said.iter().map(Message::encode).collect();
        let request = Request::new(id, ann(), command).saying(said);
        let done = self.store.transact(move |tx| tx.command(request)).wait();
        self.hosts().ring();
        done
    }

    pub fn prompt(&self, id: SessionId, text: &str) {
        let request = prompt(id, text);
        self.store.transact(move |tx| tx.command(request)).wait().unwrap();
        self.hosts().ring();
    }

    pub fn suspend(&self, id: SessionId, suspend: Suspend) {
        self.give(id, Command::Suspend(suspend), Vec::new()).unwrap();
    }

    pub fn resume(&self, id: SessionId, input: Option<&str>) -> Result<Done, CommandError> {
        let said: Vec<_> = input.map(Message::user).into_iter().collect();
        let resume = Resume {
            handle: self.handle(id),
            input: said.first().map(Message::content),
            ..Resume::default()
        };
        self.give(id, Command::Resume(resume), said)
    }

    pub fn event(&self, name: &str) {
        self.event_unheard(name);
        self.hosts().ring();
    }

    pub fn event_with(&self, name: &str, data: &str) {
        self.acknowledge(name, Some(data.to_owned()));
        self.hosts().ring();
    }

    /// Stores an event, and the ring is lost.
    pub fn event_unheard(&self, name: &str) {
        self.acknowledge(name, None);
    }

    fn acknowledge(&self, name: &str, data: Option<String>) {
        let event = NewEvent {
            id: self.clock.uuid().to_string(),
            source: "test".to_owned(),
            name: name.to_owned(),
            subject: None,
            time: self.clock.now(),
            tenant: "acme".to_owned(),
            session: None,
            data,
        };
        self.store.transact(move |tx| tx.acknowledge(&event)).wait().unwrap();
    }

    pub fn session(&self, id: SessionId) -> Arc<Session> {
        self.store.session(id).unwrap().unwrap()
    }

    pub fn handle(&self, id: SessionId) -> Option<Handle> {
        self.session(id).suspended().map(|suspended| suspended.shown().pause.handle)
    }

    /// Waits, on the real clock, until the session is as described.
    pub async fn until(
        &self,
        id: SessionId,
        what: &str,
        is: impl Fn(&Session) -> bool,
    ) -> Arc<Session> {
        let start = Instant::now();
        loop {
            let session = self.session(id);
            if is(&session) {
                return session;
            }
            assert!(start.elapsed() < Duration::from_secs(45), "never {what}: {session:#?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub async fn until_state(&self, id: SessionId, state: &str) -> Arc<Session> {
        self.until(id, state, |session| session.state.name() == state).await
    }

    /// Waits until a tool is in flight.
    pub async fn until_in_flight(&self, id: SessionId, tool: &str) {
        self.until(id, tool, |session| session.status().in_flight.contains(&tool)).await;
    }

    /// Lets time pass, bit by bit, until the session is in a state.
    ///
    /// Whoever is about to sleep does so from whatever time it is then, so nothing depends on who
    /// comes first.
    pub async fn pass_until(&self, id: SessionId, state: &str) -> Arc<Session> {
        self.pass(id, state, |session| session.state.name() == state).await
    }

    /// Lets time pass until a tool is in flight.
    pub async fn pass_until_in_flight(&self, id: SessionId, tool: &str) {
        self.pass(id, tool, |session| session.status().in_flight.contains(&tool)).await;
    }

    async fn pass(&self, id: SessionId, what: &str, is: impl Fn(&Session) -> bool) -> Arc<Session> {
        let start = Instant::now();
        loop {
            let session = self.session(id);
            if is(&session) {
                return session;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "never {what}: {session:#?}");
            self.clock.advance(Duration::from_millis(100));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns the names of what happened, in order.
    pub fn happened(&self, id: SessionId) -> Vec<&'static str> {
        let entries = self.store.journal(id, 1, 1000).unwrap();
        entries.iter().map(|entry| entry.event.what.name()).collect()
    }

    /// Counts how often calls of a tool were dispatched.
    pub fn dispatched(&self, id: SessionId) -> usize {
        let entries = self.store.journal(id, 1, 1000).unwrap();
        let count = entries.iter().map(|entry| match &entry.event.what {
            What::CallsDispatched(dispatched) => dispatched.calls.len(),
            _ => 0,
        });
        count.sum()
    }

    pub fn said(&self, id: SessionId) -> Vec<Message> {
        let bytes = self.store.transcript(id, 0, 1000).unwrap();
        bytes.iter().map(|bytes| Message::decode(bytes).unwrap()).collect()
    }
}

fn options(path: PathBuf, clock: &Hands) -> Options {
    let key = Key::from_secrets(Timestamp::from_millis(0), &[7; 32], &[8; 32]);
    Options::new(path, Arc::new(clock.clone()), Keys::only(key))
}

/// Makes a prompt.
pub fn prompt(id: SessionId, text: &str) -> Request {
    let said = Message::user(text);
    let (message_id, handle) = (None, None);
    let prompt = Prompt { content: said.content(), message_id, handle, reach: Reach::OwnFace };
    Request::new(id, ann(), Command::Prompt(prompt)).saying(vec![said.encode()])
}

pub fn ann() -> Actor {
    Actor::new(Face::Cli, "ann")
}
