//! Sessions that move: exported to a signed record, and taken in elsewhere.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjourn::core::event::What;
use adjourn::core::id::SessionId;
use adjourn::core::rejected::NotExportable;
use adjourn::core::session::{Cause, SessionEnd, State};
use adjourn::core::time::Timestamp;
use adjourn::core::{Rejected, Session};
use adjourn::keys::{Key, Keys};
use adjourn::record::{OpenError, Record};
use adjourn::{Adjourn, Error, RecordError, SessionRef};
use adjourn_record::keys::Revocation;
use adjourn_testkit::VirtualClock;
use serde_json::{Value, json};

use crate::dropping::{touch, until};

fn key(number: u8) -> Key {
    Key::from_secrets(Timestamp::from_millis(0), &[number; 32], &[number; 32])
}

async fn open(directory: &Path, name: &str, keys: Keys, clock: &VirtualClock) -> Adjourn {
    let builder = Adjourn::builder(directory.join(name)).keys(keys).clock(Arc::new(clock.clone()));
    builder.open().await.unwrap()
}

/// Makes a session in which something was said, and parks it.
async fn parked(adjourn: &Adjourn) -> SessionRef {
    let created = adjourn.create("reviewer").label("team", "infra").title("Nightly");
    let session = created.prompt("Review it.").await.unwrap();
    session.suspend().reason("lunch").await.unwrap();
    session
}

/// Two stores that trust the same key, and a session that is parked in the first.
async fn two(directory: &Path, clock: &VirtualClock) -> (Adjourn, Adjourn, SessionRef) {
    let here = open(directory, "here.db", Keys::only(key(1)), clock).await;
    let trusting = Keys::only(key(2)).opening(key(1).sealing_half(), None);
    let there = open(directory, "there.db", trusting, clock).await;
    let session = parked(&here).await;
    (here, there, session)
}

async fn is_whole(adjourn: &Adjourn, keys: &Keys) {
    adjourn.verify(keys.ring(), None).await.unwrap().unwrap();
}

fn ended(session: &Session) -> SessionEnd {
    match &session.state {
        State::Ended(ended) => ended.how,
        state => panic!("it has not ended: {state:?}"),
    }
}

#[tokio::test]
async fn what_moves_a_session_takes_its_course_when_it_is_dropped() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let (_here, there, session) = two(directory.path(), &clock).await;
    touch(session.export().into_future());
    until(&session, "session_ended").await;
    let exported = session.export().await.unwrap();
    assert!(exported.commit.is_none(), "the export that was dropped has ended it");
    assert_eq!(ended(&exported.session), SessionEnd::Exported);

    let entries = there.size().await.unwrap().entries;
    drop(there.import(exported.record.clone()).into_future());
    // Behind whatever is queued.
    there.transact(|_| Ok::<_, adjourn::StoreError>(())).await.unwrap();
    assert_eq!(there.size().await.unwrap().entries, entries, "it was never polled");
    touch(there.import(exported.record.clone()).into_future());
    while there.size().await.unwrap().sessions == 0 {
        tokio::task::yield_now().await;
    }
    let refused = there.import(exported.record).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Rejected::AlreadyConsumed { .. })), "{refused}");
}

#[tokio::test]
async fn an_import_with_its_commit_takes_its_course_when_it_is_dropped() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let (_here, there, session) = two(directory.path(), &clock).await;
    let record = session.export().await.unwrap().record;
    drop(there.import(record.clone()).with_commit());
    // Behind whatever is queued.
    there.transact(|_| Ok::<_, adjourn::StoreError>(())).await.unwrap();
    assert_eq!(there.size().await.unwrap().sessions, 0, "it was never polled");
    touch(there.import(record.clone()).with_commit());
    while there.size().await.unwrap().sessions == 0 {
        tokio::task::yield_now().await;
    }
    let refused = there.import(record).with_commit().await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Rejected::AlreadyConsumed { .. })), "{refused}");
}

