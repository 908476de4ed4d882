//! The store: durable commands, alone and together, beside another process, and at rest.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::Budget;
use adjourn_core::command::{Prompt, Reach, Resume, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use adjourn_core::transcript::Content;
use adjourn_core::{Command, Founding};
use adjourn_host::clock::Machine;
use adjourn_record::keys::{Key, Keys};
use adjourn_store::sqlite::Options;
use adjourn_store::{CommandError, Environment as _, Request, Sqlite, Store as _};
use anyhow::{Context as _, Result, ensure};

use super::figures::{Figures, percentile};

/// How long a throughput is measured.
const SPAN: Duration = Duration::from_millis(800);

fn open(path: &Path) -> Result<Sqlite> {
    let key = Key::from_secrets(Timestamp::from_millis(0), &[1; 32], &[2; 32]);
    Ok(Sqlite::open(Options::new(path, Arc::new(Machine), Keys::only(key)))?)
}

fn by() -> Actor {
    Actor::new(Face::Library, "bench")
}

fn founding() -> Founding {
    Founding {
        id: SessionId::new(Machine.uuid()),
        tenant: "bench".to_owned(),
        labels: BTreeMap::new(),
        parent: None,
        driver: DriverSpec::script("{}"),
        budget: Budget::default(),
    }
}

fn create(store: &Sqlite) -> Result<SessionId> {
    Ok(store.transact(|tx| tx.create(by(), founding())).wait()?.session.id)
}

fn give(store: &Sqlite, id: SessionId, command: Command) -> Result<(), CommandError> {
    let request = Request::new(id, by(), command);
    store.transact(move |tx| tx.command(request).map(|_| ())).wait()
}

fn suspend() -> Command {
    Command::Suspend(Suspend { reason: Some("bench".to_owned()), ..Suspend::default() })
}

/// One durable command at a time, then cycles of suspend and resume: alone, and 64 at once.
pub fn cycles(place: &Path, figures: &mut Figures) -> Result<()> {
    let store = open(&place.join("cycles.db"))?;
    let id = create(&store)?;
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < SPAN {
        for command in [suspend(), Command::Resume(Resume::default())] {
            let before = Instant::now();
            give(&store, id, command)?;
            times.push(before.elapsed());
        }
    }
    figures.add("cycles_per_s_n1", times.len() as f64 / 2.0 / start.elapsed().as_secs_f64());
    figures.add("op_n1_p50_us", percentile(&mut times, 0.5));
    figures.add("op_n1_p99_us", percentile(&mut times, 0.99));

    let before = store.metrics();
    let start = Instant::now();
    let cycles = together(&store, 64, |_| start.elapsed() < SPAN)?;
    let after = store.metrics();
    figures.add("cycles_per_s_n64", cycles as f64 / start.elapsed().as_secs_f64());
    let commits = (after.commits - before.commits) as f64;
    figures.add("ops_per_fsync_n64", (after.commands - before.commands) as f64 / commits);
    Ok(())
}

/// Runs cycles from many threads, and returns how many there were.
fn together(store: &Sqlite, count: usize, go_on: impl Fn(u64) -> bool + Sync) -> Result<u64> {
    let ids: Vec<_> = (0..count).map(|_| create(store)).collect::<Result<_>>()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = ids
            .into_iter()
            .map(|id| {
                let go_on = &go_on;
                scope.spawn(move || -> Result<u64> {
                    let mut cycles = 0;
                    while go_on(cycles) {
                        give(store, id, suspend())?;
                        give(store, id, Command::Resume(Resume::default()))?;
                        cycles += 1;
                    }
                    Ok(cycles)
                })
            })
            .collect();
        let mut cycles = 0;
        for thread in threads {
            cycles += thread.join().ok().context("a thread panicked")??;
        }
        Ok(cycles)
    })
}

/// The price of a suspension with a short and with a long transcript.
pub fn messages(place: &Path, figures: &mut Figures) -> Result<()> {
    let store = open(&place.join("messages.db"))?;
    let mut medians = Vec::new();
    let mut sessions = Vec::new();
    for messages in [10, 10_000] {
        let id = create(&store)?;
        store
            .transact(move |tx| -> Result<(), CommandError> {
                for number in 0..messages {
                    let text = format!("message {number} {}", "x".repeat(200));
                    let prompt = Prompt {
                        content: Content::text(&text),
                        message_id: None,
                        handle: None,
                        reach: Reach::OwnFace,
                    };
                    let request = Request::new(id, by(), Command::Prompt(prompt));
                    tx.command(request.saying(vec![text.into_bytes()]))?;
                    tx.command(Request::new(id, by(), Command::Cancel(Default::default())))?;
                }
                Ok(())
            })
            .wait()?;
        sessions.push((id, Vec::new()));
    }
    for _ in 0..200 {
        for (id, times) in &mut sessions {
            let before = Instant::now();
            give(&store, *id, suspend())?;
            times.push(before.elapsed());
            give(&store, *id, Command::Resume(Resume::default()))?;
        }
    }
    for (_, times) in &mut sessions {
        medians.push(percentile(times, 0.5));
    }
    if let [short, long] = medians.as_slice() {
        figures.add("suspend_10_vs_10000_messages_ratio", long / short);
    }
    Ok(())
}

