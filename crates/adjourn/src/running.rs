//! Hosts of a program: which drivers they have, how they are started and stopped.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::{HostId, SessionId};
use adjourn_driver::{Client, Driver, Drivers, Environment, NoClient, Unusable};
use adjourn_store::{Retention, Sqlite, Store};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::adjourn::{Adjourn, Shared};
use crate::claimant::Claimant;
use crate::config::{Claims, Config};
use crate::error::{Error, StoreError};
use crate::failures::Failures;
use crate::host::Host;
use crate::script::Scripted;

/// A host that is about to be started; see [`Adjourn::host`].
#[must_use = "it drives nothing before it is started"]
pub struct HostBuilder<S: Store = Sqlite> {
    adjourn: Adjourn<S>,
    drivers: NamedDrivers,
    config: Config,
}

impl<S: Store> HostBuilder<S> {
    pub(crate) fn new(adjourn: Adjourn<S>) -> Self {
        let drivers = NamedDrivers { named: BTreeMap::new(), others: None };
        Self { adjourn, drivers, config: Config::default() }
    }

    /// Drives sessions that were created with a name, each with a driver that a function makes from
    /// the session's configuration.
    ///
    /// A driver may be made to see whether it can be, and be dropped without a step: it must do
    /// nothing outside, such as start a process, before its first one.
    pub fn driver<D: Driver + 'static>(
        self,
        name: impl Into<String>,
        make: impl Fn(&Value) -> D + Send + Sync + 'static,
    ) -> Self {
        self.driver_with(name, move |_, config| Ok(Box::new(make(config))))
    }

    /// Drives sessions that were created with a name, each with a driver that a function makes from
    /// all that was said when the session was created, or says why it cannot run it here.
    pub fn driver_with(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&DriverSpec, &Value) -> Result<Box<dyn Driver>, String> + Send + Sync + 'static,
    ) -> Self {
        self.drivers.named.insert(name.into(), Box::new(make));
        self
    }

    /// Drives scripted sessions, too.
    pub fn scripts(self) -> Self {
        let scripted = Scripted::new(Arc::clone(self.adjourn.clock()));
        self.others(Arc::new(scripted))
    }

    /// Drives all other sessions with drivers from elsewhere.
    pub fn others(mut self, drivers: Arc<dyn Drivers>) -> Self {
        self.drivers.others = Some(drivers);
        self
    }

    /// Works as a configuration says, which has all that the methods below say one by one.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Drives so many sessions at once.
    pub const fn max_running(mut self, sessions: usize) -> Self {
        self.config.max_running = sessions;
        self
    }

    /// Gives calls in flight so much time when the host stops.
    pub const fn drain(mut self, time: Duration) -> Self {
        self.config.drain = time;
        self
    }

    /// Keeps the drivers of so many parked sessions, each for so long.
    pub const fn warm(mut self, drivers: usize, time: Duration) -> Self {
        self.config.max_warm = drivers;
        self.config.warm_for = time;
        self
    }

    /// Says what the host does about steps that fail.
    pub fn failures(mut self, failures: Failures) -> Self {
        self.config.failures = failures;
        self
    }

    /// Drives one session, and no other.
    pub const fn only(mut self, session: SessionId) -> Self {
        self.config.claims = Claims::Only(session);
        self
    }

    /// Says how long things are kept.
    pub const fn retention(mut self, retention: Retention) -> Self {
        self.config.retention = retention;
        self
    }

    /// Says what others see of the host: a JSON object, as text.
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.config.about = about.into();
        self
    }

    /// Starts the host: from here on it drives what is ready, delivers events, acts on deadlines,
    /// and takes over what dead hosts have left.
    ///
    /// # Errors
    /// The store, or the directory of its hosts, cannot be written.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, there is no host: what it was announced with is removed in the
    /// background.
    pub async fn start(self) -> Result<RunningHost<S>, Error> {
        let Self { adjourn, drivers, config } = self;
        let process = adjourn.process().clone();
        let beside = adjourn.beside_host();
        let host = Host::join_process(process, Arc::new(drivers), config).await?;
        let (id, claimant) = (host.id(), host.claimant());
        let registered = Registered { shared: adjourn.downgrade(), id };
        adjourn.claimants().push(claimant.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let _registered = registered;
            let run = host.run(async move {
                // Dropping the other end stops it, too.
                let _ = stopped.await;
            });
            tokio::select! {
                ended = run => ended,
                never = beside => match never {},
            }
        });
        Ok(RunningHost { id, claimant, stop: Some(stop), task, over: None })
    }
}

