//! SIGKILL at every point: nothing acknowledged is lost, and nothing is there by half.
//!
//! A child writes, and says what was acknowledged; its parent kills it, opens the file that it
//! left behind, and looks.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adjourn_core::command::{Resume, Suspend};
use adjourn_core::id::{Handle, SessionId};
use adjourn_core::transcript::Content;
use adjourn_core::{Command, Session};
use adjourn_record::commit::Head;
use adjourn_store::rows::SessionNo;
use adjourn_store::sqlite::{Point, Points};
use adjourn_store::{
    CommandError, Done, Error, Request, Retention, Sqlite, Store as _, Transaction,
};
use adjourn_testkit::dice::Dice;
use adjourn_testkit::process::say;

use crate::child::{self, options};
use crate::fixture::{Fixture, ann, create, keys, prompt};

/// Sessions that always change together, each three in one transaction.
const TRIOS: usize = 3;
/// What a session is fed: with three of them in a commit, 70 commits bring on a checkpoint.
const INPUT_BYTES: usize = 20_000;

#[test]
fn a_kill_before_the_commit_leaves_no_trace_of_its_group() {
    for point in ["Locked", "BeforeCommit"] {
        kills_at_a_point(point, 8, |before, after| assert_eq!(before, after, "{point}"));
    }
}

#[test]
fn a_kill_after_the_commit_leaves_the_whole_group_although_nobody_was_told() {
    kills_at_a_point("AfterCommit", 8, |before, after| {
        // A slow machine may have begun a second group, which then is not there.
        let steps: Vec<_> = after.iter().map(|(id, revision)| revision - before[id]).collect();
        assert!(steps[0] == 1 && steps.is_sorted_by(|one, next| one >= next), "{steps:?}");
    });
}

/// Kills a writer while it holds a group of one transaction per trio at `point`, and compares
/// the revisions that were there before the group with those after the kill.
fn kills_at_a_point(point: &str, kills: usize, judge: impl Fn(&Revisions, &Revisions)) {
    let fixture = with_sessions();
    for _ in 0..kills {
        let writer = child::start(&format!("write {point}"), &fixture.path());
        let mut said = Said::default();
        while let Some(line) = writer.line() {
            if line == "reached" {
                break;
            }
            said.hear(&line);
        }
        for line in writer.kill() {
            said.hear(&line);
        }
        assert_eq!(said.acknowledged.len(), 3 * TRIOS, "every session had its turn before");
        let store = said.survive(&fixture);
        let before = said.acknowledged.iter().map(|(id, ack)| (*id, ack.revision)).collect();
        judge(&before, &revisions(&store));
        go_on(&store);
    }
}

#[test]
fn a_process_that_stands_still_in_its_transaction_is_named() {
    let fixture = with_sessions();
    let writer = child::start("write BeforeCommit", &fixture.path());
    while writer.line().expect("it comes to the point") != "reached" {}
    let mut options = fixture.options();
    options.patience = Duration::from_millis(50);
    let store = Sqlite::open(options).unwrap();
    let locked = || {
        let tried = store.transact(|tx| tx.prune(&Retention::default(), 1)).wait();
        tried.map_err(|error: Error| error.to_string()).unwrap_err()
    };
    let id = writer.id();
    assert_eq!(locked(), format!("process {id} kept the store locked for 50ms"));
    writer.stop();
    assert_eq!(locked(), format!("process {id}, which is stopped, kept the store locked for 50ms"));
    writer.kill();
    go_on(&store);
}

#[test]
fn a_kill_at_any_moment_loses_nothing_acknowledged() {
    let mut dice = Dice::drawn();
    for _ in 0..6 {
        let fixture = with_sessions();
        for _ in 0..10 {
            let writer = child::start("write", &fixture.path());
            let mut said = Said::default();
            // A commit takes some hundred microseconds: the spin gets to every part of it.
            let lines = dice.below(100);
            let spin = Duration::from_micros(dice.below(300));
            for _ in 0..lines {
                said.hear(&writer.line().expect("it writes for ever"));
            }
            let start = Instant::now();
            while start.elapsed() < spin {
                std::hint::spin_loop();
            }
            for line in writer.kill() {
                said.hear(&line);
            }
            let store = said.survive(&fixture);
            let found = revisions(&store);
            for (id, ack) in &said.acknowledged {
                // One transaction was under way at the most.
                assert!(found[id] <= ack.revision + 1, "{id} at {} is ahead of {ack:?}", found[id]);
            }
            go_on(&store);
        }
    }
}

