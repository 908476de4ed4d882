//! Disks that are full, files that cannot be written, and files that are something else: a clear
//! error, and nothing lost that was acknowledged.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use adjourn_core::id::Seq;
use adjourn_store::rows::{NewEvent, SessionNo};
use adjourn_store::sqlite::{Options, Point};
use adjourn_store::{CommandError, Environment as _, Error, Retention, Sqlite, Store as _};
use adjourn_testkit::process::say;
use rusqlite::Connection;

use crate::child::{self, options};
use crate::crash::{Said, acknowledge, at_work, trios, turn_all};
use crate::durability::Held;
use crate::fixture::{Fixture, ann, create, founding, keys, prompt, try_create};
use crate::queries::WITHOUT_LISTS;

#[test]
fn a_full_file_is_an_error_and_works_again_once_there_is_room() {
    let fixture = Fixture::new();
    let mut options = fixture.options();
    options.max_pages = Some(400);
    let store = Sqlite::open(options).unwrap();
    let mut events = Vec::new();
    let full = loop {
        match remember(&store, &fixture, events.len()) {
            Ok(seq) => events.push(seq),
            Err(error) => break error,
        }
    };
    assert_eq!(full.to_string(), "the store is full: database or disk is full");
    assert!(matches!(&full, CommandError::Store(error) if error.hint().unwrap().contains("space")));
    // What is smaller may still find room; in the end nothing does.
    let mut sessions = Vec::new();
    let full = loop {
        match try_create(&store) {
            Ok(id) => sessions.push(id),
            Err(error) => break error,
        }
    };
    assert_eq!(full.to_string(), "the store is full: database or disk is full");

    assert!(events.len() > 2 && !sessions.is_empty());
    for (at, seq) in events.iter().enumerate() {
        assert_eq!(store.event_data(*seq).unwrap(), Some(data(at)), "acknowledged");
    }
    for id in &sessions {
        assert!(store.session(*id).unwrap().is_some(), "acknowledged");
    }
    store.verify(&keys().ring(), None).unwrap().unwrap();

    // A full store can be made smaller from within.
    fixture.environment.advance(Duration::from_secs(48 * 60 * 60));
    store.transact(|tx| tx.deliver(&ann(), 100)).wait().unwrap();
    let pruned = store.transact(|tx| tx.prune(&Retention::default(), 100)).wait();
    assert!(pruned.map_err(|error: Error| error).unwrap().events > 0);
    for _ in 0..10 {
        create(&store);
    }
    remember(&store, &fixture, 0).unwrap();
    store.verify(&keys().ring(), None).unwrap().unwrap();
}

#[test]
fn whoever_shares_a_commit_that_does_not_fit_is_told_why() {
    let expected = "the store is full: database or disk is full";
    // A machine that is slow at the wrong moment commits the neighbour alone.
    let shared = (0..20).any(|_| {
        let fixture = Fixture::new();
        drop(fixture.open());
        let (points, writer) = Held::new();
        let mut options = fixture.options();
        (options.max_pages, options.points) = (Some(60), points);
        let store = Sqlite::open(options).unwrap();
        let (founding, event) = (founding(&store), event(&fixture, 1));
        let neighbour = store.transact(move |tx| tx.create(ann(), founding));
        let too_large = store.transact(move |tx| tx.acknowledge(&event));
        writer.passes(Point::Locked);
        drop(writer);
        let neighbour = neighbour.wait();
        assert_eq!(too_large.wait().unwrap_err().to_string(), expected);
        let there = store.size().unwrap().sessions;
        create(&store);
        neighbour.is_err_and(|error| {
            assert_eq!(error.to_string(), expected);
            assert_eq!(there, 0, "of the failed commit there is no trace");
            true
        })
    });
    assert!(shared, "they never shared a commit");
}

