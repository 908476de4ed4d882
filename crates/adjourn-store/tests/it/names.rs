//! A store under several names, and one that is moved away.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use adjourn_store::{Error, Sqlite, Store as _};

use crate::fixture::Fixture;

/// Whoever comes over a link finds the same files beside the store as everybody else.
#[test]
fn a_link_to_a_store_leads_to_one_store() {
    let fixture = Fixture::new();
    let elsewhere = fixture.directory.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let link = elsewhere.join("link.db");
    symlink("../store.db", &link).unwrap();
    // Over the link first, when there is nothing behind it yet.
    let mut options = fixture.options();
    options.path = link;
    let linked = Sqlite::open(options).unwrap();
    let direct = fixture.open();
    assert_eq!(linked.path(), direct.path());
    let id = fixture.create(&linked);
    assert!(direct.session(id).unwrap().is_some());
    let mode = std::fs::metadata(fixture.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let beside = std::fs::read_dir(&elsewhere).unwrap().count();
    assert_eq!(beside, 1, "nothing lies beside the link");
}

/// Nobody reads one file and writes another.
#[test]
fn a_store_that_was_moved_away_is_not_mixed_with_the_next_one() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    std::fs::rename(fixture.path(), fixture.path().with_extension("old")).unwrap();
    let next = fixture.open();
    let error = store.session(id).unwrap_err();
    assert!(matches!(&error, Error::CannotOpen { .. }), "{error}");
    assert!(error.to_string().ends_with("the store was moved away while it was in use"), "{error}");
    assert!(next.session(id).unwrap().is_none());
}
