//! A store under several names, and one that is moved away.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use adjourn_store::sqlite::Options;
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

/// A file with two names would have two logs, and two locks.
#[test]
fn a_store_with_a_second_name_is_refused_with_the_names() {
    let fixture = Fixture::new();
    let id = fixture.create(&fixture.open());
    let second = fixture.directory.path().join("second.db");
    std::fs::hard_link(fixture.path(), &second).unwrap();
    for (path, other) in [(fixture.path(), &second), (second.clone(), &fixture.path())] {
        let refused = Sqlite::open(Options { path, ..fixture.options() }).err();
        let refused = refused.expect("it has two names");
        let said = refused.to_string();
        assert!(said.contains(&other.display().to_string()), "{said}");
        assert!(refused.hint().unwrap().contains("ln -s"), "{:?}", refused.hint());
    }
    let left =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("second.db-");
    let entries = std::fs::read_dir(fixture.directory.path()).unwrap().flatten();
    assert_eq!(entries.filter(left).count(), 0, "nothing is left beside the second name");
    // It can be looked at: a tool for backups may have linked it.
    let looked = Sqlite::look(&fixture.path(), fixture.environment.clone(), 0).unwrap();
    assert!(looked.session(id).unwrap().is_some());
    drop(looked);
    std::fs::remove_file(second).unwrap();
    assert!(fixture.open().session(id).unwrap().is_some());
}

/// A restore that was cut short leaves a second name of the store that it was to keep.
#[test]
fn a_second_name_that_a_restore_left_goes_by_itself() {
    let fixture = Fixture::new();
    let id = fixture.create(&fixture.open());
    let left = fixture.directory.path().join("store.db.before-20260101T000000000Z");
    std::fs::hard_link(fixture.path(), &left).unwrap();
    assert!(fixture.open().session(id).unwrap().is_some());
    assert!(!left.exists());
}

/// Nobody reads one file and writes another.
#[test]
fn a_store_that_was_moved_away_is_not_mixed_with_the_next_one() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    std::fs::rename(fixture.path(), fixture.path().with_extension("old")).unwrap();
    let hasty = Options { patience: Duration::ZERO, ..fixture.options() };
    // The log at the old name is still written by whoever has the old file.
    let refused = Sqlite::open(hasty).err().expect("the old file is in use");
    assert!(matches!(&refused, Error::InUse { .. }), "{refused}");
    let error = store.session(id).unwrap_err();
    assert!(matches!(&error, Error::Replaced { .. }), "{error}");
    drop(store);
    let next = fixture.open();
    assert!(next.session(id).unwrap().is_none());
    assert!(next.set_aside().is_some(), "the log of the old file");
}
