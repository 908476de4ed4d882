//! A wait that begins with many past events in its window: a commit reads a bounded number of them,
//! the rest is shown to the session right after it, and no match is lost.

use std::time::{Duration, Instant};

use adjourn_core::Command;
use adjourn_core::command::{Resume, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::id::{Seq, SessionId};
use adjourn_core::session::{Opening, State};
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Environment as _, Retention, Sqlite, Store as _};
use serde_json::{Value, json};

use crate::fixture::{Fixture, ann, give, keys};

/// More than any commit reads at once.
const MANY: usize = 100_000;
/// More than a commit reads, and quick to make.
const SOME: usize = 5_000;

fn event(fixture: &Fixture, name: &str, subject: &str) -> NewEvent {
    NewEvent {
        id: fixture.environment.uuid().to_string(),
        source: "test".to_owned(),
        name: name.to_owned(),
        subject: Some(subject.to_owned()),
        time: fixture.environment.now(),
        tenant: "acme".to_owned(),
        session: None,
        data: None,
    }
}

/// Acknowledges events that have the name that is waited for, and another subject.
fn happen(fixture: &Fixture, store: &Sqlite, count: usize) {
    let events: Vec<_> = (0..count).map(|_| event(fixture, "ci.passed", "other")).collect();
    let all = move |tx: &mut adjourn_store::Transaction<'_>| {
        events.iter().try_for_each(|event| tx.acknowledge(event).map(drop))
    };
    store.transact::<_, CommandError, _>(all).wait().unwrap();
}

/// Puts a hundred thousand events into the store, acknowledged and delivered, as quickly as can be:
/// some have a subject of their own.
fn fill(fixture: &Fixture, subjects: [(&str, usize); 3]) {
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    let whens: String =
        subjects.iter().map(|(subject, seq)| format!(" WHEN {seq} THEN '{subject}'")).collect();
    let sql = format!(
        "BEGIN;
         WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < {MANY})
         INSERT INTO event (seq, tenant, name, id, source, subject, time, at)
         SELECT seq, 1, 'ci.passed', 'e' || seq, 'test', CASE seq {whens} ELSE 'other' END, 0, 0
         FROM n;
         UPDATE progress SET seq = {MANY};
         COMMIT;"
    );
    connection.execute_batch(&sql).unwrap();
}

/// Parks a session until an event, looking back to all that are kept.
fn park(store: &Sqlite, id: SessionId, conditions: &Value) {
    let resume_when = Conditions::parse(conditions, Spelling::Camel).unwrap();
    give(store, id, Command::Suspend(Suspend { resume_when, ..Suspend::default() })).unwrap();
}

/// Delivers all there is, and returns how often that took the write lock, and how long at most.
fn deliver(store: &Sqlite) -> (usize, Duration) {
    let mut longest = Duration::ZERO;
    for round in 1..1000 {
        let start = Instant::now();
        let delivered = store.transact(|tx| tx.deliver(&ann(), 256)).wait().unwrap();
        longest = longest.max(start.elapsed());
        if !delivered.more {
            assert!(!store.undelivered().unwrap());
            return (round, longest);
        }
        assert!(store.undelivered().unwrap(), "hosts would not look again");
    }
    panic!("there is always more to deliver");
}

/// Returns the event that woke a session which had come to rest before.
fn woken_by(store: &Sqlite, id: SessionId) -> Option<Seq> {
    let session = store.session(id).unwrap().unwrap();
    match &session.state {
        State::Ready(run) => match &run.opening {
            Opening::Wake(report) => report.arrival.as_ref().map(|arrival| arrival.seq),
            Opening::Prompt(_) => None,
        },
        _ => None,
    }
}

fn prompted(store: &Sqlite) -> SessionId {
    let id = crate::fixture::create(store);
    crate::fixture::prompt(store, id, "build").unwrap();
    id
}

