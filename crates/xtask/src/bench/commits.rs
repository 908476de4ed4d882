//! Durable commands: alone beside the raw disk, many at once, with a long past, and beside another
//! process.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adjourn::Adjourn;
use adjourn::core::Command;
use adjourn::core::id::SessionId;
use adjourn::store::{CommandError, Request};
use anyhow::{Context as _, Result};
use tokio::task::JoinSet;

use super::child;
use super::figures::{Figures, percentile};
use super::sessions::{by, create, open, prompt, suspend, wait};

/// How long a throughput is measured.
const SPAN: Duration = Duration::from_millis(800);
/// Sessions that work at once.
const SESSIONS: usize = 64;
/// What the raw file is written in: a page.
const RECORD: usize = 4096;
/// How many records the raw file has; it is written over and over, as the log of the store is.
const RECORDS: u64 = 64;
/// How often the raw disk and the store take turns, and how many commands each gets at a time: on
/// a disk that others use, only neighbours in time can be compared.
const TURNS: u64 = 40;
const TURN: u64 = 10;

/// One durable command at a time, in turns with the same disk without us.
pub fn alone(place: &Path, figures: &mut Figures) -> Result<()> {
    let raw = File::options().create_new(true).write(true).open(place.join("raw"))?;
    // The file has its full size before it is measured: growing it would cost a journal commit.
    raw.write_all_at(&[1; RECORD].repeat(usize::try_from(RECORDS)?), 0)?;
    raw.sync_all()?;
    let adjourn = open(&place.join("alone.db"))?;
    let id = create(&adjourn, "{}")?;
    // The log has been written over once before it is measured, as it has in any store of some age.
    for _ in 0..150 {
        cycle(&adjourn, id, &mut Vec::new())?;
    }
    let (mut syncs, mut commits) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        for number in turn * TURN..(turn + 1) * TURN {
            let mut record = vec![0; RECORD];
            record.iter_mut().zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
            let before = Instant::now();
            raw.write_all_at(&record, (number % RECORDS) * RECORD as u64)?;
            raw.sync_data()?;
            syncs.push(before.elapsed());
        }
        for _ in 0..TURN {
            cycle(&adjourn, id, &mut commits)?;
        }
    }
    let (fsync, commit) = (percentile(&mut syncs, 0.5), percentile(&mut commits, 0.5));
    figures.add("fsync_p50_us", fsync);
    figures.add("op_n1_p50_us", commit);
    figures.add("op_n1_vs_fsync_ratio", commit / fsync);
    figures.add("op_n1_p99_us", percentile(&mut commits, 0.99));
    figures.add("op_n1_p999_us", percentile(&mut commits, 0.999));
    let spent: Duration = commits.iter().sum();
    figures.add("cycles_per_s_n1", commits.len() as f64 / 2.0 / spent.as_secs_f64());
    Ok(())
}

/// Suspends and resumes once, and notes how long each took.
fn cycle(adjourn: &Adjourn, id: SessionId, times: &mut Vec<Duration>) -> Result<()> {
    let before = Instant::now();
    wait(suspend(adjourn, id))?;
    times.push(before.elapsed());
    let before = Instant::now();
    wait(adjourn.session(id).resume())?;
    times.push(before.elapsed());
    Ok(())
}

/// Cycles of suspend and resume of many sessions at once.
pub fn together(place: &Path, figures: &mut Figures) -> Result<()> {
    let adjourn = open(&place.join("together.db"))?;
    let ids = many(&adjourn)?;
    let before = adjourn.metrics();
    let start = Instant::now();
    let cycles = cycles(&adjourn, &ids, move || start.elapsed() < SPAN)?;
    let spent = start.elapsed();
    let after = adjourn.metrics();
    figures.add("cycles_per_s_n64", cycles as f64 / spent.as_secs_f64());
    let commits = (after.commits - before.commits) as f64;
    figures.add("ops_per_fsync_n64", (after.commands - before.commands) as f64 / commits);
    Ok(())
}

fn many(adjourn: &Adjourn) -> Result<Vec<SessionId>> {
    (0..SESSIONS).map(|_| create(adjourn, "{}")).collect()
}

/// Runs cycles of many sessions, each a task as in a host, and returns how many there were.
fn cycles(
    adjourn: &Adjourn,
    ids: &[SessionId],
    go_on: impl Fn() -> bool + Clone + Send + 'static,
) -> Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for id in ids.iter().copied() {
            let (adjourn, go_on) = (adjourn.clone(), go_on.clone());
            tasks.spawn(async move {
                let mut cycles = 0;
                while go_on() {
                    suspend(&adjourn, id).await?;
                    adjourn.session(id).resume().await?;
                    cycles += 1;
                }
                Ok::<u64, adjourn::Error>(cycles)
            });
        }
        let mut total = 0;
        while let Some(cycles) = tasks.join_next().await {
            total += cycles??;
        }
        Ok(total)
    })
}

/// The price of a suspension with a short and with a long transcript.
pub fn messages(place: &Path, figures: &mut Figures) -> Result<()> {
    let adjourn = open(&place.join("messages.db"))?;
    let mut sessions = Vec::new();
    for messages in [10, 10_000] {
        let id = create(&adjourn, "{}")?;
        // It is not measured how the past is made: in one commit, which no verb makes.
        wait(adjourn.transact(move |tx| -> Result<(), CommandError> {
            for number in 0..messages {
                tx.command(prompt(id, &format!("message {number} {}", "x".repeat(200))))?;
                tx.command(Request::new(id, by(), Command::Cancel(Default::default())))?;
            }
            Ok(())
        }))?;
        sessions.push((id, Vec::new()));
    }
    for _ in 0..200 {
        for (id, times) in &mut sessions {
            let before = Instant::now();
            wait(suspend(&adjourn, *id))?;
            times.push(before.elapsed());
            wait(adjourn.session(*id).resume())?;
        }
    }
    if let [(_, short), (_, long)] = sessions.as_mut_slice() {
        let ratio = percentile(long, 0.5) / percentile(short, 0.5);
        figures.add("suspend_10_vs_10000_messages_ratio", ratio);
    }
    Ok(())
}

/// A durable write of one process while another saturates the store.
pub fn foreign(place: &Path, figures: &mut Figures) -> Result<()> {
    let path = place.join("foreign.db");
    let adjourn = open(&path)?;
    let ids = many(&adjourn)?;
    let mut child = child::spawn("writer", Some(&path))?;
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            let line = child.line();
            done.store(true, Ordering::SeqCst);
            line
        })
    };
    let start = Instant::now();
    let cycles = cycles(&adjourn, &ids, move || !done.load(Ordering::SeqCst))?;
    let rate = cycles as f64 / start.elapsed().as_secs_f64();
    let printed = reader.join().ok().context("a thread panicked")??;
    let numbers: Vec<f64> = printed.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [p50, p99] = numbers.as_slice() else { anyhow::bail!("the child printed {printed:?}") };
    figures.add("foreign_write_p50_ms", p50 / 1000.0);
    figures.add("foreign_write_p99_ms", p99 / 1000.0);
    figures.add("cycles_per_s_n64_beside_a_foreign_writer", rate);
    Ok(())
}

/// The second process: single durable writes.
pub fn foreign_child(path: &Path) -> Result<()> {
    let adjourn = open(path)?;
    let id = create(&adjourn, "{}")?;
    let mut times = Vec::new();
    for _ in 0..100 {
        cycle(&adjourn, id, &mut times)?;
    }
    println!("{} {}", percentile(&mut times, 0.5), percentile(&mut times, 0.99));
    Ok(())
}
