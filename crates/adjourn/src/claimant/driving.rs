//! The driving of a session that this process has claimed, and what becomes of its driver.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::id::{Epoch, SessionId};
use adjourn_core::session::State;
use adjourn_driver::Driver;
use adjourn_store::{Error, Store};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tracing::Instrument as _;
use tracing::field::display;

use super::{Claimant, Equipment, Prepared};
use crate::drive::{Drive, Signal};
use crate::ending::{caught, end, keeps};
use crate::shown::Showing;
use crate::warm::Released;

/// How long a new driver waits at most until the one has ended that a host keeps for its session.
/// Most end within milliseconds; a person waits for the wake.
const LET_GO: Duration = Duration::from_secs(1);
/// How often it looks whether that one has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How the driving of a session ended: with the claim, with the store, or with a panic.
pub(crate) type Driven = Result<Result<(), Error>, JoinError>;

/// A session that is being driven: the host tells it of changes, and waits for its end.
pub(crate) struct Driving {
    pub(crate) id: SessionId,
    pub(crate) epoch: Epoch,
    pub(crate) signal: watch::Sender<Signal>,
    pub(crate) task: Aborts,
}

/// A task that is aborted when its owner is dropped, as the calls of a killed host are.
pub(crate) struct Aborts(JoinHandle<Result<(), Error>>);

