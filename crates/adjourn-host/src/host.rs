//! The host: claims what is ready, wakes what is due, and gives everything back when it stops.
//!
//! There is no task per parked session. What there is to do is found in the store's indexes, at
//! every ring and at least once a second.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::{Loss, Recover};
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::What;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Session};
use adjourn_store::rows::{HostRow, SessionNo};
use adjourn_store::{CommandError, Error, Request, Store};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::about::About;
use crate::clock::Clock;
use crate::declined::{Again, Declined};
use crate::doorbell::{Hosts, Presence};
use crate::drive::{Drive, Signal};
use crate::driver::Drivers;

/// How many waiting sessions an event, or how many deadlines, are dealt with in one transaction:
/// others' commands wait no longer than that takes.
const BATCH: usize = 256;
/// How often a host looks by itself, for rings that were lost.
const LOOK: Duration = Duration::from_secs(1);
/// How many ready sessions are looked at to find those this host can run.
const CANDIDATES: usize = 256;

/// How a host works.
#[derive(Debug, Clone)]
pub struct Config {
    /// Sessions it drives at once.
    pub max_running: usize,
    /// How long calls in flight may go on when it stops.
    pub drain: Duration,
    /// What it says about itself: a JSON object, as text.
    pub about: String,
}

impl Default for Config {
    fn default() -> Self {
        let drain = adjourn_core::limits::GRACE;
        Self { max_running: 64, drain, about: "{}".to_owned() }
    }
}

/// How the driving of a session ended: with the claim, with the store, or with a panic.
type Driven = Result<Result<(), Error>, JoinError>;

/// A process that drives sessions.
pub struct Host<S> {
    store: S,
    clock: Arc<dyn Clock>,
    drivers: Arc<dyn Drivers>,
    config: Config,
    id: HostId,
    hosts: Hosts,
    presence: Presence,
    tasks: JoinSet<(SessionId, Driven)>,
    running: HashMap<SessionId, watch::Sender<Signal>>,
    /// Sessions this host cannot run; they are left to others.
    declined: HashMap<SessionId, Declined>,
    /// What it has said about itself.
    row: HostRow,
}

impl<S: Store> Host<S> {
    /// Announces a host.
    ///
    /// # Errors
    /// The store or the directory of its hosts cannot be written.
    pub async fn join(
        store: S,
        hosts: Hosts,
        clock: Arc<dyn Clock>,
        drivers: Arc<dyn Drivers>,
        config: Config,
    ) -> Result<Self, Error> {
        let id = HostId::new(clock.uuid());
        let presence = hosts.join(id).map_err(|error| Error::Io {
            what: "cannot announce the host".to_owned(),
            source: Arc::new(error),
        })?;
        let row = HostRow { id, since: clock.now(), about: About::parse(&config.about).to_text() };
        let announced = row.clone();
        store.transact(move |tx| tx.announce(&announced)).await?;
        Ok(Self {
            store,
            clock,
            drivers,
            config,
            id,
            hosts,
            presence,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            declined: HashMap::new(),
            row,
        })
    }

    /// Returns the host's id.
    pub const fn id(&self) -> HostId {
        self.id
    }

    /// Works until `stop`, then gives everything back.
    ///
    /// # Errors
    /// The store fails; other hosts find what this one had.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let mut stop = std::pin::pin!(stop);
        loop {
            self.work().await?;
            let clock = Arc::clone(&self.clock);
            let due = self.store.next_due()?.map(|due| clock.sleep_until(due));
            let due = async {
                match due {
                    Some(due) => due.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut stop => break,
                () = self.presence.rung() => {}
                Some(done) = self.tasks.join_next() => self.done(done).await?,
                () = due => {}
                // Not by the wall clock, which may be set back.
                () = tokio::time::sleep(LOOK) => {}
            }
            self.tell(None);
        }
        self.drain().await
    }

    /// Does everything that the store says is due.
    async fn work(&mut self) -> Result<(), Error> {
        self.recover().await?;
        let mut rings = false;
        loop {
            let by = self.by();
            let (changed, more) = self
                .store
                .transact(move |tx| -> Result<_, CommandError> {
                    let delivered = tx.deliver(&by, BATCH)?;
                    let expired = tx.expire(&by, BATCH)?;
                    let more = delivered.more || expired.len() == BATCH;
                    Ok((!delivered.changed.is_empty() || !expired.is_empty(), more))
                })
                .await
                .map_err(store_error)?;
            rings |= changed;
            if !more {
                break;
            }
        }
        if rings {
            self.hosts.ring();
        }
        self.claim().await
    }

    /// Takes over what dead hosts have left.
    async fn recover(&mut self) -> Result<(), Error> {
        for host in self.store.hosts()? {
            if host.id == self.id || self.hosts.is_alive(host.id).unwrap_or(true) {
                continue;
            }
            let by = self.by();
            loop {
                let by = by.clone();
                let left = self
                    .store
                    .transact(move |tx| -> Result<usize, CommandError> {
                        let owned = tx.owned_by(host.id, BATCH)?;
                        for (_, session) in &owned {
                            let how = Loss::Died;
                            let recover = Recover { host: host.id, epoch: session.epoch, how };
                            let command = Command::Recover(recover);
                            tx.command(Request::new(session.id, by.clone(), command))?;
                        }
                        if owned.is_empty() {
                            tx.forget(host.id)?;
                        }
                        Ok(owned.len())
                    })
                    .await
                    .map_err(store_error)?;
                if left == 0 {
                    break;
                }
            }
            self.hosts.bury(host.id);
        }
        Ok(())
    }