#[tokio::test]
async fn a_parked_session_goes_on_in_another_store_with_all_that_it_knew() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let (here, there, session) = two(directory.path(), &clock).await;
    let before = session.load().await.unwrap();
    let exported = session.export().reason("moved".to_owned()).await.unwrap();
    assert_eq!(ended(&exported.commit.unwrap().session), SessionEnd::Exported);
    let refused = session.resume().await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Rejected::Ended { .. })), "{refused}");
    let record: Record = exported.record.to_string().parse().unwrap();
    let moved = there.import(record).name("mine").await.unwrap();
    let after = moved.load().await.unwrap();
    assert_ne!(after.id, before.id);
    assert_eq!(after.transcript, before.transcript);
    assert_eq!((&after.totals, &after.budget), (&before.totals, &before.budget));
    assert_eq!(after.memory, before.memory);
    assert_eq!(after.labels["team"], "infra");
    assert_eq!(after.labels["name"], "mine");
    let handle = |session: &Session| session.suspended().unwrap().park.pause.handle;
    assert_eq!(handle(&after), handle(&before));
    let run = before.run().unwrap().id;
    assert_eq!(there.session_of(run).await.unwrap().map(|of| of.id()), Some(after.id));
    moved.resume().await.unwrap();
    assert!(matches!(moved.load().await.unwrap().state, State::Ready(_)));
    is_whole(&here, &Keys::only(key(1))).await;
    is_whole(&there, &Keys::only(key(2))).await;
    // And back, into the store that it comes from.
    moved.suspend().await.unwrap();
    let back = moved.export().await.unwrap().record;
    let refused = here.import(back.clone()).await.unwrap_err();
    assert!(refused.hint().is_some(), "{refused}");
    drop((here, session));
    let trusting = Keys::only(key(1)).opening(key(2).sealing_half(), None);
    let here = open(directory.path(), "here.db", trusting, &clock).await;
    let back = here.import(back).await.unwrap();
    assert_eq!(back.load().await.unwrap().transcript, before.transcript);
    is_whole(&here, &Keys::only(key(1))).await;
}

#[tokio::test]
async fn what_was_exported_is_had_again_byte_for_byte() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let (here, _there, session) = two(directory.path(), &clock).await;
    let id = session.id();
    let first = session.export().await.unwrap().record.to_string();
    let again = session.export().await.unwrap();
    assert!(again.commit.is_none() && again.is_first);
    assert_eq!(again.record.to_string(), first);
    drop((here, session));
    let export = async |keys: Keys| {
        let here = open(directory.path(), "here.db", keys, &clock).await;
        here.session(id).export().await.unwrap()
    };
    let rotated = export(Keys::only(key(3)).accepting(key(1), None)).await;
    assert_eq!(rotated.record.to_string(), first, "the key that sealed it is still good");
    assert!(rotated.is_first);
    let at = Timestamp::from_millis(1);
    let revoked = Revocation { at, reason: "it leaked".to_owned() };
    let revoked = export(Keys::only(key(3)).accepting(key(1), Some(revoked))).await;
    assert_eq!(revoked.record.kid(), key(3).id().to_string());
    assert!(!revoked.is_first);
}

/// Exports a session, and returns the record beside a copy of the store from before that.
async fn exported_and_before(
    directory: &Path,
    clock: &VirtualClock,
) -> (SessionId, Record, Adjourn) {
    let keys = || Keys::only(key(1));
    let id = parked(&open(directory, "here.db", keys(), clock).await).await.id();
    std::fs::copy(directory.join("here.db"), directory.join("copy.db")).unwrap();
    let here = open(directory, "here.db", keys(), clock).await;
    let record = here.session(id).export().await.unwrap().record;
    (id, record, open(directory, "copy.db", keys(), clock).await)
}

fn is_open_here(refused: &Error, id: SessionId) -> bool {
    matches!(refused, Error::Refused(Rejected::OpenHere { session, .. }) if *session == id)
}

#[tokio::test]
async fn a_record_is_not_taken_in_beside_the_session_that_it_was_made_of() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let keys = || Keys::only(key(1));
    let (id, record, copy) = exported_and_before(directory.path(), &clock).await;
    let refused = copy.import(record.clone()).await.unwrap_err();
    assert!(is_open_here(&refused, id), "{refused}");
    is_whole(&copy, &keys()).await;
    copy.session(id).close().await.unwrap();
    copy.import(record).await.unwrap();
    is_whole(&copy, &keys()).await;
}

#[tokio::test]
async fn a_record_is_not_taken_in_where_its_session_has_gone_on() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let keys = || Keys::only(key(1));
    let (id, record, copy) = exported_and_before(directory.path(), &clock).await;
    copy.session(id).resume().await.unwrap();
    for (suspends, closes) in [(0, false), (40, false), (0, true)] {
        // More than a session remembers.
        for _ in 0..suspends {
            copy.session(id).suspend().await.unwrap();
            copy.session(id).resume().await.unwrap();
        }
        if closes {
            copy.session(id).close().await.unwrap();
        }
        let refused = copy.import(record.clone()).await.unwrap_err();
        let Error::Refused(Rejected::AlreadyConsumed { session, .. }) = refused else {
            panic!("{refused}")
        };
        assert_eq!(session, id);
    }
    is_whole(&copy, &keys()).await;
}