#[test]
fn a_kill_in_a_checkpoint_loses_nothing_acknowledged() {
    let (mut inside, mut kills) = (0, 0);
    while inside < 12 {
        assert!(kills < 60, "of {kills} kills only {inside} hit a checkpoint");
        let fixture = with_sessions();
        for _ in 0..4 {
            let writer = child::start("write", &fixture.path());
            let mut said = Said::default();
            said.hear(&writer.line().expect("it writes for ever"));
            let start = Instant::now();
            while !in_checkpoint(&fixture.path()) {
                assert!(start.elapsed() < Duration::from_secs(30), "no checkpoint comes");
            }
            for line in writer.kill() {
                said.hear(&line);
            }
            kills += 1;
            inside += u32::from(in_checkpoint(&fixture.path()));
            go_on(&said.survive(&fixture));
        }
    }
    println!("{inside} of {kills} kills hit a checkpoint");
}

/// Returns whether pages have been going to the file that the index of the log does not count as
/// written yet. The index outlives a process that is killed.
fn in_checkpoint(store: &Path) -> bool {
    // The checkpoint's part of the index starts behind two copies of its header of 48 bytes.
    const BACKFILLED: u64 = 96;
    const ATTEMPTED: u64 = 128;
    let index = std::fs::File::open(store.with_extension("db-shm")).unwrap();
    let number = |at| {
        let mut bytes = [0; 4];
        index.read_exact_at(&mut bytes, at).map(|()| u32::from_ne_bytes(bytes)).unwrap_or(0)
    };
    number(ATTEMPTED) > number(BACKFILLED)
}

#[test]
fn a_kill_in_a_migration_leaves_a_file_that_is_migrated_next_time() {
    for point in ["BeforeMigrationStep", "InMigration"] {
        let fixture = Fixture::new();
        for _ in 0..4 {
            let writer = child::start(&format!("write {point}"), &fixture.path());
            assert_eq!(writer.line().as_deref(), Some("reached"), "{point}");
            assert_eq!(writer.kill(), Vec::<String>::new());
            let connection = rusqlite::Connection::open(fixture.path()).unwrap();
            let found: (i64, i64) = connection
                .query_row(
                    "SELECT user_version, (SELECT count(*) FROM sqlite_master)
                     FROM pragma_user_version",
                    [],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .unwrap();
            assert_eq!(found, (0, 0), "a migration happens as a whole");
        }
        let store = Said::default().survive(&fixture);
        fixture.create(&store);
        drop(store);
        assert_eq!(revisions(&fixture.open()).len(), 1);
    }
}

type Revisions = BTreeMap<SessionId, u64>;

/// What a child said was acknowledged.
#[derive(Default)]
pub struct Said {
    /// The last of each session.
    acknowledged: BTreeMap<SessionId, Acknowledged>,
    head: Option<Head>,
}

#[derive(Debug)]
struct Acknowledged {
    revision: u64,
    handle: Option<Handle>,
}

impl Said {
    pub fn hear(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["ack", session, revision, handle] => {
                let handle = Handle::from_str(handle).ok();
                let ack = Acknowledged { revision: revision.parse().unwrap(), handle };
                self.acknowledged.insert(session.parse().unwrap(), ack);
            }
            ["head", head] => self.head = Some(head.parse().unwrap()),
            _ => panic!("what is {line:?}?"),
        }
    }

    /// Opens what was left behind, and checks that all of this is there and everything fits.
    pub fn survive(&self, fixture: &Fixture) -> Sqlite {
        let store = fixture.open();
        let connection = rusqlite::Connection::open(fixture.path()).unwrap();
        let check: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        let verified = store.verify(&keys().ring(), self.head).unwrap();
        verified.unwrap_or_else(|fault| panic!("{fault}"));
        for (id, ack) in &self.acknowledged {
            let journal = store.journal(*id, 1, usize::MAX).unwrap();
            let then = journal.iter().filter(|entry| entry.revision <= ack.revision);
            let then = Session::fold(then.map(|entry| &entry.event)).expect("it is there");
            assert_eq!(then.revision, ack.revision, "{id} was acknowledged further");
            assert_eq!(handle(&then), ack.handle, "{id} was told another handle");
        }
        for trio in trios(&store) {
            let found = revisions(&store);
            assert!(trio.iter().all(|id| found[id] == found[&trio[0]]), "torn apart: {found:?}");
        }
        store
    }
}

