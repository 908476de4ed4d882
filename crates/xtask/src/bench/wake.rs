//! How long an acknowledged event takes to wake a session that another process drives.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::core::Session;
use adjourn::core::id::SessionId;
use adjourn::core::session::State;
use adjourn::{Adjourn, Event};
use anyhow::{Result, ensure};
use serde_json::json;

use super::child;
use super::figures::{Figures, percentile};
use super::sessions::{create, open, wait};

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
    let adjourn = open(&path)?;
    let mut host = child::spawn("host", Some(&path))?;
    host.line()?;
    // One short run after the other: a script is read again at every claim.
    let tick = json!({ "await": { "reason": "waiting", "conditions": { "onEvent": "tick" } } });
    let id = create(&adjourn, &json!({ "steps": [tick] }).to_string())?;
    let mut times = Vec::new();
    for number in 0..WAKES {
        seen(&adjourn, id, |session| matches!(session.state, State::Idle))?;
        let prompt = adjourn.session(id).prompt(format!("wait for the tick, time {number}"));
        wait(prompt)?;
        let parked = seen(&adjourn, id, |session| session.suspended().is_some())?;
        let event = Event::new("tick").id(number.to_string()).source("bench");
        wait(adjourn.publish(event))?;
        let acknowledged = Instant::now();
        seen(&adjourn, id, |session| session.epoch > parked.epoch)?;
        times.push(acknowledged.elapsed());
    }
    figures.add("wake_latency_p50_us", percentile(&mut times, 0.5));
    figures.add("wake_latency_p99_us", percentile(&mut times, 0.99));
    Ok(())
}

/// Looks at a session again and again.
pub fn seen(
    adjourn: &Adjourn,
    id: SessionId,
    is_so: impl Fn(&Session) -> bool,
) -> Result<Arc<Session>> {
    let start = Instant::now();
    loop {
        let session = wait(adjourn.session(id).load())?;
        if is_so(&session) {
            return Ok(session);
        }
        ensure!(start.elapsed() < PATIENCE, "nobody moved the session on");
        std::thread::sleep(REST);
    }
}
