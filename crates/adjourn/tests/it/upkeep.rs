//! What hosts do for the store as a whole: sessions that could not be read hear what came when they
//! can be, and what is kept no longer goes by itself.

use std::sync::Arc;
use std::time::Duration;

use adjourn::script::Scripted;
use adjourn::{Config, Error, StoreError};
use adjourn_core::Command;
use adjourn_core::command::{Close, Mode, Requester, Suspend, Withdraw};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{RequestId, SessionId};
use adjourn_store::rows::{NewEvent, SessionNo};
use adjourn_store::{CommandError, Environment as _, Request, Retention, Store as _, Transaction};
use adjourn_testkit::until;
use tracing::Level;

use crate::fixture::{Fixture, Working, ann};
use crate::log::Log;

const DAY: Duration = Duration::from_secs(24 * 3600);
const WAITS: &str = r#"{"steps": [{"await": {"reason": "x", "conditions": {"onEvent": "go"}}},
                                  {"say": "done"}]}"#;

/// Starts a host.
async fn host(fixture: &Fixture) -> Working {
    let drivers = Arc::new(Scripted::new(Arc::new(fixture.clock.clone())));
    fixture.host_as(drivers, Config::default()).await
}

fn event(fixture: &Fixture, number: u32) -> NewEvent {
    NewEvent {
        id: number.to_string(),
        source: "test".to_owned(),
        name: "nobody.waits".to_owned(),
        subject: None,
        time: fixture.clock.now(),
        tenant: "acme".to_owned(),
        session: None,
        data: None,
    }
}

/// Puts something else into the last entry of a session, and returns what was there.
fn write(fixture: &Fixture, id: SessionId, body: &[u8]) -> Vec<u8> {
    let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
    let id = id.uuid();
    let there = "SELECT body FROM journal WHERE no = (SELECT head FROM session WHERE id = ?1)";
    let there = connection.query_row(there, [id.as_bytes()], |row| row.get(0)).unwrap();
    let sql = "UPDATE journal SET body = ?2 WHERE no = (SELECT head FROM session WHERE id = ?1)";
    connection.execute(sql, rusqlite::params![id.as_bytes(), body]).unwrap();
    there
}

/// Returns the number of the last entry of a session.
fn head(fixture: &Fixture, id: SessionId) -> i64 {
    let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
    let sql = "SELECT head FROM session WHERE id = ?1";
    connection.query_row(sql, [id.uuid().as_bytes()], |row| row.get(0)).unwrap()
}

/// Puts an entry back as it was.
fn put_back(fixture: &Fixture, (no, body): (i64, Vec<u8>)) {
    let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
    let sql = "UPDATE journal SET body = ?2 WHERE no = ?1";
    connection.execute(sql, rusqlite::params![no, body]).unwrap();
}

#[tokio::test]
async fn a_session_that_can_be_read_again_hears_what_came_meanwhile() {
    // Nothing is remembered of what was read before.
    let fixture = Fixture::with(|options| options.cache = 1);
    let log = Log::of(Level::WARN);
    let first = host(&fixture).await;
    let (id, other) = (fixture.create(WAITS), fixture.create(WAITS));
    for id in [id, other] {
        fixture.prompt(id, "begin");
        fixture.until_state(id, "suspended").await;
    }
    let whole = write(&fixture, id, &[0x11]);
    fixture.session(other);
    fixture.event("go");
    fixture.until_state(other, "idle").await;
    until("noted", || !log.lines().is_empty()).await;
    let said = log.lines().join("\n");
    assert!(said.contains(&format!("session {id} cannot be read: ")), "{said}");
    assert!(said.contains("what it waits for is kept"), "{said}");
    let marked = fixture.store.unreadable(SessionNo(0), 10).unwrap();
    assert_eq!(marked.len(), 1);

    // It is left alone: nobody writes anything because of it.
    let commits = fixture.store.metrics().commits;
    for _ in 0..20 {
        fixture.ring_hosts();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fixture.store.metrics().commits, commits);
    assert_eq!(log.lines().len(), 1, "said once");

    // The next program knows what this one did not.
    first.stop().await;
    write(&fixture, id, &whole);
    let second = host(&fixture).await;
    fixture.until_state(id, "idle").await;
    let said = log.lines().join("\n");
    assert!(said.contains(&format!("session {id} can be read again")), "{said}");
    assert!(fixture.happened(id).contains(&"resumed"));
    second.stop().await;
}

