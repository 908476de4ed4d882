//! Bits that fall over: whatever is flipped is found, and the place is named.
//!
//! What somebody changes on purpose is in [`crate::tampering`].

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::{Close, FinishStep, StartStep, StepEnd, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::id::{Epoch, HostId, SessionId};
use adjourn_core::transcript::Digest;
use adjourn_store::{Request, Retention, Sqlite, Store as _};
use adjourn_testkit::dice::Dice;
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use crate::fixture::{Fixture, ann, create, give, keys, prompt};

/// What verification speaks for.
const TABLES: [&str; 5] = ["session", "journal", "commits", "transcript", "recent"];

/// A store with something of everything, and a way to change it behind its back.
pub struct Scene {
    pub fixture: Fixture,
    pub store: Sqlite,
    pub connection: Connection,
    /// Suspended, waiting for an event and for a deadline.
    pub parked: SessionId,
    /// Owned by a host, with a transcript of four entries.
    pub running: SessionId,
    /// Ended, and pruned.
    pub pruned: SessionId,
}

impl Scene {
    pub fn new() -> Self {
        let fixture = Fixture::new();
        let store = fixture.open();
        let (parked, running, pruned) = (create(&store), create(&store), create(&store));
        for id in [parked, running, pruned] {
            prompt(&store, id, "build").unwrap();
        }
        give(&store, pruned, Command::Close(Close::default())).unwrap();
        let host = Actor::new(Face::Host, "").on(HostId::new(uuid::Uuid::from_u128(7)));
        let said: Vec<_> = (1..4).map(|at| format!("message {at}").into_bytes()).collect();
        let entries = said.iter().map(|entry| Digest::of(entry)).collect();
        let json = serde_json::json!({"onEvent": "ci.passed", "timeout": {"durationMinutes": 30}});
        let resume_when = Conditions::parse(&json, Spelling::Camel).unwrap();
        let (epoch, step) = (Epoch(1), StepEnd::default());
        // One commit with entries of two sessions.
        let commands = [
            Request::new(running, host.clone(), Command::Claim),
            Request::new(running, host.clone(), Command::StartStep(StartStep { epoch, entries }))
                .saying(said),
            Request::new(
                parked,
                ann(),
                Command::Suspend(Suspend { resume_when, ..Suspend::default() }),
            ),
            Request::new(
                running,
                host,
                Command::FinishStep(FinishStep { epoch, step, ends: None, next: false }),
            ),
        ];
        let done: Result<Vec<_>, _> = store
            .transact(move |tx| commands.into_iter().map(|one| tx.command(one)).collect())
            .wait();
        done.unwrap();
        fixture.environment.advance(Duration::from_secs(60));
        let retention = Retention { ended: Some(Duration::ZERO), ..Retention::default() };
        let done = store.transact(move |tx| tx.prune(&retention, 10)).wait();
        assert_eq!(done.map_err(|error: adjourn_store::Error| error).unwrap().entries, 3);
        create(&store);

        let connection = Connection::open(fixture.path()).unwrap();
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        // Of what was said in the session that runs, only the last entry has not been carried over.
        let carry_over = "INSERT INTO transcript SELECT * FROM recent WHERE place < (2 << 32) + 3;
                          DELETE FROM recent WHERE place < (2 << 32) + 3";
        connection.execute_batch(carry_over).unwrap();
        let whole = fixture.directory.path().join("whole.db");
        connection.execute("VACUUM INTO ?1", [whole.to_str()]).unwrap();
        connection.execute("ATTACH ?1 AS whole", [whole.to_str()]).unwrap();
        store.verify(&keys().ring(), None).unwrap().unwrap();
        Self { fixture, store, connection, parked, running, pruned }
    }

    /// Returns what verification says after some damage, which is then repaired.
    pub fn fault(&self, damage: &str) -> String {
        self.connection.execute_batch(damage).unwrap();
        self.found(damage)
    }

    /// Returns what verification says, and repairs what is damaged.
    pub fn found(&self, damage: &str) -> String {
        let verified = self.store.verify(&keys().ring(), None).unwrap();
        self.repair();
        verified.err().unwrap_or_else(|| panic!("not found: {damage}")).to_string()
    }

    pub fn repair(&self) {
        for table in TABLES.into_iter().chain(["subscription", "tenant", "mark", "run"]) {
            let sql = format!(
                "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM whole.{table}"
            );
            self.connection.execute_batch(&sql).unwrap();
        }
    }

    /// Returns by what a fault may name a row: itself, or what it is a part of.
    fn names(&self, table: &str, row: i64) -> Vec<String> {
        let text = |sql: &str, number: i64| -> Vec<String> {
            let mut statement = self.connection.prepare(sql).unwrap();
            let names = statement.query_map([number], |row| row.get(0)).unwrap();
            names.collect::<Result<_, _>>().unwrap()
        };
        const ID: &str = "SELECT lower(hex(id)) FROM session WHERE no = ?1";
        let entry = "SELECT 'journal entry ' || no || ' ' FROM journal WHERE ";
        match table {
            "session" => [text(ID, row), text(&format!("{entry} session = ?1"), row)].concat(),
            "journal" => {
                // A link without its bytes may show only in the entry after it.
                let place =
                    "SELECT lower(hex(id)) || iif(body IS NULL, '', '*entry ' || j.revision)
                             FROM journal AS j JOIN session ON session.no = j.session
                             WHERE j.no = ?1";
                let commit = "SELECT 'commit ' || number || ':' FROM commits WHERE ?1 <=
                              (SELECT sum(count) FROM commits AS c WHERE c.number <= commits.number)
                              ORDER BY number LIMIT 1";
                [text(&format!("{entry} no = ?1"), row), text(place, row), text(commit, row)]
                    .concat()
            }
            "commits" => vec![format!("commit {row}:"), format!("commit {row} ")],
            _ => text(ID, row >> 32),
        }
    }
}

/// Returns all values of a table, by the rows' numbers.
fn cells(connection: &Connection, table: &str) -> Vec<(i64, String, Value)> {
    let sql = format!("SELECT rowid AS row, * FROM {table}");
    let mut statement = connection.prepare(&sql).unwrap();
    let columns: Vec<_> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([]).unwrap();
    let mut cells = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        for (at, column) in columns.iter().enumerate().skip(1) {
            cells.push((row.get_unwrap(0), column.clone(), row.get_unwrap(at)));
        }
    }
    cells
}