/// The copy did something else from before the record on, which says nothing of the record.
#[tokio::test]
async fn a_record_is_taken_in_where_its_session_went_another_way_and_is_closed() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let keys = || Keys::only(key(1));
    let early = open(directory.path(), "here.db", keys(), &clock).await;
    let id = early.create("agent").prompt("go").await.unwrap().id();
    drop(early);
    std::fs::copy(directory.path().join("here.db"), directory.path().join("copy.db")).unwrap();
    let here = open(directory.path(), "here.db", keys(), &clock).await;
    here.session(id).suspend().await.unwrap();
    let record = here.session(id).export().await.unwrap().record;
    let copy = open(directory.path(), "copy.db", keys(), &clock).await;
    copy.session(id).cancel().await.unwrap();
    copy.session(id).prompt("something else, and more of it").await.unwrap();
    copy.session(id).close().await.unwrap();
    copy.import(record).await.unwrap();
    is_whole(&copy, &keys()).await;
}

/// Nothing is known of it: it may be open.
#[tokio::test]
async fn a_record_is_not_taken_in_beside_a_session_that_cannot_be_read() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let keys = || Keys::only(key(1));
    let id = parked(&open(directory.path(), "here.db", keys(), &clock).await).await.id();
    std::fs::copy(directory.path().join("here.db"), directory.path().join("copy.db")).unwrap();
    let here = open(directory.path(), "here.db", keys(), &clock).await;
    let record = here.session(id).export().await.unwrap().record;
    let file = rusqlite::Connection::open(directory.path().join("copy.db")).unwrap();
    let damage = "UPDATE journal SET body = x'7b7d' WHERE no = (SELECT head FROM session)";
    assert_eq!(file.execute(damage, []).unwrap(), 1);
    drop(file);
    let copy = open(directory.path(), "copy.db", keys(), &clock).await;
    let refused = copy.import(record.clone()).await.unwrap_err();
    assert!(refused.is_of_a_session(), "{refused}");
    copy.session(id).remove().even_unreadable().await.unwrap();
    copy.import(record).await.unwrap();
}

#[tokio::test]
async fn a_record_that_comes_back_by_way_of_another_store_is_not_taken_in_beside_its_session() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let keys = || Keys::only(key(1));
    let id = parked(&open(directory.path(), "here.db", keys(), &clock).await).await.id();
    // A copy from before the export.
    std::fs::copy(directory.path().join("here.db"), directory.path().join("copy.db")).unwrap();
    let here = open(directory.path(), "here.db", keys(), &clock).await;
    let there = open(directory.path(), "there.db", keys(), &clock).await;
    let moved = there.import(here.session(id).export().await.unwrap().record).await.unwrap();
    let record = moved.export().await.unwrap().record;
    let copy = open(directory.path(), "copy.db", keys(), &clock).await;
    let refused = copy.import(record.clone()).await.unwrap_err();
    assert!(is_open_here(&refused, id), "{refused}");
    is_whole(&copy, &keys()).await;
    // Where it was before, it has ended.
    here.import(record).await.unwrap();
    is_whole(&here, &keys()).await;
}

/// Stores from before the row of a run moved with its session.
#[tokio::test]
async fn a_run_that_is_known_under_the_session_it_comes_from_is_no_fault() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let keys = || Keys::only(key(1));
    let here = open(directory.path(), "here.db", keys(), &clock).await;
    let session = parked(&here).await;
    let record = session.export().await.unwrap().record;
    here.import(record).await.unwrap();
    drop((here, session));
    let file = rusqlite::Connection::open(directory.path().join("here.db")).unwrap();
    assert_eq!(file.execute("UPDATE run SET session = 1", []).unwrap(), 1);
    drop(file);
    is_whole(&open(directory.path(), "here.db", keys(), &clock).await, &keys()).await;
    // Under one that it has nothing to do with it is.
    let here = open(directory.path(), "here.db", keys(), &clock).await;
    parked(&here).await;
    drop(here);
    let file = rusqlite::Connection::open(directory.path().join("here.db")).unwrap();
    let sql = "UPDATE run SET session = 3 WHERE session = 1";
    assert_eq!(file.execute(sql, []).unwrap(), 1);
    drop(file);
    let here = open(directory.path(), "here.db", keys(), &clock).await;
    assert!(here.verify(keys().ring(), None).await.unwrap().is_err());
}

