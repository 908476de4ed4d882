//! A store as a program sees it: the way to sessions, events and hosts.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use adjourn_core::Session;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::{Loss, Recover};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::{Command, Founding};
use adjourn_record::keys::KeyDir;
use adjourn_record::portable::Record;
use adjourn_store::{CommandError, Done, Request, Sqlite, Store, Transaction};

use crate::builder::AdjournBuilder;
use crate::claimant::Claimant;
use crate::clock::{BoxFuture, Clock};
use crate::committing::Committing;
use crate::create::CreateBuilder;
use crate::doorbell::Hosts;
use crate::error::{Error, StoreError};
use crate::feed::Feed;
use crate::import::ImportBuilder;
use crate::key_rotation;
use crate::live::Live;
use crate::other_processes::OtherProcesses;
use crate::process::Process;
use crate::running::HostBuilder;
use crate::sealing::Sealing;
use crate::session_ref::SessionRef;

/// A store, and the way to its sessions, events and hosts. Cheap to clone.
///
/// Every process that opens the same path sees the same sessions. What one of them commits, the
/// others are told of. Nothing runs in the background for an `Adjourn` that has no host.
///
/// The last handle closes the store, be it a clone of this, a session, a stream or a host. Dropping
/// that one waits, on the thread that drops it, until what was asked for is committed and the file
/// is closed: a few milliseconds, but for a command that waits for the lock of another process.
/// [`Adjourn::close`] waits without keeping the runtime's thread.
pub struct Adjourn<S: Store = Sqlite> {
    shared: Arc<Shared<S>>,
    tenant: Arc<str>,
    by: Arc<Actor>,
}

impl<S: Store> Clone for Adjourn<S> {
    fn clone(&self) -> Self {
        let (tenant, by) = (Arc::clone(&self.tenant), Arc::clone(&self.by));
        Self { shared: Arc::clone(&self.shared), tenant, by }
    }
}

/// What all clones of an [`Adjourn`] share.
pub(crate) struct Shared<S: Store> {
    pub(crate) process: Process<S>,
    /// The hosts of this process, the newest last.
    claimants: Mutex<Vec<Claimant<S>>>,
    other_processes: OtherProcesses,
    /// What is done for the store as long as a host works.
    beside_hosts: OnceLock<BesideHosts>,
    /// The keys that portable records are sealed and opened with.
    sealing: OnceLock<Sealing>,
}

/// Something that goes on as long as a host works.
type BesideHosts = Box<dyn Fn() -> BoxFuture<'static, Infallible> + Send + Sync>;

/// The tenant that owns sessions and events, unless another is named.
pub const TENANT: &str = "local";

impl Adjourn {
    /// Opens the store at a path, and makes it if it is not there; its directory must be.
    ///
    /// Commits are signed with keys that lie beside the store, in a directory that has its name and
    /// `.keys`; a store that the command line made is signed with those of its user. See
    /// [`AdjournBuilder`] for others, for another clock, and for a store that is only looked at.
    ///
    /// # Errors
    /// What is there is no store, or one of a newer program, or cannot be written; or its keys
    /// cannot be read.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, the store is closed again, and nothing is in it.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::builder(path).open().await
    }

    /// Says how a store is to be opened.
    pub fn builder(path: impl Into<PathBuf>) -> AdjournBuilder {
        AdjournBuilder::new(path.into())
    }

    /// Returns where the store's file really is, whatever links led to it.
    pub fn path(&self) -> &Path {
        self.process().store.path()
    }

    /// Gives this handle up, and closes the store if it was the last one.
    ///
    /// Resolves when what was asked for is committed and the file is closed; at once if there are
    /// other handles. [Stop](crate::RunningHost::stop) the hosts of the program first.
    ///
    /// # Cancel safety
    /// Dropped before it is polled, the handle is dropped; dropped after that, the store is closed
    /// all the same.
    pub async fn close(self) {
        // The only thing that can go wrong is that the runtime ends, which closes it, too.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }

    /// Has hosts that are started from now on take up keys that are made or revoked in the directory
    /// of the keys that the store was opened with. [`Adjourn::open`] does so by itself.
    pub fn follow_keys(&self, directory: KeyDir) {
        self.seal_with(Sealing::In(directory.clone()));
        let store = self.process().store.clone();
        let follow = move || -> BoxFuture<'static, Infallible> {
            Box::pin(key_rotation::follow(store.clone(), directory.clone()))
        };
        // The directory that it was opened with stays the one it is.
        let _ = self.shared.beside_hosts.set(Box::new(follow));
    }
}

