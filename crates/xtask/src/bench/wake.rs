//! How long an acknowledged event takes to wake a session that another process drives.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::clock::Machine;
use adjourn::doorbell::Hosts;
use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_store::rows::NewEvent;
use adjourn_store::{Environment as _, Sqlite, Store as _};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::child::Child;
use super::figures::{Figures, percentile};
use super::sessions::{TENANT, create, give, open, prompt};

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
    let store = open(&path)?;
    let hosts = Hosts::beside(&path);
    let mut host = Child::spawn("host", Some(&path))?;
    host.line()?;
    // One short run after the other: a script is read again at every claim.
    let wait = json!({ "await": { "reason": "waiting", "conditions": { "onEvent": "tick" } } });
    let id = create(&store, &json!({ "steps": [wait] }).to_string())?;
    let (mut times, mut rings) = (Vec::new(), Vec::new());
    for number in 0..WAKES {
        seen(&store, id, |session| matches!(session.state, State::Idle))?;
        give(&store, prompt(id, &format!("wait for the tick, time {number}")))?;
        hosts.ring();
        let parked = seen(&store, id, |session| session.suspended().is_some())?;
        let event = tick(number);
        store.transact(move |tx| tx.acknowledge(&event)).wait()?;
        let acknowledged = Instant::now();
        hosts.ring();
        rings.push(acknowledged.elapsed());
        seen(&store, id, |session| session.epoch > parked.epoch)?;
        times.push(acknowledged.elapsed());
    }
    figures.add("wake_latency_p50_us", percentile(&mut times, 0.5));
    figures.add("wake_latency_p99_us", percentile(&mut times, 0.99));
    // Part of the above.
    figures.add("ring_p50_us", percentile(&mut rings, 0.5));
    Ok(())
}

fn tick(number: usize) -> NewEvent {
    NewEvent {
        id: number.to_string(),
        source: "bench".to_owned(),
        name: "tick".to_owned(),
        subject: None,
        time: Machine.now(),
        tenant: TENANT.to_owned(),
        session: None,
        data: None,
    }
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