impl<S: Store> Claimant<S> {
    /// Drives a session under the claim it was just given.
    pub(crate) fn drive(&self, session: Arc<Session>, prepared: Prepared) -> Driving {
        let Prepared { id, slot, equipment, signal: (signal, heard), told } = prepared;
        let Equipment { driver, client, environment, servers } = equipment;
        let kept = self.kept_driver(&session, servers);
        let is_new = kept.is_none();
        let (mut driver, showing) = match kept {
            Some(kept) => {
                // Only behind the claim it is known whether the one that was kept is of use.
                self.end_apart(driver, None);
                (kept.driver, Some(kept.showing))
            }
            None => (driver, None),
        };
        let (claimed, mut stops) = (Arc::clone(&session), heard.clone());
        let (feed, host, epoch) = (self.0.feed.clone(), self.host(), session.epoch);
        let run = session.run().map(|run| display(run.id));
        let handle = session.last_suspension().map(display);
        // What drivers log has the session, its run, what it was woken from, the claim and the host
        // with it.
        let span =
            tracing::info_span!("claim", session = %id, run, handle, epoch = %epoch, host = %host);
        let mut drive = Drive {
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
            warm: self.0.warm.clone(),
            showing,
        };
        let claimant = self.clone();
        let work = async move {
            if is_new {
                claimant.until_none_is_kept(&claimed, &mut stops).await;
            }
            // Boxed, because it is large, and a task's future is moved several times before it is
            // polled.
            let driven = caught(Box::pin(drive.run(driver.as_mut()))).await;
            let showing = drive.showing.take();
            drop(drive);
            match &driven {
                Ok(Ok(session)) if rests(session, epoch) => {
                    claimant.keep_or_end(session, driver, showing, servers).await;
                }
                // Whatever becomes of the session, what its driver has outside ends first.
                Ok(Ok(_) | Err(_)) | Err(_) => claimant.end_here(driver, showing).await,
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
    fn kept_driver(&self, session: &Session, servers: u64) -> Option<Released> {
        match self.0.warm.take(session.id, session.epoch, servers, self.0.clock.elapsed())? {
            Ok(kept) => Some(kept),
            Err(stale) => {
                self.end_stale(stale);
                None
            }
        }
    }

    /// Waits until no host keeps a driver for a session that has just been claimed, or is about to
    /// end one: two of them must not be at work outside at once.
    ///
    /// The wait is bounded, because nothing depends on what is kept: the host that keeps it may
    /// hang. It is over when the session or this host is to stop.
    async fn until_none_is_kept(&self, session: &Session, stops: &mut watch::Receiver<Signal>) {
        let is_kept =
            || self.0.warm.shows(session.id) || self.0.hosts.keeper_of(session.id).is_some();
        // No host had a driver for it before its first claim.
        if session.epoch <= Epoch(1) || !is_kept() {
            return;
        }
        let ended = async {
            while is_kept() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = ended => {}
            () = self.until_to_stop(session, stops) => {}
            () = self.0.clock.sleep(LET_GO) => {
                tracing::warn!("the driver that was kept for the session has not ended in time");
            }
        }
    }

    /// Waits until a session that has just been claimed, or this host, is to stop.
    async fn until_to_stop(&self, session: &Session, stops: &mut watch::Receiver<Signal>) {
        let mut seen = session.revision;
        let is_news = |signal: &Signal, seen| signal.drain_by.is_some() || signal.revision > seen;
        while let Ok(signal) = stops.wait_for(|signal| is_news(signal, seen)).await {
            let (is_draining, revision) = (signal.drain_by.is_some(), signal.revision);
            drop(signal);
            let runs = |session: &Session| matches!(session.state, State::Running(_));
            let still_runs = || {
                let session = self.0.store.session(session.id).ok().flatten();
                session.is_some_and(|session| runs(&session))
            };
            if is_draining || !still_runs() {
                return;
            }
            seen = revision;
        }
    }

    /// Keeps the driver of a session that came to rest under its claim, parked or idle, if that is
    /// worth it, and ends it otherwise. `servers` are those that the driver was made with.
    async fn keep_or_end(
        &self,
        session: &Session,
        mut driver: Box<dyn Driver>,
        showing: Option<Showing>,
        servers: u64,
    ) {
        let (id, epoch) = (session.id, session.epoch);
        let is_outdated = || self.0.values.servers(id) != servers;
        let worth_it = self.0.warm.has_room() && !is_outdated() && keeps(driver.as_mut());
        let showing = match showing {
            Some(showing) if worth_it => showing,
            showing => return self.end_here(driver, showing).await,
        };
        let followed = self.0.feed.wake_host(id);
        let (kept, now) = (Released { driver, showing }, self.0.clock.elapsed());
        if let Some(surplus) = self.0.warm.keep((id, epoch), kept, servers, followed, now) {
            self.end_stale(surplus);
        }
        // A client that names other servers from here on finds the driver; one that did before shows
        // in their count.
        if is_outdated() {
            self.end_outdated(id);
        }
        // This host is told of claims from here on; one that came before shows in the store.
        self.end_if_stale(id);
    }

    /// Ends a driver, which other hosts wait for if they know of it.
    async fn end_here(&self, mut driver: Box<dyn Driver>, showing: Option<Showing>) {
        end(driver.as_mut(), self.0.clock.as_ref()).await;
        // What it has in this process goes before others load it.
        drop(driver);
        drop(showing);
    }

    /// Ends drivers that were kept and are of no use any more.
    pub(crate) fn end_stale_drivers(&self) {
        for id in self.0.warm.sessions() {
            self.end_if_stale(id);
        }
    }

    /// Ends the driver that is kept for a session, if its time is over, or if the session has been
    /// claimed since or is over.
    fn end_if_stale(&self, id: SessionId) {
        let session = self.0.store.session(id).ok().flatten();
        let owner = session.as_ref().and_then(|session| session.owner());
        if owner.is_some_and(|owner| owner.host == self.host()) {
            // The task that is about to drive it takes the driver.
            return;
        }
        let open = session.filter(|session| !matches!(session.state, State::Ended(_)));
        let last_claim = open.map(|session| session.epoch);
        if let Some(stale) = self.0.warm.take_stale(id, last_claim, self.0.clock.elapsed()) {
            self.end_stale(stale);
        }
    }

    /// Ends the driver that is kept for a session, because what it was made with has changed.
    pub(crate) fn end_outdated(&self, id: SessionId) {
        if let Some(stale) = self.0.warm.take_outdated(id) {
            self.end_stale(stale);
        }
    }

    /// Begins to end every driver that is kept, and keeps none from now on: the host stops.
    pub(crate) fn end_kept_drivers(&self) {
        for stale in self.0.warm.close() {
            self.end_stale(stale);
        }
    }

    /// Waits until every driver that is being ended has ended.
    pub(crate) async fn kept_drivers_ended(&self) {
        let mut ending = std::mem::take(&mut *self.ending());
        while ending.join_next().await.is_some() {}
    }

    /// Waits until nothing is left of what a killed host did: its tasks are aborted, and drivers
    /// that it kept are dropped.
    pub(crate) async fn gone(&self) {
        drop(self.0.warm.close());
        let mut ending = std::mem::take(&mut *self.ending());
        ending.shutdown().await;
        self.0.driven.closed().await;
    }

    fn end_stale(&self, stale: Released) {
        self.end_apart(stale.driver, Some(stale.showing));
    }

    /// Ends a driver beside whatever else goes on. Other hosts see that it is there until then.
    pub(super) fn end_apart(&self, mut driver: Box<dyn Driver>, showing: Option<Showing>) {
        let clock = Arc::clone(&self.0.clock);
        let mut ending = self.ending();
        while ending.try_join_next().is_some() {}
        ending.spawn(async move {
            end(driver.as_mut(), clock.as_ref()).await;
            // What it has in this process goes before others load it.
            drop(driver);
            drop(showing);
        });
    }

    fn ending(&self) -> MutexGuard<'_, JoinSet<()>> {
        // Nothing that is done with it can leave it half done.
        self.0.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a session came to rest under a claim: parked, or idle.
fn rests(session: &Session, epoch: Epoch) -> bool {
    matches!(session.state, State::Suspended(_) | State::Idle) && session.epoch == epoch
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