impl<S: Store> Adjourn<S> {
    /// Works on a store that is open already, with the hosts that work on it.
    ///
    /// # Errors
    /// The store cannot be read.
    #[cfg(feature = "testing")]
    pub fn on(store: S, hosts: Hosts, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::of(store, hosts, clock)
    }

    /// Works on a store that is open already, with the hosts that work on it.
    pub(crate) fn of(store: S, hosts: Hosts, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let process = Process::new(store, hosts, clock)?;
        let shared = Shared {
            process,
            claimants: Mutex::default(),
            other_processes: OtherProcesses::default(),
            beside_hosts: OnceLock::new(),
            sealing: OnceLock::new(),
        };
        let by = Actor::new(Face::Library, "");
        Ok(Self { shared: Arc::new(shared), tenant: TENANT.into(), by: Arc::new(by) })
    }

    /// Works for another tenant: whose the sessions are that it creates, the events that it
    /// publishes, and the names that it [finds](Adjourn::find).
    ///
    /// It is no boundary. A session is reached by its id, and events are addressed, whichever tenant
    /// they belong to; queries are of all tenants unless their filter names one; and hosts drive the
    /// sessions of all of them. A program that serves tenants who must not see each other checks
    /// whose a session is.
    #[must_use]
    pub fn in_tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Gives commands in the name of another actor, as the journal has it; each verb can name its
    /// own.
    #[must_use]
    pub fn acting_as(mut self, by: Actor) -> Self {
        self.by = Arc::new(by);
        self
    }

    /// Describes a session whose driver hosts know by a name; awaited, it is created.
    pub fn create(&self, driver: impl Into<String>) -> CreateBuilder<S> {
        self.create_with(DriverSpec::named(driver, serde_json::Value::Null))
    }

    /// Describes a session with any driver; awaited, it is created.
    pub fn create_with(&self, driver: DriverSpec) -> CreateBuilder<S> {
        CreateBuilder::new(self.clone(), driver)
    }

    /// Describes a session with all that it is made from; awaited, it is created.
    pub fn create_from(&self, founding: Founding) -> CreateBuilder<S> {
        CreateBuilder::from(self.clone(), founding)
    }

    /// Describes a session that goes on from a portable record; awaited, it is taken in.
    pub fn import(&self, record: Record) -> ImportBuilder<S> {
        ImportBuilder::new(self.clone(), record)
    }

    /// Returns the way to a session. Whether there is one shows when something is asked of it.
    pub fn session(&self, id: SessionId) -> SessionRef<S> {
        SessionRef::new(self.clone(), id)
    }

    /// Describes a host of this process; started, it drives sessions.
    pub fn host(&self) -> HostBuilder<S> {
        HostBuilder::new(self.clone())
    }

