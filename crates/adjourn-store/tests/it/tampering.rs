//! Entries removed, added, exchanged and moved by somebody who can write to the file: found, and
//! named.
//!
//! The entries of a [`Scene`] are, by number: 1, 2 and 3 create its sessions, 4, 5 and 6 are their
//! prompts, 7 and 8 end the third; commit 8 holds 9, 10 and 12 of the second and 11 of the first;
//! 13 creates a fourth.

use adjourn_core::Command;
use adjourn_core::command::Close;
use adjourn_core::time::Timestamp;
use adjourn_record::commit::{Head, Row};
use adjourn_record::keys::Key;
use adjourn_record::merkle::Tree;
use adjourn_record::{Hash, chain::Chain};
use adjourn_store::sqlite::Options;
use adjourn_store::{CommandError, Error, Sqlite, Store as _};

use crate::damage::Scene;
use crate::fixture::{give, keys};

/// Says in one line what was done and what was found.
#[track_caller]
fn check(scene: &Scene, damage: &str, expected: &str) {
    let expected = expected
        .replace("PARKED", &scene.parked.to_string())
        .replace("RUNNING", &scene.running.to_string())
        .replace("PRUNED", &scene.pruned.to_string());
    assert_eq!(scene.fault(damage), expected, "{damage}");
}

const ALTERED: &str = "its bytes and its place do not give the link stored beside it";

#[test]
fn an_entry_removed_is_found() {
    let scene = Scene::new();
    check(&scene, "DELETE FROM journal WHERE no = 5", "journal entry 5 is missing");
    check(&scene, "DELETE FROM journal WHERE no = 13", "journal entry 13 is missing");
    check(&scene, "DELETE FROM journal", "journal entry 1 is missing");
    // The others move up, so that no number is missing.
    check(
        &scene,
        "DELETE FROM journal WHERE no = 5;
         UPDATE journal SET no = -no WHERE no > 5; UPDATE journal SET no = -no - 1 WHERE no < 0",
        "commit 5: its entries do not give its root",
    );
    // Its bytes alone, as pruning does, in a session that was not pruned.
    check(
        &scene,
        "UPDATE journal SET body = NULL WHERE no = 5",
        "journal entry 5 has lost its bytes",
    );
    check(
        &scene,
        "UPDATE journal SET body = NULL WHERE no = 13",
        "journal entry 13 has lost its bytes",
    );
}