#[tokio::test]
async fn what_is_kept_no_longer_goes_by_itself() {
    let fixture = Fixture::new();
    let script = r#"{"steps": [{"say": "done"}]}"#;
    let first = fixture.host().await;
    let (unprompted, ended, idle) =
        (fixture.create(script), fixture.create(script), fixture.create(script));
    for id in [ended, idle] {
        fixture.prompt(id, "go");
        fixture.until_state(id, "idle").await;
    }
    fixture.give(ended, Command::Close(Close::default()), Vec::new()).unwrap();
    // More than go in one transaction.
    let events: Vec<_> = (0..600).map(|number| event(&fixture, number)).collect();
    let all = move |tx: &mut Transaction<'_>| -> Result<(), CommandError> {
        events.iter().try_for_each(|event| tx.acknowledge(event).map(drop))
    };
    fixture.store.transact(all).wait().unwrap();
    until("delivered", || !fixture.store.undelivered().unwrap()).await;
    first.stop().await;
    fixture.clock.advance(DAY + Duration::from_secs(1));
    let second = fixture.host().await;
    let gone = |id| fixture.store.founding(id).unwrap().is_none();
    until("gone", || gone(unprompted) && fixture.store.size().unwrap().events == 0).await;
    assert_eq!(fixture.session(unprompted).state.name(), "ended");
    assert!(!gone(ended), "thirty days are not over");
    second.stop().await;
    fixture.clock.advance(DAY * 30);
    let third = fixture.host().await;
    until("gone", || gone(ended)).await;
    assert_eq!(fixture.said(idle).len(), 2);

    // With nothing to drop, nobody takes the write lock.
    until("done", || !fixture.store.prunable(&Retention::of_hosts()).unwrap()).await;
    let commits = fixture.store.metrics().commits;
    for _ in 0..20 {
        fixture.ring_hosts();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fixture.store.metrics().commits, commits);
    third.stop().await;
}

#[tokio::test]
async fn the_list_of_sessions_follows_the_journal_by_itself() {
    let fixture = Fixture::new();
    let script = r#"{"steps": [{"say": "done"}]}"#;
    // More than is left to queries, and more than goes in one batch.
    let foundings: Vec<_> =
        (0..2_200).map(|_| fixture.founding(DriverSpec::script(script))).collect();
    let all = move |tx: &mut Transaction<'_>| -> Result<(), CommandError> {
        foundings.into_iter().try_for_each(|founding| tx.create(ann(), founding).map(drop))
    };
    fixture.store.transact(all).wait().unwrap();
    let behind = fixture.store.unlisted().unwrap();
    assert_eq!(behind, 2_200);
    let host = fixture.host().await;
    until("followed", || fixture.store.unlisted().unwrap() < 2_048).await;
    // What is left is little enough for a query, and nothing is committed for it.
    let commits = fixture.store.metrics().commits;
    for _ in 0..20 {
        fixture.ring_hosts();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fixture.store.metrics().commits, commits);
    host.stop().await;
}

/// What a dead host had is taken from it also if nobody could read it when the host was forgotten.
#[tokio::test]
async fn what_a_dead_host_had_goes_on_when_it_can_be_read_again() {
    let fixture = Fixture::with(|options| options.cache = 1);
    let first = host(&fixture).await;
    let script = r#"{"steps": [{"tool": {"name": "again", "ms": 1000, "idempotent": true}},
                               {"say": "done"}]}"#;
    let (id, other) = (fixture.create(script), fixture.create(script));
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, "again").await;
    first.kill().await;
    let whole = write(&fixture, id, &[0x11]);
    fixture.session(other);
    let second = host(&fixture).await;
    let marked = || fixture.store.unreadable(SessionNo(0), 10).unwrap().len();
    until("forgotten", || marked() == 1 && fixture.store.hosts().unwrap().len() == 1).await;
    second.stop().await;

    write(&fixture, id, &whole);
    let third = host(&fixture).await;
    fixture.pass_until(id, "idle").await;
    assert!(fixture.happened(id).contains(&"host_lost"));
    assert_eq!(fixture.dispatched(id), 2, "it may be run twice, and was");
    third.stop().await;
}

const AGAIN: &str = r#"{"steps": [{"tool": {"name": "again", "ms": 1000, "idempotent": true}},
                                  {"say": "done"}]}"#;

