//! One session that cannot be read, as in a rolling upgrade: a newer program has written an entry
//! that this one does not know. It is named, its waits are kept, and it hears what came meanwhile
//! when it can be read again.

use std::time::Duration;

use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::Suspend;
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{HostId, Seq, SessionId};
use adjourn_core::session::{Cause, State};
use adjourn_core::{Command, Founding};
use adjourn_record::Hash;
use adjourn_record::chain::{Chain, Tip};
use adjourn_store::rows::{NewEvent, SessionNo};
use adjourn_store::{
    CommandError, Environment as _, Error, Request, Retention, Sqlite, Store as _,
};
use rusqlite::{Connection, params};
use serde_json::json;

use crate::fixture::{Fixture, ann, create, founding, give, keys, prompt};

/// What a newer program has written over the last entry of a session, and what was there.
pub struct Newer {
    connection: Connection,
    id: SessionId,
    entry: i64,
    body: Vec<u8>,
    link: Vec<u8>,
}

impl Newer {
    /// Lets the last entry of a session be one of a kind that this program does not know.
    pub fn write(fixture: &Fixture, id: SessionId) -> Self {
        let connection = Connection::open(fixture.path()).unwrap();
        let sql = "SELECT journal.no, body, journal.link, journal.revision,
                       (SELECT link FROM journal AS p WHERE p.no = journal.prev)
                   FROM journal JOIN session ON head = journal.no WHERE id = ?1";
        let (entry, body, link, revision, before): (i64, Vec<u8>, Vec<u8>, u32, [u8; 32]) =
            connection
                .query_row(sql, [id.uuid().as_bytes()], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
                })
                .unwrap();
        let text = String::from_utf8(body[1..].to_vec()).unwrap();
        let newer = text.replacen("suspended/1\":", "suspended/9\":", 1);
        assert_ne!(text, newer);
        let newer = [&body[..1], newer.as_bytes()].concat();
        let tip = Tip { revision: u64::from(revision) - 1, link: Hash::from_bytes(before) };
        let tip = Chain::journal(id).extend(tip, &newer);
        let newer_one = Self { connection, id, entry, body, link };
        newer_one.put(&newer, tip.link.as_bytes());
        newer_one
    }

    /// Lets this program know what the newer one knew.
    pub fn upgrade(self) {
        self.put(&self.body, &self.link);
    }

    fn put(&self, body: &[u8], link: &[u8]) {
        let sql = "UPDATE journal SET body = ?1, link = ?2 WHERE no = ?3";
        self.connection.execute(sql, params![body, link, self.entry]).unwrap();
        let sql = "UPDATE session SET link = ?1 WHERE id = ?2";
        self.connection.execute(sql, params![link, self.id.uuid().as_bytes()]).unwrap();
    }
}

fn parked(store: &Sqlite) -> SessionId {
    let id = create(store);
    prompt(store, id, "build").unwrap();
    let value = json!({"onEvent": "ci.passed", "timeout": {"durationMinutes": 5}});
    let resume_when = Conditions::parse(&value, Spelling::Camel).unwrap();
    let suspend = Suspend { resume_when, ..Suspend::default() };
    give(store, id, Command::Suspend(suspend)).unwrap();
    id
}

fn happens(fixture: &Fixture, store: &Sqlite) -> Seq {
    let event = NewEvent {
        id: fixture.environment.uuid().to_string(),
        source: "test".to_owned(),
        name: "ci.passed".to_owned(),
        subject: None,
        time: fixture.environment.now(),
        tenant: "acme".to_owned(),
        session: None,
        data: None,
    };
    store.transact(move |tx| tx.acknowledge(&event)).wait().unwrap().0
}

/// Does what a host does when something is due; returns who was woken.
fn work(store: &Sqlite) -> Vec<SessionId> {
    let work = |tx: &mut adjourn_store::Transaction<'_>| -> Result<_, CommandError> {
        let mut changed = tx.deliver(&ann(), 100)?.changed;
        changed.extend(tx.expire(&ann(), 100)?);
        Ok(changed.iter().map(|session| session.id).collect())
    };
    store.transact(work).wait().unwrap()
}

fn mend(store: &Sqlite, id: SessionId) -> bool {
    store.transact(move |tx| tx.mend(&ann(), id, None)).wait().unwrap().is_some()
}

fn marked(store: &Sqlite) -> Vec<SessionId> {
    let marked = store.unreadable(SessionNo(0), 100).unwrap();
    marked.into_iter().map(|(_, id)| id).collect()
}

fn cause(store: &Sqlite, id: SessionId) -> Option<Cause> {
    store.session(id).unwrap().unwrap().woke.as_ref().map(|woke| woke.cause)
}