/// The match is the first, the middle or the last of a hundred thousand events.
#[test]
fn a_match_among_a_hundred_thousand_events_is_found_wherever_it_is() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let wanted = [("first", 1), ("middle", MANY / 2), ("last", MANY)];
    // The first session makes the tenant. All events were delivered before the waits begin: only
    // looking back finds them.
    prompted(&store);
    fill(&fixture, wanted);
    for pattern in ["ci.passed", "ci.*"] {
        for (subject, seq) in wanted {
            let seq = Seq(seq as u64);
            assert!(!store.undelivered().unwrap());
            let id = prompted(&store);
            let start = Instant::now();
            park(&store, id, &json!({"onEvent": format!("{pattern}:{subject}"), "since": 0}));
            let parked = start.elapsed();
            let at_once = woken_by(&store, id);
            assert_eq!(at_once, Some(seq).filter(|_| subject == "first"), "in the commit itself");
            let (rounds, longest) = deliver(&store);
            assert_eq!(woken_by(&store, id), Some(seq), "{pattern}:{subject}");
            println!(
                "{pattern}:{subject}: parked in {parked:?}, then {rounds} transactions, the \
                 longest {longest:?}"
            );
            // A commit reads a thousand of them: a hundred are enough for all, with room.
            assert!(rounds <= MANY / 1000 + 2, "{rounds}");
        }
    }
    store.verify(&keys().ring(), None).unwrap().unwrap();
}

/// Events come to a session in their order, also to one that has not heard them all.
#[test]
fn what_comes_meanwhile_waits_behind_what_was_there() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = prompted(&store);
    happen(&fixture, &store, SOME);
    let early = event(&fixture, "ci.passed", "main");
    let (early, _) = store.transact(move |tx| tx.acknowledge(&early)).wait().unwrap();
    happen(&fixture, &store, SOME);
    deliver(&store);
    park(&store, id, &json!({"onEvent": "ci.*:main", "since": 0}));
    let late = event(&fixture, "ci.passed", "main");
    let (late, _) = store.transact(move |tx| tx.acknowledge(&late)).wait().unwrap();
    deliver(&store);
    assert_eq!(woken_by(&store, id), Some(early));
    // The wait after it hears the next one, which has been delivered long ago.
    park(&store, id, &json!({"onEvent": "ci.*:main", "since": early.0}));
    deliver(&store);
    assert_eq!(woken_by(&store, id), Some(late));
}

/// Many who look back over many events are all told, and each commit is short all the same.
#[test]
fn many_that_lag_are_all_shown_the_rest() {
    let fixture = Fixture::new();
    let store = fixture.open();
    happen(&fixture, &store, SOME);
    let wanted = event(&fixture, "ci.passed", "main");
    let (seq, _) = store.transact(move |tx| tx.acknowledge(&wanted)).wait().unwrap();
    deliver(&store);
    let ids: Vec<_> = (0..20).map(|_| prompted(&store)).collect();
    for id in &ids {
        park(&store, *id, &json!({"onEvent": "ci.*:main", "since": 0}));
        assert_eq!(woken_by(&store, *id), None);
    }
    // One of them does not want to wait any longer.
    give(&store, ids[7], Command::Resume(Resume::default())).unwrap();
    deliver(&store);
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(woken_by(&store, *id), Some(seq).filter(|_| number != 7), "{number}");
    }
}

/// What a session has yet to hear is kept, however old it is.
#[test]
fn what_somebody_has_yet_to_hear_is_not_pruned() {
    let fixture = Fixture::new();
    let store = fixture.open();
    happen(&fixture, &store, SOME);
    let wanted = event(&fixture, "ci.passed", "main");
    let (seq, _) = store.transact(move |tx| tx.acknowledge(&wanted)).wait().unwrap();
    deliver(&store);
    let id = crate::fixture::create(&store);
    park(&store, id, &json!({"onEvent": "ci.*:main", "since": 0}));
    fixture.environment.advance(Duration::from_secs(48 * 3600));
    let prune = || loop {
        let pruned = store.transact(|tx| tx.prune(&Retention::default(), 1000)).wait();
        let pruned = pruned.map_err(|error: adjourn_store::Error| error).unwrap();
        if !pruned.more {
            break;
        }
    };
    prune();
    let left = store.size().unwrap().events;
    assert!(left > SOME as u64 / 2 && left < SOME as u64, "{left}");
    deliver(&store);
    let session = store.session(id).unwrap().unwrap();
    assert_eq!(session.woke.as_ref().map(|woke| woke.had_resume_input), Some(false));
    assert!(session.suspended().is_none(), "{seq} woke it");
    prune();
    assert_eq!(store.size().unwrap().events, 0);
}
