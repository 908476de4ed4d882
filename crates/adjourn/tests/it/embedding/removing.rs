//! Sessions that a program removes.

use adjourn::Error;
use adjourn::core::command::{Resume, Suspend};
use adjourn::core::session::Phase;
use adjourn::core::{Command, Rejected};
use adjourn_store::{CommandError, Request};

use super::LONG_CALL;
use crate::fixture::Fixture;

#[tokio::test]
async fn a_session_is_removed_although_not_all_of_it_could_be_erased() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let (id, by) = (session.id(), adjourn.by());
    let long = adjourn.transact(move |tx| -> Result<(), CommandError> {
        for _ in 0..300 {
            let suspend = Command::Suspend(Suspend::default());
            tx.command(Request::new(id, by.clone(), suspend))?;
            tx.command(Request::new(id, by.clone(), Command::Resume(Resume::default())))?;
        }
        Ok(())
    });
    long.await.unwrap();
    // The first portion can be erased, and not the last.
    let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
    let full = "CREATE TRIGGER full BEFORE DELETE ON erasing
                BEGIN SELECT RAISE(ABORT, 'full'); END;";
    connection.execute_batch(full).unwrap();
    let erased = session.remove().even_at_work().await.unwrap();
    assert!(erased.more);
    let gone = session.load().await.unwrap_err();
    assert!(matches!(gone, adjourn::Error::NotFound(_)), "{gone}");
}

#[tokio::test]
async fn what_is_removed_is_gone_and_what_works_is_not_removed() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.create("patient").prompt("wait").await.unwrap();
    let busy = session.remove().await;
    assert!(matches!(busy, Err(Error::Refused(Rejected::Busy { phase: Phase::Ready }))));
    let erased = session.remove().even_at_work().await.unwrap();
    assert!(erased.entries > 0 && !erased.more);
}
