//! Claims: how a session that is ready comes to be driven in this process.
//!
//! The host claims what it finds ready. A face of the same process gives commands through a
//! [`Claimant`], so that what a prompt or a resume makes ready is claimed in the same commit: who
//! takes the prompt runs it. Both reserve a slot, make the driver, and claim in one transaction
//! with whatever made the session ready; a process that dies after that commit is an ordinary
//! host's death.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::{Resume, Take};
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::What;
use adjourn_core::id::{Epoch, HostId, SessionId};
use adjourn_core::session::{Prior, State};
use adjourn_core::{Command, Rejected, Session};
use adjourn_driver::told::{digests, told_first};
use adjourn_driver::{Client, Driver, Drivers, Environment, Message};
use adjourn_store::rows::HostRow;
use adjourn_store::{CommandError, Done, Error, Request, Store, Transaction};
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tracing::Instrument as _;

use crate::clock::Clock;
use crate::config::{Claims, Config};
use crate::declined::Again;
use crate::drive::{Drive, Signal};
use crate::ending::{caught, end};
use crate::failures::Failures;
use crate::feed::{Feed, Place};
use crate::live::Live;
use crate::process::Process;
use crate::shown::{Showing, Shown};
use crate::slots::{Slot, Slots};
use crate::values::Values;
use crate::warm::Warm;

/// How many sessions it is remembered of what they were created with.
const SPECS: usize = 256;

/// How the driving of a session ended: with the claim, with the store, or with a panic.
pub(crate) type Driven = Result<Result<(), Error>, JoinError>;

/// A way to give commands in a process that has a host: what a prompt or a resume makes ready is
/// claimed in the same commit, and driven by that host.
///
/// It is cheap to clone, and of use as long as its host: when that stops, commands are given as
/// before, and other hosts claim what they make ready.
pub struct Claimant<S = adjourn_store::Sqlite>(Arc<Inner<S>>);

impl<S> Clone for Claimant<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<S> {
    store: S,
    clock: Arc<dyn Clock>,
    drivers: Arc<dyn Drivers>,
    claims: Claims,
    slots: Arc<Slots>,
    /// What the host has said about itself.
    row: Mutex<HostRow>,
    shown: Shown,
    feed: Feed<S>,
    /// What sessions were created with, which never changes.
    specs: Mutex<HashMap<SessionId, Arc<DriverSpec>>>,
    /// Where the host gets to know what faces have claimed for it. A sender holds a slot, so
    /// there is room for as many as there are slots.
    handed_over: mpsc::Sender<Driving>,
    live: Live,
    values: Values,
    failures: Arc<Failures>,
    warm: Warm,
    /// What kept the host from its work when it last tried.
    hindrance: Mutex<Option<Error>>,
    /// Kept drivers that are being ended.
    ending: Mutex<JoinSet<()>>,
    /// Each session that is driven holds a receiver of it until nothing of its task is left.
    driven: watch::Sender<()>,
}

/// A session that is being driven: the host tells it of changes, and waits for its end.
pub(crate) struct Driving {
    pub(crate) id: SessionId,
    pub(crate) epoch: Epoch,
    pub(crate) signal: watch::Sender<Signal>,
    pub(crate) task: Aborts,
}

/// A task that is aborted when its owner is dropped, as the calls of a killed host are.
pub(crate) struct Aborts(JoinHandle<Result<(), Error>>);

/// All that it takes to drive a session, but for the claim.
pub(crate) struct Prepared {
    pub(crate) id: SessionId,
    pub(crate) slot: Slot,
    pub(crate) equipment: Equipment,
    signal: (watch::Sender<Signal>, watch::Receiver<Signal>),
    /// Held while the session is driven: its task is told what happens from before the claim on.
    told: Place,
}

/// The driver of a session, and what it is given that is not durable.
pub(crate) struct Equipment {
    driver: Box<dyn Driver>,
    client: Arc<dyn Client>,
    environment: Environment,
}

/// The driver of a session, or why the host cannot run it, and when it tries again.
type Made = Result<Equipment, (String, Again)>;

