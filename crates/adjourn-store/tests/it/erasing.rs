//! Erasing what has ended, a little at a time: at every step the store verifies, and others need
//! not wait.

use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::command::{Close, Resume, Suspend};
use adjourn_store::{Erased, Error, Retention, Store as _};

use crate::fixture::{Fixture, ann, create, give, keys, prompt};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A long session with large words is erased in many short transactions.
#[test]
fn a_long_session_is_erased_in_portions_and_verifies_at_every_step() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (id, other) = (create(&store), create(&store));
    prompt(&store, other, "something else").unwrap();
    for number in 0..400 {
        prompt(&store, id, &format!("{number} {}", "x".repeat(20_000))).unwrap();
        give(&store, id, Command::Cancel(Default::default())).unwrap();
    }
    let ended = give(&store, id, Command::Close(Close::default())).unwrap().session;
    let mut all = Erased { more: true, ..Erased::default() };
    let mut rounds = 0;
    while all.more {
        let erased = store.transact(move |tx| tx.erase(id)).wait();
        let erased = erased.map_err(|error: Error| error).unwrap();
        assert!(erased.entries + erased.said <= 513, "{erased:?}");
        all = all.and(erased);
        rounds += 1;
        // From the first step on it counts as gone, and what is left is as it should be.
        assert!(store.founding(id).unwrap().is_none());
        assert_eq!(store.session(id).unwrap().unwrap(), ended);
        store.verify(&keys().ring(), None).unwrap().unwrap();
    }
    assert!(rounds > 8, "eight megabytes in {rounds} rounds");
    assert_eq!((all.entries, all.said), (ended.revision - 1, 400));
    let again = store.transact(move |tx| tx.erase(id)).wait();
    assert_eq!(again.map_err(|error: Error| error).unwrap(), Erased::default());
    assert_eq!(store.transcript(other, 0, 10).unwrap().len(), 1);
}

/// What somebody began to erase, and did not come to an end with, is erased by whoever prunes.
#[test]
fn an_erasure_that_was_broken_off_is_finished_by_pruning() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = create(&store);
    for number in 0..400 {
        prompt(&store, id, &number.to_string()).unwrap();
        give(&store, id, Command::Cancel(Default::default())).unwrap();
    }
    let retention = Retention::default();
    let ended = give(&store, id, Command::Close(Close::default())).unwrap().session;
    assert!(!store.prunable(&retention).unwrap());
    let erased = store.transact(move |tx| tx.erase(id)).wait();
    assert!(erased.map_err(|error: Error| error).unwrap().more);
    while store.prunable(&retention).unwrap() {
        store.transact(move |tx| tx.prune(&retention, 100)).wait().unwrap();
    }
    let verified = store.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!((verified.pruned, verified.said), (ended.revision - 1, 0));
}

/// A host finds what is due by reading, and drops it as long as there is some.
#[test]
fn what_may_go_is_known_without_the_write_lock() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let retention = Retention::of_hosts();
    let (unprompted, ended, idle, waits) =
        (create(&store), create(&store), create(&store), create(&store));
    for id in [ended, idle, waits] {
        prompt(&store, id, "build").unwrap();
    }
    give(&store, idle, Command::Cancel(Default::default())).unwrap();
    give(&store, waits, Command::Suspend(Suspend::default())).unwrap();
    give(&store, ended, Command::Close(Close::default())).unwrap();
    assert!(!store.prunable(&retention).unwrap());
    fixture.environment.advance(DAY);
    assert!(!store.prunable(&retention).unwrap());
    fixture.environment.advance(Duration::from_millis(1));
    assert!(store.prunable(&retention).unwrap());
    let dropped = store
        .transact(move |tx| tx.drop_unprompted(&ann(), DAY, &[unprompted], 10))
        .wait()
        .unwrap();
    assert_eq!(dropped, 0, "it is shown to somebody");
    let dropped = store.transact(|tx| tx.drop_unprompted(&ann(), DAY, &[], 10)).wait().unwrap();
    assert_eq!(dropped, 1);
    store.transact(move |tx| tx.prune(&retention, 10)).wait().unwrap();
    assert!(store.founding(unprompted).unwrap().is_none());
    assert_eq!(store.session(unprompted).unwrap().unwrap().state.name(), "ended");
    assert!(!store.prunable(&retention).unwrap());

    fixture.environment.advance(DAY * 29);
    assert!(store.prunable(&retention).unwrap());
    let pruned = store.transact(move |tx| tx.prune(&retention, 10)).wait();
    assert_eq!(pruned.map_err(|error: Error| error).unwrap().sessions, 1);
    assert!(!store.prunable(&retention).unwrap());
    assert!(store.founding(ended).unwrap().is_none());
    for id in [idle, waits] {
        assert_eq!(store.transcript(id, 0, 10).unwrap().len(), 1);
    }
    store.verify(&keys().ring(), None).unwrap().unwrap();
}

/// One that was suspended and resumed, and never prompted, goes like any other; one that somebody
/// keeps suspended stays.
#[test]
fn a_session_that_was_never_prompted_goes_whatever_else_happened_to_it() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let retention = Retention::of_hosts();
    let (resumed, held, prompted) = (create(&store), create(&store), create(&store));
    for id in [resumed, held] {
        give(&store, id, Command::Suspend(Suspend::default())).unwrap();
    }
    give(&store, resumed, Command::Resume(Resume::default())).unwrap();
    prompt(&store, prompted, "build").unwrap();
    give(&store, prompted, Command::Cancel(Default::default())).unwrap();
    fixture.environment.advance(DAY + Duration::from_millis(1));
    assert!(store.prunable(&retention).unwrap());
    let dropped = store.transact(|tx| tx.drop_unprompted(&ann(), DAY, &[], 10)).wait().unwrap();
    assert_eq!(dropped, 1);
    assert_eq!(store.session(resumed).unwrap().unwrap().state.name(), "ended");
    while store.prunable(&retention).unwrap() {
        store.transact(move |tx| tx.prune(&retention, 100)).wait().unwrap();
    }
    assert_eq!(store.session(held).unwrap().unwrap().state.name(), "suspended");
    give(&store, held, Command::Resume(Resume::default())).unwrap();
    assert!(!store.prunable(&retention).unwrap(), "somebody was here just now");
    fixture.environment.advance(DAY + Duration::from_millis(1));
    let dropped = store.transact(|tx| tx.drop_unprompted(&ann(), DAY, &[], 10)).wait().unwrap();
    assert_eq!(dropped, 1);
    assert_eq!(store.session(prompted).unwrap().unwrap().state.name(), "idle");
    store.verify(&keys().ring(), None).unwrap().unwrap();
}
