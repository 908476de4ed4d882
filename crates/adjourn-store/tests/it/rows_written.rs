//! Committing a suspension writes the same rows for a transcript of ten messages and of ten
//! thousand, and loading a session reads no more of its journal.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use adjourn_core::Command;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::{Await, FinishStep, Resume, StartStep, StepEnd, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::id::{Epoch, HostId, RunId, SessionId};
use adjourn_core::journal::STATE_EVERY;
use adjourn_core::transcript::Digest;
use adjourn_store::{Done, NewRecipient, Request, Sqlite, Store as _};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::fixture::{Fixture, keys, prompt};

const FEW: usize = 10;
const MANY: usize = 10_000;

#[test]
fn a_suspension_writes_the_same_rows_for_ten_messages_and_ten_thousand() {
    for by in [By::Client, By::Agent] {
        let (few, many) = (written(FEW, by), written(MANY, by));
        println!("{by:?}, {FEW} messages: {few:?}; {MANY} messages: {many:?}");
        assert_eq!(few.rows, many.rows);
        assert!(few.pages.abs_diff(many.pages) <= 1, "{} and {} pages", few.pages, many.pages);
        // What queries find sessions by is not a suspension's business.
        for table in ["mark", "run", "listing", "recipient"] {
            assert_eq!(few.rows.get(table), None, "{by:?}");
        }
        let entries = few.rows["journal"];
        assert!(entries <= 3, "the journal took {entries} entries for one suspension");
    }
}

/// Every index of a table that a suspension writes to would be written to as well, but for those of
/// sessions in some state that only some are in. A new one belongs into the list that follows the
/// journal, which queries are answered from.
#[test]
fn no_index_is_there_for_queries_that_a_suspension_would_have_to_touch() {
    let fixture = Fixture::new();
    drop(fixture.open());
    let tables = written(FEW, By::Agent).rows;
    let connection = Connection::open(fixture.path()).unwrap();
    let mut indexes = connection
        .prepare("SELECT tbl_name, name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL")
        .unwrap();
    let indexes = indexes.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let indexes = indexes.map(|row: rusqlite::Result<(String, String)>| row.unwrap());
    let touched: BTreeSet<String> =
        indexes.filter(|(table, _)| tables.contains_key(table)).map(|(_, index)| index).collect();
    let known = [
        // What hosts look for: deadlines, work, their own sessions, gates, events to keep.
        "session_due",
        "session_ready",
        "session_owner",
        "session_gated",
        "session_since",
        // What is dropped when it has been kept for long enough.
        "session_ended",
        // Names, which never change.
        "session_shown",
        "session_end",
        // The first entry of each journal alone.
        "journal_founding",
    ];
    assert_eq!(touched, known.map(str::to_owned).into());
}

#[test]
fn a_suspended_session_is_loaded_from_its_last_entry() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = talked(&fixture, &store, MANY);
    let there = suspend(&store, id, By::Client).session;
    drop(store);
    forget_bodies(&fixture, 1);
    assert_eq!(*fixture.open().session(id).unwrap().unwrap(), *there);
}

#[test]
fn a_session_under_way_is_loaded_from_a_bounded_number_of_entries() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = talked(&fixture, &store, MANY);
    let mut there = store.session(id).unwrap().unwrap();
    // To where the fold is longest: right before an entry that carries the state.
    while there.revision + 1 != 3 * STATE_EVERY {
        start_step(&store, id, Vec::new());
        there = finish_step(&store, id).session;
    }
    drop(store);
    forget_bodies(&fixture, STATE_EVERY);
    assert_eq!(*fixture.open().session(id).unwrap().unwrap(), *there);
}

/// What one commit wrote.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    /// By table, the rows that it added or removed; one that it changed counts as both.
    rows: BTreeMap<String, usize>,
    /// Pages in the log.
    pages: u64,
}

/// Parks a session again and again, and returns what that writes.
fn written(messages: usize, by: By) -> Written {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = talked(&fixture, &store, messages);
    tell(&store, id);
    let mut all: Vec<_> = (0..9)
        .map(|_| {
            if by == By::Agent {
                start_step(&store, id, Vec::new());
            }
            let written = Written::by(&fixture, || {
                let done = suspend(&store, id, by);
                assert_eq!(done.session.transcript.length, 1 + messages as u64);
                assert!(done.session.suspended().is_some());
            });
            own(&store, id, Command::Resume(Resume::default()));
            own(&store, id, Command::Claim);
            written
        })
        .collect();
    store.verify(&keys().ring(), None).unwrap().unwrap();
    // Now and then an entry begins a page, or goes on over several: the middle is the rule.
    all.sort_by_key(|written| written.pages);
    assert!(all.iter().all(|written| written.rows == all[0].rows), "{all:?}");
    all.swap_remove(4)
}

