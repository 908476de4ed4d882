//! Many parked sessions: what they take, how long a host takes to start beside them, and how fast
//! one of them is looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::clock::{Clock, Environment as _, Machine};
use adjourn::core::command::Suspend;
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::driver::DriverSpec;
use adjourn::core::id::SessionId;
use adjourn::core::{Command, Session};
use adjourn::store::{CommandError, Request};
use adjourn::{Adjourn, Event};
use adjourn_testkit::process::{Pipe, resident};
use anyhow::{Context as _, Result};
use serde_json::json;

use super::child;
use super::figures::Figures;
use super::sessions::{by, create, founding, open, open_at, prompt, wait};
use super::wake::seen;

/// Sessions that are parked in one commit.
const BATCH: usize = 250;
/// Sessions whose ids are kept, to look at.
const KNOWN: usize = 10_000;
/// How long looks are counted.
const SPAN: Duration = Duration::from_millis(300);
/// Sessions that a host drives before its memory is read, and how often each is woken and parks
/// again: more than enough to fill what a host keeps of sessions at work.
const WORKERS: usize = 500;
const TURNS: usize = 4;
/// How long a host's memory has to stay as it is until it is read, and how often that is tried.
const STILL: Duration = Duration::from_millis(50);
const LOOKS: usize = 40;

/// A store with parked sessions.
pub struct Parked {
    path: PathBuf,
    adjourn: Adjourn,
    count: usize,
    /// Some of them.
    ids: Vec<SessionId>,
}

impl Parked {
    /// Makes a store with so many parked sessions, none of them due.
    pub fn build(path: &Path, count: usize) -> Result<Self> {
        let ids = park(path, count, Arc::new(Machine))?;
        let (path, adjourn) = (path.to_owned(), open(path)?);
        Ok(Self { path, adjourn, count, ids })
    }

    /// Returns where the store is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what one session takes of the file.
    pub fn disk_per_session(&self) -> Result<f64> {
        Ok(std::fs::metadata(&self.path)?.len() as f64 / self.count as f64)
    }

    /// Starts a host, which finds one session ready and what the host before it has left, and
    /// kills it when it has claimed both; returns how many milliseconds that took.
    pub fn restart(&self) -> Result<f64> {
        let script = r#"{"steps": [{"say": {"text": "on", "ms": 60000}}]}"#;
        let id = create(&self.adjourn, script)?;
        wait(self.adjourn.session(id).prompt("begin"))?;
        let start = Instant::now();
        let _host = child::spawn("host", Some(&self.path))?;
        seen(&self.adjourn, id, |session| session.owner().is_some())?;
        Ok(start.elapsed().as_secs_f64() * 1000.0)
    }

    /// Returns the memory of a host that has been at work beside these sessions, in bytes.
    ///
    /// Its work is the same whatever else is in the store: other sessions that events wake and
    /// that park again.
    pub fn resident_after_work(&self) -> Result<u64> {
        let adjourn = open(&self.path)?;
        let mut host = child::spawn("host", Some(&self.path))?;
        host.line()?;
        let mut workers = Vec::new();
        for _ in 0..WORKERS {
            let subject = Machine.uuid().to_string();
            let conditions = json!({ "onEvent": format!("turn:{subject}") });
            let turn = json!({ "await": { "reason": "x", "conditions": conditions } });
            let script = json!({ "steps": vec![turn; TURNS] }).to_string();
            let created = adjourn.create_with(DriverSpec::script(script));
            workers.push((wait(created.prompt("wait for your turns"))?.id(), subject));
        }
        let mut epochs = Vec::new();
        for (id, _) in &workers {
            epochs.push(seen(&self.adjourn, *id, |session| session.suspended().is_some())?.epoch);
        }
        for _ in 0..TURNS {
            let turn = |subject: &String| Event::new("turn").source("bench").subject(subject);
            let turns = workers.iter().map(|(_, subject)| turn(subject));
            wait(adjourn.publish_all(turns))?;
            for ((id, _), epoch) in workers.iter().zip(&mut epochs) {
                let rests = |session: &Session| session.epoch > *epoch && session.owner().is_none();
                *epoch = seen(&self.adjourn, *id, rests)?.epoch;
            }
        }
        Ok(settled(&host))
    }

    /// Counts how often the status of one session or another is told, as JSON.
    pub fn status(&self, figures: &mut Figures) -> Result<()> {
        // A stride that comes to every session before it comes back.
        const STRIDE: usize = 7919;
        let mut looks = 0;
        let mut bytes = 0;
        let start = Instant::now();
        wait(async {
            while start.elapsed() < SPAN {
                let id = self.ids.get(looks * STRIDE % self.ids.len());
                let id = id.context("there are sessions")?;
                let session = self.adjourn.session(*id).load().await?;
                bytes += serde_json::to_string(&session.status())?.len();
                looks += 1;
            }
            anyhow::Ok(())
        })?;
        figures.add("status_per_s", looks as f64 / start.elapsed().as_secs_f64());
        figures.add("status_bytes", bytes as f64 / looks as f64);
        Ok(())
    }
}

/// Returns a process' memory when it has stopped to change.
fn settled(host: &Pipe) -> u64 {
    let now = || resident(host.child().id());
    let mut settled = now();
    for _ in 0..LOOKS {
        std::thread::sleep(STILL);
        let before = std::mem::replace(&mut settled, now());
        if before == settled {
            break;
        }
    }
    settled
}

/// Returns what each session takes that only the second of two hosts has beside it, from the
/// memory of both. Less than nothing is possible: both vary by more than a session takes.
pub fn per_session(beside_few: u64, beside_many: u64, more: usize) -> f64 {
    (beside_many as f64 - beside_few as f64) / more as f64
}

/// Parks sessions that wait an hour for an event, with a prompt to go on with; returns some.
pub fn park(path: &Path, count: usize, clock: Arc<dyn Clock>) -> Result<Vec<SessionId>> {
    let adjourn = open_at(path, clock)?;
    let value = json!({ "onEvent": "ci.passed:build-1", "timeout": { "durationMinutes": 60 } });
    let conditions = Conditions::parse(&value, Spelling::Camel)?;
    let mut ids = Vec::new();
    for _ in 0..count / BATCH {
        let suspend = Suspend {
            reason: Some("waiting on ci".to_owned()),
            resume_when: conditions.clone(),
            ..Suspend::default()
        };
        // It is not measured how they are parked: many in one commit, which no verb makes.
        let parked = adjourn.transact(move |tx| -> Result<Vec<SessionId>, CommandError> {
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
        let parked = wait(parked)?;
        if ids.len() < KNOWN {
            ids.extend(parked);
        }
        // As a host does in its spare time.
        wait(adjourn.catch_up_list())?;
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "exact in these numbers")]
    fn a_host_beside_many_may_be_the_smaller_one() {
        assert_eq!(per_session(1_000_000, 5_000_000, 1_000_000), 4.0);
        assert_eq!(per_session(1_500_000, 1_000_000, 1_000_000), -0.5);
    }
}