#[test]
fn a_session_of_a_newer_program_is_listed_with_what_is_wrong() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (one, two) = (parked(&store), parked(&store));
    drop(store);
    let newer = Newer::write(&fixture, one);
    let store = fixture.open();
    let listed = store.sessions(SessionNo(0), 10).unwrap();
    let (id, error) = listed[0].1.as_ref().unwrap_err();
    assert_eq!(*id, one);
    let said = error.to_string();
    assert!(said.contains("\"suspended/9\", which is newer than this program"), "{said}");
    assert!(matches!(error, Error::Unreadable { session, .. } if *session == one));
    assert_eq!(listed[1].1.as_ref().unwrap().id, two);
    assert!(store.session(one).is_err());
    newer.upgrade();
    assert!(store.session(one).unwrap().is_some());
}

#[test]
fn an_event_that_came_meanwhile_is_heard_when_it_can_be_read_again() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (one, two) = (parked(&store), parked(&store));
    drop(store);
    let newer = Newer::write(&fixture, one);
    let store = fixture.open();
    let seq = happens(&fixture, &store);
    assert_eq!(work(&store), [two]);
    assert_eq!(marked(&store), [one]);
    // There is nothing to do for a host, however often it looks.
    assert!(!store.undelivered().unwrap());
    assert!(!mend(&store, one));
    // A second event, and then the deadline, come in vain for now, and are kept.
    happens(&fixture, &store);
    assert_eq!(work(&store), []);
    fixture.environment.advance(Duration::from_secs(48 * 3600));
    assert_eq!(store.next_due().unwrap(), None);
    assert_eq!(work(&store), []);
    let pruned = store.transact(|tx| tx.prune(&Retention::default(), 100)).wait();
    assert_eq!(pruned.map_err(|error: Error| error).unwrap().events, 0);

    newer.upgrade();
    assert!(mend(&store, one));
    assert_eq!(marked(&store), []);
    assert!(store.undelivered().unwrap());
    assert_eq!(work(&store), [one]);
    assert_eq!(cause(&store, one), Some(Cause::ConditionFired));
    let session = store.session(one).unwrap().unwrap();
    let State::Ready(run) = &session.state else { panic!("{session:?}") };
    // The next wait may hear the second event: its window opens with the first.
    assert_eq!(run.window, seq);
    assert!(!store.undelivered().unwrap());
    store.verify(&keys().ring(), None).unwrap().unwrap();
}

#[test]
fn a_deadline_that_passed_meanwhile_acts_when_it_can_be_read_again() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let one = parked(&store);
    // What the last commit covers is looked at when the store is opened.
    create(&store);
    drop(store);
    let newer = Newer::write(&fixture, one);
    let store = fixture.open();
    fixture.environment.advance(Duration::from_secs(600));
    assert_eq!(work(&store), []);
    assert_eq!((marked(&store), store.next_due().unwrap()), (vec![one], None));
    newer.upgrade();
    assert!(mend(&store, one));
    assert_eq!(work(&store), [one]);
    assert_eq!(cause(&store, one), Some(Cause::Timeout));
    store.verify(&keys().ring(), None).unwrap().unwrap();
}

/// One that is still to wait goes on to do so, with all that wakes it.
#[test]
fn a_session_that_is_mended_in_time_waits_on() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let one = parked(&store);
    let due = store.next_due().unwrap();
    create(&store);
    drop(store);
    let newer = Newer::write(&fixture, one);
    let store = fixture.open();
    let other = NewEvent {
        id: "1".to_owned(),
        source: "test".to_owned(),
        name: "hello".to_owned(),
        subject: None,
        time: fixture.environment.now(),
        tenant: "acme".to_owned(),
        // It wakes no pause of a client; delivery looks at the session all the same.
        session: Some(one),
        data: None,
    };
    let wakes = store.transact(move |tx| tx.acknowledge(&other)).wait().unwrap().0;
    work(&store);
    assert_eq!((marked(&store), store.next_due().unwrap()), (vec![one], None));
    newer.upgrade();
    store.verify(&keys().ring(), None).unwrap().unwrap();
    assert!(mend(&store, one));
    let woken = work(&store);
    let session = store.session(one).unwrap().unwrap();
    match session.suspended() {
        Some(_) => assert_eq!((woken, store.next_due().unwrap()), (vec![], due)),
        None => assert_eq!(woken, [one], "event {} woke it", wakes.0),
    }
    store.verify(&keys().ring(), None).unwrap().unwrap();
}