impl<S: Store> Claimant<S> {
    /// Makes the claimant of a host that is joining, and the end at which the host gets to know
    /// what faces have claimed for it.
    pub(crate) fn new(
        process: Process<S>,
        drivers: Arc<dyn Drivers>,
        config: &Config,
        row: HostRow,
    ) -> (Self, mpsc::Receiver<Driving>) {
        let Process { store, hosts, clock, feed, live, values } = process;
        let claims = config.claims;
        let most = match claims {
            Claims::All => config.max_running.max(1),
            Claims::Only(_) => 1,
        };
        let (handed_over, received) = mpsc::channel(most);
        let (slots, shown) = (Slots::new(most), hosts.list_shown(row.id));
        let row = Mutex::new(row);
        let inner = Inner {
            store,
            clock,
            drivers,
            claims,
            slots,
            row,
            shown,
            feed,
            specs: Mutex::default(),
            handed_over,
            live,
            values,
            failures: Arc::new(config.failures.clone()),
            warm: Warm::new(config.max_warm, config.warm_for),
            hindrance: Mutex::default(),
            ending: Mutex::default(),
            driven: watch::Sender::new(()),
        };
        (Self(Arc::new(inner)), received)
    }

    /// Gives a command, and rings those who may have to act on it.
    ///
    /// If a prompt or a resume leaves the session ready, and the host has room for it and can run
    /// it, the host claims it in the same commit. Otherwise the command stands as it is, and the
    /// session is claimed as any other.
    ///
    /// # Errors
    /// There is no such session, the command is refused, or the store fails.
    pub async fn give(&self, request: Request) -> Result<Done, CommandError> {
        let prepared = self.prepare_for(&request).await;
        self.give_prepared(request, prepared).await
    }

    /// Gives a command, and drives the session that it makes ready, if that could be prepared.
    pub(crate) async fn give_prepared(
        &self,
        request: Request,
        prepared: Option<(Prepared, OwnedPermit<Driving>)>,
    ) -> Result<Done, CommandError> {
        let id = request.session;
        self.commit_and_drive(id, prepared, move |tx| tx.command(request)).await
    }