fn handle(session: &Session) -> Option<Handle> {
    Some(session.suspended()?.shown().pause.handle)
}

fn with_sessions() -> Fixture {
    let fixture = Fixture::new();
    let store = fixture.open();
    for _ in 0..3 * TRIOS {
        at_work(&store);
    }
    fixture
}

/// Makes a session with a run, so that every suspend and every resume is one entry.
pub fn at_work(store: &Sqlite) {
    let id = create(store);
    prompt(store, id, "begin").unwrap();
}

fn all(store: &Sqlite) -> Vec<Arc<Session>> {
    let sessions = store.sessions(SessionNo(0), usize::MAX).unwrap();
    sessions.into_iter().map(|(_, session)| session.unwrap()).collect()
}

fn revisions(store: &Sqlite) -> Revisions {
    all(store).iter().map(|session| (session.id, session.revision)).collect()
}

pub fn trios(store: &Sqlite) -> Vec<Vec<SessionId>> {
    let ids: Vec<_> = all(store).iter().map(|session| session.id).collect();
    ids.chunks_exact(3).map(<[SessionId]>::to_vec).collect()
}

/// Shows that the store works: every session can still do its next thing.
fn go_on(store: &Sqlite) {
    for trio in trios(store) {
        store.transact(move |tx| turn_all(tx, &trio)).wait().unwrap();
    }
}

/// Suspends the sessions of a trio, or resumes them with a large input: one entry each.
pub fn turn_all(tx: &mut Transaction<'_>, trio: &[SessionId]) -> Result<Vec<Done>, CommandError> {
    trio.iter().map(|id| turn(tx, *id)).collect()
}

fn turn(tx: &mut Transaction<'_>, id: SessionId) -> Result<Done, CommandError> {
    let session = tx.session(id)?.ok_or(CommandError::NotFound(id))?;
    let Some(handle) = handle(&session) else {
        let suspend = Suspend { reason: Some("lunch".repeat(400)), ..Suspend::default() };
        return tx.command(Request::new(id, ann(), Command::Suspend(suspend)));
    };
    let mut input = format!("{id} {} ", session.revision);
    input = input.repeat(INPUT_BYTES / input.len());
    let resume =
        Resume { handle: Some(handle), input: Some(Content::text(&input)), ..Resume::default() };
    let request = Request::new(id, ann(), Command::Resume(resume));
    tx.command(request.saying(vec![input.into_bytes()]))
}

/// The child: writes and says what was acknowledged, for ever, or until it holds a group of one
/// transaction per trio at a point.
pub fn write(point: &str) {
    let (armed, queued) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut options = options();
    options.points = hold_at(point, &armed, &queued);
    // Migrations happen while the store is opened.
    armed.store(point.contains("Migration"), Ordering::SeqCst);
    let store = Sqlite::open(options).unwrap();
    let trios = trios(&store);
    loop {
        for trio in trios.clone() {
            let done = store.transact(move |tx| turn_all(tx, &trio)).wait().unwrap();
            acknowledge(&store, &done);
        }
        if !point.is_empty() {
            armed.store(true, Ordering::SeqCst);
            let group = trios.clone().into_iter();
            let group: Vec<_> =
                group.map(|trio| store.transact(move |tx| turn_all(tx, &trio))).collect();
            queued.store(true, Ordering::SeqCst);
            for pending in group {
                acknowledge(&store, &pending.wait().unwrap());
            }
        }
    }
}

pub fn acknowledge(store: &Sqlite, done: &[Done]) {
    for Done { session, .. } in done {
        let handle = handle(session).map_or("-".to_owned(), |handle| handle.to_string());
        say(format_args!("ack {} {} {handle}", session.id, session.revision));
    }
    say(format_args!("head {}", store.head().unwrap()));
}

/// Stops for ever at a point, once armed; the write lock is held until the group is queued, so
/// that it is one group.
fn hold_at(point: &str, armed: &Arc<AtomicBool>, queued: &Arc<AtomicBool>) -> Points {
    let (target, armed, queued) = (point.to_owned(), Arc::clone(armed), Arc::clone(queued));
    Points::hooked(move |point| {
        if !armed.load(Ordering::SeqCst) {
            return;
        }
        while point == Point::Locked && !queued.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        if format!("{point:?}") == target {
            say("reached");
            loop {
                std::thread::park();
            }
        }
    })
}
