//! How long an acknowledged event takes to wake a session that another process drives.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::Event;
use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_store::{Sqlite, Store as _};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::child::{Child, runtime};
use super::figures::{Figures, percentile};
use super::sessions::{create, embed};

/// Wakes in one round.
const WAKES: usize = 200;
/// How long one rests between two looks: not at all would take a core from the host that is
/// measured. With the slack of timers it is some 70 us, half of which is the error.
const REST: Duration = Duration::from_micros(10);
/// How long anything may take before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures one round.
pub fn measure(place: &Path, figures: &mut Figures) -> Result<()> {
    let path = place.join("wake.db");
    let (adjourn, runtime) = (embed(&path)?, runtime()?);
    let store = adjourn.store();
    let mut host = Child::spawn("host", Some(&path))?;
    host.line()?;
    // One short run after the other: a script is read again at every claim.
    let wait = json!({ "await": { "reason": "waiting", "conditions": { "onEvent": "tick" } } });
    let id = create(store, &json!({ "steps": [wait] }).to_string())?;
    let mut times = Vec::new();
    for number in 0..WAKES {
        seen(store, id, |session| matches!(session.state, State::Idle))?;
        let prompt = adjourn.session(id).prompt(format!("wait for the tick, time {number}"));
        runtime.block_on(prompt.into_future())?;
        let parked = seen(store, id, |session| session.suspended().is_some())?;
        let event = Event::new("tick").id(number.to_string()).source("bench");
        runtime.block_on(adjourn.publish(event))?;
        let acknowledged = Instant::now();
        seen(store, id, |session| session.epoch > parked.epoch)?;
        times.push(acknowledged.elapsed());
    }
    figures.add("wake_latency_p50_us", percentile(&mut times, 0.5));
    figures.add("wake_latency_p99_us", percentile(&mut times, 0.99));
    Ok(())
}

/// Looks at a session again and again.
pub fn seen(
    store: &Sqlite,
    id: SessionId,
    is_so: impl Fn(&Session) -> bool,
) -> Result<Arc<Session>> {
    let start = Instant::now();
    loop {
        let session = store.session(id)?.context("the session is there")?;
        if is_so(&session) {
            return Ok(session);
        }
        ensure!(start.elapsed() < PATIENCE, "nobody moved the session on");
        std::thread::sleep(REST);
    }
}
