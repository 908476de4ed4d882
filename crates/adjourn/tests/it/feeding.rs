//! The feed: who is told of a commit, what that costs, and that nothing is missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adjourn::clock::{Clock, Machine};
use adjourn::script::Scripted;
use adjourn::watch::{Moment, Watcher};
use adjourn::{Config, Host, Ring};
use adjourn_core::Command;
use adjourn_core::command::{Mode, Resume, Suspend};
use adjourn_core::id::{HostId, SessionId};
use adjourn_store::sqlite::{Point, Points};
use adjourn_store::{Environment as _, Request, Sqlite, Store};

use tokio::task::JoinSet;

use crate::fixture::{Fixture, ann, prompt};

const SAYS: &str = r#"{"steps": [{"say": "hello"}]}"#;
const CALLS: &str = r#"{"steps": [{"tool": {"name": "long", "ms": 3600000}}]}"#;

/// A host that has joined and does not work, so that nothing is read but by those who are told.
async fn resting(fixture: &Fixture) -> Host<Sqlite> {
    let clock: Arc<dyn Clock> = Arc::new(fixture.clock.clone());
    let drivers = Arc::new(Scripted::new(Arc::clone(&clock)));
    let (store, hosts) = (fixture.store.clone(), fixture.hosts());
    Host::join(store, hosts, clock, drivers, Config::default()).await.unwrap()
}

fn suspend(id: SessionId) -> Request {
    Request::new(id, ann(), Command::Suspend(Suspend::default()))
}

fn resume(id: SessionId) -> Request {
    Request::new(id, ann(), Command::Resume(Resume::default()))
}

fn reads(store: &impl Store) -> u64 {
    store.metrics().reads
}

/// Returns whether something resolves at once.
async fn is_ready(wait: impl Future<Output = ()>) -> bool {
    tokio::select! {
        biased;
        () = wait => true,
        () = std::future::ready(()) => false,
    }
}

/// Suspends and resumes one session beside others that are followed, and returns how many reads
/// that took with all who follow a session looking as often as they are told to.
async fn reads_beside(followed: usize) -> u64 {
    let fixture = Fixture::new();
    let host = resting(&fixture).await;
    let claimant = host.claimant();
    let ids = fixture.create_many(followed, SAYS);
    let follow = |id: &SessionId| {
        let watcher = Watcher::after(fixture.store.clone(), &fixture.session(*id));
        watcher.following(claimant.feed())
    };
    let mut watchers: Vec<_> = ids.iter().map(follow).collect();
    for watcher in &mut watchers {
        assert_eq!(watcher.rest().unwrap(), []);
    }
    let before = reads(&fixture.store);
    let mut told = 0;
    for request in [suspend(ids[0]), resume(ids[0])] {
        claimant.give(request).await.unwrap();
        for watcher in &mut watchers {
            if is_ready(watcher.changed()).await {
                told += watcher.rest().unwrap().len();
            }
        }
    }
    assert_eq!(told, 2, "one session has changed, twice");
    reads(&fixture.store) - before
}

#[tokio::test]
async fn a_commit_is_read_as_often_beside_ten_followed_sessions_as_beside_a_thousand() {
    let (few, many) = (reads_beside(10).await, reads_beside(1000).await);
    assert_eq!(few, many);
    // The one whether the resume may make the session ready.
    assert!(few <= 1, "{few} reads");
}

/// Suspends a session beside others that run, and returns how many reads that took until it rests.
async fn reads_beside_running(running: usize) -> u64 {
    let fixture = Fixture::new();
    let drivers = Arc::new(Scripted::new(Arc::new(fixture.clock.clone())));
    let config = Config { max_running: running + 1, ..Config::default() };
    let host = fixture.host_as(drivers, config).await;
    let ids = fixture.create_many(running, CALLS);
    let mut prompts = JoinSet::new();
    for id in ids.iter().copied() {
        let claimant = host.claimant.clone();
        prompts.spawn(async move { claimant.give(prompt(id, "go")).await.map(|_| ()) });
    }
    while let Some(prompted) = prompts.join_next().await {
        prompted.unwrap().unwrap();
    }
    // Each call has started, and its task reads no more.
    fixture.clock.until_waited_for(running).await;
    let following = host.claimant.feed().follow(ids[0]);
    let before = reads(&fixture.store);
    let (mode, grace_ms) = (Mode::InterruptImmediate, Some(1000));
    let suspend = Command::Suspend(Suspend { mode, grace_ms, ..Suspend::default() });
    host.claimant.give(Request::new(ids[0], ann(), suspend)).await.unwrap();
    while following.session().is_none_or(|session| session.suspended().is_none()) {
        fixture.clock.advance(Duration::from_millis(100));
        let changed = tokio::time::timeout(Duration::from_millis(5), following.changed());
        let _ = changed.await;
    }
    let taken = reads(&fixture.store) - before;
    host.kill().await;
    taken
}

#[tokio::test]
async fn a_commit_is_read_as_often_beside_ten_running_sessions_as_beside_a_thousand() {
    let (few, many) = (reads_beside_running(10).await, reads_beside_running(1000).await);
    // The host looks by itself once a second, however long this takes.
    assert!(many < few + 200, "{few} reads beside ten, {many} beside a thousand");
}

