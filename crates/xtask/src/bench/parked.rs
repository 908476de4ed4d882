//! Many parked sessions: what they take, how long a host takes to start beside them, and how fast
//! one of them is looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn_core::Command;
use adjourn_core::command::Suspend;
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::id::SessionId;
use adjourn_host::clock::Machine;
use adjourn_store::{CommandError, Environment, Request, Sqlite, Store as _};
use anyhow::{Context as _, Result};
use serde_json::json;

use super::child::Child;
use super::figures::Figures;
use super::sessions::{by, create, founding, give, open, open_at, prompt};
use super::wake::seen;

/// Sessions that are parked in one commit.
const BATCH: usize = 250;
/// Sessions whose ids are kept, to look at.
const KNOWN: usize = 10_000;
/// How long looks are counted.
const SPAN: Duration = Duration::from_millis(300);

/// A store with parked sessions.
pub struct Parked {
    path: PathBuf,
    store: Sqlite,
    count: usize,
    /// Some of them.
    ids: Vec<SessionId>,
}

/// What was seen of a host that started.
pub struct Restarted {
    /// Milliseconds from the start of its process to the claim of what was ready.
    pub millis: f64,
    /// Its memory, in bytes.
    pub resident: u64,
}

impl Parked {
    /// Makes a store with so many parked sessions, none of them due.
    pub fn build(path: &Path, count: usize) -> Result<Self> {
        let ids = park(path, count, Arc::new(Machine))?;
        let (path, store) = (path.to_owned(), open(path)?);
        Ok(Self { path, store, count, ids })
    }

    /// Returns what one session takes of the file.
    pub fn disk_per_session(&self) -> Result<f64> {
        Ok(std::fs::metadata(&self.path)?.len() as f64 / self.count as f64)
    }

    /// Starts a host, which finds one session ready and what the host before it has left, and
    /// kills it when it has claimed both.
    pub fn restart(&self) -> Result<Restarted> {
        let script = r#"{"steps": [{"say": {"text": "on", "ms": 60000}}]}"#;
        let id = create(&self.store, script)?;
        give(&self.store, prompt(id, "begin"))?;
        let start = Instant::now();
        let host = Child::spawn("host", Some(&self.path))?;
        seen(&self.store, id, |session| session.owner().is_some())?;
        let millis = start.elapsed().as_secs_f64() * 1000.0;
        Ok(Restarted { millis, resident: host.resident()? })
    }

    /// Counts how often the status of one session or another is told, as JSON.
    pub fn status(&self, figures: &mut Figures) -> Result<()> {
        // A stride that comes to every session before it comes back.
        const STRIDE: usize = 7919;
        let mut looks = 0;
        let mut bytes = 0;
        let start = Instant::now();
        while start.elapsed() < SPAN {
            let id = self.ids.get(looks * STRIDE % self.ids.len()).context("there are sessions")?;
            let session = self.store.session(*id)?.context("the session is there")?;
            bytes += serde_json::to_string(&session.status())?.len();
            looks += 1;
        }
        figures.add("status_per_s", looks as f64 / start.elapsed().as_secs_f64());
        figures.add("status_bytes", bytes as f64 / looks as f64);
        Ok(())
    }
}

/// Parks sessions that wait an hour for an event, with a prompt to go on with; returns some.
pub fn park(path: &Path, count: usize, clock: Arc<dyn Environment>) -> Result<Vec<SessionId>> {
    let store = open_at(path, clock)?;
    let value = json!({ "onEvent": "ci.passed:build-1", "timeout": { "durationMinutes": 60 } });
    let conditions = Conditions::parse(&value, Spelling::Camel)?;
    let mut ids = Vec::new();
    for _ in 0..count / BATCH {
        let suspend = Suspend {
            reason: Some("waiting on ci".to_owned()),
            resume_when: conditions.clone(),
            ..Suspend::default()
        };
        let parked = store.transact(move |tx| -> Result<Vec<SessionId>, CommandError> {
            (0..BATCH)
                .map(|number| {
                    let script = r#"{"steps": [{"say": "deploying"}]}"#;
                    let id = tx.create(by(), founding(script))?.session.id;
                    tx.command(prompt(id, &format!("build it, attempt {number}")))?;
                    let suspend = Command::Suspend(suspend.clone());
                    tx.command(Request::new(id, by(), suspend))?;
                    Ok(id)
                })
                .collect()
        });
        let parked = parked.wait()?;
        if ids.len() < KNOWN {
            ids.extend(parked);
        }
    }
    Ok(ids)
}
