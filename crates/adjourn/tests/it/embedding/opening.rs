//! Opening a store: to look at it, with its keys, and what a program may print of it.

use adjourn::core::session::{Outcome, Phase};
use adjourn::{Adjourn, Error};

use super::{LONG_CALL, Patient};
use crate::fixture::Fixture;

#[tokio::test]
async fn a_store_that_is_looked_at_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    assert!(Adjourn::builder(&path).read_only().open().await.is_err(), "it must be there");
    let adjourn = Adjourn::open(&path).await.unwrap();
    let session = adjourn.create("patient").prompt("wait").await.unwrap();
    let look = Adjourn::builder(&path).read_only().open().await.unwrap();
    assert_eq!(look.session(session.id()).load().await.unwrap().phase(), Phase::Ready);
    let looked_at = look.session(session.id());
    let waits = tokio::spawn(async move { looked_at.finished().await });
    assert!(session.cancel().await.unwrap().ended.is_some());
    assert_eq!(waits.await.unwrap().unwrap().end.outcome, Outcome::Canceled);
    let look = Adjourn::builder(&path).read_only().open().await.unwrap();
    assert!(matches!(look.create("patient").await, Err(Error::Store(_))));
}

#[tokio::test]
async fn a_key_that_is_missing_is_not_replaced_in_silence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    drop(Adjourn::open(&path).await.unwrap().create("patient").await.unwrap());
    drop(Adjourn::open(&path).await.unwrap());
    std::fs::remove_dir_all(path.with_file_name("agents.db.keys")).unwrap();
    let Err(Error::Store(error)) = Adjourn::open(&path).await else { panic!("its key is gone") };
    assert!(error.to_string().contains("signed with key"), "{error}");
}

#[tokio::test]
async fn a_host_takes_up_a_key_that_is_made_while_it_works() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    let adjourn = Adjourn::open(&path).await.unwrap();
    let host = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
    let first = adjourn.signer().await.unwrap();
    let rotated = adjourn::key_directory(&path).rotate(adjourn.clock().now()).unwrap();
    let second = rotated.current().id();
    // The store has to know the key before it goes on with it: whoever opens it tells it.
    drop(Adjourn::open(&path).await.unwrap());
    while adjourn.signer().await.unwrap() != Some(second) {
        adjourn.create("patient").await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_ne!(first, Some(second));
    host.stop().await.unwrap();
}

/// What a program prints of a verb names the session, and has nothing of what is said to it.
#[tokio::test]
async fn verbs_show_their_session_and_no_words() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let id = session.id().to_string();
    let request = adjourn::core::id::RequestId::new(adjourn.clock().uuid());
    for shown in [
        format!("{:?}", session.prompt("sk-secret")),
        format!("{:?}", session.resume().input("sk-secret").key("sk-secret")),
        format!("{:?}", session.suspend().reason("sk-secret")),
        format!("{:?}", session.withdraw(request)),
        format!("{:?}", session.cancel().reason("sk-secret".to_owned())),
        format!("{:?}", session.close().reason("sk-secret".to_owned())),
        format!("{:?}", session.remove()),
        format!("{:?}", session.take_over()),
        format!("{:?}", session.watch()),
    ] {
        assert!(shown.contains(&id) && !shown.contains("sk-"), "{shown}");
    }
    let created = format!("{:?}", adjourn.create("x").config("sk-secret").prompt("sk-secret"));
    assert!(created.contains("sess-") && !created.contains("sk-"), "{created}");
}