#[tokio::test]
async fn a_record_is_taken_in_once_by_a_store_however_many_try() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let (_here, there, session) = two(directory.path(), &clock).await;
    let record = session.export().await.unwrap().record;
    let tries: Vec<_> = (0..8)
        .map(|_| {
            let (there, record) = (there.clone(), record.clone());
            tokio::spawn(async move { there.import(record).await.map(|moved| moved.id()) })
        })
        .collect();
    let mut taken: Vec<SessionId> = Vec::new();
    for tried in tries {
        match tried.await.unwrap() {
            Ok(id) => taken.push(id),
            Err(Error::Refused(Rejected::AlreadyConsumed { .. })) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let [id] = taken[..] else { panic!("{taken:?} went on") };
    // Also when what became of it is gone.
    there.session(id).remove().even_at_work().await.unwrap();
    let refused = there.import(record).await.unwrap_err();
    let Error::Refused(refused @ Rejected::AlreadyConsumed { session, .. }) = refused else {
        panic!("{refused}")
    };
    assert_eq!(session, id);
    assert!(refused.remedy().unwrap().contains("adjourn show"), "{refused}");
    is_whole(&there, &Keys::only(key(2))).await;
}

/// A suspension keeps its handle wherever it goes; the ledger knows its records apart.
#[tokio::test]
async fn a_parked_session_moves_there_and_back_as_often_as_it_likes_without_waking() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let trusting =
        |mine: u8, other: u8| Keys::only(key(mine)).opening(key(other).sealing_half(), None);
    let here = open(directory.path(), "here.db", trusting(1, 2), &clock).await;
    let there = open(directory.path(), "there.db", trusting(2, 1), &clock).await;
    let mut session = parked(&here).await;
    let before = session.load().await.unwrap();
    let mut used: Vec<(&Adjourn, Record)> = Vec::new();
    // The last one is taken in by the store that it comes from.
    for to in [&there, &here, &there, &here, &here] {
        let record = session.export().await.unwrap().record;
        session = to.import(record.clone()).await.unwrap();
        used.push((to, record));
    }
    let after = session.load().await.unwrap();
    assert_eq!(after.transcript, before.transcript);
    assert_eq!(
        after.suspended().unwrap().park.pause.handle,
        before.suspended().unwrap().park.pause.handle
    );
    for (by, record) in used {
        let refused = by.import(record).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(Rejected::AlreadyConsumed { .. })), "{refused}");
    }
    session.resume().await.unwrap();
    is_whole(&here, &Keys::only(key(1))).await;
    is_whole(&there, &Keys::only(key(2))).await;
}

#[tokio::test]
async fn a_record_that_is_sealed_anew_since_its_key_was_revoked_is_the_same_record() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let here = open(directory.path(), "here.db", Keys::only(key(1)), &clock).await;
    let trusting = Keys::only(key(2)).opening(key(1).sealing_half(), None);
    let there =
        open(directory.path(), "there.db", trusting.opening(key(3).sealing_half(), None), &clock);
    let there = there.await;
    let session = parked(&here).await;
    let first = session.export().await.unwrap().record;
    let moved = there.import(first.clone()).await.unwrap();
    let id = session.id();
    drop((here, session));
    let revoked = Revocation { at: Timestamp::from_millis(1), reason: "it leaked".to_owned() };
    let keys = Keys::only(key(3)).accepting(key(1), Some(revoked));
    let here = open(directory.path(), "here.db", keys, &clock).await;
    let anew = here.session(id).export().await.unwrap().record;
    assert_ne!(anew.token(), first.token());
    let refused = there.import(anew).await.unwrap_err();
    let Error::Refused(Rejected::AlreadyConsumed { session, .. }) = refused else {
        panic!("{refused}")
    };
    assert_eq!(session, moved.id());
}

