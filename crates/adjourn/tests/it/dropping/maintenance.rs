//! What looks after a store or a session and is dropped: it takes its course, or leaves the rest.

use std::os::unix::fs::MetadataExt as _;

use adjourn::Adjourn;
use adjourn::core::session::Outcome;
use adjourn_testkit::until as until_so;

use super::{LONG_CALL, SHORT, at_work, behind, touch, until};
use crate::fixture::Fixture;

#[tokio::test]
async fn a_recovery_that_is_dropped_takes_the_session_all_the_same() {
    let fixture = Fixture::new();
    let elsewhere = fixture.another_adjourn();
    let host = elsewhere.host().scripts().start().await.unwrap();
    let session = at_work(&fixture, &elsewhere).await;
    host.kill().await;
    let adjourn = fixture.adjourn();
    let left = session.load().await.unwrap();
    drop(adjourn.recover(&left));
    behind(&adjourn).await;
    assert_eq!(session.load().await.unwrap().revision, left.revision, "it was never polled");
    touch(adjourn.recover(&left));
    until(&adjourn.session(session.id()), "host_lost").await;
}

#[tokio::test]
async fn a_backup_that_is_dropped_is_written_all_the_same() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    fixture.create(SHORT);
    let directory = tempfile::tempdir().unwrap();
    let (never, copy) = (directory.path().join("never.db"), directory.path().join("copy.db"));
    drop(adjourn.backup(&never));
    touch(adjourn.backup(&copy));
    // Until it is whole, an empty file has its name.
    until_so("written", || copy.metadata().is_ok_and(|file| file.len() > 0)).await;
    let copied = Adjourn::builder(&copy).read_only().open().await.unwrap();
    assert_eq!(copied.size().await.unwrap().sessions, 1);
    assert!(!never.exists());
}

#[tokio::test]
async fn a_store_whose_restoring_is_dropped_is_replaced_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("agents.db"), directory.path().join("copy.db"));
    let adjourn = Adjourn::open(&path).await.unwrap();
    adjourn.backup(&copy).await.unwrap();
    adjourn.create("patient").await.unwrap();
    adjourn.close().await;
    let file = || path.metadata().unwrap().ino();
    let before = file();
    drop(adjourn::restore(&copy, &path));
    touch(adjourn::restore(&copy, &path));
    until_so("replaced", || file() != before).await;
    // The last thing that a restore does is to let others in.
    let restored = loop {
        match Adjourn::builder(&path).read_only().open().await {
            Ok(restored) => break restored,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(restored.size().await.unwrap().sessions, 0);
}

#[tokio::test]
async fn those_who_wait_for_a_run_change_nothing_when_they_go() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let run = session.prompt("build").await.unwrap().run;
    let before = session.load().await.unwrap();
    touch(session.finished_run(run));
    let mut live = session.watch().from_now().live().await.unwrap();
    touch(live.next());
    behind(&adjourn).await;
    assert_eq!(session.load().await.unwrap().revision, before.revision);
    session.cancel().await.unwrap();
    assert_eq!(session.finished_run(run).await.unwrap().end.outcome, Outcome::Canceled);
    let adjourn::LiveMoment::Committed(moment) = live.next().await.unwrap().unwrap() else {
        panic!("nothing is said")
    };
    assert_eq!(moment.event.what.name(), "run_ended");
}

/// The batch that was begun is written, and the next one is left.
#[tokio::test]
async fn a_list_whose_catching_up_is_dropped_is_brought_on_by_the_next() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    fixture.create_many(2_200, SHORT);
    touch(adjourn.catch_up_list());
    behind(&adjourn).await;
    assert!(adjourn_store::Store::unlisted(&fixture.store).unwrap() > 0);
    adjourn.catch_up_list().await.unwrap();
    assert_eq!(adjourn_store::Store::unlisted(&fixture.store).unwrap(), 0);
}