#[test]
fn a_file_too_small_for_its_tables_is_an_error_and_can_be_opened_later() {
    let fixture = Fixture::new();
    let mut options = fixture.options();
    options.max_pages = Some(8);
    assert_eq!(refusal(options), "the store is full: database or disk is full");
    create(&fixture.open());
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_works_again_once_it_is_lifted() {
    let fixture = Fixture::new();
    let mut limited = Command::new("bash");
    // Without the trap the kernel would end the process instead of refusing the write. Twelve
    // MiB let checkpoints happen, and stop one of them before they stop a commit.
    let script = r#"trap '' XFSZ; ulimit -S -f 12288; exec "$0" "$@""#;
    limited.args(["-c", script]).arg(std::env::current_exe().unwrap());
    let mut filling = child::start_by(limited, "fill", &fixture.path());
    let mut said = Said::default();
    let mut heard = 0;
    let failed = loop {
        let line = filling.line().unwrap();
        match line.strip_prefix("failed ") {
            Some(error) => break error.to_owned(),
            None => said.hear(&line),
        }
        heard += 1;
    };
    assert_eq!(failed, "the store is full: disk I/O error");
    assert!(heard > 100, "only {heard} lines before the limit");
    let size = fs::metadata(fixture.path()).unwrap().len();
    assert!(size > 8 << 20, "checkpoints had filled the file, too: {size} bytes");

    let lifted = Command::new("prlimit")
        .args(["--pid", &filling.id().to_string(), "--fsize=unlimited"])
        .status();
    assert!(lifted.unwrap().success());
    filling.tell("go on");
    for _ in 0..400 {
        said.hear(&filling.line().unwrap());
    }
    for line in filling.kill() {
        said.hear(&line);
    }
    said.survive(&fixture);
}

/// The child that writes until it cannot, and goes on when it is told to.
pub fn fill(orders: &Receiver<String>) {
    let store = Sqlite::open(options()).unwrap();
    for _ in 0..3 {
        at_work(&store);
    }
    let trio = trios(&store).remove(0);
    loop {
        let trio = trio.clone();
        match store.transact(move |tx| turn_all(tx, &trio)).wait() {
            Ok(done) => acknowledge(&store, &done),
            Err(error) => {
                say(format_args!("failed {error}"));
                let _ = orders.recv();
            }
        }
    }
}

#[test]
fn what_cannot_be_written_or_read_is_said_and_left_as_it_is() {
    let read_only = "the store is read-only: attempt to write a readonly database";
    let denied = "cannot open STORE: Permission denied (os error 13)";
    let unable = "cannot open STORE: unable to open database file: STORE";
    for (file, directory, expected) in [
        (0o644, 0o755, vec!["looks 1", "opens", "reads 1", "writes"]),
        // What cannot be written can still be read.
        (0o444, 0o755, vec!["looks 1", "opens", "reads 1", read_only]),
        (0o000, 0o755, vec![unable, unable]),
        // Nothing can be written beside it.
        (0o644, 0o555, vec!["looks 1", read_only]),
        (0o444, 0o555, vec!["looks 1", read_only]),
        (0o644, 0o000, vec![denied, denied]),
    ] {
        let fixture = Fixture::new();
        let id = create(&fixture.open());
        let (path, above) = (fixture.path(), fixture.directory.path());
        set_mode(&path, file);
        set_mode(above, directory);
        let said = as_somebody(&fixture);
        set_mode(above, 0o755);
        set_mode(&path, 0o644);
        assert_eq!(said, expected, "{file:o} in {directory:o}");
        assert!(fixture.open().session(id).unwrap().is_some());
    }
    let fixture = Fixture::new();
    set_mode(fixture.directory.path(), 0o555);
    let missing = "cannot open STORE: No such file or directory (os error 2)";
    assert_eq!(as_somebody(&fixture), [missing, denied]);
    set_mode(fixture.directory.path(), 0o755);
    assert_eq!(fs::read_dir(fixture.directory.path()).unwrap().count(), 0);
}

/// The child that tries what can be done with a store.
pub fn try_it() {
    let Options { path, environment, .. } = options();
    let looked = Sqlite::look(&path, environment, 1)
        .and_then(|store| Ok((store.sessions(SessionNo(0), 10)?.len(), store.unread_log())));
    match looked {
        Ok((sessions, None)) => say(format_args!("looks {sessions}")),
        Ok((sessions, Some(log))) => {
            say(format_args!("looks {sessions}, without {}", log.display()));
        }
        Err(error) => say(error),
    }
    let store = match Sqlite::open(options()) {
        Ok(store) => store,
        Err(error) => return say(error),
    };
    say("opens");
    match store.sessions(SessionNo(0), 10) {
        Ok(sessions) => say(format_args!("reads {}", sessions.len())),
        Err(error) => say(error),
    }
    match try_create(&store) {
        Ok(_) => say("writes"),
        Err(error) => say(error),
    }
}

/// Lets a child try what it can do, as somebody whom permissions bind, which they do not if this
/// is root.
fn as_somebody(fixture: &Fixture) -> Vec<String> {
    const NOBODY: u32 = 65534;
    // By a way that is open to everybody, wherever the binary lies.
    let mut command = Command::new("/proc/self/exe");
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let (path, above) = (fixture.path(), fixture.directory.path());
        let beside = ["db-queue", "db-incarnation"].map(|end| path.with_extension(end));
        for path in [above, &path, &beside[0], &beside[1]] {
            // Who may do what is then a matter of the mode's first digit, as for everybody else.
            let _ = std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY));
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    let child = child::start_by(command, "try", &fixture.path());
    let said = std::iter::from_fn(|| child.line()).collect::<Vec<_>>();
    assert_eq!(child.end(), 0);
    let path = fixture.path().display().to_string();
    said.iter().map(|line| line.replace(&path, "STORE")).collect()
}