#[test]
fn any_bit_flipped_in_any_row_is_found_and_its_place_named() {
    let mut dice = Dice::drawn();
    let scene = Scene::new();
    let mut flipped = BTreeMap::new();
    for table in TABLES {
        for (row, column, value) in cells(&scene.connection, table) {
            let names = scene.names(table, row);
            let place = format!("{table} {row}, {column}");
            for _ in 0..3 {
                scene.flip(table, row, &column, &value, &mut dice);
                let fault = scene.found(&place);
                // Ids are compared without their dashes, and a name may have parts.
                let told = fault.replace('-', "");
                let named = names
                    .iter()
                    .any(|name| name.split('*').all(|part| told.contains(part)))
                    // Its own name is what is wrong with it.
                    || ["no", "id", "session", "number", "place"].contains(&&*column);
                assert!(named, "{place} is not named by {fault:?}, expected one of {names:?}");
                *flipped.entry(table).or_insert(0) += 1;
            }
        }
    }
    println!("found: {flipped:?}");
    scene.store.verify(&keys().ring(), None).unwrap().unwrap();
}

impl Scene {
    /// Flips one bit of one value; where there is none, puts one.
    fn flip(&self, table: &str, row: i64, column: &str, value: &Value, dice: &mut Dice) {
        let sql = format!("UPDATE {table} SET {column} = ?1 WHERE rowid = ?2");
        // Some flips are refused by the table itself: a number that is taken.
        let done = (0..100).any(|_| {
            let value = match value {
                Value::Integer(number) => Value::Integer(number ^ (1 << dice.below(64))),
                Value::Blob(bytes) => {
                    let mut bytes = bytes.clone();
                    let at = dice.index(bytes.len());
                    dice.flip(&mut bytes[at]);
                    Value::Blob(bytes)
                }
                Value::Null if ["due", "since", "prev"].contains(&column) => Value::Integer(1),
                Value::Null => Value::Blob(vec![0; 16]),
                Value::Real(_) | Value::Text(_) => panic!("there are none"),
            };
            self.connection.execute(&sql, params![value, row]).is_ok()
        });
        assert!(done, "{table} {row}, {column}");
    }
}

#[test]
fn every_byte_of_an_entry_counts() {
    let mut dice = Dice::drawn();
    let scene = Scene::new();
    for (table, key, expected) in [
        ("journal", "no = 11", "entry 3: its bytes and its place do not give the link"),
        ("transcript", "place = (2 << 32) + 2", "altered in entries 2 to 4"),
        ("recent", "place = (2 << 32) + 3", "altered in entries 2 to 4"),
    ] {
        let read = format!("SELECT body FROM {table} WHERE {key}");
        let write = format!("UPDATE {table} SET body = ?1 WHERE {key}");
        let whole: Vec<u8> = scene.connection.query_row(&read, [], |row| row.get(0)).unwrap();
        for at in 0..whole.len() {
            let mut body = whole.clone();
            dice.flip(&mut body[at]);
            scene.connection.execute(&write, [body]).unwrap();
            let verified = scene.store.verify(&keys().ring(), None).unwrap();
            let fault = verified.err().unwrap_or_else(|| panic!("byte {at} of {table}"));
            assert!(fault.to_string().contains(expected), "{fault}");
        }
        println!("{} bytes of {table}", whole.len());
        scene.connection.execute(&write, [whole]).unwrap();
    }
    scene.store.verify(&keys().ring(), None).unwrap().unwrap();
}

#[test]
fn a_bit_flipped_anywhere_in_the_file_is_found_or_changes_nothing() {
    let mut dice = Dice::drawn();
    let scene = Scene::new();
    // The names of columns may change their case: SQL reads them all the same.
    let values = |connection: &Connection| {
        TABLES.map(|table| cells(connection, table)).concat().into_iter().map(|(_, _, value)| value)
    };
    let expected: Vec<_> = values(&scene.connection).collect();
    let whole = std::fs::read(scene.fixture.directory.path().join("whole.db")).unwrap();
    // Most of a small store is zeros between the rows, which say nothing.
    let places: Vec<_> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let fixture = Fixture::new();
    let (mut found, mut harmless) = (0, 0);
    for _ in 0..250 {
        let mut file = whole.clone();
        let at = places[dice.index(places.len())];
        dice.flip(&mut file[at]);
        std::fs::write(fixture.path(), file).unwrap();
        let opened = Sqlite::open(fixture.options());
        let sound =
            opened.and_then(|store| store.verify(&keys().ring(), None)).is_ok_and(|it| it.is_ok());
        if sound {
            let connection = Connection::open(fixture.path()).unwrap();
            assert!(values(&connection).eq(expected.iter().cloned()), "byte {at} is not found");
            harmless += 1;
        } else {
            found += 1;
        }
    }
    println!("{found} found, {harmless} changed nothing");
    assert!(found > 0);
}
