//! Those outside who are told what happens to a run: found when they are behind, told by one process
//! at a time, and kept with their secrets.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjourn::core::id::RunId;
use adjourn::core::time::Timestamp;
use adjourn::keys::{DecryptError, Key, Keys};
use adjourn::store::{Added, Told};
use adjourn::{
    Adjourn, Error, NewRecipient, Recipients, RecordError, SessionRef, StoreError, Then,
};
use adjourn_record::keys::Revocation;
use adjourn_store::rows::Of;
use adjourn_store::{Sqlite, Store as _};
use adjourn_testkit::{VirtualClock, until};

use crate::dropping::touch;

const KIND: &str = "push";
const SOON: Duration = Duration::from_secs(10);

fn key(number: u8) -> Key {
    Key::from_secrets(Timestamp::from_millis(0), &[number; 32], &[number; 32])
}

async fn open(directory: &Path, keys: Keys, clock: &VirtualClock) -> Adjourn {
    let builder =
        Adjourn::builder(directory.join("s.db")).keys(keys).clock(Arc::new(clock.clone()));
    builder.open().await.unwrap()
}

/// Makes a session with a run that no host takes, and one outside who is told of it from now on.
async fn told(adjourn: &Adjourn) -> (SessionRef, RunId) {
    let session = adjourn.create("reviewer").prompt("Review it.").await.unwrap();
    let state = session.load().await.unwrap();
    let run = state.run().unwrap().id;
    let added = session.add_recipient(recipient(run, "one", state.revision)).await.unwrap();
    assert_eq!(added, Added::New);
    (session, run)
}

fn recipient(run: RunId, id: &str, after: u64) -> NewRecipient {
    let (id, body) = (id.to_owned(), b"s3cret".to_vec());
    NewRecipient { run, kind: KIND, id, body, after, is_over: false }
}

/// Waits until there is one to tell.
async fn next(recipients: &mut Recipients) -> adjourn::TakenRecipient {
    tokio::time::timeout(SOON, recipients.next()).await.unwrap().unwrap()
}

/// Finds that there is none to tell, which shows at once where there is one.
async fn none(recipients: &mut Recipients) {
    let next = tokio::time::timeout(Duration::from_millis(100), recipients.next());
    assert!(next.await.is_err(), "there is nothing to tell");
}

async fn all_told(session: &SessionRef) -> Told {
    Told { revision: session.load().await.unwrap().revision, part: 0 }
}

#[tokio::test]
async fn a_change_wakes_those_who_tell_and_a_failure_is_tried_when_its_time_has_come() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let adjourn = open(directory.path(), Keys::only(key(1)), &clock).await;
    let mut recipients = adjourn.tell_recipients(KIND).unwrap();
    let (session, run) = told(&adjourn).await;
    none(&mut recipients).await;
    session.suspend().await.unwrap();
    let mut taken = next(&mut recipients).await;
    assert_eq!((taken.run(), taken.id(), taken.body()), (run, "one", Ok(&b"s3cret"[..])));
    let later = Then::Later { after: Duration::from_secs(60), failed: true };
    assert!(!taken.told(taken.place(), later).await.unwrap());
    none(&mut recipients).await;
    clock.advance(Duration::from_secs(60));
    let mut taken = next(&mut recipients).await;
    assert_eq!(taken.tries(), 1);
    // What happens while it is told is told, too.
    let before = all_told(&session).await;
    session.resume().await.unwrap();
    assert!(taken.told(before, Then::Rest).await.unwrap());
    assert!(!taken.told(all_told(&session).await, Then::Rest).await.unwrap());
    none(&mut recipients).await;
}

#[tokio::test]
async fn what_a_process_has_claimed_is_told_by_another_when_it_is_gone_and_not_before() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let one = open(directory.path(), Keys::only(key(1)), &clock).await;
    let two = open(directory.path(), Keys::only(key(1)), &clock).await;
    let (session, _) = told(&one).await;
    let mut first = one.tell_recipients(KIND).unwrap();
    session.suspend().await.unwrap();
    let mut taken = next(&mut first).await;
    // It was added elsewhere: the first look finds it.
    let mut second = two.tell_recipients(KIND).unwrap();
    none(&mut second).await;
    drop(first);
    let mut again = next(&mut second).await;
    assert_eq!(again.place(), taken.place());
    let all = all_told(&session).await;
    assert!(!taken.told(all, Then::Over).await.unwrap(), "it comes too late");
    assert_eq!(taken.place(), again.place());
    assert!(!again.told(all, Then::Rest).await.unwrap());
    assert_eq!(again.place(), all);
}

