//! Nothing is acknowledged before the commit that holds it is durable.

use std::pin::Pin;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::command::{Resume, Suspend};
use adjourn_store::sqlite::{Point, Points};
use adjourn_store::{CommandError, Done, Pending, Request, Sqlite, Store as _};

use crate::fixture::{Fixture, ann, give};

/// Callers whose commands are in one commit.
const CALLERS: usize = 20;

#[test]
fn nothing_is_acknowledged_before_the_commit_that_holds_it() {
    let fixture = Fixture::new();
    let plain = fixture.open();
    let sessions: Vec<_> = (0..CALLERS).map(|_| fixture.create(&plain)).collect();
    drop(plain);
    let (points, writer) = Held::new();
    let mut options = fixture.options();
    options.points = points;
    let store = Sqlite::open(options).unwrap();

    let callers = sessions.iter().map(|id| {
        let request = Request::new(*id, ann(), Command::Suspend(Suspend::default()));
        Some(store.transact(move |tx| tx.command(request)))
    });
    let mut callers: Vec<_> = callers.collect();
    // All are queued while the writer stands at its lock: one group, or more if it is slow.
    let mut committed = 0;
    while committed < CALLERS {
        writer.passes(Point::Locked);
        writer.stands_at(Point::BeforeCommit);
        // Callers of an earlier group may be told beside the next one, by a thread of its own.
        assert!(told(&mut callers) <= committed, "told before the commit");
        assert_eq!(suspended(&fixture), committed, "others see what is not committed");
        writer.go_on();

        writer.stands_at(Point::AfterCommit);
        let durable = suspended(&fixture);
        assert!(durable > committed, "nothing is committed");
        assert!(told(&mut callers) <= committed, "told before the commit returned");
        committed = durable;
        writer.go_on();
    }
    for caller in callers.into_iter().flatten() {
        assert!(caller.wait().unwrap().session.suspended().is_some());
    }
}

#[test]
fn a_refusal_that_rests_on_the_same_commit_is_told_after_it_too() {
    let fixture = Fixture::new();
    let plain = fixture.open();
    let id = fixture.create(&plain);
    let done = give(&plain, id, Command::Suspend(Suspend::default())).unwrap();
    let handle = Some(done.session.suspended().unwrap().park.pause.handle);
    drop(plain);
    let (points, writer) = Held::new();
    let mut options = fixture.options();
    options.points = points;
    let store = Sqlite::open(options).unwrap();

    let resume = || {
        let resume = Command::Resume(Resume { handle, ..Resume::default() });
        store.transact(move |tx| tx.command(Request::new(id, ann(), resume)))
    };
    let mut callers = [Some(resume()), Some(resume())];
    writer.passes(Point::Locked);
    writer.stands_at(Point::BeforeCommit);
    assert_eq!(told(&mut callers), 0, "`already resumed` is not true yet");
    drop(writer);
    let [first, second] = callers.map(|caller| caller.unwrap().wait());
    first.unwrap();
    assert!(matches!(second, Err(CommandError::Rejected(no)) if no.reason() == "ALREADY_RESUMED"));
}

/// The writer, which stops at every point until it is told to go on.
pub struct Held {
    reached: Receiver<Point>,
    go: SyncSender<()>,
}

impl Held {
    pub fn new() -> (Points, Self) {
        let (reach, reached) = mpsc::sync_channel(0);
        let (go, gone) = mpsc::sync_channel(0);
        let gone = std::sync::Mutex::new(gone);
        let points = Points::hooked(move |point| {
            // Once the test has seen enough, its end of the channel is gone.
            if reach.send(point).is_ok() {
                let _ = gone.lock().unwrap().recv();
            }
        });
        (points, Self { reached, go })
    }

    fn stands_at(&self, point: Point) {
        assert_eq!(self.reached.recv_timeout(Duration::from_secs(30)), Ok(point));
    }

    fn go_on(&self) {
        self.go.send(()).unwrap();
    }

    pub fn passes(&self, point: Point) {
        self.stands_at(point);
        self.go_on();
    }
}

/// Counts the callers that have their answer by now. They are not asked again.
fn told(callers: &mut [Option<Pending<Done, CommandError>>]) -> usize {
    let mut context = Context::from_waker(Waker::noop());
    for caller in callers.iter_mut() {
        if let Some(pending) = caller
            && let Poll::Ready(answer) = Pin::new(pending).poll(&mut context)
        {
            assert!(answer.unwrap().session.suspended().is_some());
            *caller = None;
        }
    }
    callers.iter().filter(|caller| caller.is_none()).count()
}

/// Counts the suspended sessions that another process would see.
fn suspended(fixture: &Fixture) -> usize {
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    let sql = "SELECT count(*) FROM session WHERE state = 4";
    let count: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    usize::try_from(count).unwrap()
}
