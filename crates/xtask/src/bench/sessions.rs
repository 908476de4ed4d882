//! A store, and sessions in it, as all benchmarks use them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjourn::Adjourn;
use adjourn::clock::{BoxFuture, Clock, Environment, Machine};
use adjourn::core::actor::{Actor, Face};
use adjourn::core::command::Resume;
use adjourn::core::driver::DriverSpec;
use adjourn::core::id::SessionId;
use adjourn::core::time::Timestamp;
use adjourn::core::{Command, Founding};
use adjourn::store::Request;
use adjourn_testkit::store::{self, TENANT, keys};
use anyhow::Result;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::child::runtime;

/// Opens a store, or makes one, as a program does that embeds the library.
pub fn open(path: &Path) -> Result<Adjourn> {
    open_at(path, Arc::new(Machine))
}

/// Opens a store with a clock of its own.
pub fn open_at(path: &Path, clock: Arc<dyn Clock>) -> Result<Adjourn> {
    let opening = Adjourn::builder(path).keys(keys()).clock(clock);
    Ok(opening.tenant(TENANT).acting_as(by()).open_blocking()?)
}

thread_local! {
    /// The runtime of a thread that waits for one thing after the other.
    static RUNTIME: Runtime = started();
}

#[expect(clippy::expect_used, reason = "nothing can be measured without it")]
fn started() -> Runtime {
    runtime().expect("a runtime starts")
}

/// Waits on this thread.
pub fn wait<T>(future: impl IntoFuture<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(future.into_future()))
}

/// The machine's clock, so much earlier: what waits for an hour from there on is due.
#[derive(Debug)]
pub struct Earlier(pub Duration);

impl Environment for Earlier {
    fn now(&self) -> Timestamp {
        let by = i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(Machine.now().as_millis().saturating_sub(by))
    }

    fn uuid(&self) -> Uuid {
        Machine.uuid()
    }
}

impl Clock for Earlier {
    fn sleep_until(&self, time: Timestamp) -> BoxFuture<'static, ()> {
        Machine.sleep_until(time)
    }

    fn elapsed(&self) -> Duration {
        Machine.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Machine.sleep(duration)
    }
}

/// Who gives the commands.
pub fn by() -> Actor {
    Actor::new(Face::Library, "bench")
}

/// A session that a script drives.
pub fn founding(script: &str) -> Founding {
    store::founding_by(&Machine, DriverSpec::script(script))
}

/// Makes a session.
pub fn create(adjourn: &Adjourn, script: &str) -> Result<SessionId> {
    Ok(wait(adjourn.create_with(DriverSpec::script(script)))?.id())
}

/// Suspends a session that is at rest.
pub async fn suspend(adjourn: &Adjourn, id: SessionId) -> Result<(), adjourn::Error> {
    adjourn.session(id).suspend().reason("bench").accepted().await.map(drop)
}

/// A prompt, and what it says.
pub fn prompt(id: SessionId, text: &str) -> Request {
    store::prompt_request(id, by(), text)
}

/// A plain resume.
pub fn resume(id: SessionId) -> Request {
    Request::new(id, by(), Command::Resume(Resume::default()))
}