/// One session that is never read again does not keep the events of all others for ever.
#[test]
fn events_that_only_a_long_unreadable_session_has_missed_go_after_a_month() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let fixture = Fixture::new();
    let store = fixture.open();
    // Of the second, the row says that its turn may wait for what comes.
    let (one, at_work) = (parked(&store), create(&store));
    let host = HostId::new(uuid::Uuid::from_u128(7));
    prompt(&store, at_work, "build").unwrap();
    let claim = Request::new(at_work, Actor::new(Face::Host, "").on(host), Command::Claim);
    store.transact(move |tx| tx.command(claim)).wait().unwrap();
    create(&store);
    drop(store);
    let newer = Newer::write(&fixture, one);
    let broken = "UPDATE journal SET body = x'11' WHERE session = 2";
    newer.connection.execute(broken, []).unwrap();
    let store = fixture.open();
    happens(&fixture, &store);
    work(&store);
    let owned = store.transact(move |tx| tx.owned_by(host, 10)).wait();
    assert_eq!(owned.map_err(|error: Error| error).unwrap().len(), 0);
    assert_eq!(marked(&store), [one, at_work]);
    let prune = || {
        let retention = Retention::default();
        let due = store.prunable(&retention).unwrap();
        let pruned = store.transact(move |tx| tx.prune(&retention, 100)).wait();
        let events = pruned.map_err(|error: Error| error).unwrap().events;
        assert_eq!(due, events > 0);
        events
    };
    fixture.environment.advance(Retention::UNREADABLE);
    assert_eq!(prune(), 0, "it is kept for a month");
    fixture.environment.advance(Duration::from_millis(1));
    // What came a day ago at most is kept as for everybody.
    let late = happens(&fixture, &store);
    work(&store);
    assert_eq!(prune(), 1);
    // It hears what is left.
    newer.upgrade();
    assert!(mend(&store, one));
    assert_eq!(work(&store), [one]);
    let session = store.session(one).unwrap().unwrap();
    let State::Ready(run) = &session.state else { panic!("{session:?}") };
    assert_eq!(run.window, late);
    fixture.environment.advance(DAY * 2);
    assert_eq!(prune(), 0, "the agent is to be told of it");
}

/// What is wrong with the store as a whole is not told of one session, which would be left alone
/// while all others fail in the same way.
#[test]
fn damage_of_the_store_is_told_from_that_of_a_session() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (id, _) = (create(&store), create(&store));
    drop(store);
    let connection = Connection::open(fixture.path()).unwrap();
    let gate = "INSERT INTO gate VALUES (zeroblob(16), '{\"newer\": 1}', '{}', 0)";
    connection.execute(gate, []).unwrap();
    let store = fixture.open();
    let Err(CommandError::Store(error)) = prompt(&store, id, "build") else {
        panic!("the gate cannot be read")
    };
    assert!(matches!(error, Error::Damaged(_)) && !error.is_of_a_session(), "{error}");
    assert!(store.session(id).is_ok());
}

/// A page of the file is broken that holds nothing but what happened in one session.
#[test]
fn a_broken_page_of_one_session_is_told_of_that_session() {
    const PAGE: usize = 4096;
    let fixture = Fixture::new();
    let store = fixture.open();
    let script = format!(r#"{{"steps": [{{"say": "{}"}}]}}"#, "x".repeat(5 * PAGE));
    let founding = Founding { driver: DriverSpec::script(&script), ..founding(&store) };
    let one = founding.id;
    store.transact(move |tx| tx.create(ann(), founding)).wait().unwrap();
    let two = parked(&store);
    drop(store);
    let mut bytes = std::fs::read(fixture.path()).unwrap();
    let filled = |page: &&mut [u8]| page[4..].iter().all(|byte| *byte == b'x');
    let page = bytes.chunks_exact_mut(PAGE).find(filled).expect("a page of the script alone");
    // Where it goes on is beyond the end of the file.
    page[..4].fill(0xff);
    std::fs::write(fixture.path(), bytes).unwrap();
    let store = fixture.open();
    for error in [store.session(one).unwrap_err(), store.founding(one).unwrap_err()] {
        assert!(matches!(&error, Error::Unreadable { session, .. } if *session == one), "{error}");
    }
    let listed = store.sessions(SessionNo(0), 10).unwrap();
    assert!(matches!(&listed[0].1, Err((id, _)) if *id == one));
    assert_eq!(listed[1].1.as_ref().unwrap().id, two);
}

/// What a dead host had, and nobody can read, is not forgotten with the host.
#[test]
fn an_unreadable_session_of_a_dead_host_is_marked() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let host = HostId::new(uuid::Uuid::from_u128(7));
    let claim = |id| {
        prompt(&store, id, "build").unwrap();
        let by = Actor::new(Face::Host, "").on(host);
        let request = Request::new(id, by, Command::Claim);
        store.transact(move |tx| tx.command(request)).wait().unwrap();
    };
    let (one, two) = (create(&store), create(&store));
    claim(one);
    claim(two);
    drop(store);
    let connection = Connection::open(fixture.path()).unwrap();
    let broken = "UPDATE journal SET body = x'11' WHERE session = 1";
    connection.execute(broken, []).unwrap();
    let store = fixture.open();
    let owned = move |tx: &mut adjourn_store::Transaction<'_>| tx.owned_by(host, 1);
    let owned = store.transact(owned).wait().map_err(|error: Error| error).unwrap();
    assert_eq!(owned.iter().map(|(_, session)| session.id).collect::<Vec<_>>(), [two]);
    assert_eq!(marked(&store), [one]);
}