/// Starts a session that becomes unreadable while a tool is in flight on a host that lives. Returns
/// it, and what was written over.
async fn unreadable_in_flight(fixture: &Fixture, log: &Log) -> (SessionId, (i64, Vec<u8>)) {
    let (id, other) = (fixture.create(AGAIN), fixture.create(AGAIN));
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, "again").await;
    // Another program asks for something in words that only it knows, and takes it back.
    let newer = fixture.another();
    let request = RequestId::new(fixture.clock.uuid());
    let mode = Mode::WaitForCompletion;
    let requester = Some(Requester::Call(request));
    let suspend = Command::Suspend(Suspend { mode, requester, ..Suspend::default() });
    let give = |command| {
        let request = Request::new(id, ann(), command);
        newer.transact(move |tx| tx.command(request)).wait().unwrap();
    };
    give(suspend);
    let whole = (head(fixture, id), write(fixture, id, &[0x11]));
    fixture.session(other);
    give(Command::Withdraw(Withdraw { request }));
    fixture.ring_hosts();
    until("noted", || !log.lines().is_empty()).await;
    let said = log.lines().join("\n");
    assert!(said.contains(&format!("session {id} cannot be read: ")), "{said}");
    let marked = || fixture.store.unreadable(SessionNo(0), 10).unwrap();
    until("marked", || marked().iter().any(|(_, marked)| *marked == id)).await;
    (id, whole)
}

/// As in a rolling upgrade: an older host runs a session that a newer program writes to, and lives
/// on. A newer host takes the session from it.
#[tokio::test]
async fn what_a_living_host_cannot_read_any_more_goes_on_at_one_that_can() {
    let fixture = Fixture::with(|options| options.cache = 1);
    let log = Log::of(Level::WARN);
    let older = host(&fixture).await;
    let (id, whole) = unreadable_in_flight(&fixture, &log).await;
    assert_eq!(fixture.store.driven_by(older.id).unwrap(), []);
    put_back(&fixture, whole);
    let newer = host(&fixture).await;
    fixture.pass_until(id, "idle").await;
    assert_eq!(fixture.dispatched(id), 2, "it may be run twice, and was");
    newer.stop().await;
    older.stop().await;
}

/// A host that stops leaves nothing behind that no other would find.
#[tokio::test]
async fn what_a_host_cannot_read_when_it_stops_goes_on_at_the_next() {
    let fixture = Fixture::with(|options| options.cache = 1);
    let log = Log::of(Level::WARN);
    let first = host(&fixture).await;
    let (id, whole) = unreadable_in_flight(&fixture, &log).await;
    first.stop().await;
    assert_eq!(fixture.store.hosts().unwrap(), []);
    put_back(&fixture, whole);
    let second = host(&fixture).await;
    fixture.pass_until(id, "idle").await;
    assert!(fixture.happened(id).contains(&"host_lost"));
    second.stop().await;
}

/// What belongs to a host that is not announced, however it came to that, is found all the same.
#[tokio::test]
async fn what_a_host_without_a_row_owns_goes_on() {
    let fixture = Fixture::new();
    let first = host(&fixture).await;
    let id = fixture.create(AGAIN);
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, "again").await;
    let own = first.id;
    first.kill().await;
    fixture.store.transact(move |tx| tx.forget(own)).wait().unwrap();
    let second = host(&fixture).await;
    fixture.pass_until(id, "idle").await;
    second.stop().await;
}

/// A session that is ready and cannot be read is marked when a host finds that out, and costs
/// nothing from then on.
#[tokio::test]
async fn a_ready_session_that_cannot_be_read_is_left_alone() {
    let fixture = Fixture::with(|options| options.cache = 1);
    let script = r#"{"steps": [{"say": "done"}]}"#;
    let (id, other) = (fixture.create(script), fixture.create(script));
    fixture.prompt(id, "go");
    let whole = write(&fixture, id, &[0x11]);
    fixture.session(other);
    let log = Log::of(Level::WARN);
    let working = host(&fixture).await;
    let marked = || fixture.store.unreadable(SessionNo(0), 10).unwrap().len();
    until("marked", || marked() == 1 && !log.lines().is_empty()).await;
    let commits = fixture.store.metrics().commits;
    for _ in 0..20 {
        fixture.ring_hosts();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fixture.store.metrics().commits, commits);
    working.stop().await;
    write(&fixture, id, &whole);
    let working = host(&fixture).await;
    fixture.until_state(id, "idle").await;
    working.stop().await;
}

/// What is wrong with the store as a whole ends the host, which would do nothing otherwise.
#[tokio::test]
async fn a_host_ends_over_damage_that_is_not_one_sessions() {
    let fixture = Fixture::new();
    let id = fixture.create(r#"{"steps": [{"say": "done"}]}"#);
    fixture.prompt(id, "go");
    let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
    let gate = r#"INSERT INTO gate VALUES (zeroblob(16), '{"newer": 1}', '{}', 0)"#;
    connection.execute(gate, []).unwrap();
    let working = fixture.host().await;
    let ended = working.ended().await;
    assert!(matches!(ended, Error::Store(StoreError::Damaged(_))), "{ended}");
}
