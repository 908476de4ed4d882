//! Rows that a transaction writes at its end: what is read in between finds them, what is undone
//! takes its own along, and what cannot be written harms others once.

use std::sync::mpsc;

use adjourn_core::Command;
use adjourn_core::command::{Resume, Suspend};
use adjourn_store::{CommandError, Request, Sqlite, Store as _};
use adjourn_testkit::store::{ann, prompt_request};
use rusqlite::Connection;

use crate::fixture::{Fixture, keys};
use crate::holes::event;

fn suspend() -> Command {
    Command::Suspend(Suspend::default())
}

fn resume() -> Command {
    Command::Resume(Resume::default())
}

/// Keeps the store at work until the result is dropped: what comes meanwhile is one transaction.
fn busy(store: &Sqlite) -> mpsc::Sender<()> {
    let (started, start) = mpsc::channel();
    let (release, released) = mpsc::channel();
    drop(store.transact(move |_| {
        started.send(()).unwrap();
        let _ = released.recv();
        Ok::<_, CommandError>(())
    }));
    start.recv().unwrap();
    release
}

#[test]
fn a_job_that_reads_between_its_rows_is_kept_or_undone_with_all_of_them() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    let busy = busy(&store);
    let jobs: Vec<_> = (0..30)
        .map(|number| {
            let event = event(&fixture, "ci.passed");
            store.transact(move |tx| {
                tx.command(Request::new(id, ann(), suspend()))?;
                // An event is looked up in the file, and written there at once.
                tx.acknowledge(&event)?;
                tx.command(Request::new(id, ann(), resume()))?;
                if number % 3 == 0 { Err(CommandError::NotFound(id)) } else { Ok(()) }
            })
        })
        .collect();
    drop(busy);
    for (number, job) in jobs.into_iter().enumerate() {
        let answer: Result<(), CommandError> = job.wait();
        assert_eq!(answer.is_ok(), number % 3 != 0, "{number}: {answer:?}");
    }
    let session = store.session(id).unwrap().unwrap();
    assert_eq!(session.revision, 1 + 20 * 2, "twenty suspensions and resumes are kept");
    assert!(store.verify(&keys().ring(), None).unwrap().is_ok());
    let events: i64 = Connection::open(fixture.path())
        .unwrap()
        .query_row("SELECT count(*) FROM event", [], |row| row.get(0))
        .unwrap();
    assert_eq!(events, 20);
}

#[test]
fn a_row_that_cannot_be_written_fails_its_transaction_and_from_then_on_only_its_own_job() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let damaged = fixture.create(&store);
    // What is about to be said there has its place taken.
    let take = "INSERT INTO recent SELECT no << 32, x'00' FROM session WHERE id = ?1";
    let file = Connection::open(fixture.path()).unwrap();
    file.execute(take, [damaged.uuid().as_bytes()]).unwrap();
    let mut harmed = Vec::new();
    for round in 0..4 {
        let request = Request::new(fixture.create(&store), ann(), suspend());
        let busy = busy(&store);
        let before = store.transact(move |tx| tx.command(request));
        let prompt = prompt_request(damaged, ann(), "build");
        let fails = store.transact(move |tx| tx.command(prompt));
        drop(busy);
        assert!(fails.wait().is_err(), "round {round}");
        if before.wait().is_err() {
            harmed.push(round);
        }
        // Nothing of it is left where sessions are read.
        assert_eq!(store.session(damaged).unwrap().unwrap().revision, 1, "round {round}");
    }
    assert_eq!(harmed, [0], "the first round has taken the other along");
}