#[test]
fn an_entry_added_is_found() {
    let scene = Scene::new();
    let add = "INSERT INTO journal SELECT NO, session, revision, prev, link, body FROM journal
               WHERE no = 12";
    for no in ["14", "99", "0", "-3"] {
        check(
            &scene,
            &add.replace("NO", no),
            &format!("journal entry {no} is covered by no commit"),
        );
    }
    // With its chain drawn on correctly, and the session brought up to it.
    let row: (i64, Vec<u8>, Vec<u8>) = scene
        .connection
        .query_row("SELECT revision, link, body FROM journal WHERE no = 12", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    let prev = Hash::from_bytes(row.1.try_into().unwrap());
    let link = Chain::journal(scene.running).link(prev, 6, &row.2);
    scene
        .connection
        .execute(
            "INSERT INTO journal SELECT 14, session, 6, 12, ?1, body FROM journal WHERE no = 12",
            [link.as_bytes()],
        )
        .unwrap();
    scene
        .connection
        .execute(
            "UPDATE session SET head = 14, revision = 6, link = ?1 WHERE no = 2",
            [link.as_bytes()],
        )
        .unwrap();
    assert_eq!(scene.found("added"), "journal entry 14 is covered by no commit");
}

#[test]
fn entries_exchanged_are_found() {
    let scene = Scene::new();
    let swap = |columns: &str| {
        let set: Vec<_> = columns
            .split(' ')
            .map(|column| {
                format!("{column} = (SELECT {column} FROM whole.journal AS w WHERE w.no = 19 - journal.no)")
            })
            .collect();
        format!("UPDATE main.journal SET {} WHERE no IN (9, 10)", set.join(", "))
    };
    let altered = format!("journal of session RUNNING, entry 3: {ALTERED}");
    check(&scene, &swap("body"), &altered);
    check(&scene, &swap("body link"), &altered);
    check(
        &scene,
        &swap("body link revision"),
        "journal of session RUNNING, entry 3: it is missing; entry 4 stands in its place",
    );
}

#[test]
fn an_entry_of_another_session_is_found() {
    let scene = Scene::new();
    // Prompts of two sessions have the same revision and the same shape.
    let splice = "UPDATE main.journal SET (COLUMNS) =
                      (SELECT COLUMNS FROM whole.journal AS w WHERE w.no = 4) WHERE no = 5";
    let altered = format!("journal of session RUNNING, entry 2: {ALTERED}");
    check(&scene, &splice.replace("COLUMNS", "body, revision"), &altered);
    check(&scene, &splice.replace("COLUMNS", "body, link"), &altered);
    check(
        &scene,
        &splice.replace("COLUMNS", "session, revision, prev, link, body"),
        "journal entry 5 points to the wrong entry before it",
    );
    check(
        &scene,
        "UPDATE journal SET session = 77 WHERE no = 5",
        "journal entry 5 belongs to no session",
    );
}

#[test]
fn commits_removed_or_signed_by_others_are_found() {
    let scene = Scene::new();
    check(
        &scene,
        "DELETE FROM commits WHERE number = 3",
        "commit 3: it is missing; commit 4 stands in its place",
    );
    check(
        &scene,
        "DELETE FROM commits WHERE number = 9",
        "journal entry 13 is covered by no commit",
    );
    let ours = keys().current().id();
    let forged = format!("commit 8: its signature is not that of key {ours} over its fields");
    check(&scene, "UPDATE commits SET count = 3 WHERE number = 8", &forged);
    check(&scene, "UPDATE commits SET count = 1 << 40 WHERE number = 8", &forged);
    check(&scene, "UPDATE commits SET at = at + 1 WHERE number = 8", &forged);
    check(
        &scene,
        "UPDATE commits SET signature =
             (SELECT signature FROM whole.commits AS w WHERE w.number = 7) WHERE number = 8",
        &forged,
    );
    for number in [0, -1] {
        let add = format!(
            "INSERT INTO commits SELECT {number}, prev, root, count, at, key, signature
             FROM commits WHERE number = 1"
        );
        let fault = scene.fault(&add);
        assert!(fault.starts_with("commit ") && fault.contains("commit 1"), "{fault}");
    }

    // Somebody signs the last commit again, with a key of his own that he adds to the store.
    let foreign = Key::from_secrets(Timestamp::from_millis(0), &[66; 32], &[66; 32]);
    let head = scene.store.head().unwrap();
    let (prev, link): ([u8; 32], [u8; 32]) = scene
        .connection
        .query_row(
            "SELECT commits.prev, journal.link FROM commits, journal WHERE number = 9 AND no = 13",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let tree: Tree = [Hash::from_bytes(link)].into_iter().collect();
    let prev = Head { number: 8, hash: Hash::from_bytes(prev) };
    let row = Row::sign(&foreign, prev, &tree, Timestamp::from_millis(1));
    assert_eq!(row.number, head.number);
    scene
        .connection
        .execute(
            "UPDATE commits SET at = 1, key = ?1, signature = ?2 WHERE number = 9",
            [row.key.as_bytes().as_slice(), row.signature.as_bytes().as_slice()],
        )
        .unwrap();
    let expected = format!("commit 9: it is signed with unknown key {}", foreign.id());
    assert_eq!(scene.found("signed"), expected);
}

#[test]
fn a_store_rolled_back_as_a_whole_is_found_against_a_head_kept_elsewhere() {
    let scene = Scene::new();
    let head = scene.store.head().unwrap();
    scene
        .connection
        .execute_batch(
            "DELETE FROM commits WHERE number = 9; DELETE FROM journal WHERE no = 13;
             DELETE FROM mark WHERE session = 4; DELETE FROM session WHERE no = 4",
        )
        .unwrap();
    let ring = keys().ring();
    let before = scene.store.verify(&ring, None).unwrap().expect("consistent in itself");
    assert_eq!((before.audit.head.number, before.sessions), (8, 3));
    let fault = scene.store.verify(&ring, Some(head)).unwrap().unwrap_err();
    assert_eq!(
        fault.to_string(),
        format!(
            "commit 9: it is missing: the store ends before the known head {head} and was rolled \
             back"
        )
    );
    // And goes on from there, as if nothing had been.
    crate::fixture::create(&scene.store);
    let fault = scene.store.verify(&ring, Some(head)).unwrap().unwrap_err();
    assert_eq!(
        fault.to_string(),
        format!("commit 9: it is not the commit of the known head {head}")
    );
    assert!(scene.store.verify(&ring, Some(before.audit.head)).unwrap().is_ok());
}

#[test]
fn a_transcript_that_was_changed_is_found() {
    let scene = Scene::new();
    let altered = "the transcript of session RUNNING is altered in entries";
    let at = |index: u32| format!("place = (2 << 32) + {index}");
    for (damage, entries) in [
        (format!("UPDATE transcript SET body = x'00' WHERE {}", at(0)), "1 to 1"),
        (format!("UPDATE recent SET body = x'00' WHERE {}", at(3)), "2 to 4"),
        (format!("DELETE FROM recent WHERE {}", at(3)), "2 to 4"),
        (format!("DELETE FROM transcript WHERE {}", at(1)), "2 to 2"),
        (format!("UPDATE recent SET place = place + 9 WHERE {}", at(3)), "4 to 4"),
        ("INSERT INTO recent VALUES ((2 << 32) + 4, x'00')".to_owned(), "5 to 5"),
        ("INSERT INTO transcript VALUES ((2 << 32) + 4, x'00')".to_owned(), "5 to 5"),
        (format!("INSERT INTO recent SELECT * FROM transcript WHERE {}", at(1)), "3 to 3"),
        (
            format!(
                "UPDATE main.transcript SET body = (SELECT body FROM whole.transcript AS w
                     WHERE w.place = 2 * ((2 << 32) + 1) + 1 - transcript.place)
                 WHERE {} OR {}",
                at(1),
                at(2)
            ),
            "2 to 4",
        ),
    ] {
        check(&scene, &damage, &format!("{altered} {entries}"));
    }
    for (table, session) in [("transcript", 3), ("transcript", 44), ("recent", 3), ("recent", 44)] {
        check(
            &scene,
            &format!("INSERT INTO {table} VALUES ({session} << 32, x'00')"),
            &format!("a transcript entry belongs to session number {session}, which has none"),
        );
    }
}

#[test]
fn a_session_row_that_does_not_follow_from_the_journal_is_found() {
    let scene = Scene::new();
    for (set, session) in [
        ("state = 1 WHERE no = 1", "PARKED"),
        ("due = due + 1 WHERE no = 1", "PARKED"),
        ("due = NULL WHERE no = 1", "PARKED"),
        ("handle = NULL WHERE no = 1", "PARKED"),
        ("owner = x'00000000000000000000000000000000' WHERE no = 1", "PARKED"),
        ("owner = NULL WHERE no = 2", "RUNNING"),
        ("head = 10 WHERE no = 2", "RUNNING"),
        ("since = NULL WHERE no = 2", "RUNNING"),
        ("at = 0 WHERE no = 2", "RUNNING"),
        ("tenant = 9 WHERE no = 2", "RUNNING"),
        ("pruned = 2 WHERE no = 3", "PRUNED"),
    ] {
        let expected = format!("the row of session {session} does not fit its journal");
        check(&scene, &format!("UPDATE session SET {set}"), &expected);
    }
    check(
        &scene,
        "UPDATE session SET revision = 4 WHERE no = 2",
        "journal of session RUNNING, entry 5: it was added after the head of the chain, which is \
         entry 4",
    );
    check(
        &scene,
        "UPDATE session SET revision = 6 WHERE no = 2",
        "journal of session RUNNING, entry 6: it is missing, and so is all up to the head of the \
         chain, which is entry 6",
    );
    check(
        &scene,
        "UPDATE session SET link = zeroblob(32) WHERE no = 2",
        "journal of session RUNNING, entry 5: its link is not the one that the head of the chain \
         names",
    );
    check(&scene, "DELETE FROM session WHERE no = 2", "journal entry 2 belongs to no session");
    let subscriptions = "the subscriptions of session PARKED do not fit its journal";
    check(&scene, "DELETE FROM subscription", subscriptions);
    check(&scene, "INSERT INTO subscription VALUES (1, 'other', 1)", subscriptions);
    check(
        &scene,
        "INSERT INTO subscription VALUES (1, 'other', 55)",
        "a subscription belongs to session number 55, which has none",
    );
}

/// Sessions 1 and 2 are those that are parked and running; 3 was pruned.
#[test]
fn what_queries_find_a_session_by_is_compared_with_its_journal() {
    let scene = Scene::new();
    let marks = "the marks of session PARKED do not fit its journal";
    check(&scene, "DELETE FROM mark WHERE session = 1 AND what = 'tenant=acme'", marks);
    check(
        &scene,
        "UPDATE mark SET what = 'tenant=other' WHERE session = 1 AND what LIKE 't%'",
        marks,
    );
    check(&scene, "INSERT INTO mark VALUES ('label4:team=web', 1)", marks);
    check(
        &scene,
        "INSERT INTO mark VALUES ('tenant=acme', 99)",
        "a mark belongs to session number 99, which has none",
    );
    let runs = "the runs of session RUNNING do not fit its journal";
    check(&scene, "DELETE FROM run WHERE session = 2", runs);
    // A run may go on in another session of the store, if that has taken it in.
    check(&scene, "UPDATE run SET session = 1 WHERE session = 2", runs);
    check(&scene, "UPDATE run SET session = 3 WHERE session = 2", runs);
    check(&scene, "INSERT INTO run VALUES (zeroblob(16), 2)", runs);
    check(
        &scene,
        "INSERT INTO run VALUES (zeroblob(16), 99)",
        "a run belongs to session number 99, which has none",
    );
    // What is left of one that was erased leads nowhere.
    scene.connection.execute("INSERT INTO mark VALUES ('tenant=acme', 3)", []).unwrap();
    scene.store.verify(&keys().ring(), None).unwrap().unwrap();
}

#[test]
fn what_is_left_of_a_pruned_session_still_counts() {
    let scene = Scene::new();
    let verified = scene.store.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!((verified.sessions, verified.entries, verified.pruned), (4, 13, 3));
    check(
        &scene,
        "UPDATE journal SET body = substr(body, 1, 100) WHERE no = 8",
        &format!("journal of session PRUNED, entry 4: {ALTERED}"),
    );
    check(
        &scene,
        "UPDATE journal SET link = zeroblob(32) WHERE no = 6",
        "commit 6: its entries do not give its root",
    );
    check(
        &scene,
        "UPDATE journal SET revision = 9 WHERE no = 6",
        "journal of session PRUNED, entry 2: it is missing; entry 9 stands in its place",
    );
    check(
        &scene,
        "UPDATE journal SET body = NULL WHERE no = 8",
        "journal entry 8 has lost its bytes",
    );
    check(
        &scene,
        "UPDATE session SET pruned = 0 WHERE no = 3",
        "journal entry 3 has lost its bytes",
    );
    // Nobody hides a transcript by calling a session pruned.
    let row = "the row of session RUNNING does not fit its journal";
    check(&scene, "UPDATE session SET pruned = 1 WHERE no = 2", row);
    check(
        &scene,
        "UPDATE session SET pruned = 1 WHERE no = 2;
         UPDATE journal SET body = NULL WHERE session = 2 AND no < 12;
         DELETE FROM transcript WHERE place >> 32 = 2; DELETE FROM recent WHERE place >> 32 = 2",
        row,
    );
}

#[test]
fn a_value_of_another_form_is_found() {
    let scene = Scene::new();
    for (damage, what) in [
        ("UPDATE journal SET link = x'00' WHERE no = 5", "journal entry 5"),
        ("UPDATE commits SET root = x'' WHERE number = 4", "commit 4"),
        ("UPDATE session SET link = x'00' WHERE no = 2", "the row of session number 2"),
        ("UPDATE session SET owner = x'00' WHERE no = 2", "the row of session RUNNING"),
    ] {
        let what = what.replace("RUNNING", &scene.running.to_string());
        let fault = scene.fault(damage);
        assert!(fault.starts_with(&format!("{what} cannot be read: ")), "{fault}");
    }
}

/// Opens a store after some damage, and returns what is said about it.
fn reopened(damage: &str) -> (Scene, Result<Sqlite, Error>) {
    let scene = Scene::new();
    scene.connection.execute_batch(damage).unwrap();
    let opened = Sqlite::open(Options { cache: 0, ..scene.fixture.options() });
    (scene, opened)
}

#[test]
fn an_entry_that_does_not_fit_its_link_is_damaged_wherever_it_is_read() {
    for (damage, fault) in [
        // A byte of the state that it is folded from.
        (
            "UPDATE journal SET body = CAST(replace(CAST(body AS TEXT), 'ci.passed', 'ci.failed')
                 AS BLOB) WHERE no = (SELECT head FROM session WHERE no = 1)",
            "its bytes and its place do not give the link stored beside it",
        ),
        (
            "UPDATE journal SET link = zeroblob(32) WHERE no = (SELECT prev FROM journal
                 WHERE no = (SELECT head FROM session WHERE no = 1))",
            "its bytes and its place do not give the link stored beside it",
        ),
        (
            "UPDATE session SET head = (SELECT prev FROM journal WHERE no = head) WHERE no = 1",
            "it stands where entry 3 belongs",
        ),
        (
            "UPDATE session SET link = zeroblob(32) WHERE no = 1",
            "its link is not the one that the head of the chain names",
        ),
    ] {
        let (scene, opened) = reopened(damage);
        let store = opened.unwrap();
        let error = store.session(scene.parked).unwrap_err().to_string();
        let named =
            format!("session {} cannot be read: its journal is damaged at entry 3: ", scene.parked);
        assert!(error.starts_with(&named) && error.ends_with(fault), "{damage}: {error}");
        let refused = give(&store, scene.parked, Command::Close(Close::default())).unwrap_err();
        assert!(matches!(refused, CommandError::Store(Error::Unreadable { .. })), "{refused}");
        // The others are not its concern, nor is one that was pruned.
        for id in [scene.running, scene.pruned] {
            assert!(store.session(id).unwrap().is_some());
        }
    }
}

