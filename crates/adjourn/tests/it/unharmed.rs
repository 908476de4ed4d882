//! What happens around a host and must not harm it: its files are cleared away, a session cannot be
//! read, it is asked for something while it stops.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use adjourn::about::About;
use adjourn::clock::Machine;
use adjourn_core::Command;
use adjourn_core::command::{Cancel, Mode, Suspend};
use adjourn_core::id::{HostId, SessionId};
use adjourn_store::{Environment as _, Store as _};
use adjourn_testkit::until;

use crate::fixture::Fixture;

const WAITS: &str = r#"{"steps": [{"await": {"reason": "x", "conditions": {"onEvent": "go"}}},
                                  {"tool": {"name": "again", "ms": 1000, "idempotent": true}},
                                  {"say": "done"}]}"#;

/// Starts a session that parks.
async fn parked(fixture: &Fixture) -> SessionId {
    let id = fixture.create(WAITS);
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_files_are_cleared_away_is_known_again_and_what_it_had_is_found() {
    let fixture = Fixture::new();
    let first = fixture.host().await;
    let id = parked(&fixture).await;
    let own = fixture.store.hosts().unwrap()[0].id;
    std::fs::remove_dir_all(fixture.hosts().directory()).unwrap();
    // Another takes it for dead, and goes again.
    let second = fixture.host().await;
    until("forgotten", || fixture.store.hosts().unwrap().iter().all(|host| host.id != own)).await;
    second.stop().await;
    until("alive", || fixture.hosts().is_alive(own).unwrap()).await;
    until("announced", || fixture.store.hosts().unwrap().iter().any(|host| host.id == own)).await;

    fixture.event("go");
    fixture.until_in_flight(id, "again").await;
    first.kill().await;
    let third = fixture.host().await;
    fixture.pass_until(id, "idle").await;
    let happened = fixture.happened(id);
    assert_eq!(happened.iter().filter(|name| **name == "host_lost").count(), 1, "{happened:?}");
    third.stop().await;
}

#[tokio::test]
async fn a_claim_is_never_without_the_row_it_is_found_by() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let own = fixture.store.hosts().unwrap()[0].id;
    // As whoever took it for dead would, just before it claims.
    fixture.store.transact(move |tx| tx.forget(own)).wait().unwrap();
    let id = fixture.create(WAITS);
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    assert_eq!(fixture.store.hosts().unwrap().len(), 1);
    host.stop().await;
}

#[tokio::test]
async fn a_missing_socket_is_opened_again_and_the_lock_is_held_meanwhile() {
    let fixture = Fixture::new();
    let hosts = fixture.hosts();
    let id = HostId::new(Machine.uuid());
    let mut presence = hosts.join(id).unwrap();
    assert!(!presence.renew().unwrap());
    for entry in std::fs::read_dir(hosts.directory()).unwrap() {
        let path = entry.unwrap().path();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        match path.extension().unwrap().to_str() {
            Some("sock") => std::fs::remove_file(path).unwrap(),
            _ => assert_eq!(mode & 0o777, 0o600, "whoever can open a lock can hold it"),
        }
    }
    assert_eq!(hosts.ring(), 0);
    assert!(presence.renew().unwrap());
    assert_eq!(hosts.ring(), 1);
    presence.rung().await;
    assert!(hosts.is_alive(id).unwrap());
}

#[tokio::test]
async fn a_session_that_cannot_be_read_keeps_no_host_from_the_others() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let (broken, whole) = (parked(&fixture).await, parked(&fixture).await);
    host.stop().await;
    let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
    let garble = "UPDATE journal SET body = x'11' WHERE no = (SELECT min(no) FROM journal)";
    assert_eq!(connection.execute(garble, []).unwrap(), 1);

    let host = fixture.host().await;
    fixture.event("go");
    fixture.pass_until(whole, "idle").await;
    let why = || {
        let hosts = fixture.store.hosts().unwrap();
        About::parse(&hosts[0].about).declines(broken).map(str::to_owned)
    };
    until("said", || why().is_some_and(|why| why.contains("cannot be read"))).await;
    host.stop().await;
}

/// The journal vouches for what a call was asked for with, from the ask to the dispatch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deferred_call_whose_arguments_were_changed_is_not_started_and_others_are() {
    let fixture = Fixture::new();
    let script = r#"{"steps": [{"sequence": [
        {"name": "first", "ms": 1000},
        {"name": "second", "ms": 1000, "args": {"path": "/tmp/safe"}}
    ]}]}"#;
    let host = fixture.host().await;
    let [broken, whole] = [(); 2].map(|()| fixture.create(script));
    for id in [broken, whole] {
        fixture.prompt(id, "go");
        fixture.until_in_flight(id, "first").await;
        let mode = Mode::InterruptImmediate;
        fixture.suspend(id, Suspend { mode, ..Suspend::default() });
        fixture.pass_until(id, "suspended").await;
    }
    let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
    let both = "SELECT place, body FROM recent UNION ALL SELECT place, body FROM transcript";
    let find =
        format!("SELECT min(place) FROM ({both}) WHERE instr(body, CAST('safe' AS BLOB)) > 0");
    let place: i64 = connection.query_row(&find, [], |row| row.get(0)).unwrap();
    let changed: usize = ["recent", "transcript"]
        .map(|table| {
            let other = "CAST(replace(CAST(body AS TEXT), 'safe', 'evil') AS BLOB)";
            let change = format!("UPDATE {table} SET body = {other} WHERE place = {place}");
            connection.execute(&change, []).unwrap()
        })
        .iter()
        .sum();
    assert_eq!(changed, 1);
    for id in [broken, whole] {
        fixture.resume(id, None).unwrap();
    }
    fixture.pass_until(whole, "idle").await;
    let why = || {
        let hosts = fixture.store.hosts().unwrap();
        About::parse(&hosts[0].about).declines(broken).map(str::to_owned)
    };
    until("said", || why().is_some_and(|why| why.contains("other words for call"))).await;
    assert_eq!((fixture.dispatched(broken), fixture.dispatched(whole)), (1, 2));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_still_hears() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    // The clock stands still: by themselves they would never end.
    let script = r#"{"steps": [{"say": {"text": "long", "ms": 60000}}, {"say": "more"}]}"#;
    let ids = [fixture.create(script), fixture.create(script)];
    for id in ids {
        fixture.prompt(id, "go");
        fixture
            .until(id, "thinking", |session| {
                session.run().and_then(|run| run.step).is_some_and(|step| step.model_in_flight)
            })
            .await;
    }
    // One of many short steps is given back as soon as the host stops.
    let step = r#"{"say": {"text": "short", "ms": 10}}"#;
    let short = fixture.create(&format!(r#"{{"steps": [{}]}}"#, vec![step; 1000].join(",")));
    fixture.prompt(short, "go");
    fixture.until_state(short, "running").await;
    let stopping = tokio::spawn(host.stop());
    while !fixture.happened(short).contains(&"drained") {
        fixture.clock.advance(Duration::from_millis(10));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    let suspend = Suspend { mode: Mode::InterruptImmediate, ..Suspend::default() };
    fixture.suspend(ids[0], suspend);
    fixture.until_state(ids[0], "suspended").await;
    let cancel = Command::Cancel(Cancel::default());
    fixture.give(ids[1], cancel, Vec::new()).unwrap();
    fixture.until_state(ids[1], "idle").await;
    stopping.await.unwrap();
}