#[test]
fn where_nothing_can_be_written_the_file_is_read_and_a_log_that_cannot_be_is_named() {
    let fixture = Fixture::new();
    let store = fixture.open();
    // The first is in the file, the second only in the log.
    create(&store);
    let connection = Connection::open(fixture.path()).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    create(&store);
    let after = Fixture::new();
    for end in ["db", "db-wal", "db-incarnation"] {
        let (from, to) = (fixture.path(), after.path());
        fs::copy(from.with_extension(end), to.with_extension(end)).unwrap();
        set_mode(&to.with_extension(end), 0o444);
    }
    set_mode(after.directory.path(), 0o555);
    let said = as_somebody(&after);
    set_mode(after.directory.path(), 0o755);
    assert_eq!(said[0], "looks 1, without STORE-wal");
    let copy = after.directory.path().join("copy.db");
    let looking = Sqlite::look(&after.path(), after.environment.clone(), 1).unwrap();
    looking.backup(&copy).unwrap();
    assert!(copy.exists());
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let fixture = Fixture::new();
    let path = fixture.path();
    let at = |path: &Path| {
        let mut options = fixture.options();
        options.path = path.to_owned();
        refusal(options)
    };
    fs::create_dir(&path).unwrap();
    assert_eq!(at(&path), "STORE is not a store: it is a directory");
    fs::remove_dir(&path).unwrap();
    let missing = "cannot open STORE: No such file or directory (os error 2)";
    assert_eq!(at(&path.join("below/store.db")), missing);

    let diary = "Dear diary,\n".repeat(1000);
    fs::write(&path, &diary).unwrap();
    let below = "cannot open STORE: Not a directory (os error 20)";
    assert_eq!(at(&path.join("store.db")), below);
    assert_eq!(at(&path), "STORE is not a store: it is not a database");
    assert_eq!(fs::read_to_string(&path).unwrap(), diary);
    fs::remove_file(&path).unwrap();

    for setting in ["", "PRAGMA auto_vacuum = FULL;", "PRAGMA application_id = 7;"] {
        let other = Connection::open(&path).unwrap();
        other.execute_batch(&format!("{setting} CREATE TABLE diary (day, entry)")).unwrap();
        drop(other);
        let before = fs::read(&path).unwrap();
        assert_eq!(at(&path), "STORE is not a store: it is the database of another program");
        assert!(fs::read(&path).unwrap() == before, "{setting:?} was changed");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let fixture = Fixture::new();
    fs::write(fixture.path(), "").unwrap();
    let store = fixture.open();
    create(&store);
    let connection = Connection::open(fixture.path()).unwrap();
    let pragma = |name: &str| -> String {
        let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!([pragma("auto_vacuum"), pragma("journal_mode")], ["2", "wal"]);
}

#[test]
fn a_truncated_file_is_refused_or_found_damaged() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for _ in 0..20 {
        create(&store);
    }
    drop(store);
    let whole = fs::read(fixture.path()).unwrap();
    let (page, pages) = (4096, whole.len() / 4096);
    // Less than two bytes are, for SQLite, a file in which there is nothing yet.
    let sizes = [2, 15, 16, 99, 100, 512, page - 1, page, page + 1, 2 * page, pages / 2 * page];
    for size in sizes.into_iter().chain([whole.len() - page, whole.len() - page + 1]) {
        fs::write(fixture.path(), &whole[..size]).unwrap();
        let error = match Sqlite::open(fixture.options()) {
            Err(error) => error.to_string(),
            // Of the last page there is a part; only a look at all of it shows what is missing.
            Ok(store) => {
                assert!(size > whole.len() - page, "{size} of {} bytes open", whole.len());
                let verified = store.verify(&keys().ring(), None);
                verified.map_or_else(|error| error.to_string(), |it| it.unwrap_err().to_string())
            }
        };
        let path = fixture.path().display().to_string();
        let expected = [
            "STORE is not a store: it is not a database",
            "the store is damaged: database disk image is malformed",
        ];
        let known = expected.contains(&&*error.replace(&path, "STORE"));
        assert!(known || error.starts_with("the file is damaged: "), "{size}: {error}");
    }
}

#[test]
fn a_newer_file_is_refused_also_in_mid_flight() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = create(&store);
    // A newer program comes along, and moves the file on to its version.
    let newer = Connection::open(fixture.path()).unwrap();
    let known: i64 = newer.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let told = format!("the store has version 99, this program knows versions up to {known}");
    let error = try_create(&store).unwrap_err();
    assert!(matches!(error, CommandError::Store(Error::Newer { found: 99, .. })));
    assert_eq!(error.to_string(), told);
    assert!(store.session(id).unwrap().is_some(), "acknowledged before");
    assert_eq!(refusal(fixture.options()), told);

    newer.pragma_update(None, "user_version", known).unwrap();
    create(&store);
    assert_eq!(store.size().unwrap().sessions, 2, "the refused one left no trace");
    store.verify(&keys().ring(), None).unwrap().unwrap();
}

