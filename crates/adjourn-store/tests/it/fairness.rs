//! Processes that share a store take turns: none is starved, and none that hangs holds the others
//! up.

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use adjourn_core::Command;
use adjourn_core::command::{Resume, Suspend};
use adjourn_core::id::SessionId;
use adjourn_store::{CommandError, Done, Pending, Request, Sqlite, Store as _};
use adjourn_testkit::VirtualClock;
use adjourn_testkit::process::say;

use crate::child::{self, options};
use crate::fixture::{Fixture, ann, create, keys};

/// Who submits at the same time, in the process that saturates the store.
const SUBMITTERS: usize = 64;
/// Transactions that each of them has under way.
const AHEAD: usize = 16;
/// Durable writes of the other process.
const WRITES: u64 = 200;
/// How often one of these may find the lock taken, on average.
///
/// A group is collected for 5 ms and then committed, the lock is tried every 100 us, and the
/// process that saturates leaves a gap after each commit: some 100 tries here. A fair turn more or
/// a slow disk do not reach this bound; waiting for luck goes far beyond it.
const RETRIES: u64 = 400;
/// What is left to others after a commit, while somebody waits.
const GAP: Duration = Duration::from_millis(2);
/// No single write takes this long, however slow the machine: patience ends at thirty seconds.
const LONGEST: Duration = Duration::from_secs(10);

#[test]
fn a_process_that_saturates_the_store_starves_no_other() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    let mut other = child::start("saturate", &fixture.path());
    assert_eq!(other.line().as_deref(), Some("saturated"));

    let (mut slowest, mut overtaken) = (Duration::ZERO, 0);
    for _ in 0..WRITES {
        let before = store.head().unwrap().number;
        let start = Instant::now();
        // Neither SQLITE_BUSY nor the end of patience: no write fails.
        turn(&store, id).wait().unwrap();
        slowest = slowest.max(start.elapsed());
        overtaken += store.head().unwrap().number - before - 1;
    }
    let retries = store.metrics().retries / WRITES;
    println!("{retries} tries per write, {overtaken} times overtaken, {slowest:?} at the most");
    assert!(retries < RETRIES, "{retries} tries per write");
    assert!(overtaken < 5 * WRITES, "overtaken {overtaken} times by {WRITES} writes");
    assert!(slowest < LONGEST, "{slowest:?}");

    other.tell("report");
    let report = other.line().unwrap();
    assert_eq!(other.end(), 0);
    println!("meanwhile the other process did {report}");
    let done: u64 = report.strip_suffix(" transactions").expect(&report).parse().unwrap();
    assert!(done > WRITES, "the gaps have starved the process that leaves them: {report}");
    let verified = store.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!(verified.sessions, 1 + SUBMITTERS as u64);
}

#[test]
fn a_process_stopped_between_transactions_holds_nobody_up() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    let mut other = child::start("single", &fixture.path());
    other.tell("write");
    assert_eq!(other.line().as_deref(), Some("written"));
    other.stop();

    let before = store.metrics().retries;
    for _ in 0..100 {
        turn(&store, id).wait().unwrap();
    }
    assert_eq!(store.metrics().retries, before, "a stopped process holds no lock");

    other.go_on();
    other.tell("write");
    assert_eq!(other.line().as_deref(), Some("written"));
    assert_eq!(other.end(), 0);
}

#[test]
fn a_process_stopped_while_it_waits_costs_the_others_a_gap_and_no_more() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    let mut other = child::start("single", &fixture.path());
    other.tell("write");
    assert_eq!(other.line().as_deref(), Some("written"));

    // While somebody else has the lock, the other process can only wait for it.
    let lock = rusqlite::Connection::open(fixture.path()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    other.tell("write");
    let queue = File::open(fixture.path().with_extension("db-queue")).unwrap();
    loop {
        while let Ok(()) = queue.try_lock() {
            queue.unlock().unwrap();
            std::thread::yield_now();
        }
        other.stop();
        // After its first write it may only have looked whether others wait.
        if queue.try_lock().is_err() {
            break;
        }
        queue.unlock().unwrap();
        other.go_on();
    }
    lock.execute_batch("COMMIT").unwrap();
    assert!(matches!(queue.try_lock(), Err(TryLockError::WouldBlock)), "it still waits");

    let start = Instant::now();
    for _ in 0..100 {
        turn(&store, id).wait().unwrap();
    }
    let took = start.elapsed();
    assert!(took < LONGEST, "{took:?} for 100 writes");
    assert!(took > 99 * GAP, "no gap is left for those who wait: {took:?} for 100 writes");

    other.go_on();
    assert_eq!(other.line().as_deref(), Some("written"), "its turn comes when it goes on");
    assert_eq!(other.end(), 0);
}

