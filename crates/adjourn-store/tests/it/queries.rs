//! What queries find on SQLite: in files of before there were lists, and in lists that are behind.

use std::collections::BTreeMap;

use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{RunId, SessionId};
use adjourn_core::{Founding, Rejected};
use adjourn_store::sqlite::Options;
use adjourn_store::{
    CommandError, Environment as _, Filter, Page, Query, Sort, Sqlite, StateKind, Store,
};
use rusqlite::Connection;

use crate::fixture::{Fixture, ann, create, founding, keys, prompt};

/// More entries than a query looks at by itself.
const MANY: usize = 8_300;

/// What makes a file one of before queries had lists, and before what was said last lay apart.
pub const WITHOUT_LISTS: &str = "INSERT INTO transcript SELECT * FROM recent; DROP TABLE recent;
     DROP TABLE mark; DROP TABLE run; DROP TABLE listing;
     DELETE FROM progress WHERE what = 'listed'; PRAGMA user_version = 5;";

fn found(store: &Sqlite, filter: Filter) -> Vec<SessionId> {
    let page = ask(store, filter, 100);
    assert_eq!((page.next, page.behind), (None, 0));
    ids(&page)
}

fn ask(store: &Sqlite, filter: Filter, limit: usize) -> Page {
    store.query(Query { sort: Sort::Stalest, ..Query::new(filter, limit) }).wait().unwrap()
}

fn ids(page: &Page) -> Vec<SessionId> {
    page.sessions.iter().map(|listed| listed.as_ref().unwrap().id).collect()
}

fn label(value: &str) -> Filter {
    let labels = [("team".to_owned(), value.to_owned())].into();
    Filter { labels, ..Filter::default() }
}

fn in_state(state: StateKind) -> Filter {
    Filter { states: vec![state], ..Filter::default() }
}

/// Makes two sessions, one of them with all that one can be found by; returns it and its runs.
fn two(store: &Sqlite) -> (SessionId, SessionId, Vec<RunId>) {
    let other = create(store);
    let driver = DriverSpec { cwd: Some("/srv/web".to_owned()), ..DriverSpec::script("{}") };
    let labels = BTreeMap::from([("team".to_owned(), "web".to_owned())]);
    let founding = Founding { labels, parent: Some(other), driver, ..founding(store) };
    let id = founding.id;
    store.transact(move |tx| tx.create(ann(), founding)).wait().unwrap();
    let mut runs = Vec::new();
    for _ in 0..2 {
        runs.push(prompt(store, id, "build").unwrap().session.run().unwrap().id);
        let cancel = adjourn_core::Command::Cancel(adjourn_core::command::Cancel::default());
        crate::fixture::give(store, id, cancel).unwrap();
    }
    runs.push(prompt(store, id, "build").unwrap().session.run().unwrap().id);
    (other, id, runs)
}

fn assert_all_is_found(store: &Sqlite, (other, id, runs): &(SessionId, SessionId, Vec<RunId>)) {
    assert_eq!(found(store, label("web")), [*id]);
    assert_eq!(found(store, Filter { cwd: Some("/srv/web".into()), ..Filter::default() }), [*id]);
    assert_eq!(found(store, Filter { parent: Some(*other), ..Filter::default() }), [*id]);
    assert_eq!(found(store, Filter { agent: Some("script".into()), ..Filter::default() }).len(), 2);
    assert_eq!(found(store, in_state(StateKind::Idle)), [*other]);
    assert_eq!(found(store, in_state(StateKind::Ready)), [*id]);
    assert_eq!(found(store, label("infra")), []);
    for run in runs {
        assert_eq!(store.session_of(*run).unwrap(), Some(*id));
    }
}