/// Has one outside told what happens in a session.
fn tell(store: &Sqlite, id: SessionId) {
    let new = NewRecipient {
        session: id,
        run: RunId::new(uuid::Uuid::nil()),
        kind: "push".to_owned(),
        id: "one".to_owned(),
        body: Vec::new(),
        after: 0,
        is_over: false,
    };
    store.transact(move |tx| tx.add_recipient(new, 1)).wait().unwrap();
}

impl Written {
    fn by(fixture: &Fixture, work: impl FnOnce()) -> Self {
        const LOG_HEADER: u64 = 32;
        const FRAME: u64 = 24 + 4096;
        let connection = Connection::open(fixture.path()).unwrap();
        let emptied = connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
            .unwrap();
        assert_eq!(emptied, 0, "the log is empty");
        let before = tables(&connection);
        work();
        let rows = tables(&connection)
            .into_iter()
            .map(|(table, rows)| {
                let written = rows.symmetric_difference(&before[&table]).count();
                (table, written)
            })
            .filter(|(_, written)| *written > 0)
            .collect();
        let log = std::fs::metadata(fixture.path().with_extension("db-wal")).unwrap().len();
        assert_eq!((log - LOG_HEADER) % FRAME, 0);
        Self { rows, pages: (log - LOG_HEADER) / FRAME }
    }
}

/// Returns a hash of every row of every table.
fn tables(connection: &Connection) -> BTreeMap<String, BTreeSet<u64>> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table'";
    let mut statement = connection.prepare(sql).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    let names: Vec<String> = names.collect::<Result<_, _>>().unwrap();
    let rows = |name: &String| {
        let mut statement = connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| hash(row, columns)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    names.iter().map(|name| (name.clone(), rows(name))).collect()
}

fn hash(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<u64> {
    let mut hasher = DefaultHasher::new();
    for column in 0..columns {
        match row.get_ref(column)? {
            ValueRef::Null => 0_u8.hash(&mut hasher),
            ValueRef::Integer(number) => number.hash(&mut hasher),
            ValueRef::Real(number) => number.to_bits().hash(&mut hasher),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.hash(&mut hasher),
        }
    }
    Ok(hasher.finish())
}

/// Takes the bodies of all journal entries but the last `kept`: whoever needs them will fail.
fn forget_bodies(fixture: &Fixture, kept: u64) {
    let connection = Connection::open(fixture.path()).unwrap();
    let sql = "UPDATE journal SET body = NULL WHERE no <= (SELECT max(no) FROM journal) - ?1";
    assert!(connection.execute(sql, [kept.cast_signed()]).unwrap() > 0);
}

/// Makes a session that runs and has said so much after its prompt.
fn talked(fixture: &Fixture, store: &Sqlite, messages: usize) -> SessionId {
    let id = fixture.create(store);
    prompt(store, id, "begin").unwrap();
    own(store, id, Command::Claim);
    // As many commits for few as for many: only the transcripts differ.
    for step in 0..10 {
        let said: Vec<_> = (0..messages / 10)
            .map(|at| format!("message {at} of step {step}, as long as a sentence is").into_bytes())
            .collect();
        start_step(store, id, said);
        finish_step(store, id);
    }
    id
}

fn start_step(store: &Sqlite, id: SessionId, said: Vec<Vec<u8>>) {
    let entries = said.iter().map(|entry| Digest::of(entry)).collect();
    let start = Command::StartStep(StartStep { epoch: epoch(store, id), entries });
    let request = Request::new(id, host(), start).saying(said);
    store.transact(move |tx| tx.command(request)).wait().unwrap();
}

fn finish_step(store: &Sqlite, id: SessionId) -> Done {
    let finish =
        FinishStep { epoch: epoch(store, id), step: StepEnd::default(), ends: None, next: false };
    own(store, id, Command::FinishStep(finish))
}

/// Who parks a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// A client, between two steps.
    Client,
    /// The agent, within a step.
    Agent,
}

fn suspend(store: &Sqlite, id: SessionId, by: By) -> Done {
    let command = match by {
        By::Client => Command::Suspend(Suspend { resume_when: conditions(), ..Suspend::default() }),
        By::Agent => Command::Await(Await {
            epoch: epoch(store, id),
            step: StepEnd::default(),
            reason: "waiting on ci".to_owned(),
            conditions: conditions(),
            summary: Some("all is built".to_owned()),
            call: None,
            limit: None,
            meta: None,
        }),
    };
    own(store, id, command)
}

fn epoch(store: &Sqlite, id: SessionId) -> Epoch {
    store.session(id).unwrap().unwrap().epoch
}

fn conditions() -> Option<Conditions> {
    let json = serde_json::json!({"onEvent": "ci.passed", "timeout": {"durationMinutes": 30}});
    Conditions::parse(&json, Spelling::Camel).unwrap()
}

fn own(store: &Sqlite, id: SessionId, command: Command) -> Done {
    let request = Request::new(id, host(), command);
    store.transact(move |tx| tx.command(request)).wait().unwrap()
}

fn host() -> Actor {
    Actor::new(Face::Host, "").on(HostId::new(uuid::Uuid::from_u128(7)))
}
