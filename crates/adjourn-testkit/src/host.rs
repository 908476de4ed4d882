//! A store in a directory that goes away, hosts that come and go, and a clock that is moved by hand.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use adjourn::clock::Clock;
use adjourn::doorbell::Hosts;
use adjourn::script::Scripted;
use adjourn::{Adjourn, Claimant, Claims, Config, Event, RunningHost, Woken};
use adjourn_core::carry::Budget;
use adjourn_core::command::{Prompt, Reach, Suspend};
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

use crate::store::{self, TENANT, founding_by};
use crate::{PATIENCE, VirtualClock};

pub use crate::store::ann;

/// Works on a store as a program does that embeds the library.
///
/// # Errors
/// The directory of its hosts cannot be used.
pub fn embed(store: Sqlite, clock: Arc<dyn Clock>) -> Result<Adjourn, adjourn::Error> {
    let hosts = Hosts::beside(store.path());
    let adjourn = Adjourn::on(store, hosts, clock)?.in_tenant(TENANT);
    adjourn.keep_secrets_with(store::keys());
    Ok(adjourn)
}

/// Where events of tests come from.
const SOURCE: &str = "test";

/// Waits for a verb on this thread, which may have a runtime or none.
pub fn wait<T>(verb: impl IntoFuture<Output = T>) -> T {
    let mut verb = pin!(verb.into_future());
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match verb.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Wakes a thread that waits.
struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A store, and the hosts that work on it.
pub struct Fixture {
    directory: store::Fixture,
    /// The clock of the store and of all hosts.
    pub clock: VirtualClock,
    /// The store, as this process has it open.
    pub store: Sqlite,
    /// The program whose verbs the fixture's are.
    program: Adjourn,
}

/// A program with a host that works until it is told to stop, or is dropped like a process that dies.
pub struct Working {
    /// Which one it is.
    pub id: HostId,
    /// The program: what its verbs make ready, its host claims with the same commit.
    pub adjourn: Adjourn,
    /// How a face of its process claims.
    pub claimant: Claimant<Sqlite>,
    host: RunningHost,
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
    pub async fn try_to_stop(self) -> Result<(), adjourn::Error> {
        self.host.stop().await
    }

    /// Waits until it ends by itself, and returns why.
    pub async fn ended(mut self) -> adjourn::Error {
        self.host.ended().await
    }

    /// Ends it as a kill would: nothing is given back, its lock is gone.
    pub async fn kill(self) {
        self.host.kill().await;
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
        let program = embed(store.clone(), Arc::new(clock.clone())).unwrap().acting_as(ann());
        Self { directory, clock, store, program }
    }

    /// Opens the same store once more, as another process would.
    pub fn another(&self) -> Sqlite {
        self.directory.open()
    }

    /// Opens the same store once more, in another way than usual.
    pub fn another_with(&self, change: impl Fn(&mut Options)) -> Sqlite {
        let mut options = self.directory.options();
        change(&mut options);
        Sqlite::open(options).unwrap()
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
        self.host_on(self.store.clone(), drivers, config).await
    }

    /// Starts a host that has the store open in its own way, as one of another process has.
    pub async fn host_on(
        &self,
        store: Sqlite,
        drivers: Arc<dyn Drivers>,
        config: Config,
    ) -> Working {
        let adjourn = self.embed(store);
        let host = adjourn.host().others(drivers).config(config).start().await.unwrap();
        Working { id: host.id(), claimant: host.claimant().clone(), adjourn, host }
    }

    /// Rings all hosts, as a process does that has committed something for them: they look.
    pub fn ring_hosts(&self) {
        self.hosts().ring();
    }

    /// Makes a session from a script.
    pub fn create(&self, script: &str) -> SessionId {
        self.create_with(DriverSpec::script(script))
    }

    /// Makes a session with a driver.
    pub fn create_with(&self, driver: DriverSpec) -> SessionId {
        wait(self.program.create_from(self.founding(driver))).unwrap().id()
    }

    /// Makes a session that may not use more than so much.
    pub fn create_within(&self, budget: Budget, script: &str) -> SessionId {
        let founding = Founding { budget, ..self.founding(DriverSpec::script(script)) };
        wait(self.program.create_from(founding)).unwrap().id()
    }

    /// Makes many sessions, in one commit.
    pub fn create_many(&self, count: usize, script: &str) -> Vec<SessionId> {
        let founding = |_| self.founding(DriverSpec::script(script));
        let all: Vec<_> = (0..count).map(founding).collect();
        let create = move |tx: &mut Transaction<'_>| -> Result<Vec<_>, CommandError> {
            all.into_iter().map(|founding| Ok(tx.create(ann(), founding)?.session.id)).collect()
        };
        wait(self.program.transact(create)).unwrap()
    }

    /// Describes a session that is not there yet.
    pub fn founding(&self, driver: DriverSpec) -> Founding {
        founding_by(&self.clock, driver)
    }

    /// Gives any command with what is said.
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
        wait(self.program.transact(move |tx| tx.command(request)))
    }

    /// Gives a prompt.
    pub fn prompt(&self, id: SessionId, text: &str) {
        wait(self.program.session(id).prompt(text).reach(Reach::OwnFace)).unwrap();
    }

    /// Asks for a suspension.
    pub fn suspend(&self, id: SessionId, suspend: Suspend) {
        wait(self.program.session(id).suspend_as(suspend).accepted()).unwrap();
    }

    /// Resumes with a text, or without one.
    ///
    /// # Errors
    /// It is refused, or the store fails.
    pub fn resume(&self, id: SessionId, input: Option<&str>) -> Result<Woken, adjourn::Error> {
        let mut resume = self.program.session(id).resume().handle(self.handle(id));
        if let Some(input) = input {
            resume = resume.input(input);
        }
        wait(resume)
    }

    /// Publishes an event.
    pub fn event(&self, name: &str) {
        wait(self.program.publish(Event::new(name).source(SOURCE))).unwrap();
    }

    /// Publishes an event with data.
    pub fn event_with(&self, name: &str, data: &str) {
        let event = Event::new(name).source(SOURCE).data_json(data.to_owned());
        wait(self.program.publish(event)).unwrap();
    }

    /// Stores an event, and the ring is lost: beneath the library, which rings.
    pub fn event_unheard(&self, name: &str) {
        let event = NewEvent {
            id: self.clock.uuid().to_string(),
            source: SOURCE.to_owned(),
            name: name.to_owned(),
            subject: None,
            time: self.clock.now(),
            tenant: TENANT.to_owned(),
            session: None,
            data: None,
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
