//! A hundred thousand deadlines at once, and a client that wants something meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::clock::{Environment as _, Machine};
use anyhow::{Result, ensure};

use super::child;
use super::figures::{Figures, percentile};
use super::parked::park;
use super::sessions::{Earlier, create, open, suspend, wait};

/// How many.
pub const DEADLINES: usize = 100_000;
/// Sessions are parked for one hour, so long ago.
const AGO: Duration = Duration::from_secs(2 * 3600);
/// How long the client waits between two commands.
const PAUSE: Duration = Duration::from_millis(1);

/// A store in which everything is due, to be copied.
pub struct Storm(PathBuf);

/// Parks the sessions.
pub fn prepare(path: &Path) -> Result<Storm> {
    park(path, DEADLINES, Arc::new(Earlier(AGO)))?;
    Ok(Storm(path.to_owned()))
}

impl Storm {
    /// Lets a host find them all, once.
    pub fn measure(&self, place: &Path, figures: &mut Figures) -> Result<()> {
        let path = place.join("storm.db");
        std::fs::copy(&self.0, &path)?;
        let adjourn = open(&path)?;
        let client = create(&adjourn, "{}")?;
        let parked = wait(adjourn.size())?.suspended;
        ensure!(parked == DEADLINES as u64, "{parked} sessions are parked");
        let host = child::spawn("host", Some(&path))?;
        let start = Instant::now();
        let mut times = Vec::new();
        while wait(adjourn.next_due())?.is_some_and(|due| due <= Machine.now()) {
            let before = Instant::now();
            match times.len() % 2 {
                0 => wait(suspend(&adjourn, client))?,
                _ => drop(wait(adjourn.session(client).resume())?),
            }
            times.push(before.elapsed());
            std::thread::sleep(PAUSE);
        }
        let spent = start.elapsed();
        drop(host);
        // The client's own may be left.
        let left = wait(adjourn.size())?.suspended;
        ensure!(left <= 1, "{left} sessions are still parked");
        figures.add("storm_100k_s", spent.as_secs_f64());
        figures.add("storm_foreground_p50_ms", percentile(&mut times, 0.5) / 1000.0);
        figures.add("storm_foreground_p99_ms", percentile(&mut times, 0.99) / 1000.0);
        Ok(())
    }
}