/// A durable write of one process while another saturates the store.
pub fn foreign(place: &Path, figures: &mut Figures) -> Result<()> {
    let path = place.join("foreign.db");
    let store = open(&path)?;
    let done = Arc::new(AtomicBool::new(false));
    let child = {
        let done = Arc::clone(&done);
        let path = path.clone();
        std::thread::spawn(move || -> Result<String> {
            let output = Process::new(std::env::current_exe()?)
                .arg(super::CHILD)
                .arg(&path)
                .stderr(Stdio::inherit())
                .output();
            done.store(true, Ordering::SeqCst);
            let output = output?;
            ensure!(output.status.success(), "the second process failed");
            Ok(String::from_utf8(output.stdout)?)
        })
    };
    let start = Instant::now();
    let cycles = together(&store, 64, |_| !done.load(Ordering::SeqCst))?;
    let rate = cycles as f64 / start.elapsed().as_secs_f64();
    let printed = child.join().ok().context("a thread panicked")??;
    let numbers: Vec<f64> = printed.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [p50, p99] = numbers.as_slice() else { anyhow::bail!("the child printed {printed:?}") };
    figures.add("foreign_write_p50_ms", p50 / 1000.0);
    figures.add("foreign_write_p99_ms", p99 / 1000.0);
    figures.add("cycles_per_s_n64_beside_a_foreign_writer", rate);
    Ok(())
}

/// The second process: single durable writes.
pub fn foreign_child(path: &Path) -> Result<()> {
    let store = open(path)?;
    let id = create(&store)?;
    let mut times = Vec::new();
    for _ in 0..100 {
        for command in [suspend(), Command::Resume(Resume::default())] {
            let before = Instant::now();
            give(&store, id, command)?;
            times.push(before.elapsed());
        }
    }
    println!("{} {}", percentile(&mut times, 0.5), percentile(&mut times, 0.99));
    Ok(())
}

/// Many parked sessions: what they take on disk and in memory, and how long a start takes.
pub fn parked(
    place: &Path,
    count: usize,
    label: &'static str,
    figures: &mut Figures,
) -> Result<()> {
    let name = |what: &str| -> &'static str { Box::leak(format!("{what}_{label}").into()) };
    let path = place.join(format!("parked-{label}.db"));
    let store = open(&path)?;
    let value = serde_json::json!({
        "onEvent": "ci.passed:build-1",
        "timeout": { "durationMinutes": 60, "onTimeout": "fail" },
    });
    let conditions = Conditions::parse(&value, Spelling::Camel)?;
    let start = Instant::now();
    for _ in 0..count / 250 {
        let conditions = conditions.clone();
        store
            .transact(move |tx| -> Result<(), CommandError> {
                for _ in 0..250 {
                    let id = tx.create(by(), founding())?.session.id;
                    let suspend = Suspend {
                        reason: Some("waiting on ci".to_owned()),
                        resume_when: conditions.clone(),
                        ..Suspend::default()
                    };
                    tx.command(Request::new(id, by(), Command::Suspend(suspend)))?;
                }
                Ok(())
            })
            .wait()?;
    }
    figures.add(name("parked_per_s"), count as f64 / start.elapsed().as_secs_f64());
    let size = store.size()?;
    figures.add(name("disk_per_parked_bytes"), size.file as f64 / count as f64);
    drop(store);

    let before = resident()?;
    let start = Instant::now();
    let store = open(&path)?;
    let due = store.next_due()?;
    figures.add(name("restart_ms"), start.elapsed().as_secs_f64() * 1000.0);
    ensure!(due.is_some(), "the parked sessions have deadlines");
    let grown = resident()?.saturating_sub(before);
    figures.add(name("rss_per_parked_bytes"), grown as f64 / count as f64);
    Ok(())
}

/// Returns the memory this process has in use.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/statm")?;
    let pages = status.split_whitespace().nth(1).context("statm has a second column")?;
    Ok(pages.parse::<u64>()? * 4096)
}