    /// Does several things in one commit, and tells all who wait for any of it.
    ///
    /// The verbs of a session and [`Adjourn::publish`] are such commits; this is for what has to be
    /// decided together.
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, the commit is made all the same.
    pub fn transact<T, E, F>(&self, work: F) -> Committing<Result<T, E>>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let Process { store, feed, .. } = self.process();
        let (store, feed) = (store.clone(), feed.clone());
        Committing::new(async move {
            let done = store.transact(work).await;
            feed.ring();
            done
        })
    }

    /// Has the hosts of this process look again for sessions that they could not run, because
    /// something has come that these lacked: a client that can be asked, say.
    pub fn look_again(&self) {
        self.feed().wake_hosts();
    }

    /// Returns the tenant that it works for.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the actor that its commands are journaled under.
    pub fn by(&self) -> Actor {
        Actor::clone(&self.by)
    }

    /// Returns whether a host is alive, in whichever process.
    ///
    /// # Errors
    /// Its lock cannot be looked at, which says nothing about the host.
    pub async fn is_alive(&self, host: HostId) -> std::io::Result<bool> {
        self.hosts().is_alive(host)
    }

    /// Returns whether a client of a host's process sees a session.
    pub async fn is_shown_by(&self, host: HostId, session: SessionId) -> bool {
        self.hosts().shown_by(host).contains(&session)
    }

    /// Returns the host that keeps the driver of a session warm, if one does; while the session is
    /// driven that may be the host which drives it, and will keep its driver.
    pub async fn keeper_of(&self, session: SessionId) -> Option<HostId> {
        self.hosts().keeper_of(session)
    }

    /// Returns the hosts that work on the store, of all processes.
    pub(crate) fn hosts(&self) -> &Hosts {
        &self.process().hosts
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.process().clock
    }

    /// Returns what is committed, for those of this process who wait for it.
    pub fn feed(&self) -> &Feed<S> {
        &self.process().feed
    }

    /// Returns the words of the steps that hosts of this process run, as they come.
    pub fn live(&self) -> &Live {
        &self.process().live
    }

    /// Takes a session from its host if that died, and returns it as it is then; nothing if it has
    /// no such host.
    ///
    /// Hosts do this by themselves. It is for a program that has none, and meets a session that a
    /// dead one has left.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropped after it was polled, the session is taken from its host all the same.
    pub async fn recover(&self, session: &Session) -> Result<Option<Arc<Session>>, Error> {
        let Some(request) = recovery(self.hosts(), session) else { return Ok(None) };
        match self.transact(move |tx| tx.command(request)).await {
            Ok(done) => Ok(Some(done.session)),
            // Another process was faster.
            Err(CommandError::Rejected(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a command: what a prompt or a resume makes ready is claimed by a host of this process
    /// in the same commit, if one can run it.
    ///
    /// Without a host in this process, the same commit takes the session from a host that died
    /// first: the command would wait for its calls. So the command's answer is that of one commit.
    ///
    /// Every verb is [`Committing`] with this in it: it is not dropped before others are rung.
    pub(crate) async fn give(&self, request: Request) -> Result<Done, Error> {
        let hosts = self.claimants().clone();
        if let Some((last, _)) = hosts.split_last() {
            // A claim needs much room, which every command would be moved with.
            let given = Box::pin(async {
                for host in hosts.iter().rev() {
                    if let Some(prepared) = host.prepare_for(&request).await {
                        return host.give_prepared(request, Some(prepared)).await;
                    }
                }
                last.give_prepared(request, None).await
            });
            return Ok(given.await?);
        }
        let recovers = !self.feed().has_host();
        let hosts = self.hosts().clone();
        let Process { store, feed, .. } = self.process();
        let given = store.transact(move |tx: &mut Transaction<'_>| -> Result<Done, CommandError> {
            if recovers
                && let Some(session) = tx.session(request.session)?
                && let Some(recovery) = recovery(&hosts, &session)
            {
                tx.command(recovery)?;
            }
            tx.command(request)
        });
        let given = given.await;
        feed.ring();
        Ok(given?)
    }

    /// Does what there is to do for the store as long as a host works, as long as it is polled.
    pub(crate) fn beside_host(&self) -> BoxFuture<'static, Infallible> {
        match self.shared.beside_hosts.get() {
            Some(beside) => beside(),
            None => Box::pin(std::future::pending()),
        }
    }

    /// Has secrets kept, and portable records sealed and opened, with these keys; the first that are
    /// named count.
    #[cfg(feature = "testing")]
    pub fn keep_secrets_with(&self, keys: adjourn_record::keys::Keys) {
        self.seal_with(Sealing::With(Box::new(keys)));
    }

    /// Has portable records sealed and opened with these keys; the first that are named count.
    pub(crate) fn seal_with(&self, keys: Sealing) {
        let _ = self.shared.sealing.set(keys);
    }

    pub(crate) fn sealing(&self) -> Option<&Sealing> {
        self.shared.sealing.get()
    }

    pub(crate) fn process(&self) -> &Process<S> {
        &self.shared.process
    }

    pub(crate) fn other_processes(&self) -> &OtherProcesses {
        &self.shared.other_processes
    }

    pub(crate) fn downgrade(&self) -> Weak<Shared<S>> {
        Arc::downgrade(&self.shared)
    }

    /// Returns the hosts of this process.
    pub(crate) fn claimants(&self) -> MutexGuard<'_, Vec<Claimant<S>>> {
        self.shared.claimants()
    }
}

impl<S: Store> Shared<S> {
    pub(crate) fn claimants(&self) -> MutexGuard<'_, Vec<Claimant<S>>> {
        // Nothing that is done with it can leave it half done.
        self.claimants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the request that takes a session from its host, if that died.
fn recovery(hosts: &Hosts, session: &Session) -> Option<Request> {
    let owner = session.owner()?;
    // Nothing is taken from a host whose lock cannot be looked at.
    if !matches!(hosts.is_alive(owner.host), Ok(false)) {
        return None;
    }
    let recover = Recover { host: owner.host, epoch: owner.epoch, how: Loss::Died };
    // Its actor has asked for something else.
    let by = Actor::new(Face::Host, "");
    Some(Request::new(session.id, by, Command::Recover(recover)))
}