#[tokio::test]
async fn a_secret_stays_readable_over_a_rotation_and_says_so_when_its_key_is_revoked_or_lost() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let adjourn = open(directory.path(), Keys::only(key(1)), &clock).await;
    let (session, run) = told(&adjourn).await;
    session.suspend().await.unwrap();
    let id = session.id();
    drop(session);
    adjourn.close().await;
    let revoked = Revocation { at: Timestamp::from_millis(0), reason: "stolen".to_owned() };
    for (keys, body) in [
        (Keys::only(key(2)).accepting(key(1), None), Ok(b"s3cret".to_vec())),
        (
            Keys::only(key(2)).accepting(key(1), Some(revoked)),
            Err(DecryptError::RevokedKey(key(1).id())),
        ),
        (Keys::only(key(2)), Err(DecryptError::UnknownKey(key(1).id()))),
    ] {
        let builder = Adjourn::builder(directory.path().join("s.db")).keys(keys).with_new_key();
        let adjourn = builder.clock(Arc::new(clock.clone())).open().await.unwrap();
        let found = adjourn.session(id).recipients(run, KIND).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].body, body);
        let taken = next(&mut adjourn.tell_recipients(KIND).unwrap()).await;
        assert_eq!(taken.body().map(<[u8]>::to_vec).map_err(Clone::clone), body);
        drop(taken);
        adjourn.close().await;
    }
    let looked = Adjourn::builder(directory.path().join("s.db")).read_only().open().await.unwrap();
    assert!(!looked.keeps_secrets());
    let added = looked.session(id).add_recipient(recipient(run, "two", 0)).await;
    assert!(matches!(added, Err(Error::Record(RecordError::NoKeys))), "{added:?}");
}

#[tokio::test]
async fn recipients_whose_adding_or_removing_is_dropped_are_added_and_removed() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let adjourn = open(directory.path(), Keys::only(key(1)), &clock).await;
    let mut recipients = adjourn.tell_recipients(KIND).unwrap();
    let session = adjourn.create("reviewer").prompt("Review it.").await.unwrap();
    let state = session.load().await.unwrap();
    let run = state.run().unwrap().id;
    let added = || session.add_recipient(recipient(run, "one", state.revision));
    let removed = || session.remove_recipient(run, KIND, "one");
    let there = async |count: usize| {
        let is_there = async {
            while session.recipients(run, KIND).await.unwrap().len() != count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(SOON, is_there).await.unwrap();
    };
    drop(added());
    adjourn.transact(|_| Ok::<_, StoreError>(())).await.unwrap();
    there(0).await;
    touch(added());
    there(1).await;
    // Those who tell hear of it, as of any other.
    session.suspend().await.unwrap();
    assert_eq!(next(&mut recipients).await.id(), "one");
    drop(removed());
    adjourn.transact(|_| Ok::<_, StoreError>(())).await.unwrap();
    there(1).await;
    touch(removed());
    there(0).await;
}

#[tokio::test]
async fn one_whose_taking_is_dropped_is_taken_again_when_the_claim_is_over() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let adjourn = open(directory.path(), Keys::only(key(1)), &clock).await;
    let mut recipients = adjourn.tell_recipients(KIND).unwrap();
    let (session, _) = told(&adjourn).await;
    none(&mut recipients).await;
    session.suspend().await.unwrap();
    let path = directory.path().join("s.db");
    let store = Sqlite::look(&path, Arc::new(clock.clone()), 1).unwrap();
    let is_claimed = || {
        let found = store.open_recipients(KIND, Of::Session(session.id()), 1).unwrap();
        found[0].holder.is_some()
    };
    let claims = || {
        touch(recipients.next());
        is_claimed()
    };
    until("claimed", claims).await;
    // What happens to the session meanwhile is told later, too.
    session.resume().await.unwrap();
    none(&mut recipients).await;
    clock.advance(Duration::from_secs(60));
    let mut taken = next(&mut recipients).await;
    assert!(!taken.told(all_told(&session).await, Then::Rest).await.unwrap());
}

#[tokio::test]
async fn how_far_one_was_told_is_committed_when_its_future_is_dropped() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let adjourn = open(directory.path(), Keys::only(key(1)), &clock).await;
    let mut recipients = adjourn.tell_recipients(KIND).unwrap();
    let (session, _) = told(&adjourn).await;
    session.suspend().await.unwrap();
    let mut taken = next(&mut recipients).await;
    let (before, all) = (taken.place(), all_told(&session).await);
    drop(taken.told(all, Then::Rest));
    touch(taken.told(all, Then::Rest));
    assert_eq!(taken.place(), before);
    adjourn.transact(|_| Ok::<_, StoreError>(())).await.unwrap();
    none(&mut recipients).await;
    session.resume().await.unwrap();
    assert_eq!(next(&mut recipients).await.place(), all);
}

#[tokio::test]
async fn one_that_is_removed_is_told_nothing_more() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let adjourn = open(directory.path(), Keys::only(key(1)), &clock).await;
    let mut recipients = adjourn.tell_recipients(KIND).unwrap();
    let (session, run) = told(&adjourn).await;
    session.suspend().await.unwrap();
    let mut taken = next(&mut recipients).await;
    assert!(session.remove_recipient(run, KIND, "one").await.unwrap());
    assert!(!session.remove_recipient(run, KIND, "one").await.unwrap());
    assert!(!taken.told(all_told(&session).await, Then::More).await.unwrap());
    session.resume().await.unwrap();
    none(&mut recipients).await;
    assert!(session.recipients(run, KIND).await.unwrap().is_empty());
}