#[test]
fn a_file_of_the_first_version_is_brought_up_to_date() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = create(&store);
    drop(store);
    let older = Connection::open(fixture.path()).unwrap();
    let newest: i64 = older.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    older.execute_batch(WITHOUT_LISTS).unwrap();
    let back = "DROP INDEX journal_founding; DROP TABLE lag; DROP TABLE erasing;
                DROP TABLE identity; DROP TABLE unprompted; PRAGMA user_version = 1";
    older.execute_batch(back).unwrap();
    drop(older);

    let store = fixture.open();
    let founding = store.founding(id).unwrap().expect("what was there is there");
    assert_eq!(founding.revision, 1);
    let versions = Connection::open(fixture.path()).unwrap();
    let version: i64 = versions.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, newest);
    let plan = "EXPLAIN QUERY PLAN SELECT body FROM journal WHERE session = 1 AND revision = 1";
    let plan: String = versions.query_row(plan, [], |row| row.get(3)).unwrap();
    assert!(plan.contains("journal_founding"), "{plan}");
    store.verify(&keys().ring(), None).unwrap().unwrap();
}

#[test]
fn what_was_said_is_read_from_an_older_file_as_it_is() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = create(&store);
    prompt(&store, id, "build").unwrap();
    let said = store.transcript(id, 0, 10).unwrap();
    assert_eq!(said.len(), 1);
    drop(store);
    let older = Connection::open(fixture.path()).unwrap();
    older.execute_batch(WITHOUT_LISTS).unwrap();
    drop(older);
    let reader = Sqlite::look(&fixture.path(), fixture.environment.clone(), 1).unwrap();
    assert_eq!(reader.transcript(id, 0, 10).unwrap(), said);
}

fn refusal(options: Options) -> String {
    let path = options.path.display().to_string();
    let error = Sqlite::open(options).err().expect("it is refused");
    error.to_string().replace(&path, "STORE")
}

fn remember(store: &Sqlite, fixture: &Fixture, at: usize) -> Result<Seq, CommandError> {
    let event = event(fixture, at);
    Ok(store.transact(move |tx| tx.acknowledge(&event)).wait()?.0)
}

fn event(fixture: &Fixture, at: usize) -> NewEvent {
    NewEvent {
        id: fixture.environment.uuid().to_string(),
        source: "test".to_owned(),
        name: "disk.filled".to_owned(),
        subject: None,
        time: fixture.environment.now(),
        tenant: "acme".to_owned(),
        session: None,
        data: Some(data(at)),
    }
}

/// Returns what fills the better part of sixty pages.
fn data(at: usize) -> String {
    format!("{at:04} ").repeat(40_000)
}
