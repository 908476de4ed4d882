//! Places where something could slip through: each was looked for, and is shut.

use adjourn_core::Command;
use adjourn_core::command::{Close, Resume, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Environment as _, Request, Retention, Sqlite, Store as _};
use serde_json::json;

use crate::fixture::{Fixture, ann, give, keys, prompt};

pub(crate) fn event(fixture: &Fixture, name: &str) -> NewEvent {
    NewEvent {
        id: fixture.environment.uuid().to_string(),
        source: "test".to_owned(),
        name: name.to_owned(),
        subject: None,
        time: fixture.environment.now(),
        tenant: "acme".to_owned(),
        session: None,
        data: None,
    }
}

/// Whoever takes an error of the store for an answer and goes on keeps nothing of what follows.
#[test]
fn after_the_store_failed_nothing_of_a_transaction_is_kept() {
    let fixture = Fixture::new();
    let mut options = fixture.options();
    options.max_pages = Some(70);
    let store = Sqlite::open(options).unwrap();
    let (one, two) = (fixture.create(&store), fixture.create(&store));
    let large = "x".repeat(100_000);
    let mut failed = false;
    for _ in 0..20 {
        let before = store.session(two).unwrap().unwrap();
        let large = large.clone();
        let answer = store
            .transact(move |tx| {
                let content = adjourn_core::transcript::Content::text(&large);
                let prompt = Command::Prompt(adjourn_core::command::Prompt {
                    content,
                    message_id: None,
                    handle: None,
                    reach: adjourn_core::command::Reach::OwnFace,
                });
                let said = vec![large.into_bytes()];
                let first = tx.command(Request::new(one, ann(), prompt).saying(said));
                let full = matches!(first, Err(CommandError::Store(_)));
                tx.command(Request::new(one, ann(), Command::Cancel(Default::default()))).ok();
                tx.command(Request::new(two, ann(), Command::Suspend(Suspend::default()))).ok();
                tx.command(Request::new(two, ann(), Command::Resume(Resume::default()))).ok();
                Ok::<bool, CommandError>(full)
            })
            .wait();
        if answer.is_err() {
            failed = true;
            assert_eq!(store.session(two).unwrap().unwrap(), before, "nothing is left of it");
            break;
        }
        assert!(!answer.unwrap(), "a swallowed error is told all the same");
    }
    assert!(failed, "the file never filled up");
    store.verify(&keys().ring(), None).unwrap().unwrap();
}

/// One session that cannot be read keeps no other from its event, its deadline or the list.
#[test]
fn a_damaged_session_keeps_nobody_else_from_waking() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let value = json!({"onEvent": "ci.passed", "timeout": {"durationMinutes": 5}});
    let resume_when = Conditions::parse(&value, Spelling::Camel).unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = fixture.create(&store);
        let suspend = Suspend { resume_when: resume_when.clone(), ..Suspend::default() };
        give(&store, id, Command::Suspend(suspend)).unwrap();
        ids.push(id);
    }
    drop(store);
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    let broken = "UPDATE journal SET body = x'11' WHERE no = (SELECT min(head) FROM session)";
    assert_eq!(connection.execute(broken, []).unwrap(), 1);
    let store = fixture.open();
    let listed = store.sessions(adjourn_store::rows::SessionNo(0), 10).unwrap();
    assert_eq!(listed.iter().filter(|(_, listed)| listed.is_ok()).count(), 2);
    let happened = event(&fixture, "ci.passed");
    store.transact(move |tx| tx.acknowledge(&happened)).wait().unwrap();
    let woken = store.transact(|tx| tx.deliver(&ann(), 100)).wait().unwrap().changed;
    assert_eq!(woken.iter().map(|session| session.id).collect::<Vec<_>>(), ids[1..]);
    // Nor does it stay due for ever.
    fixture.environment.advance(std::time::Duration::from_secs(3600));
    assert!(store.transact(|tx| tx.expire(&ann(), 100)).wait().unwrap().is_empty());
    assert_eq!(store.next_due().unwrap(), None);
    assert!(store.verify(&keys().ring(), None).unwrap().is_err(), "it is named");
}

/// What is pruned makes the file smaller, and what is left verifies.
#[test]
fn pruning_gives_room_back() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    for number in 0..400 {
        prompt(&store, id, &format!("{number} {}", "x".repeat(3000))).unwrap();
        give(&store, id, Command::Cancel(Default::default())).unwrap();
    }
    give(&store, id, Command::Close(Close::default())).unwrap();
    let before = store.size().unwrap();
    fixture.environment.advance(std::time::Duration::from_secs(60));
    let retention = Retention { ended: Some(std::time::Duration::ZERO), ..Retention::default() };
    for _ in 0..20 {
        store.transact(move |tx| tx.prune(&retention, 100)).wait().unwrap();
    }
    let after = store.size().unwrap();
    assert!(after.file < before.file / 4, "{} of {} bytes left", after.file, before.file);
    let verified = store.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!((verified.entries, verified.pruned), (before.entries, before.entries - 1));
    assert_eq!(store.session(id).unwrap().unwrap().state.name(), "ended");
}

/// No statement that holds the write lock reads a whole table.
#[test]
fn a_look_back_reads_the_window_and_not_all_that_is_kept() {
    let fixture = Fixture::new();
    drop(fixture.open());
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    let plan = |sql: &str| -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    for condition in [
        "+tenant = 1 AND seq > 5 AND seq <= 7 ORDER BY seq LIMIT 9",
        "+tenant = 1 AND seq > 5 AND seq <= 7 AND (+name = 'a' OR (+name >= 'a.' AND +name < 'a/'))
             ORDER BY seq LIMIT 9",
    ] {
        let plan = plan(&format!("SELECT seq FROM event WHERE {condition}"));
        assert!(plan.contains("INTEGER PRIMARY KEY (rowid>? AND rowid<?)"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }
    let plan = plan("SELECT no FROM session WHERE gated = 1 AND no > 5 ORDER BY no LIMIT 9");
    assert!(plan.contains("session_gated"), "{plan}");
}

/// A store holds what people say, and so does a copy of it: both are for their owner alone.
#[test]
fn a_store_and_its_copy_are_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let fixture = Fixture::new();
    let store = fixture.open();
    let copy = fixture.directory.path().join("copy.db");
    store.backup(&copy).unwrap();
    for path in [fixture.path(), copy] {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
}

/// Everything that is taken with a command is in the transcript, or the command is refused.
#[test]
fn words_that_no_command_names_are_refused() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    let request = Request::new(id, ann(), Command::Suspend(Suspend::default()));
    let request = request.saying(vec![b"lost?".to_vec()]);
    let refused = store.transact(move |tx| tx.command(request)).wait().unwrap_err();
    assert!(matches!(refused, CommandError::Store(adjourn_store::Error::Unsaid(_))), "{refused}");
    assert!(store.session(id).unwrap().unwrap().suspended().is_none());
}
