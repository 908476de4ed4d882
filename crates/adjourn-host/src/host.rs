//! The host: claims what is ready, wakes what is due, and gives everything back when it stops.
//!
//! There is no task per parked session. What there is to do is found in the store's indexes, at
//! every ring and at least once a second.

mod claims;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::{Loss, Recover};
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Session};
use adjourn_store::rows::HostRow;
use adjourn_store::{CommandError, Done, Error, Request, Store};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::about::About;
use crate::clock::Clock;
use crate::config::{Claims, Config};
use crate::declined::{Again, Declined};
use crate::doorbell::{Hosts, Presence};
use crate::drive::{Drive, Signal};
use crate::driver::{Driver, Drivers};

/// How many waiting sessions an event, or how many deadlines, are dealt with in one transaction:
/// others' commands wait no longer than that takes.
const BATCH: usize = 256;
/// How often a host looks by itself, for rings that were lost.
const LOOK: Duration = Duration::from_secs(1);
/// How often a host clears away what dead watchers have left beside the store.
const SWEEP: Duration = Duration::from_secs(10);
/// How long a command rests that found no room in the store, before it is tried again.
const NO_ROOM: Duration = Duration::from_millis(250);

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
    /// When to look next whether others know of it.
    be_known_at: Instant,
    /// When to clear away next.
    sweep_at: Timestamp,
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
        let presence = hosts.join(id).map_err(|error| unannounced(&hosts, error))?;
        let about = about(&config).to_text();
        let row = HostRow { id, since: clock.now(), about };
        let host = Self {
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
            be_known_at: Instant::now(),
            sweep_at: Timestamp::from_millis(0),
        };
        host.announce().await?;
        Ok(host)
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
            let worked = match self.work().await {
                Ok(()) => true,
                Err(error) if passes(&error) => false,
                Err(error) => return Err(error),
            };
            let clock = Arc::clone(&self.clock);
            // What could not be done now is still due: it is tried again when the host looks.
            let due = self.store.next_due()?.filter(|_| worked);
            let due = due.map(|due| clock.sleep_until(due));
            let due = async {
                match due {
                    Some(due) => due.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut stop => break,
                () = self.presence.rung() => {}
                Some(done) = self.tasks.join_next() => {
                    self.done(done).await?;
                    // What one session has come to changes no other.
                    continue;
                }
                () = due => {}
                // Not by the wall clock, which may be set back.
                () = tokio::time::sleep(LOOK) => {}
            }
            self.tell(None);
        }
        self.drain().await
    }

    /// Does everything that the store says is due.
    ///
    /// The write lock is taken only where a read has found something: every host is rung by every
    /// commit of the others.
    async fn work(&mut self) -> Result<(), Error> {
        self.be_known().await?;
        self.recover().await?;
        let mut rings = false;
        while self.anything_due()? {
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
            self.tell(None);
            self.hosts.ring_others(self.id);
        }
        self.claim().await
    }

    /// Returns whether an event or a deadline waits for somebody to deal with it.
    fn anything_due(&self) -> Result<bool, Error> {
        let now = self.clock.now();
        Ok(self.store.undelivered()? || self.store.next_due()?.is_some_and(|due| due <= now))
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
        let now = self.clock.now();
        // A time that is too far off is one of before the clock was set back.
        if self.sweep_at <= now || self.sweep_at > now.after(SWEEP) {
            self.sweep_at = now.after(SWEEP);
            self.hosts.sweep();
        }
        Ok(())
    }

    /// Sees to it that others know this host to be alive, whoever has cleared its files away.
    ///
    /// What it had may be others' by then, and is refused to it; what it claims from now on is its
    /// own.
    async fn be_known(&mut self) -> Result<(), Error> {
        // Not by the wall clock, which may be set back.
        if Instant::now() < self.be_known_at {
            return Ok(());
        }
        self.be_known_at = Instant::now() + LOOK;
        if self.presence.renew().map_err(|error| unannounced(&self.hosts, error))? {
            self.announce().await?;
        }
        Ok(())
    }

    /// Tells others what this host says about itself.
    async fn announce(&self) -> Result<(), Error> {
        let row = self.row.clone();
        self.store.transact(move |tx| tx.announce(&row)).await?;
        self.hosts.ring();
        Ok(())
    }

    /// Drives a session under the claim it was just given.
    fn drive(&mut self, session: Arc<Session>, driver: Box<dyn Driver>) {
        let id = session.id;
        let (sender, signal) = watch::channel(Signal::default());
        let (hosts, own) = (self.hosts.clone(), self.id);
        let drive = Drive {
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            host: self.id,
            epoch: session.epoch,
            session,
            signal,
            // What it leaves to do here shows when its task ends.
            ring: Arc::new(move || {
                hosts.ring_others(own);
            }),
        };
        self.running.insert(id, sender);
        // In a task of its own, so that a panic in it is known by the session's name.
        let driving = tokio::spawn(drive.run(driver));
        self.tasks.spawn(async move { (id, Aborts(driving).await) });
    }

    /// Takes note that a task has ended.
    async fn done(&mut self, done: Result<(SessionId, Driven), JoinError>) -> Result<(), Error> {
        // The outer task does nothing that could panic, and nobody aborts it.
        let Ok((id, driven)) = done else { return Ok(()) };
        self.running.remove(&id);
        match driven {
            // It stays where it is, for whoever mends the store; the others go on.
            Ok(Err(error)) if error.is_of_a_session() => {
                self.decline(id, Declined::unreadable(&error));
                Ok(())
            }
            Ok(result) => result,
            Err(_) => self.panicked(id).await,
        }
    }

    /// A driver panicked: its session is given back as if the host had died, and left to others.
    async fn panicked(&mut self, id: SessionId) -> Result<(), Error> {
        let Some(session) = self.store.session(id)? else { return Ok(()) };
        let why = "its driver panicked".to_owned();
        self.decline(id, Declined::new(why, &session, Again::Never));
        let Some(owner) = session.owner().filter(|owner| owner.host == self.id) else {
            return Ok(());
        };
        let recover = Recover { host: self.id, epoch: owner.epoch, how: Loss::Died };
        let request = Request::new(id, self.by(), Command::Recover(recover));
        match patiently(&self.store, &request).await {
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
        while !self.tasks.is_empty() {
            tokio::select! {
                Some(done) = self.tasks.join_next() => self.done(done).await?,
                // What goes on until its calls return can still be suspended and canceled.
                () = self.presence.rung() => self.tell(None),
                () = tokio::time::sleep(LOOK) => self.tell(None),
            }
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

/// Returns what a host says about itself before it has looked at any session.
fn about(config: &Config) -> About {
    let about = About::parse(&config.about);
    match config.claims {
        Claims::All => about.at_most(config.max_running),
        Claims::Only(id) => about.only(id),
    }
}

/// Returns whether nothing has happened, and it can be tried again: somebody else kept the write
/// lock, or the disk is full.
const fn passes(error: &Error) -> bool {
    matches!(error, Error::Locked { .. } | Error::Full(_))
}

/// Gives a command, however long somebody else keeps the write lock (a process that was stopped in
/// the middle of a commit, say), and however long the disk is full. Nothing has happened until then.
pub(crate) async fn patiently<S: Store>(
    store: &S,
    request: &Request,
) -> Result<Done, CommandError> {
    loop {
        let request = request.clone();
        match store.transact(move |tx| tx.command(request)).await {
            Err(CommandError::Store(Error::Full(_))) => tokio::time::sleep(NO_ROOM).await,
            Err(CommandError::Store(error)) if passes(&error) => {}
            answer => return answer,
        }
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

fn unannounced(hosts: &Hosts, error: std::io::Error) -> Error {
    let what = format!("cannot announce the host in {}", hosts.directory().display());
    Error::Io { what, source: Arc::new(error) }
}

fn store_error(error: CommandError) -> Error {
    match error {
        CommandError::Store(error) => error,
        CommandError::Rejected(refused) => Error::Damaged(refused.to_string()),
        CommandError::NotFound(id) => Error::Damaged(format!("there is no session {id}")),
    }
}
