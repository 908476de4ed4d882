//! A store in a directory that goes away, hosts that come and go, and a clock that is moved by hand.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::clock::Clock;
use adjourn::doorbell::Hosts;
use adjourn::script::Scripted;
use adjourn::{Adjourn, Claimant, Claims, Config, Host};
use adjourn_core::carry::Budget;
use adjourn_core::command::{Prompt, Reach, Resume, Suspend};
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::What;
use adjourn_core::id::{Handle, HostId, SessionId};
use adjourn_core::{Command, Founding, Session};
use adjourn_driver::{Drivers, Message};
use adjourn_store::rows::NewEvent;
use adjourn_store::sqlite::Options;
use adjourn_store::{
    CommandError, Done, Environment as _, Request, Sqlite, Store as _, Transaction,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::store::{self, TENANT, founding_by};
use crate::{PATIENCE, VirtualClock};

pub use crate::store::ann;

/// Works on a store as a program does that embeds the library.
///
/// # Errors
/// The directory of its hosts cannot be used.
pub fn embed(store: Sqlite, clock: Arc<dyn Clock>) -> Result<Adjourn, adjourn::Error> {
    let hosts = Hosts::beside(store.path());
    Ok(Adjourn::on(store, hosts, clock)?.in_tenant(TENANT))
}

/// A store, and the hosts that work on it.
pub struct Fixture {
    directory: store::Fixture,
    /// The clock of the store and of all hosts.
    pub clock: VirtualClock,
    /// The store, as this process has it open.
    pub store: Sqlite,
}

/// A host that works until it is told to stop, or is dropped like a process that dies.
pub struct Working {
    /// Which one it is.
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
    ///
    /// # Errors
    /// The store failed.
    pub async fn try_to_stop(mut self) -> Result<(), adjourn_store::Error> {
        let _ = self.stop.take().unwrap().send(());
        self.task.await.unwrap()
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// Why it ended.
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
    /// Opens a store in a directory of its own.
    #[expect(clippy::new_without_default, reason = "a test says that it makes a directory")]
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// Opens the store in another way than usual.
    pub fn with(change: impl Fn(&mut Options)) -> Self {
        let clock = VirtualClock::new();
        let directory = store::Fixture::with(clock.clone());
        let mut options = directory.options();
        change(&mut options);
        let store = Sqlite::open(options).unwrap();
        Self { directory, clock, store }
    }

    /// Opens the same store once more, as another process would.
    pub fn another(&self) -> Sqlite {
        self.directory.open()
    }

    /// Works on the store as a program does that embeds the library.
    pub fn adjourn(&self) -> Adjourn {
        self.embed(self.store.clone())
    }

    /// Works on the store as another process does that embeds the library.
    pub fn another_adjourn(&self) -> Adjourn {
        self.embed(self.another())
    }

    fn embed(&self, store: Sqlite) -> Adjourn {
        embed(store, Arc::new(self.clock.clone())).unwrap().acting_as(ann())
    }

    /// Returns the directory of the hosts.
    pub fn hosts(&self) -> Hosts {
        Hosts::beside(self.store.path())
    }

    /// Starts a host that runs scripts.
    pub async fn host(&self) -> Working {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        self.host_with(Arc::new(Scripted::new(clock))).await
    }

    /// Starts a host with other drivers.
    pub async fn host_with(&self, drivers: Arc<dyn Drivers>) -> Working {
        self.host_as(drivers, Config::default()).await
    }

    /// Starts a host that is there for one session only.
    pub async fn host_for(&self, id: SessionId) -> Working {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let config = Config { claims: Claims::Only(id), ..Config::default() };
        self.host_as(Arc::new(Scripted::new(clock)), config).await
    }

    /// Starts a host with other drivers and another configuration.
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

    /// Makes a session from a script.
    pub fn create(&self, script: &str) -> SessionId {
        self.create_with(DriverSpec::script(script))
    }

    /// Makes a session with a driver.
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

    /// Describes a session that is not there yet.
    pub fn founding(&self, driver: DriverSpec) -> Founding {
        founding_by(&self.clock, driver)
    }

    /// Gives a command with what is said, and rings.
    ///
    /// # Errors
    /// It is refused, or the store fails.
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

    /// Gives a prompt, and rings.
    pub fn prompt(&self, id: SessionId, text: &str) {
        let request = prompt(id, text);
        self.store.transact(move |tx| tx.command(request)).wait().unwrap();
        self.hosts().ring();
    }

    /// Asks for a suspension, and rings.
    pub fn suspend(&self, id: SessionId, suspend: Suspend) {
        self.give(id, Command::Suspend(suspend), Vec::new()).unwrap();
    }

    /// Resumes with a text, or without one.
    ///
    /// # Errors
    /// It is refused, or the store fails.
    pub fn resume(&self, id: SessionId, input: Option<&str>) -> Result<Done, CommandError> {
        let said: Vec<_> = input.map(Message::user).into_iter().collect();
        let resume = Resume {
            handle: self.handle(id),
            input: said.first().map(Message::content),
            ..Resume::default()
        };
        self.give(id, Command::Resume(resume), said)
    }

    /// Stores an event, and rings.
    pub fn event(&self, name: &str) {
        self.event_unheard(name);
        self.hosts().ring();
    }

    /// Stores an event with data, and rings.
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
            tenant: TENANT.to_owned(),
            session: None,
            data,
        };
        self.store.transact(move |tx| tx.acknowledge(&event)).wait().unwrap();
    }

    /// Returns a session that is there.
    pub fn session(&self, id: SessionId) -> Arc<Session> {
        self.store.session(id).unwrap().unwrap()
    }

    /// Returns the handle of the suspension that a session shows.
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

    /// Waits, on the real clock, until the session is in a state.
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
            assert!(start.elapsed() < PATIENCE, "never {what}: {session:#?}");
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

    /// Returns what was said in a session.
    pub fn said(&self, id: SessionId) -> Vec<Message> {
        let bytes = self.store.transcript(id, 0, 1000).unwrap();
        bytes.iter().map(|bytes| Message::decode(bytes).unwrap()).collect()
    }
}

/// Makes a prompt.
pub fn prompt(id: SessionId, text: &str) -> Request {
    let said = Message::user(text);
    let (message_id, handle) = (None, None);
    let prompt = Prompt { content: said.content(), message_id, handle, reach: Reach::OwnFace };
    Request::new(id, ann(), Command::Prompt(prompt)).saying(vec![said.encode()])
}
