//! What the thread that writes keeps of rows holds only as long as the rows do.

use adjourn_core::Command;
use adjourn_core::command::{Cancel, Resume, Suspend};
use adjourn_core::id::SessionId;
use adjourn_store::{CommandError, Request, Store as _};
use adjourn_testkit::store::{ann, prompt_request};

use crate::fixture::{Fixture, give, keys};

fn suspend() -> Command {
    Command::Suspend(Suspend::default())
}

fn resume() -> Command {
    Command::Resume(Resume::default())
}

/// Prompts a session and takes the prompt back in the same job: a word is said, and nothing runs.
fn says(id: SessionId, text: &str) -> [Request; 2] {
    [prompt_request(id, ann(), text), Request::new(id, ann(), Command::Cancel(Cancel::default()))]
}

#[test]
fn what_another_process_has_written_is_read_again() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.open(), fixture.open());
    let id = fixture.create(&one);
    let mut revision = 1;
    for turn in 0..24 {
        let (first, second) = if turn % 2 == 0 { (&one, &two) } else { (&two, &one) };
        for (store, command) in [(first, suspend()), (second, resume())] {
            let done = give(store, id, command).unwrap();
            assert!(done.session.revision > revision, "turn {turn}");
            revision = done.session.revision;
        }
        // Also the words: they move from one table to another as their number grows.
        for store in [first, second] {
            let text = format!("word {turn}");
            let requests = says(id, &text);
            let said = store.transact(move |tx| {
                requests.into_iter().try_for_each(|request| tx.command(request).map(|_| ()))
            });
            said.wait().unwrap();
        }
        revision = two.session(id).unwrap().unwrap().revision;
    }
    let session = one.session(id).unwrap().unwrap();
    assert_eq!(*session, *two.session(id).unwrap().unwrap());
    assert!(session.transcript.length >= 48);
    let verified = one.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!(verified.said, session.transcript.length);
}

#[test]
fn what_was_undone_is_not_kept() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    // All in one commit or in a few: the queue takes them at once.
    let jobs: Vec<_> = (0..60)
        .map(|number| {
            store.transact(move |tx| {
                for request in says(id, &format!("word {number}")) {
                    tx.command(request)?;
                }
                tx.command(Request::new(id, ann(), suspend()))?;
                tx.command(Request::new(id, ann(), resume()))?;
                // Every third is undone with all that it wrote.
                if number % 3 == 0 { Err(CommandError::NotFound(id)) } else { Ok(()) }
            })
        })
        .collect();
    for (number, job) in jobs.into_iter().enumerate() {
        let answer: Result<(), CommandError> = job.wait();
        assert_eq!(answer.is_ok(), number % 3 != 0, "{number}: {answer:?}");
    }
    let session = store.session(id).unwrap().unwrap();
    assert!(session.suspended().is_none());
    let verified = store.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!(verified.said, session.transcript.length);
    assert!(verified.said >= 40);
}