#[test]
fn a_file_of_before_there_were_lists_gets_them() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let made = two(&store);
    // One that cannot be read keeps no file shut.
    let unreadable = create(&store);
    drop(store);
    let older = Connection::open(fixture.path()).unwrap();
    let spoil = "UPDATE journal SET body = x'11' WHERE session =
                     (SELECT no FROM session WHERE id = ?1)";
    older.execute(spoil, [unreadable.uuid().as_bytes()]).unwrap();
    older.execute_batch(WITHOUT_LISTS).unwrap();
    drop(older);
    let store = fixture.open();
    let page = ask(&store, in_state(StateKind::Idle), 10);
    assert_eq!(page.sessions.iter().filter(|listed| listed.is_err()).count(), 1);
    crate::fixture::give(
        &store,
        made.0,
        adjourn_core::Command::Suspend(adjourn_core::command::Suspend::default()),
    )
    .unwrap();
    assert_eq!(found(&store, in_state(StateKind::Suspended)), [made.0]);
    crate::fixture::give(
        &store,
        made.0,
        adjourn_core::Command::Resume(adjourn_core::command::Resume::default()),
    )
    .unwrap();
    let connection = Connection::open(fixture.path()).unwrap();
    let sql = "DELETE FROM session WHERE id = ?1";
    connection.execute(sql, [unreadable.uuid().as_bytes()]).unwrap();
    assert_all_is_found(&store, &made);
    while store.follow().wait().unwrap() {}
    assert_all_is_found(&store, &made);
    assert_eq!(store.unlisted().unwrap(), 0);
}

/// Makes many sessions at once, and one more.
fn many(store: &Sqlite) -> SessionId {
    let foundings: Vec<_> = (0..MANY).map(|_| founding(store)).collect();
    let created = store.transact(move |tx| -> Result<(), CommandError> {
        foundings.into_iter().try_for_each(|founding| tx.create(ann(), founding).map(drop))
    });
    created.wait().unwrap();
    let last = create(store);
    prompt(store, last, "build").unwrap();
    last
}

#[test]
fn a_list_that_is_far_behind_is_brought_up_by_those_who_ask() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let last = many(&store);
    drop(store);
    // Also by those who opened it to look.
    let store = Sqlite::look(&fixture.path(), fixture.environment.clone(), 1).unwrap();
    let behind = store.unlisted().unwrap();
    assert!(behind > MANY as u64);
    let page = ask(&store, in_state(StateKind::Ready), 10);
    assert_eq!((ids(&page), page.behind), (vec![last], 0));
    assert!(store.unlisted().unwrap() < behind);
    let counted = store.count(in_state(StateKind::Idle)).wait().unwrap();
    assert_eq!(counted.states["idle"].count, MANY as u64);
}

#[test]
fn an_answer_says_how_far_it_is_behind_where_nothing_can_be_written() {
    let fixture = Fixture::new();
    let store = fixture.open();
    many(&store);
    drop(store);
    let store = Sqlite::look(&fixture.path(), fixture.environment.clone(), 1).unwrap();
    keep_behind(&fixture);
    let page = ask(&store, in_state(StateKind::Ready), 10);
    assert!(page.sessions.is_empty());
    assert_eq!(page.behind, store.unlisted().unwrap());
    let tally = store.tally(fixture.environment.now()).wait().unwrap();
    assert_eq!(tally.behind, page.behind, "and so does a count of all");
    // What does not need the list does not suffer from it.
    let all = store.query(Query::new(Filter::default(), 10)).wait().unwrap();
    assert_eq!((all.sessions.len(), all.behind), (10, 0));
}

/// A name is as good as an id: no list that is behind hides the session that has it.
#[test]
fn a_name_is_found_and_taken_although_the_list_is_behind() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let called = |name: &str| Founding {
        labels: [(Founding::NAME.to_owned(), name.to_owned())].into(),
        ..founding(&store)
    };
    let make = |founding: Founding| store.transact(move |tx| tx.create(ann(), founding)).wait();
    let ended = make(called("nightly")).unwrap().session.id;
    // The list knows it as it was made, and nothing of what comes then.
    while store.follow().wait().unwrap() {}
    keep_behind(&fixture);
    let close = adjourn_core::Command::Close(adjourn_core::command::Close::default());
    crate::fixture::give(&store, ended, close).unwrap();
    let open = make(called("nightly")).unwrap().session.id;
    many(&store);
    let filter = |states: &[StateKind]| {
        let labels = [(Founding::NAME.to_owned(), "nightly".to_owned())].into();
        Filter { labels, states: states.to_vec(), ..Filter::default() }
    };
    let found = |states: &[StateKind]| {
        let query = Query { sort: Sort::Newest, ..Query::new(filter(states), 2) };
        let page = store.query(query).wait().unwrap();
        assert_eq!((page.next, page.behind), (None, 0));
        ids(&page)
    };
    assert!(store.unlisted().unwrap() > MANY as u64);
    assert_eq!(found(&StateKind::OPEN), [open]);
    assert_eq!(found(&[StateKind::Ended]), [ended]);
    let counted = store.count(filter(&[StateKind::Ended])).wait().unwrap();
    assert_eq!((counted.states["ended"].count, counted.behind), (1, 0));
    let refused = make(called("nightly")).unwrap_err();
    let CommandError::Rejected(rejected) = refused else { panic!("{refused:?}") };
    assert_eq!(rejected, Rejected::NameTaken { name: "nightly".to_owned(), session: open });
}