/// Takes in a record that was changed as JSON.
async fn changed(
    adjourn: &Adjourn,
    record: &Record,
    change: impl FnOnce(&mut Value),
) -> RecordError {
    let mut value = serde_json::to_value(record).unwrap();
    change(&mut value);
    let record = match value.to_string().parse::<Record>() {
        Ok(record) => record,
        Err(error) => return error.into(),
    };
    match adjourn.import(record).await.unwrap_err() {
        Error::Record(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_record_that_is_not_good_is_refused_and_says_what_to_do() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let (_here, there, session) = two(directory.path(), &clock).await;
    let record = session.export().await.unwrap().record;
    let value = serde_json::to_value(&record).unwrap();
    for member in value.as_object().unwrap().keys().filter(|member| *member != "v") {
        let error = changed(&there, &record, |value| {
            let text = value[member].as_str().unwrap();
            // Another one of the same form: a digit, a letter, a space.
            let last = text.char_indices().rev().find(|(_, c)| c.is_ascii_alphanumeric());
            let (at, old) = last.unwrap();
            let new = if old == '1' { '2' } else { '1' };
            value[member] = json!(format!("{}{new}{}", &text[..at], &text[at + 1..]));
        })
        .await;
        assert!(
            matches!(
                error,
                RecordError::NotOpened(
                    OpenError::TokenMismatch { .. }
                        | OpenError::UnknownKey { .. }
                        | OpenError::Malformed { .. }
                )
            ),
            "{member}: {error}"
        );
    }
    let later = changed(&there, &record, |value| value["v"] = json!(2)).await;
    assert_eq!(later.reason(), "UNKNOWN_VERSION");
    let timeless = changed(&there, &record, |value| {
        value.as_object_mut().unwrap().remove("suspendedAt");
    })
    .await;
    assert_eq!(timeless.reason(), "MALFORMED_RECORD");
    let stranger = open(directory.path(), "x.db", Keys::only(key(9)), &clock).await;
    let unknown = changed(&stranger, &record, |_| {}).await;
    assert_eq!(unknown.reason(), "UNKNOWN_KEY");
    assert!(unknown.hint().unwrap().contains("adjourn keys share"), "{unknown}");
    let at = Timestamp::from_millis(1);
    let revoked = Some(Revocation { at, reason: "it leaked".to_owned() });
    let revoked = Keys::only(key(2)).opening(key(1).sealing_half(), revoked);
    let revoking = open(directory.path(), "y.db", revoked, &clock).await;
    assert_eq!(changed(&revoking, &record, |_| {}).await.reason(), "REVOKED_KEY");
    let other = there.clone().in_tenant("acme");
    assert_eq!(changed(&other, &record, |_| {}).await.reason(), "OTHER_TENANT");
    clock.advance(Duration::from_secs(25 * 60 * 60));
    let old = changed(&there, &record, |_| {}).await;
    assert_eq!(old.reason(), "SUSPENSION_EXPIRED");
    assert!(old.hint().unwrap().contains("--max-age"), "{old}");
    clock.set_back(Duration::from_secs(26 * 60 * 60));
    let early = changed(&there, &record, |_| {}).await;
    assert_eq!(early.reason(), "FROM_THE_FUTURE");
    clock.set_ahead(Duration::from_secs(40 * 60 * 60));
    there.import(record).max_age(None).await.unwrap();
}

#[tokio::test]
async fn only_a_parked_session_is_exported() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let here = open(directory.path(), "here.db", Keys::only(key(1)), &clock).await;
    let idle = here.create("reviewer").await.unwrap();
    let Error::Refused(refused) = idle.export().await.unwrap_err() else { panic!("not refused") };
    assert!(
        matches!(refused, Rejected::NotExportable { why: NotExportable::NotParked(_), .. }),
        "{refused}"
    );
    assert!(refused.remedy().unwrap().contains("adjourn suspend"), "{refused}");
    let nobody = here.session(SessionId::new(here.clock().uuid()));
    assert!(matches!(nobody.export().await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn a_deadline_that_has_passed_on_the_way_wakes_at_once() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let (here, there, _) = two(directory.path(), &clock).await;
    let session = here.create("reviewer").prompt("Wait.").await.unwrap();
    session.suspend().timeout(Duration::from_secs(30 * 60)).await.unwrap();
    let record = session.export().await.unwrap().record;
    clock.advance(Duration::from_secs(60 * 60));
    let host = there.host().start().await.unwrap();
    let moved = there.import(record).await.unwrap();
    let mut moments = moved.watch().await.unwrap();
    let resumed = loop {
        if let What::Resumed(resumed) = moments.next().await.unwrap().unwrap().event.what.clone() {
            break resumed;
        }
    };
    assert_eq!(resumed.resumption.cause, Cause::Timeout);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_parent_that_the_store_does_not_have_is_left_out() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let (here, there, parent) = two(directory.path(), &clock).await;
    for (store, expected) in [(&there, None), (&here, Some(parent.id()))] {
        let created = here.create("reviewer").parent(parent.id());
        let child = created.prompt("Review it.").await.unwrap();
        child.suspend().reason("lunch").await.unwrap();
        let record = child.export().await.unwrap().record;
        let taken = store.import(record).await.unwrap();
        assert_eq!(taken.load().await.unwrap().parent, expected);
    }
    is_whole(&here, &Keys::only(key(1))).await;
}