/// Strikes a host off the list of its process when it is over, however that comes.
struct Registered<S: Store> {
    shared: Weak<Shared<S>>,
    id: HostId,
}

impl<S: Store> Drop for Registered<S> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.claimants().retain(|claimant| claimant.host() != self.id);
        }
    }
}

/// A host that runs in this process.
///
/// Dropped, it stops in the background, as [`RunningHost::stop`] does. If the runtime ends before
/// that is done, it is as if the process had died: other hosts take over what it had.
#[must_use = "dropped, it stops"]
pub struct RunningHost<S: Store = Sqlite> {
    id: HostId,
    claimant: Claimant<S>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), StoreError>>,
    /// How it ended, once that is known.
    over: Option<Result<(), Error>>,
}

impl<S: Store> RunningHost<S> {
    /// Returns its id.
    pub const fn id(&self) -> HostId {
        self.id
    }

    /// Returns how faces of this process claim for it.
    pub const fn claimant(&self) -> &Claimant<S> {
        &self.claimant
    }

    /// Stops it: it takes nothing more, gives calls in flight the time that they have, gives every
    /// session back, and resolves when nothing of it runs any more.
    ///
    /// # Errors
    /// The store fails, or the host panicked; other hosts find what this one had.
    ///
    /// # Cancel safety
    /// Dropped, it goes on stopping.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.stop = None;
        self.over().await
    }

    /// Waits until it ends by itself, which it does when its store fails, and returns why.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing.
    pub async fn ended(&mut self) -> Error {
        self.over().await.err().unwrap_or(Error::Store(StoreError::Closed))
    }

    /// Waits until it is over, and says how.
    async fn over(&mut self) -> Result<(), Error> {
        if let Some(over) = &self.over {
            return over.clone();
        }
        let ended = (&mut self.task).await;
        let over = ended.map_or(Err(Error::HostPanicked), |ended| ended.map_err(Error::from));
        self.over = Some(over.clone());
        over
    }

    /// Ends it at once, as the death of its process would: nothing is given back, and what its
    /// calls came to is unknown. Resolves when nothing of it runs any more.
    ///
    /// # Cancel safety
    /// Dropped before it is polled, the host stops as if it were dropped itself. Dropped after that,
    /// it ends at once all the same.
    pub async fn kill(mut self) {
        self.task.abort();
        let _ = self.over().await;
        self.claimant.gone().await;
    }
}

/// Makes a driver from what its session was created with.
type Make = dyn Fn(&DriverSpec, &Value) -> Result<Box<dyn Driver>, String> + Send + Sync;

/// The drivers that a host knows by name, and those of all other sessions.
struct NamedDrivers {
    named: BTreeMap<String, Box<Make>>,
    others: Option<Arc<dyn Drivers>>,
}

impl NamedDrivers {
    /// Returns where the drivers of sessions come from that have none of a name that is known here.
    fn other(&self, spec: &DriverSpec) -> Option<&Arc<dyn Drivers>> {
        let is_known = |name: &String| self.named.contains_key(name);
        match &spec.kind {
            DriverKind::Named { name, .. } if is_known(name) => None,
            _ => self.others.as_ref(),
        }
    }
}

impl Drivers for NamedDrivers {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        if let DriverKind::Named { name, config } = &spec.kind
            && let Some(make) = self.named.get(name)
        {
            return make(spec, config);
        }
        match (&self.others, &spec.kind) {
            (Some(others), _) => others.make(spec),
            (None, DriverKind::Named { name, .. }) => Err(format!("it knows no driver {name:?}")),
            (None, other) => Err(format!("it has no driver for {} agents", other.name())),
        }
    }

    fn check(&self, spec: &DriverSpec) -> Result<(), Unusable> {
        self.other(spec).map_or(Ok(()), |others| others.check(spec))
    }

    fn lacks(&self, session: SessionId, spec: &DriverSpec) -> Option<String> {
        self.other(spec)?.lacks(session, spec)
    }

    fn lacks_values(&self, spec: &DriverSpec, environment: &Environment) -> Option<String> {
        self.other(spec)?.lacks_values(spec, environment)
    }

    fn environment(&self, spec: &DriverSpec) -> Environment {
        match self.other(spec) {
            Some(others) => others.environment(spec),
            None => Environment::of_process(spec),
        }
    }

    fn client(&self, session: SessionId) -> Arc<dyn Client> {
        match &self.others {
            Some(others) => others.client(session),
            None => Arc::new(NoClient),
        }
    }
}