#[tokio::test]
async fn what_other_processes_commit_is_found_without_a_ring() {
    let fixture = Fixture::new();
    let host = resting(&fixture).await;
    let (feed, id) = (host.claimant().feed().clone(), fixture.create(SAYS));
    let watcher = Watcher::after(fixture.store.clone(), &fixture.session(id));
    let mut watcher = watcher.following(&feed);
    assert_eq!(watcher.rest().unwrap(), []);
    let request = suspend(id);
    fixture.another().transact(move |tx| tx.command(request)).wait().unwrap();
    assert!(!is_ready(watcher.changed()).await, "the ring is lost");
    feed.look().unwrap();
    assert!(is_ready(watcher.changed()).await);
    assert_eq!(watcher.rest().unwrap().len(), 1);
    feed.look().unwrap();
    assert!(!is_ready(watcher.changed()).await, "it is told once");
}

#[tokio::test]
async fn a_ring_for_other_sessions_costs_no_read() {
    let fixture = Fixture::new();
    let host = resting(&fixture).await;
    let (feed, id) = (host.claimant().feed().clone(), fixture.create(SAYS));
    let following = feed.follow(id);
    let before = reads(&fixture.store);
    let mut ring = Ring::default();
    ring.name(SessionId::new(Machine.uuid()), false);
    feed.take_ring(&ring).unwrap();
    assert_eq!(reads(&fixture.store), before);
    ring.name(id, false);
    feed.take_ring(&ring).unwrap();
    assert_eq!(reads(&fixture.store), before + 1);
    feed.take_ring(&Ring::anything()).unwrap();
    assert_eq!(reads(&fixture.store), before + 2);
    drop(following);
    ring = Ring::default();
    ring.name(id, false);
    feed.take_ring(&ring).unwrap();
    assert_eq!(reads(&fixture.store), before + 2, "it is not followed any more");
}

/// Whoever takes turns in committing, those who watch see one journal.
#[tokio::test]
async fn changes_of_two_processes_come_in_order_and_without_a_gap() {
    let fixture = Fixture::new();
    let host = resting(&fixture).await;
    let (claimant, other, id) = (host.claimant(), fixture.another(), fixture.create(SAYS));
    let feed = claimant.feed();
    let watcher = |following: bool| {
        let watcher = Watcher::from_start(fixture.store.clone(), id);
        if following { watcher.following(feed) } else { watcher }
    };
    let (mut eager, mut lazy) = (watcher(true), watcher(true));
    let mut seen: Vec<Moment> = eager.rest().unwrap();
    let mut seen_late: Vec<Moment> = lazy.rest().unwrap();
    for turn in 0..200u32 {
        // Once here and once there, in all orders; what is said goes with a prompt.
        let request = match turn % 4 {
            0 => suspend(id),
            1 => resume(id),
            2 => prompt(id, &format!("turn {turn}")),
            _ => Request::new(id, ann(), Command::Cancel(Default::default())),
        };
        if (turn / 3 + turn / 7).is_multiple_of(2) {
            fixture.store.transact(move |tx| tx.command(request)).await.unwrap();
        } else {
            other.transact(move |tx| tx.command(request)).await.unwrap();
            if turn % 5 == 0 {
                feed.look().unwrap();
            }
        }
        seen.extend(eager.rest().unwrap());
        if turn % 70 == 0 {
            seen_late.extend(lazy.rest().unwrap());
        }
    }
    feed.look().unwrap();
    seen.extend(eager.rest().unwrap());
    seen_late.extend(lazy.rest().unwrap());
    let there = watcher(false).rest().unwrap();
    assert!(there.iter().any(|moment| !moment.said.is_empty()));
    assert_eq!(seen, there);
    assert_eq!(seen_late, there);
}

#[tokio::test]
async fn nobody_is_told_before_the_commit_is_durable() {
    let (reached, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
    let fixture = Fixture::with(|options| {
        let (reached, go_on) = (Arc::clone(&reached), Arc::clone(&go_on));
        options.points = Points::hooked(move |point| {
            if point == Point::BeforeCommit {
                reached.store(true, Ordering::SeqCst);
                while !go_on.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            }
        });
    });
    let host = resting(&fixture).await;
    let (claimant, id) = (host.claimant(), fixture.create(SAYS));
    let watcher = Watcher::after(fixture.store.clone(), &fixture.session(id));
    let mut watcher = watcher.following(claimant.feed());
    assert_eq!(watcher.rest().unwrap(), []);
    reached.store(false, Ordering::SeqCst);
    go_on.store(false, Ordering::SeqCst);
    let request = suspend(id);
    let pending = fixture.store.transact(move |tx| tx.command(request));
    while !reached.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    assert!(!is_ready(watcher.changed()).await);
    assert_eq!(watcher.rest().unwrap(), []);
    go_on.store(true, Ordering::SeqCst);
    pending.await.unwrap();
    // Whoever gave the command finds it told.
    assert!(is_ready(watcher.changed()).await);
    assert_eq!(watcher.rest().unwrap().len(), 1);
}

#[tokio::test]
async fn rings_that_no_socket_had_room_for_make_the_one_that_was_rung_look() {
    let fixture = Fixture::new();
    let hosts = fixture.hosts();
    let presence = hosts.join(HostId::new(Machine.uuid())).unwrap();
    let ring = || {
        let mut ring = Ring::default();
        ring.name(SessionId::new(Machine.uuid()), false);
        ring
    };
    let first = ring();
    let nobody = HostId::new(Machine.uuid());
    assert_eq!(hosts.ring_others(&[nobody], &first), 1);
    assert_eq!(presence.rung().await, first);
    for _ in 0..2000 {
        assert_eq!(hosts.ring_others(&[nobody], &ring()), 1);
    }
    assert_eq!(presence.rung().await, Ring::anything());
}