    /// Claims what is ready and can be run here, as far as there is room.
    async fn claim(&mut self) -> Result<(), Error> {
        let mut after = SessionNo(0);
        let mut declined = HashSet::new();
        while self.running.len() < self.config.max_running {
            let ready = self.store.transact(move |tx| tx.ready(after, CANDIDATES)).await?;
            let Some((last, _)) = ready.last() else {
                // All were looked at: whoever is not among them has moved on.
                self.declined.retain(|id, _| declined.contains(id));
                break;
            };
            after = *last;
            for (_, session) in ready {
                if self.running.len() == self.config.max_running {
                    break;
                }
                let now = self.clock.now();
                let known = self.declined.get(&session.id);
                if !known.is_some_and(|known| known.holds(&session, now)) {
                    self.claim_one(&session).await?;
                }
                if self.declined.contains_key(&session.id) {
                    declined.insert(session.id);
                }
            }
        }
        self.say_what_is_declined().await
    }

    /// Tells others what this host cannot run, if that has changed.
    async fn say_what_is_declined(&mut self) -> Result<(), Error> {
        let declined = self.declined.iter().map(|(id, declined)| (*id, declined.why.as_str()));
        let about = About::parse(&self.config.about).declining(declined).to_text();
        if self.row.about == about {
            return Ok(());
        }
        self.row.about = about;
        let row = self.row.clone();
        self.store.transact(move |tx| tx.announce(&row)).await?;
        self.hosts.ring();
        Ok(())
    }

    async fn claim_one(&mut self, session: &Session) -> Result<(), Error> {
        let id = session.id;
        if let Some(why) = self.drivers.lacks(session) {
            self.declined.insert(id, Declined::new(why, session, Again::Soon));
            return Ok(());
        }
        let Some(spec) = self.spec(id)? else { return Ok(()) };
        let driver = match self.drivers.make(&spec) {
            Ok(driver) => {
                self.declined.remove(&id);
                driver
            }
            Err(why) => {
                let again = Again::After(self.clock.now());
                self.declined.insert(id, Declined::new(why, session, again));
                return Ok(());
            }
        };
        let request = Request::new(id, self.by(), Command::Claim);
        let session = match self.store.transact(move |tx| tx.command(request)).await {
            Ok(done) => done.session,
            // Another host was faster, or a gate is shut.
            Err(CommandError::Rejected(_) | CommandError::NotFound(_)) => return Ok(()),
            Err(CommandError::Store(error)) => return Err(error),
        };
        let (sender, signal) = watch::channel(Signal::default());
        let hosts = self.hosts.clone();
        let drive = Drive {
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            host: self.id,
            session,
            signal,
            ring: Arc::new(move || {
                hosts.ring();
            }),
        };
        self.running.insert(id, sender);
        // In a task of its own, so that a panic in it is known by the session's name.
        let driving = tokio::spawn(drive.run(driver));
        self.tasks.spawn(async move { (id, Aborts(driving).await) });
        Ok(())
    }

    /// Reads what a session was created with.
    fn spec(&self, id: SessionId) -> Result<Option<DriverSpec>, Error> {
        Ok(self.store.founding(id)?.and_then(|entry| match entry.event.what {
            What::SessionCreated(created) => Some(created.driver),
            _ => None,
        }))
    }

    /// Takes note that a task has ended.
    async fn done(&mut self, done: Result<(SessionId, Driven), JoinError>) -> Result<(), Error> {
        // The outer task does nothing that could panic, and nobody aborts it.
        let Ok((id, driven)) = done else { return Ok(()) };
        self.running.remove(&id);
        match driven {
            Ok(result) => result,
            Err(_) => self.panicked(id).await,
        }
    }

    /// A driver panicked: its session is given back as if the host had died, and left to others.
    async fn panicked(&mut self, id: SessionId) -> Result<(), Error> {
        let Some(session) = self.store.session(id)? else { return Ok(()) };
        let why = "its driver panicked".to_owned();
        self.declined.insert(id, Declined::new(why, &session, Again::Never));
        let Some(owner) = session.owner().filter(|owner| owner.host == self.id) else {
            return Ok(());
        };
        let recover = Recover { host: self.id, epoch: owner.epoch, how: Loss::Died };
        let request = Request::new(id, self.by(), Command::Recover(recover));
        match self.store.transact(move |tx| tx.command(request)).await {
            Ok(_) | Err(CommandError::Rejected(_) | CommandError::NotFound(_)) => Ok(()),
            Err(CommandError::Store(error)) => Err(error),
        }
    }

    /// Tells every task that its session may have changed.
    fn tell(&mut self, drain_by: Option<Timestamp>) {
        for signal in self.running.values() {
            signal.send_modify(|signal| {
                signal.changes += 1;
                signal.drain_by = drain_by.or(signal.drain_by);
            });
        }
    }

    /// Gives everything back, and goes.
    async fn drain(mut self) -> Result<(), Error> {
        let by = self.clock.now().after(self.config.drain);
        self.tell(Some(by));
        while let Some(done) = self.tasks.join_next().await {
            self.done(done).await?;
        }
        let id = self.id;
        self.store.transact(move |tx| tx.forget(id)).await?;
        self.hosts.ring();
        Ok(())
    }

    fn by(&self) -> Actor {
        Actor::new(Face::Host, "").on(self.id)
    }
}

/// A task that ends with whoever waits for it, as the calls of a killed host do.
struct Aborts(JoinHandle<Result<(), Error>>);

impl Future for Aborts {
    type Output = Driven;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Driven> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl Drop for Aborts {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn store_error(error: CommandError) -> Error {
    match error {
        CommandError::Store(error) => error,
        CommandError::Rejected(refused) => Error::Damaged(refused.to_string()),
        CommandError::NotFound(id) => Error::Damaged(format!("there is no session {id}")),
    }
}