/// Lets the list stay where it is, as where the file cannot be written.
fn keep_behind(fixture: &Fixture) {
    let connection = Connection::open(fixture.path()).unwrap();
    let stay = "CREATE TRIGGER stay BEFORE UPDATE ON progress WHEN NEW.what = 'listed'
                    BEGIN SELECT RAISE (ABORT, 'no'); END";
    connection.execute_batch(stay).unwrap();
}

#[test]
fn a_file_without_lists_that_is_not_migrated_is_searched_all_the_same() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let made = two(&store);
    drop(store);
    // It was there before the file lost its lists, as where nothing can be written.
    let store = Sqlite::look(&fixture.path(), fixture.environment.clone(), 1).unwrap();
    Connection::open(fixture.path()).unwrap().execute_batch(WITHOUT_LISTS).unwrap();
    assert_all_is_found(&store, &(made.0, made.1, Vec::new()));
    assert_eq!(store.session_of(made.2[0]).unwrap(), None, "runs are not known there");
    let all = ids(&ask(&store, Filter::default(), 10));
    assert_eq!(all, [made.0, made.1], "in the order of their last changes");
    let counted = store.count(label("web")).wait().unwrap();
    assert_eq!(counted.states["ready"].count, 1);
    let tally = store.tally(fixture.environment.now()).wait().unwrap();
    assert_eq!((tally.states["idle"].count, tally.states["ready"].count), (1, 1));
}

/// A list is long, and what it shows is not at work.
#[test]
fn a_list_leaves_what_is_at_work_in_memory() {
    let fixture = Fixture::new();
    let store = Sqlite::open(Options { cache: 4, ..fixture.options() }).unwrap();
    for _ in 0..10 {
        create(&store);
    }
    let busy = create(&store);
    prompt(&store, busy, "build").unwrap();
    store.session(busy).unwrap().unwrap();
    // From here on it can be had from memory alone.
    let connection = Connection::open(fixture.path()).unwrap();
    let spoil = "UPDATE journal SET body = x'11' WHERE session =
                     (SELECT no FROM session WHERE id = ?1)";
    connection.execute(spoil, [busy.uuid().as_bytes()]).unwrap();
    assert_eq!(found(&store, in_state(StateKind::Idle)).len(), 10);
    store.count(Filter { prompted: true, ..in_state(StateKind::Idle) }).wait().unwrap();
    assert_eq!(store.session(busy).unwrap().unwrap().id, busy);
}

/// A file where nothing can be written stays as the program before left it, and can be verified.
#[test]
fn a_file_that_is_not_migrated_is_verified_by_what_it_has() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (_, id, _) = two(&store);
    let close = adjourn_core::Command::Close(adjourn_core::command::Close::default());
    crate::fixture::give(&store, id, close).unwrap();
    drop(store);
    let store = Sqlite::look(&fixture.path(), fixture.environment.clone(), 1).unwrap();
    let connection = Connection::open(fixture.path()).unwrap();
    connection.execute_batch(WITHOUT_LISTS).unwrap();
    let verified = store.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!((verified.sessions, verified.said), (2, 3));
    connection.execute("INSERT INTO transcript VALUES (99 << 32, x'11')", []).unwrap();
    let fault = store.verify(&keys().ring(), None).unwrap().unwrap_err();
    assert_eq!(
        fault.to_string(),
        "a transcript entry belongs to session number 99, which has none"
    );
    // What is left of one that is being erased is counted there, too.
    let erasing = "DELETE FROM transcript WHERE place >= 99 << 32;
        UPDATE session SET pruned = 1 WHERE no = 2; INSERT INTO erasing VALUES (2, NULL)";
    connection.execute_batch(erasing).unwrap();
    let verified = store.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!((verified.sessions, verified.said), (2, 3));
}