    /// Creates a session that begins with a prompt, and claims it in the same commit.
    ///
    /// # Errors
    /// It is refused, or the store fails.
    pub(crate) async fn create(
        &self,
        id: SessionId,
        prepared: (Prepared, OwnedPermit<Driving>),
        work: impl FnOnce(&mut Transaction<'_>) -> Result<Done, CommandError> + Send + 'static,
    ) -> Result<Done, CommandError> {
        let created = self.commit_and_drive(id, Some(prepared), work).await;
        if created.is_err() {
            self.specs().remove(&id);
        }
        created
    }

    /// Commits something, and drives the session that it makes ready, if that could be prepared.
    async fn commit_and_drive(
        &self,
        id: SessionId,
        prepared: Option<(Prepared, OwnedPermit<Driving>)>,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<Done, CommandError> + Send + 'static,
    ) -> Result<Done, CommandError> {
        let claims = prepared.iter().map(|_| id).collect();
        let committed = self.commit(claims, work).await;
        let claimed = committed.as_ref().ok().and_then(|(_, claimed)| claimed.first()?.clone());
        match (prepared, claimed) {
            (Some((prepared, host)), Some(session)) => {
                host.send(self.drive(session, prepared));
            }
            (Some((prepared, _)), None) => self.discard(prepared),
            (None, _) => {}
        }
        let (done, _) = committed?;
        self.0.feed.ring();
        Ok(done)
    }

    /// Returns the feed of this process.
    pub fn feed(&self) -> &Feed<S> {
        &self.0.feed
    }

    /// Returns whether the host could take one more session: it does not stop, and has a slot.
    pub fn has_room(&self) -> bool {
        self.slots().free() > 0
    }

    /// Takes note that a client of this process sees a session, until what it returns is dropped:
    /// when the session wakes, other hosts leave it to this one for a moment.
    pub fn show(&self, id: SessionId) -> Showing {
        self.0.shown.show(id)
    }

    /// Reserves what it takes to drive a session that a command is about to make ready; nothing if
    /// this host cannot have it, which says why when it finds the session ready.
    pub(crate) async fn prepare_for(
        &self,
        request: &Request,
    ) -> Option<(Prepared, OwnedPermit<Driving>)> {
        let (id, command) = (request.session, &request.command);
        if !matches!(command, Command::Prompt(_) | Command::Resume(_)) || !self.claims(id) {
            return None;
        }
        // Only whether it is worth trying: the claim is decided in the commit.
        let session = match self.0.feed.session(id) {
            Some(session) => session,
            None => self.0.store.session(id).ok()??,
        };
        if !may_make_ready(command, &session.state) {
            return None;
        }
        self.prepare(id).await
    }

    /// Reserves what it takes to drive a session that is about to be created with a prompt; nothing
    /// if this host cannot have it.
    pub(crate) async fn prepare_new(
        &self,
        id: SessionId,
        spec: &DriverSpec,
    ) -> Option<(Prepared, OwnedPermit<Driving>)> {
        if !self.claims(id) {
            return None;
        }
        self.remember(id, Arc::new(spec.clone()));
        let prepared = self.prepare(id).await;
        if prepared.is_none() {
            self.specs().remove(&id);
        }
        prepared
    }

    /// Gives up what was reserved to drive a session: its claim was refused, or another host was
    /// faster.
    pub(crate) fn discard(&self, prepared: Prepared) {
        self.end_apart(prepared.equipment.driver);
    }

    /// Reserves what it takes to drive a session, and makes its driver.
    async fn prepare(&self, id: SessionId) -> Option<(Prepared, OwnedPermit<Driving>)> {
        let slot = self.slots().reserve_after_last(id).await?;
        let host = self.0.handed_over.clone().try_reserve_owned().ok()?;
        let equipment = self.driver(id).ok()??.ok()?;
        Some((self.prepared(id, slot, equipment), host))
    }

    /// Puts together what it takes to drive a session, before it is claimed.
    pub(crate) fn prepared(&self, id: SessionId, slot: Slot, equipment: Equipment) -> Prepared {
        let signal = watch::channel(Signal::default());
        let told = self.0.feed.tell_drive(id, signal.0.clone());
        Prepared { id, slot, equipment, signal, told }
    }

    /// Returns whether the host drives a session, if it can.
    pub(crate) fn claims(&self, id: SessionId) -> bool {
        match self.0.claims {
            Claims::All => true,
            Claims::Only(only) => only == id,
        }
    }

    /// Makes the driver of a session, or says why it cannot be run here; nothing if there is no
    /// such session.
    pub(crate) fn driver(&self, id: SessionId) -> Result<Option<Made>, Error> {
        let Some(spec) = self.spec(id)? else { return Ok(None) };
        Ok(Some(match self.0.drivers.lacks(id, &spec) {
            Some(why) => Err((why, Again::Soon)),
            None => {
                let made = self.0.drivers.make(&spec);
                let client = self.0.drivers.client(id);
                let environment = self.0.drivers.environment(&spec).with(self.0.values.of(id));
                let now = self.0.clock.now();
                made.map(|driver| Equipment { driver, client, environment })
                    .map_err(|why| (why, Again::After(now)))
            }
        }))
    }

    /// Does something and claims sessions, in one commit. Returns what was done, and each session
    /// that the host has now.
    ///
    /// A claim that is refused leaves what was done as it is: another host was faster, or a gate is
    /// shut.
    pub(crate) async fn commit<T, E>(
        &self,
        ids: Vec<SessionId>,
        first: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<(T, Vec<Option<Arc<Session>>>), E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (by, row) = (self.by(), self.row().clone());
        let committed = self.0.store.transact(move |tx| -> Result<_, E> {
            let first = first(tx)?;
            if !ids.is_empty() {
                // Others look for what a dead host had by its row. A host that took this one for dead
                // has dropped it; nothing is written if it is there.
                tx.announce(&row)?;
            }
            let claim = |id| match take(tx, id, &by) {
                Ok(done) => Ok(Some(done.session)),
                Err(CommandError::Rejected(_) | CommandError::NotFound(_)) => Ok(None),
                // A session that cannot be read must not hold up the others, and is marked so that
                // it is not tried again at every ring.
                Err(CommandError::Store(error)) if error.is_of_a_session() => {
                    tx.let_unreadable_go(id).map(|_| None)
                }
                Err(CommandError::Store(error)) => Err(error),
            };
            let claimed = ids.into_iter().map(claim).collect::<Result<_, _>>()?;
            Ok((first, claimed))
        });
        committed.await
    }

    /// Drives a session under the claim it was just given.
    pub(crate) fn drive(&self, session: Arc<Session>, prepared: Prepared) -> Driving {
        let Prepared { id, slot, equipment, signal: (signal, heard), told } = prepared;
        let Equipment { driver, client, environment } = equipment;
        let mut driver = match self.kept_driver(&session) {
            Some(kept) => {
                // Only behind the claim it is known whether the one that was kept is of use.
                self.end_apart(driver);
                kept
            }
            None => driver,
        };
        let (feed, host, epoch) = (self.0.feed.clone(), self.host(), session.epoch);
        let drive = Drive {
            store: self.0.store.clone(),
            clock: Arc::clone(&self.0.clock),
            host,
            epoch,
            session,
            grace: None,
            signal: heard,
            // What it leaves to do here shows when its task ends.
            ring: Arc::new(move || feed.ring()),
            live: self.0.live.clone(),
            client,
            environment: Arc::new(environment),
            failures: Arc::clone(&self.0.failures),
            retry_at: None,
            empty_steps: 0,
            driven: self.0.driven.subscribe(),
        };
        let claimant = self.clone();
        // What drivers log has the session, the claim and the host with it.
        let span = tracing::info_span!("claim", session = %id, epoch = %epoch, host = %host);
        let work = async move {
            let driven = caught(drive.run(driver.as_mut())).await;
            match &driven {
                Ok(Ok(session)) => claimant.keep_or_end(session, epoch, driver).await,
                // Whatever becomes of the session, what its driver has outside ends first.
                Ok(Err(_)) | Err(_) => end(driver.as_mut(), claimant.0.clock.as_ref()).await,
            }
            drop(told);
            drop(slot);
            match driven {
                Ok(driven) => driven.map(|_| ()),
                Err(panic) => resume_unwind(panic),
            }
        };
        let (work, driven) = (work.instrument(span), self.0.driven.subscribe());
        // In a task of its own, so that a panic in it is known by the session's name.
        let task = tokio::spawn(async move {
            // Declared first, it is dropped behind the work and all that this holds.
            let _driven = driven;
            work.await
        });
        Driving { id, epoch, signal, task: Aborts(task) }
    }

    /// Returns the driver that was kept for a session which has just been claimed.
    ///
    /// It is taken behind the claim: a command that is refused, or a claim that another host was
    /// faster with, leaves it where it is.
    fn kept_driver(&self, session: &Session) -> Option<Box<dyn Driver>> {
        match self.0.warm.take(session.id, session.epoch, self.0.clock.elapsed())? {
            Ok(driver) => Some(driver),
            Err(stale) => {
                self.end_apart(stale);
                None
            }
        }
    }

    /// Keeps the driver of a session that came to rest under its claim, parked or idle, if that is
    /// worth it, and ends it otherwise.
    async fn keep_or_end(&self, session: &Session, epoch: Epoch, mut driver: Box<dyn Driver>) {
        let rests = matches!(session.state, State::Suspended(_) | State::Idle);
        let rests = rests && session.epoch == epoch;
        let mut keeps = || catch_unwind(AssertUnwindSafe(|| driver.keep())).unwrap_or(false);
        if !(rests && self.0.warm.has_room() && keeps()) {
            return end(driver.as_mut(), self.0.clock.as_ref()).await;
        }
        let kept = (self.show(session.id), self.0.feed.wake_host(session.id));
        let now = self.0.clock.elapsed();
        if let Some(surplus) = self.0.warm.keep(session.id, epoch, driver, kept, now) {
            self.end_apart(surplus);
        }
    }

    /// Ends drivers that were kept and are of no use any more.
    pub(crate) fn end_stale_drivers(&self) {
        if self.0.warm.is_empty() {
            return;
        }
        let epoch = |id| {
            let session = self.0.store.session(id).ok()??;
            (!matches!(session.state, State::Ended(_))).then_some(session.epoch)
        };
        for driver in self.0.warm.stale(epoch, self.0.clock.elapsed()) {
            self.end_apart(driver);
        }
    }

    /// Ends every driver that is kept: the host stops.
    pub(crate) async fn end_kept_drivers(&self) {
        for driver in self.0.warm.clear() {
            self.end_apart(driver);
        }
        let mut ending = std::mem::take(&mut *self.ending());
        while ending.join_next().await.is_some() {}
    }

    /// Waits until nothing is left of what a killed host did: its tasks are aborted, and drivers
    /// that it kept are dropped.
    pub(crate) async fn gone(&self) {
        drop(self.0.warm.clear());
        let mut ending = std::mem::take(&mut *self.ending());
        ending.shutdown().await;
        self.0.driven.closed().await;
    }

    /// Ends a driver beside whatever else goes on.
    fn end_apart(&self, mut driver: Box<dyn Driver>) {
        let clock = Arc::clone(&self.0.clock);
        let mut ending = self.ending();
        while ending.try_join_next().is_some() {}
        ending.spawn(async move { end(driver.as_mut(), clock.as_ref()).await });
    }

    fn ending(&self) -> MutexGuard<'_, JoinSet<()>> {
        // Nothing that is done with it can leave it half done.
        self.0.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the words of this process's steps, as they come.
    pub fn live(&self) -> &Live {
        &self.0.live
    }

    /// Returns the sessions that clients of this process see.
    pub(crate) fn shown(&self) -> &Shown {
        &self.0.shown
    }

    /// Returns what kept the host from its work when it last tried.
    pub(crate) fn hindrance(&self) -> MutexGuard<'_, Option<Error>> {
        // Nothing that is done with it can leave it half done.
        self.0.hindrance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the slots of the host.
    pub(crate) fn slots(&self) -> &Arc<Slots> {
        &self.0.slots
    }

    /// Returns what the host has said about itself.
    pub(crate) fn row(&self) -> MutexGuard<'_, HostRow> {
        // Nothing that is done with it can leave it half done.
        self.0.row.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn by(&self) -> Actor {
        Actor::new(Face::Host, "").on(self.host())
    }

    /// Returns the host whose claimant this is.
    pub fn host(&self) -> HostId {
        self.row().id
    }

    /// Returns what a session was created with, unless that was erased; it is read once for those
    /// that are claimed again and again.
    ///
    /// # Errors
    /// The store fails.
    pub fn spec(&self, id: SessionId) -> Result<Option<Arc<DriverSpec>>, Error> {
        if let Some(spec) = self.specs().get(&id) {
            return Ok(Some(Arc::clone(spec)));
        }
        let spec = self.0.store.founding(id)?.and_then(|entry| match entry.event.what {
            What::SessionCreated(created) => Some(Arc::new(created.driver)),
            _ => None,
        });
        if let Some(spec) = &spec {
            self.remember(id, Arc::clone(spec));
        }
        Ok(spec)
    }

    fn remember(&self, id: SessionId, spec: Arc<DriverSpec>) {
        let mut specs = self.specs();
        // Which of them are in use cannot be told cheaply; those that are come back at once.
        if specs.len() >= SPECS {
            specs.clear();
        }
        specs.insert(id, spec);
    }

    fn specs(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<DriverSpec>>> {
        // Nothing that is done with it can leave it half done.
        self.0.specs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims a session that is ready, and begins its first step with the same commit where one may
/// begin.
fn take(tx: &mut Transaction<'_>, id: SessionId, by: &Actor) -> Result<Done, CommandError> {
    if let Some(session) = tx.session(id)?
        && session.awaits_step()
    {
        let said = told_first(&session, |seq| tx.event_data(seq))?;
        let take = Command::Take(Take { entries: digests(&said) });
        let said = said.iter().map(Message::encode).collect();
        match tx.command(Request::new(id, by.clone(), take).saying(said)) {
            // The host that has it learns of the limit when it asks for the step alone.
            Err(CommandError::Rejected(Rejected::LimitReached { .. })) => {}
            answer => return answer,
        }
    }
    tx.command(Request::new(id, by.clone(), Command::Claim))
}

/// Returns whether a prompt or a resume may leave a session ready: none does for one that is at
/// work or over, and a resume that brings no input does not for one that has no run to go on with.
const fn may_make_ready(command: &Command, state: &State) -> bool {
    match (command, state) {
        (Command::Resume(Resume { input: None, .. }), State::Suspended(suspended)) => {
            matches!(suspended.prior, Prior::Run(_))
        }
        (_, State::Idle | State::Suspended(_)) => true,
        (_, State::Ready(_) | State::Running(_) | State::Quiescing(_) | State::Ended(_)) => false,
    }
}

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
