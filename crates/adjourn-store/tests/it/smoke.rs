//! The first thing to look at when everything fails.

use adjourn_core::Command;
use adjourn_core::command::{Resume, Suspend};
use adjourn_store::{CommandError, Store as _};

use crate::fixture::{Fixture, give, keys, prompt};

#[test]
fn a_session_is_suspended_resumed_and_found_again() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    prompt(&store, id, "build").unwrap();
    let done = give(&store, id, Command::Suspend(Suspend::default())).unwrap();
    let handle = done.session.suspended().unwrap().park.pause.handle;
    drop(store);

    let store = fixture.open();
    assert_eq!(*store.session(id).unwrap().unwrap(), *done.session);
    let resume = Command::Resume(Resume { handle: Some(handle), ..Resume::default() });
    give(&store, id, resume.clone()).unwrap();
    let again = give(&store, id, resume).unwrap_err();
    assert!(
        matches!(again, CommandError::Rejected(refused) if refused.reason() == "ALREADY_RESUMED")
    );
    assert_eq!(store.transcript(id, 0, 10).unwrap(), [b"build".to_vec()]);
    let verified = store.verify(&keys().ring(), None).unwrap().unwrap();
    assert_eq!((verified.sessions, verified.entries, verified.said), (1, 4, 1));
}
