//! Claims: how a session that is ready comes to be driven in this process.
//!
//! The host claims what it finds ready. The verbs of the same process give their commands through
//! its [`Claimant`], so that what a prompt or a resume makes ready is claimed in the same commit: who
//! takes the prompt runs it. Both reserve a slot, make the driver, and claim in one transaction
//! with whatever made the session ready; a process that dies after that commit is an ordinary
//! host's death.

mod driving;
mod preparing;

pub(crate) use driving::{Driven, Driving};
pub(crate) use preparing::{Equipment, Prepared};

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::Take;
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::{Command, Rejected, Session};
use adjourn_driver::told::{digests, told_first};
use adjourn_driver::{Drivers, Message};
use adjourn_store::rows::HostRow;
use adjourn_store::{CommandError, Done, Error, Request, Store, Transaction};
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::Clock;
#[cfg(feature = "testing")]
use crate::committing::Committing;
use crate::config::{Claims, Config};
use crate::doorbell::Hosts;
use crate::failures::Failures;
use crate::feed::Feed;
use crate::live::Live;
use crate::process::Process;
use crate::shown::{Showing, Shown};
use crate::slots::Slots;
use crate::values::Values;
use crate::warm::Warm;

/// A host as the faces of its process see it: which sessions their clients are shown, and whether it
/// has room for more. The verbs claim through it what they make ready, in the same commit.
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
    /// The hosts of all processes.
    hosts: Hosts,
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
        let warm = Warm::new(hosts.list_kept(row.id), config.max_warm, config.warm_for);
        let row = Mutex::new(row);
        let inner = Inner {
            store,
            clock,
            drivers,
            claims,
            slots,
            row,
            hosts,
            shown,
            feed,
            specs: Mutex::default(),
            handed_over,
            live,
            values,
            failures: Arc::new(config.failures.clone()),
            warm,
            hindrance: Mutex::default(),
            ending: Mutex::default(),
            driven: watch::Sender::new(()),
        };
        (Self(Arc::new(inner)), received)
    }

    /// Gives a command beneath the verbs, as they do themselves.
    ///
    /// If a prompt or a resume leaves the session ready, and the host has room for it and can run
    /// it, the host claims it in the same commit. Otherwise the command stands as it is, and the
    /// session is claimed as any other.
    ///
    /// # Errors
    /// There is no such session, the command is refused, or the store fails.
    ///
    /// # Cancel safety
    /// That of [`Committing`].
    #[cfg(feature = "testing")]
    pub fn give(&self, request: Request) -> Committing<Result<Done, CommandError>> {
        let claimant = self.clone();
        Committing::new(async move {
            let prepared = claimant.prepare_for(&request).await;
            claimant.give_prepared(request, prepared).await
        })
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

    /// Returns the words of this process's steps, as they come.
    pub fn live(&self) -> &Live {
        &self.0.live
    }

    /// Returns the sessions that clients of this process see.
    pub(crate) fn shown(&self) -> &Shown {
        &self.0.shown
    }

    /// Returns whether a client of this process sees a session, or the host keeps its driver warm.
    pub(crate) fn shows_or_keeps(&self, id: SessionId) -> bool {
        self.0.shown.contains(id) || self.0.warm.shows(id)
    }

    /// Returns whether the host keeps the driver of a session warm.
    #[cfg(feature = "testing")]
    pub fn keeps(&self, id: SessionId) -> bool {
        self.0.warm.sessions().contains(&id)
    }

    /// Writes anew what others read of this host beside its lock, if it was cleared away.
    pub(crate) fn renew_lists(&self) {
        self.0.shown.renew();
        self.0.warm.renew_list();
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