#[test]
fn a_process_stopped_while_it_looks_who_waits_holds_nobody_up() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    // As if it had been stopped right there: it has the queue for itself, and the lock is free soon.
    let queue = File::open(fixture.path().with_extension("db-queue")).unwrap();
    queue.try_lock().unwrap();
    let lock = rusqlite::Connection::open(fixture.path()).unwrap();
    // Until it has met a lock that was taken, and got over it.
    while store.metrics().retries == 0 {
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        let written = turn(&store, id);
        std::thread::sleep(GAP);
        lock.execute_batch("COMMIT").unwrap();
        written.wait().unwrap();
    }
    queue.unlock().unwrap();
}

#[test]
fn a_store_can_be_made_by_many_at_once() {
    const MAKERS: u16 = 6;
    for _ in 0..10 {
        let fixture = Fixture::new();
        let start = Barrier::new(usize::from(MAKERS));
        std::thread::scope(|scope| {
            for maker in 0..MAKERS {
                let (fixture, start) = (&fixture, &start);
                scope.spawn(move || {
                    let mut options = fixture.options();
                    options.environment = Arc::new(VirtualClock::of_series(10 + maker));
                    start.wait();
                    create(&Sqlite::open(options).unwrap());
                });
            }
        });
        let verified = fixture.open().verify(&keys().ring(), None).unwrap().unwrap();
        assert_eq!(verified.sessions, u64::from(MAKERS));
    }
}

/// Suspends a session, or resumes it.
fn turn(store: &Sqlite, id: SessionId) -> Pending<Done, CommandError> {
    store.transact(move |tx| {
        let suspended = tx.session(id)?.is_some_and(|session| session.suspended().is_some());
        let command = if suspended {
            Command::Resume(Resume::default())
        } else {
            Command::Suspend(Suspend::default())
        };
        tx.command(Request::new(id, ann(), command))
    })
}

/// The child that saturates the store, until it is asked for a report.
pub fn saturate(orders: &Receiver<String>) {
    let store = Sqlite::open(options()).unwrap();
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Barrier::new(SUBMITTERS + 1);
    let sessions: Vec<_> = (0..SUBMITTERS).map(|_| create(&store)).collect();
    std::thread::scope(|scope| {
        for id in sessions {
            let (store, stop, done, begun) = (&store, &stop, &done, &begun);
            scope.spawn(move || {
                begun.wait();
                // Several at a time, so that the writer never finds its queue empty.
                let mut under_way = VecDeque::new();
                while !stop.load(Ordering::Relaxed) {
                    under_way.push_back(turn(store, id));
                    if under_way.len() < AHEAD {
                        continue;
                    }
                    let first = under_way.pop_front().expect("there are some");
                    if let Err(error) = first.wait() {
                        say(format_args!("a write failed: {error}"));
                        return;
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        begun.wait();
        say("saturated");
        let before = done.load(Ordering::Relaxed);
        let _ = orders.recv();
        let done = done.load(Ordering::Relaxed) - before;
        stop.store(true, Ordering::Relaxed);
        say(format_args!("{done} transactions"));
    });
}

/// The child that writes once whenever it is told to.
pub fn single(orders: &Receiver<String>) {
    let store = Sqlite::open(options()).unwrap();
    let id = create(&store);
    while let Ok(order) = orders.recv() {
        assert_eq!(order, "write");
        turn(&store, id).wait().unwrap();
        say("written");
    }
}
