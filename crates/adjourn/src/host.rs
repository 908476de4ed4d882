//! The host: claims what is ready, wakes what is due, and gives everything back when it stops.
//!
//! There is no task per parked session. What there is to do is found in the store's indexes, at
//! every ring and at least once a second.

mod announcement;
mod claims;
mod recovery;
mod upkeep;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn_core::actor::Actor;
use adjourn_core::id::{Epoch, HostId, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_driver::Drivers;
use adjourn_store::rows::HostRow;
use adjourn_store::{CommandError, Done, Error, Request, Store, Transaction};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};

use crate::about::About;
use crate::claimant::{Claimant, Driven, Driving};
use crate::clock::Clock;
use crate::config::{Claims, Config};
use crate::declined::{Again, Declined};
use crate::doorbell::{Hosts, Presence};
use crate::drive::Signal;
use crate::feed::{Feed, Work};
use crate::process::Process;
use crate::ring::Ring;
use crate::trace::{self, Ids};
use announcement::{Announcing, unannounced};
use claims::Left;
use upkeep::Upkeep;

/// How many waiting sessions an event, or how many deadlines, are dealt with in one transaction:
/// others' commands wait no longer than that takes.
const BATCH: usize = 256;
/// How often a host looks by itself, for rings that were lost.
const LOOK: Duration = Duration::from_secs(1);
/// How often a host gives a sign of life.
const SIGN: Duration = Duration::from_secs(5);
/// How long a command rests that found no room in the store, before it is tried again.
const NO_ROOM: Duration = Duration::from_millis(250);

/// One claim of one session.
type Claim = (SessionId, Epoch);

/// A process that drives sessions.
pub struct Host<S> {
    store: S,
    clock: Arc<dyn Clock>,
    config: Config,
    id: HostId,
    hosts: Hosts,
    presence: Presence,
    /// What is committed, by this process and others.
    feed: Feed<S>,
    /// Wakes it when there may be something to do.
    work: Work,
    /// How it claims, as the faces of its process do.
    claimant: Claimant<S>,
    /// What these faces have claimed for it.
    handed_over: mpsc::Receiver<Driving>,
    tasks: JoinSet<(Claim, Driven)>,
    running: HashMap<Claim, watch::Sender<Signal>>,
    /// Sessions this host cannot run; they are left to others.
    declined: HashMap<SessionId, Declined>,
    /// The other hosts, as far as they are alive.
    others: Vec<HostId>,
    /// Sessions that are left to the host whose client sees them, or which keeps their drivers, for
    /// a moment.
    left: HashMap<SessionId, Left>,
    /// Whether a task has ended and left its session to this host.
    undriven: bool,
    /// Whether there was something to claim that a slot was missing for.
    starved: bool,
    /// When to look next whether others know of it.
    be_known_at: Instant,
    /// When to give the next sign of life.
    sign_at: Instant,
    /// When to clear away next.
    sweep_at: Timestamp,
    upkeep: Upkeep,
}

impl<S: Store> Host<S> {
    /// Announces a host.
    ///
    /// # Errors
    /// The store or the directory of its hosts cannot be written.
    #[cfg(feature = "testing")]
    pub async fn join(
        store: S,
        hosts: Hosts,
        clock: Arc<dyn Clock>,
        drivers: Arc<dyn Drivers>,
        config: Config,
    ) -> Result<Self, Error> {
        Self::join_process(Process::new(store, hosts, clock)?, drivers, config).await
    }

    /// Announces a host in a process that may have others, and watchers of its own.
    ///
    /// # Errors
    /// The store or the directory of its hosts cannot be written.
    pub(crate) async fn join_process(
        process: Process<S>,
        drivers: Arc<dyn Drivers>,
        config: Config,
    ) -> Result<Self, Error> {
        let id = HostId::new(process.clock.uuid());
        let presence =
            process.hosts.join(id).map_err(|error| unannounced(&process.hosts, error))?;
        let about = about(&config).to_text();
        let row = HostRow { id, since: process.clock.now(), about };
        let work = process.feed.wake(id);
        let (claimant, handed_over) = Claimant::new(process.clone(), drivers, &config, row);
        let Process { store, hosts, clock, feed, live: _, values: _ } = process;
        let host = Self {
            store,
            clock,
            config,
            id,
            hosts,
            presence,
            feed,
            work,
            claimant,
            handed_over,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            declined: HashMap::new(),
            others: Vec::new(),
            left: HashMap::new(),
            undriven: false,
            starved: false,
            be_known_at: Instant::now(),
            sign_at: Instant::now(),
            sweep_at: Timestamp::from_millis(0),
            upkeep: Upkeep::new(),
        };
        let host = Announcing::new(host).announced().await?;
        tracing::debug!(host = %host.id, "host started");
        Ok(host)
    }

    /// Returns the host's id.
    pub const fn id(&self) -> HostId {
        self.id
    }