#[test]
fn a_session_that_cannot_be_read_can_be_removed_and_the_rest_verifies() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (one, two) = (parked(&store), parked(&store));
    drop(store);
    // The links are as they were written: only the program is too old.
    let store = fixture.open();
    let refused = store.transact(move |tx| tx.remove_unreadable(ann(), one)).wait();
    assert!(matches!(refused, Err(CommandError::Store(_))), "{refused:?}");
    drop(store);
    let connection = Connection::open(fixture.path()).unwrap();
    let body = "SELECT body FROM journal WHERE session = 1 ORDER BY no";
    let count: i64 = {
        let mut statement = connection.prepare(body).unwrap();
        statement.query_map([], |_| Ok(())).unwrap().count().try_into().unwrap()
    };
    let broken = "UPDATE journal SET body = x'11' WHERE session = 1";
    connection.execute(broken, []).unwrap();
    let store = fixture.open();
    happens(&fixture, &store);
    assert_eq!(work(&store), [two]);
    assert_eq!(marked(&store), [one]);

    let removed = store.transact(move |tx| tx.remove_unreadable(ann(), one)).wait().unwrap();
    assert_eq!((removed.entries, removed.said), (count.cast_unsigned(), 1));
    assert!(!removed.more);
    assert_eq!(marked(&store), []);
    let session = store.session(one).unwrap().unwrap();
    assert!(matches!(session.state, State::Ended(_)), "{session:?}");
    assert!(store.founding(one).unwrap().is_none());
    let last = store.journal(one, 0, 10).unwrap();
    assert_eq!((last.len(), last[0].event.by.principal.as_str()), (1, "ann"));
    happens(&fixture, &store);
    assert_eq!(work(&store), []);
    let verified = store.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!(verified.pruned, count.cast_unsigned());
}

#[test]
fn an_entry_that_is_missing_in_the_middle_is_named() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let one = parked(&store);
    create(&store);
    drop(store);
    let damage = "DELETE FROM journal WHERE session = 1 AND revision = 2";
    assert_eq!(Connection::open(fixture.path()).unwrap().execute(damage, []).unwrap(), 1);
    let refused = fixture.open().journal(one, 0, 10).unwrap_err().to_string();
    assert!(refused.contains("its journal entry 2 is missing"), "{refused}");
}

/// What else is wrong with it does not matter: the row, a link, an entry that is missing.
#[test]
fn whatever_is_wrong_with_a_session_it_can_be_removed() {
    for damage in [
        "UPDATE session SET link = zeroblob(32) WHERE no = 1",
        "UPDATE session SET revision = 7 WHERE no = 1",
        "UPDATE journal SET link = zeroblob(32) WHERE no = (SELECT head FROM session WHERE no = 1)",
        "DELETE FROM journal WHERE no = (SELECT head FROM session WHERE no = 1)",
        "UPDATE journal SET body = NULL WHERE session = 1",
    ] {
        let fixture = Fixture::new();
        let store = fixture.open();
        let one = parked(&store);
        // What the last commit covers is looked at when the store is opened.
        create(&store);
        drop(store);
        Connection::open(fixture.path()).unwrap().execute_batch(damage).unwrap();
        let store = fixture.open();
        assert!(store.session(one).is_err(), "{damage}");
        let removed = store.transact(move |tx| tx.remove_unreadable(ann(), one)).wait();
        removed.unwrap_or_else(|error| panic!("{damage}: {error}"));
        let session = store.session(one).unwrap().unwrap();
        assert!(matches!(session.state, State::Ended(_)), "{damage}");
        happens(&fixture, &store);
        assert_eq!(work(&store), [], "{damage}");
        drop(store);
        assert!(fixture.open().session(one).is_ok(), "{damage}");
    }
}