#[test]
fn a_journal_that_does_not_end_with_the_last_commit_is_not_gone_on_with() {
    for (damage, problem) in [
        ("DELETE FROM journal WHERE no = (SELECT max(no) FROM journal)", "commit 9: "),
        ("DELETE FROM commits WHERE number = 9", "commit 8: "),
        ("DELETE FROM commits", "there is no commit; "),
        (
            "INSERT INTO journal (session, revision, link, body) SELECT session, revision + 1,
                 zeroblob(32), body FROM journal WHERE no = (SELECT max(no) FROM journal)",
            "commit 9: ",
        ),
    ] {
        let (scene, opened) = reopened(damage);
        let error = opened.err().expect("it is refused").to_string();
        let start = format!("the store is damaged: {problem}");
        assert!(error.starts_with(&start), "{damage}: {error}");
        let named = match damage.starts_with("INSERT") {
            true => " do not give the link stored beside it",
            false => "the journal ends with entry ",
        };
        assert!(error.contains(named), "{damage}: {error}");
        // It can still be looked at.
        let looking = Sqlite::look(&scene.fixture.path(), scene.fixture.environment.clone(), 1);
        assert!(looking.unwrap().session(scene.running).unwrap().is_some());
    }
}

#[test]
fn of_the_entries_of_the_last_commit_the_one_that_was_altered_is_named() {
    let fixture = crate::fixture::Fixture::new();
    let store = fixture.open();
    let foundings = [crate::fixture::founding(&store), crate::fixture::founding(&store)];
    let [first, second] = foundings.clone().map(|founding| founding.id);
    let both = store.transact(move |tx| {
        foundings
            .into_iter()
            .try_for_each(|founding| tx.create(crate::fixture::ann(), founding).map(|_| ()))
    });
    let both: Result<(), CommandError> = both.wait();
    both.unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    let sql = "UPDATE journal SET link = zeroblob(32)
               WHERE session = (SELECT no FROM session WHERE id = ?1)";
    assert_eq!(connection.execute(sql, [first.uuid().as_bytes()]).unwrap(), 1);
    drop(connection);
    let error = Sqlite::open(fixture.options()).err().expect("it is refused").to_string();
    assert!(error.contains(&format!("entry 1 of session {first} ")), "{error}");
    assert!(!error.contains(&second.to_string()), "{error}");
}

#[test]
fn what_pruning_and_erasing_leave_is_not_damaged() {
    let scene = Scene::new();
    let id = crate::fixture::create(&scene.store);
    give(&scene.store, id, Command::Close(Close::default())).unwrap();
    // The very last commit is that of a session that is erased.
    scene.store.transact(move |tx| tx.erase(id)).wait().unwrap();
    let store = Sqlite::open(Options { cache: 0, ..scene.fixture.options() }).unwrap();
    for id in [id, scene.pruned] {
        assert_eq!(store.session(id).unwrap().unwrap().state.name(), "ended");
    }
    store.verify(&keys().ring(), None).unwrap().unwrap();
}