    /// Returns the way to give commands in this process, so that this host runs what they make
    /// ready.
    pub fn claimant(&self) -> Claimant<S> {
        self.claimant.clone()
    }

    /// Works until `stop`, then gives everything back.
    ///
    /// # Errors
    /// The store fails; other hosts find what this one had.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let mut stop = std::pin::pin!(stop);
        let mut worked = true;
        let mut look = true;
        let mut due = None;
        loop {
            if look {
                worked = match self.work().await {
                    Ok(()) => {
                        self.goes_on();
                        true
                    }
                    Err(error) if error.passes() => {
                        self.hindered(error);
                        false
                    }
                    Err(error) => return Err(error),
                };
                // Whatever deadline is committed meanwhile wakes the host again.
                self.work.plan(None);
                // What could not be done now is still due: it is tried again when the host looks.
                due = self.store.next_due()?.filter(|_| worked);
                self.work.plan(due);
            }
            look = true;
            let clock = Arc::clone(&self.clock);
            let due = due.map(|due| clock.sleep_until(due));
            let rest = if worked { LOOK.min(self.upkeep.rest()) } else { LOOK };
            let due = async {
                match due {
                    Some(due) => due.await,
                    None => std::future::pending().await,
                }
            };
            let waited = self.waited_for_others();
            tokio::select! {
                () = &mut stop => break,
                ring = self.presence.rung() => {
                    self.hear(&ring)?;
                    // If there is something to do, the feed says so.
                    look = false;
                }
                () = self.work.left() => {}
                Some(done) = self.tasks.join_next() => {
                    self.done(done)?;
                    // What one session has come to changes no other, but for the slot.
                    look = self.starved || self.undriven;
                }
                Some(driving) = self.handed_over.recv() => {
                    self.supervise(driving);
                    // A claim leaves nothing else to do.
                    look = false;
                }
                () = due => {}
                () = until(waited) => {}
                // Not by the wall clock, which may be set back.
                () = tokio::time::sleep(rest) => {}
            }
        }
        self.drain().await
    }

    /// Takes note that the store takes nothing now; the log has it once.
    fn hindered(&self, error: Error) {
        let mut known = self.claimant.hindrance();
        if known.is_none() {
            let hint = error.hint().unwrap_or("it is tried again");
            tracing::warn!(host = %self.id, hint, "the host cannot work now: {error}");
        }
        *known = Some(error);
    }

    /// Takes note that nothing keeps the host from its work.
    fn goes_on(&self) {
        if self.claimant.hindrance().take().is_some() {
            tracing::info!(host = %self.id, "the host works again");
        }
    }

    /// Brings what another process has rung for to those who follow it.
    fn hear(&self, ring: &Ring) -> Result<(), Error> {
        match self.feed.heard(ring) {
            // It is found when the host looks by itself.
            Err(error) if error.passes() => Ok(()),
            heard => heard,
        }
    }

    /// Does everything that the store says is due.
    ///
    /// The write lock is taken only where a read has found something: every host is rung by every
    /// commit of the others.
    async fn work(&mut self) -> Result<(), Error> {
        self.feed.catch_up()?;
        self.be_known().await?;
        self.recover().await?;
        if self.undriven {
            self.give_back_undriven().await?;
        }
        self.claimant.end_stale_drivers();
        self.mend().await?;
        while self.anything_due()? {
            let by = self.by();
            let more = self
                .store
                .transact(move |tx| -> Result<_, CommandError> {
                    let delivered = tx.deliver(&by, BATCH)?;
                    let expired = tx.expire(&by, BATCH)?;
                    Ok(delivered.more || expired.len() == BATCH)
                })
                .await
                .map_err(store_error)?;
            if !more {
                break;
            }
        }
        self.claim().await?;
        self.feed.ring();
        self.follow().await?;
        self.retain().await
    }

    /// Returns whether an event or a deadline waits to be dealt with.
    fn anything_due(&self) -> Result<bool, Error> {
        let now = self.clock.now();
        Ok(self.store.undelivered()? || self.store.next_due()?.is_some_and(|due| due <= now))
    }

    /// Tells a session that is driven of changes from now on, and waits for its end.
    fn supervise(&mut self, driving: Driving) {
        let Driving { id, epoch, signal, task } = driving;
        self.running.insert((id, epoch), signal);
        self.tasks.spawn(async move { ((id, epoch), task.await) });
    }

    /// Takes note that a task has ended.
    fn done(&mut self, done: Result<(Claim, Driven), JoinError>) -> Result<(), Error> {
        // The outer task does nothing that could panic, and is never aborted.
        let Ok((claim @ (id, _), driven)) = done else { return Ok(()) };
        self.running.remove(&claim);
        match driven {
            // It is left to hosts that can read it; the other sessions go on.
            Ok(Err(error)) if error.is_of_a_session() => {
                let (ids, declined) = match self.store.session(id) {
                    // Its journal can be read; what was said in it cannot, and would not be if this
                    // host claimed it again.
                    Ok(Some(session)) => {
                        let why = error.to_string();
                        (Ids::of(&session, self.id), Declined::new(why, &session, Again::Never))
                    }
                    Ok(None) | Err(_) => (Ids::unread(id, self.id), Declined::unreadable(&error)),
                };
                self.decline(&ids, declined);
                self.undriven = true;
                Ok(())
            }
            Ok(Err(error)) if error.passes() => {
                let session = self.store.session(id).ok().flatten();
                let unread = || Ids::unread(id, self.id);
                let ids = session.map_or_else(unread, |session| Ids::of(&session, self.id));
                let left = format!("{error}; session {id} is not given back before the host ends");
                trace::came_across(&ids, &format!("{left}, and the next host takes it over"));
                Err(error)
            }
            Ok(result) => result,
            Err(_) => self.panicked(id),
        }
    }

    /// A driver panicked: its session is given back as if the host had died, and left to others.
    fn panicked(&mut self, id: SessionId) -> Result<(), Error> {
        self.undriven = true;
        match self.store.session(id) {
            Ok(Some(session)) => {
                let why = "its driver panicked".to_owned();
                let ids = Ids::of(&session, self.id);
                self.decline(&ids, Declined::new(why, &session, Again::Never));
            }
            Ok(None) => {}
            Err(error) if error.is_of_a_session() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Tells every task that the host stops, and by when.
    fn tell_to_drain(&self, by: Duration) {
        for signal in self.running.values() {
            signal.send_modify(|signal| signal.drain_by = Some(by));
        }
    }

    /// Gives everything back, and goes.
    async fn drain(mut self) -> Result<(), Error> {
        self.claimant.slots().close();
        // First of all: before other hosts drive these sessions they wait for it.
        self.claimant.end_kept_drivers();
        self.claimant.shown().close();
        self.handed_over.close();
        let by = self.clock.elapsed().saturating_add(self.config.drain);
        let (host, running) = (self.id, self.running.len());
        tracing::info!(%host, running, "host stops: it gives its sessions back");
        self.tell_to_drain(by);
        // Faces may be in the middle of a claim.
        let mut claiming = true;
        while claiming || !self.tasks.is_empty() {
            self.give_sign();
            tokio::select! {
                Some(done) = self.tasks.join_next() => self.done(done)?,
                driving = self.handed_over.recv(), if claiming => match driving {
                    Some(driving) => {
                        self.supervise(driving);
                        self.tell_to_drain(by);
                    }
                    None => claiming = false,
                },
                // What goes on until its calls return can still be suspended and canceled.
                ring = self.presence.rung() => self.hear(&ring)?,
                () = tokio::time::sleep(LOOK) => {
                    self.store.still_there()?;
                    self.hear(&Ring::anything())?;
                }
            }
        }
        self.claimant.kept_drivers_ended().await;
        // Without its row, other hosts would not find what it still owned.
        self.give_back_undriven().await?;
        self.take_from(self.id).await?;
        self.hosts.ring();
        tracing::info!(%host, "host stopped: everything is given back");
        Ok(())
    }

    fn by(&self) -> Actor {
        self.claimant.by()
    }
}

/// Returns what a host says about itself before it has looked at any session.
fn about(config: &Config) -> About {
    let about = About::parse(&config.about).signing_every(SIGN);
    match config.claims {
        Claims::All => about.at_most(config.max_running),
        Claims::Only(id) => about.only(id),
    }
}

/// Gives a command, and another one with it where there is one, however long another process keeps
/// the write lock (one that was stopped in the middle of a commit, say), and however long the disk
/// is full, of which the caller is told once. Nothing has happened until then, nor if it `is_late`
/// meanwhile and the command is given up.
pub(crate) async fn patiently<S: Store>(
    store: &S,
    first: &Request,
    then: Option<&Request>,
    is_late: impl Fn() -> bool,
    held_up: impl Fn(),
) -> Result<Done, CommandError> {
    let mut is_held_up = false;
    loop {
        let (first, then) = (first.clone(), then.cloned());
        let commit = move |tx: &mut Transaction<'_>| {
            let done = tx.command(first)?;
            then.map_or(Ok(done), |then| tx.command(then))
        };
        match store.transact(commit).await {
            Err(CommandError::Store(error)) if error.passes() && !is_late() => {
                if let Error::Full(_) = error {
                    if !std::mem::replace(&mut is_held_up, true) {
                        held_up();
                    }
                    tokio::time::sleep(NO_ROOM).await;
                }
            }
            answer => return answer,
        }
    }
}

/// Waits until a time; for ever if there is none.
async fn until(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn store_error(error: CommandError) -> Error {
    match error {
        CommandError::Store(error) => error,
        CommandError::Rejected(refused) => Error::Damaged(refused.to_string()),
        CommandError::NotFound(id) => Error::Damaged(format!("there is no session {id}")),
    }
}
